import type { Socket } from 'node:net';
import { lastChunk, writeChunk } from '../http-lines.ts';

/**
 * The rest of another server's answer, which arrives in pieces. An answer without a length gets one when it is a single
 * piece, and is sent in chunks otherwise (RFC 9112 section 7.1).
 */
export class PassedBody {
  readonly #socket: Socket;
  readonly #headEnd: () => string;
  readonly #onEnd: () => void;
  /** Status line and headers; undefined when they are sent. */
  #lines: string | undefined;
  #framing: 'its own' | 'none yet' | 'chunks';

  constructor(
    socket: Socket,
    {
      lines,
      isFramed,
      headEnd,
      onEnd,
    }: { lines: string; isFramed: boolean; headEnd: () => string; onEnd: () => void },
  ) {
    this.#socket = socket;
    this.#lines = lines;
    this.#framing = isFramed ? 'its own' : 'none yet';
    this.#headEnd = headEnd;
    this.#onEnd = onEnd;
  }

  /** Sends the head, if that has not happened. */
  flushHeaders(): void {
    if (this.#framing === 'none yet') {
      this.#framing = 'chunks';
      this.#lines += 'Transfer-Encoding: chunked\r\n';
    }
    if (this.#lines !== undefined) this.#socket.write(this.#lines + this.#headEnd(), 'latin1');
    this.#lines = undefined;
  }

  once(event: 'drain', listener: () => void): void {
    this.#socket.once(event, listener);
  }

  /** False: wait for `drain` before the next piece. */
  write(piece: Buffer): boolean {
    const socket = this.#socket;
    socket.cork();
    this.flushHeaders();
    const isTaken = this.#writePiece(piece);
    socket.uncork();
    return isTaken;
  }

  /** Sends the last piece, which may be empty. */
  end(piece: Buffer): void {
    const socket = this.#socket;
    socket.cork();
    if (this.#framing === 'none yet') {
      this.#framing = 'its own';
      this.#lines += `Content-Length: ${piece.length}\r\n`;
    }
    this.flushHeaders();
    if (piece.length > 0) this.#writePiece(piece);
    if (this.#framing === 'chunks') socket.write(lastChunk, 'latin1');
    socket.uncork();
    this.#onEnd();
  }

  #writePiece(piece: Buffer): boolean {
    return this.#framing === 'chunks' ? writeChunk(this.#socket, piece) : this.#socket.write(piece);
  }
}
