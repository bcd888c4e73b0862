import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { Writable } from 'node:stream';
import type { AnswerHead } from '../http-client/answer-reader.ts';
import { type AnswerHeaders, headEnd, headLines, passedLines } from './answer-head.ts';
import { valuesIn } from '../http-lines.ts';
import type { Head } from './head.ts';
import { PassedBody } from './passed-body.ts';

/** A plain request: a complete GET without a body. It has a subset of node:http's members, under the same names. */
export class FastRequest {
  readonly method: string = 'GET';
  readonly url: string;
  readonly socket: Socket;
  isWatched = false;
  readonly #head: Head;

  constructor(url: string, head: Head, socket: Socket) {
    this.url = url;
    this.#head = head;
    this.socket = socket;
  }

  get headers(): IncomingHttpHeaders {
    return this.#head.headers;
  }

  /** Returns the same array for requests of one connection that repeat each other's headers. */
  get rawHeaders(): string[] {
    return this.#head.rawHeaders;
  }

  /** Starts to detect that the client disconnects, for a response that may take long. */
  watch(): void {
    this.isWatched = true;
    this.socket.resume();
  }

  /** Does nothing: there is no body to discard. */
  resume(): void {}
}

/** The response to a plain request, with the subset of node:http's members that is needed to respond. */
export class FastResponse {
  readonly req: FastRequest;
  statusCode = 200;
  headersSent = false;
  /** False: the connection closes after this response. */
  shouldKeepAlive = true;
  #head = '';
  #isEnded = false;
  #isClosed = false;
  #onClose: (() => void)[] | undefined;
  readonly #onEnd: (response: FastResponse) => void;

  constructor(req: FastRequest, onEnd: (response: FastResponse) => void) {
    this.req = req;
    this.#onEnd = onEnd;
  }

  get destroyed(): boolean {
    return this.#isClosed;
  }

  /** Bytes that the connection has not accepted yet. */
  get writableLength(): number {
    return this.req.socket.writableLength;
  }

  writeHead(status: number, headers: AnswerHeaders): this {
    if (this.headersSent) throw new Error('The head of this answer was sent already.');
    this.#head = headLines(status, headers);
    this.statusCode = status;
    this.headersSent = true;
    return this;
  }

  /** `latin1` for text with one byte for each character, as in node:http. */
  end(body?: string | Buffer, encoding: BufferEncoding = 'utf8'): void {
    if (this.#isEnded) return;
    const { socket } = this.req;
    const head = this.#headToSend();
    if (typeof body === 'string' && encoding === 'latin1') socket.write(head + body, 'latin1');
    else if (body === undefined || body.length === 0) socket.write(head, 'latin1');
    else {
      socket.cork();
      socket.write(head, 'latin1');
      socket.write(typeof body === 'string' ? Buffer.from(body, encoding) : body);
      socket.uncork();
    }
    this.#finish();
  }

  /** Begins to pass on the answer of another server, whose reader checked the head. @throws Error when a head was sent */
  pass({ status, reason, rawHeaders }: AnswerHead): PassedBody {
    if (this.headersSent) throw new Error('The head of this answer was sent already.');
    this.statusCode = status;
    this.headersSent = true;
    const hasLength = valuesIn(rawHeaders, 'content-length').length > 0;
    return new PassedBody(this.req.socket, {
      lines: passedLines(status, reason, rawHeaders),
      isFramed: hasLength || status === 204 || status === 304,
      headEnd: () => headEnd(!this.shouldKeepAlive),
      onEnd: () => this.#finish(),
    });
  }

  /** For a streamed body. Its end completes the response; destroying it earlier closes the connection. */
  body(): Writable {
    const { socket } = this.req;
    socket.write(this.#headToSend(), 'latin1');
    const body = new Writable({
      write: (chunk: Buffer, _encoding, taken) => void socket.write(chunk, taken),
      final: (done) => {
        this.#finish();
        done();
      },
      destroy: (error, done) => {
        if (!this.#isEnded) socket.destroy();
        done(error);
      },
    });
    this.once('close', () => body.destroy());
    return body;
  }

  /** The only way left to show that the rest is missing. */
  destroy(): void {
    this.req.socket.destroy();
  }

  /** Called when the response is sent or the connection is closed; if that has happened already, called soon after. */
  once(_event: 'close', listener: () => void): void {
    if (this.#isClosed) queueMicrotask(listener);
    else (this.#onClose ??= []).push(listener);
  }

  /** Called by the connection: nothing more of this response can be sent. */
  close(): void {
    this.#isEnded = true;
    this.#isClosed = true;
    if (this.#onClose === undefined) return;
    for (const listener of this.#onClose.splice(0)) listener();
  }

  #headToSend(): string {
    if (!this.headersSent) this.writeHead(this.statusCode, []);
    return this.#head + headEnd(!this.shouldKeepAlive);
  }

  #finish(): void {
    this.#isEnded = true;
    this.#onEnd(this);
  }
}
