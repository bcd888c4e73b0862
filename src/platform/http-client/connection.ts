import type { Socket } from 'node:net';
import { Writable } from 'node:stream';
import { connectTo, type Place } from '../place.ts';
import { headerLines, lastChunk, writeChunk } from '../http-lines.ts';

/** Hears what happens on a connection during one exchange. `closed` comes last. */
export type ExchangeListener = {
  /** Takes bytes. True: nothing refers to them any more, so the next read may overwrite them. */
  read(chunk: Buffer): boolean;
  /** The other side sends no more. */
  ended(): void;
  closed(): void;
  timedOut(): void;
};

const readBytes = 65_536;

/** A connection to an HTTP/1.1 server, for one exchange at a time. */
export class Connection {
  /** True after the first exchange. The server may close such a connection while the next request is on its way. */
  isReused = false;
  readonly #socket: Socket;
  #listener: ExchangeListener | undefined;
  /** Used for one read after the other: a new one for each would soon be most of the garbage of the process. */
  #buffer: Buffer;
  readonly #onData = (chunk: Buffer) => this.#read(chunk);
  readonly #onEnd = () => this.#listener?.ended();
  readonly #onTimeout = () => {
    if (this.#listener === undefined) this.#socket.destroy();
    else this.#listener.timedOut();
  };

  constructor(place: Place, { isUpgrade }: { readonly isUpgrade: boolean }, onClose: () => void) {
    // A WebSocket's connection becomes a stream that others read, and may be open and silent for hours.
    this.#buffer = Buffer.allocUnsafeSlow(isUpgrade ? 0 : readBytes);
    const onread = {
      buffer: () => this.#buffer,
      callback: (count: number) => {
        this.#read(this.#buffer.subarray(0, count));
        return true;
      },
    };
    this.#socket = connectTo(place, isUpgrade ? {} : { onread })
      .on('data', this.#onData)
      .on('end', this.#onEnd)
      .on('timeout', this.#onTimeout)
      // `close` follows.
      .on('error', () => undefined)
      .once('close', () => {
        onClose();
        this.#listener?.closed();
      });
  }

  /** False: the server has closed it, or its side of it. */
  get isUsable(): boolean {
    return !this.#socket.destroyed && this.#socket.readable;
  }

  #read(chunk: Buffer): void {
    // Bytes that answer no request.
    if (this.#listener === undefined) this.#socket.destroy();
    else if (!this.#listener.read(chunk)) this.#buffer = Buffer.allocUnsafeSlow(this.#buffer.length);
  }

  /** Sends the head of a request. `headers`: names and values in turn, which hold no line breaks. */
  begin(
    listener: ExchangeListener,
    request: { method: string; path: string; headers: readonly string[] },
  ): void {
    this.#listener = listener;
    const { method, path, headers } = request;
    this.#socket.write(`${method} ${path} HTTP/1.1\r\n${headerLines(headers)}\r\n`, 'latin1');
  }

  /** Takes the body of the request under way. */
  body({ isChunked }: { isChunked: boolean }): Writable {
    const socket = this.#socket;
    const body = new Writable({
      write(chunk: Buffer, _encoding, taken) {
        if (isChunked) writeChunk(socket, chunk, taken);
        else socket.write(chunk, taken);
      },
      final(done) {
        if (isChunked) socket.write(lastChunk, 'latin1');
        done();
      },
    });
    // The exchange hears that the connection closed.
    return body.on('error', () => undefined);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Milliseconds without a byte in either direction until `timedOut`. */
  setTimeout(ms: number): void {
    this.#socket.setTimeout(ms);
  }

  /** The exchange is over. Idle, the connection closes after `idleMs`, and at the first byte. */
  keepIdle(idleMs: number): void {
    this.#listener = undefined;
    this.isReused = true;
    this.#socket.setTimeout(idleMs);
    this.#socket.resume();
  }

  /** Gives the socket away, to be read by others. */
  detach(): Socket {
    this.#listener = undefined;
    return this.#socket
      .off('data', this.#onData)
      .off('end', this.#onEnd)
      .off('timeout', this.#onTimeout)
      .setTimeout(0);
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
