import {
  type IncomingMessage,
  type RequestListener,
  Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { second } from '../../core/clock.ts';
import { keptSeconds } from './answer-head.ts';
import { FastRequest, FastResponse } from './exchange.ts';
import { type Head, readSection, splitRequest } from './head.ts';

export { FastRequest, FastResponse } from './exchange.ts';

/** What a listener of a FastServer is given: which of the two answers a request is none of its business. */
export type HttpRequest = IncomingMessage | FastRequest;
export type HttpResponse = ServerResponse | FastResponse;
export type HttpListener = (request: HttpRequest, response: HttpResponse) => void;

/** Milliseconds between two looks at connections that nobody uses. */
const lookMs = second;
/** Looks at which a connection was found unused before it is ended: not before the time it was promised. */
const mostLooks = Math.ceil((keptSeconds * second) / lookMs) + 1;

/**
 * A server of node:http that answers the plainest requests itself (decision 0032). A connection begins here; as long as
 * all that arrives at once is one whole GET of the narrowest form (head.ts), the listener gets it in objects that cost a
 * tenth of node:http's. With the first bytes that are anything else the connection, and those bytes, are node:http's for
 * good. So there is nothing that this server reads differently, and much that it does not read.
 */
export class FastServer extends Server {
  readonly #fast = new Set<FastConnection>();
  readonly #looking: NodeJS.Timeout;

  constructor(options: ServerOptions, listener: HttpListener) {
    super(options, listener as RequestListener);
    const plainly = this.listeners('connection') as ((socket: Socket) => void)[];
    this.removeAllListeners('connection');
    this.on('connection', (socket: Socket) => {
      const connection = new FastConnection(socket, {
        request: (request, response) => void this.emit('request', request, response),
        handOver: () => {
          this.#fast.delete(connection);
          for (const take of plainly) take.call(this, socket);
        },
        gone: () => void this.#fast.delete(connection),
        stalledMs: () => this.timeout,
      });
      this.#fast.add(connection);
    });
    this.#looking = setInterval(() => {
      for (const connection of this.#fast) connection.look();
    }, lookMs).unref();
    this.once('close', () => clearInterval(this.#looking));
  }

  override closeIdleConnections(): void {
    super.closeIdleConnections();
    for (const connection of this.#fast) connection.closeIfIdle();
  }

  override closeAllConnections(): void {
    super.closeAllConnections();
    for (const connection of this.#fast) connection.close();
  }
}

type Owner = {
  request(request: FastRequest, response: FastResponse): void;
  handOver(): void;
  gone(): void;
  /** Milliseconds in which nothing of an answer is taken; 0 = no end. */
  stalledMs(): number;
};

/** From the first byte to the hand-over or the end. At most one request at a time. */
class FastConnection {
  readonly #socket: Socket;
  readonly #owner: Owner;
  #section = '';
  #head: Head | undefined;
  #current: FastResponse | undefined;
  /** Looks since something arrived. */
  #looks = 0;
  /** Bytes that wait behind the current request, and the looks that found more of them. */
  #ahead = 0;
  #trickles = 0;
  #hasAnswered = false;
  readonly #onEnd = (response: FastResponse) => this.#ended(response);
  readonly #onData = (chunk: Buffer) => this.#read(chunk);
  /** The client sends nothing more; what it waits for it still gets. */
  readonly #onHalfClosed = () => {
    if (this.#current === undefined) this.#socket.end();
    else this.#current.shouldKeepAlive = false;
  };
  readonly #onClose = () => {
    this.#owner.gone();
    this.#current?.close();
  };
  readonly #onStalled = () => this.close();

  constructor(socket: Socket, owner: Owner) {
    this.#socket = socket;
    this.#owner = owner;
    socket.on('error', ignore);
    socket.on('data', this.#onData);
    socket.on('end', this.#onHalfClosed);
    socket.on('close', this.#onClose);
    socket.on('timeout', this.#onStalled);
  }

  look(): void {
    this.#looks += 1;
    if (this.#current === undefined) {
      if (this.#looks > mostLooks) this.close();
      return;
    }
    // What trickles in makes the socket look used, although nothing of the answer is taken.
    const { readableLength } = this.#socket;
    if (readableLength === this.#ahead) return;
    this.#ahead = readableLength;
    this.#trickles += 1;
    if (this.#trickles > mostLooks) this.close();
  }

  /** Not one whose first request may be on its way. */
  closeIfIdle(): void {
    if (this.#current === undefined && (this.#hasAnswered || this.#looks > 0)) this.close();
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    this.#looks = 0;
    const plain = splitRequest(chunk);
    if (plain === undefined) return this.#handOver(chunk);
    // Most requests of a connection repeat the headers of the one before.
    if (plain.section !== this.#section) {
      this.#head = readSection(plain.section);
      this.#section = plain.section;
    }
    if (this.#head === undefined) return this.#handOver(chunk);
    const request = new FastRequest(plain.target, this.#head, this.#socket);
    const response = new FastResponse(request, this.#onEnd);
    this.#current = response;
    this.#owner.request(request, response);
    // Nothing more is read before this is answered.
    if (this.#current === response) this.#wait();
  }

  #wait(): void {
    this.#socket.pause();
    this.#socket.setTimeout(this.#owner.stalledMs());
  }

  #ended(response: FastResponse): void {
    if (this.#socket.writableLength === 0) return this.#sent(response);
    // An empty piece is taken after all that waits before it.
    this.#socket.write('', () => this.#sent(response));
  }

  #sent(response: FastResponse): void {
    this.#hasAnswered = true;
    // The time that the answer promised begins with its end.
    this.#looks = 0;
    this.#ahead = 0;
    this.#trickles = 0;
    this.#current = undefined;
    response.close();
    if (!response.shouldKeepAlive) {
      // What the client sends after its last answer is not read.
      this.#socket.pause();
      return this.#socket.destroySoon();
    }
    if (!this.#socket.isPaused()) return;
    this.#socket.setTimeout(0);
    this.#socket.resume();
  }

  /** As if the connection had begun there, with these bytes. */
  #handOver(first: Buffer): void {
    const socket = this.#socket;
    socket.off('data', this.#onData);
    socket.off('end', this.#onHalfClosed);
    socket.off('close', this.#onClose);
    socket.off('timeout', this.#onStalled);
    socket.off('error', ignore);
    socket.pause();
    socket.unshift(first);
    this.#owner.handOver();
    socket.resume();
  }
}

function ignore(): void {}
