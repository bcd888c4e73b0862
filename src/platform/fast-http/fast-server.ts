import {
  type IncomingMessage,
  type RequestListener,
  Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { second } from '../../core/clock.ts';
import { inTurns, nextTurn } from '../turns.ts';
import { keptSeconds } from './answer-head.ts';
import { FastRequest, FastResponse } from './exchange.ts';
import { type Head, readSection, splitRequest } from './head.ts';

export { FastRequest, FastResponse } from './exchange.ts';

/** What a listener of a FastServer receives. It need not know which of the two serves the request. */
export type HttpRequest = IncomingMessage | FastRequest;
export type HttpResponse = ServerResponse | FastResponse;
export type HttpListener = (request: HttpRequest, response: HttpResponse) => void;

/** Milliseconds between two checks for idle connections. */
const lookMs = second;
/** Consecutive idle checks before a connection is closed. It stays open at least as long as the response promised. */
const maxLooks = Math.ceil((keptSeconds * second) / lookMs) + 1;

/**
 * A node:http server that serves the plainest requests itself (decision 0032). A connection starts in this mode. As long
 * as each read is exactly one complete GET of the narrowest form (head.ts), the listener gets it in objects that cost a
 * tenth of node:http's. The first read that is anything else passes the connection, with those bytes, to node:http
 * permanently. So this server interprets no request differently from node:http; it only declines many.
 */
export class FastServer extends Server {
  readonly #fast = new Set<FastConnection>();
  readonly #looking: NodeJS.Timeout;

  constructor(options: ServerOptions, listener: HttpListener) {
    super(options, listener as RequestListener);
    const takePlainly = inTurns(this);
    this.on('connection', (socket: Socket) => {
      const connection = new FastConnection(socket, {
        request: (request, response) => void this.emit('request', request, response),
        handOver: () => {
          this.#fast.delete(connection);
          takePlainly(socket);
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
  /** Milliseconds without progress of a response before the connection closes; 0 = no limit. */
  stalledMs(): number;
};

/** A connection from its first byte to the hand-over or the end. Serves at most one request at a time. */
class FastConnection {
  readonly #socket: Socket;
  readonly #owner: Owner;
  #section = '';
  #head: Head | undefined;
  #current: FastResponse | undefined;
  /** Checks since the last bytes arrived. */
  #looks = 0;
  /** Bytes that wait behind the current request, and the number of checks that found more of them. */
  #ahead = 0;
  #trickles = 0;
  #hasAnswered = false;
  readonly #onEnd = (response: FastResponse) => this.#ended(response);
  readonly #onData = (chunk: Buffer) => this.#read(chunk);
  /** The client ended its side. It still gets a pending response, unless its end is watched: see FastRequest.watch(). */
  readonly #onHalfClosed = () => {
    if (this.#current === undefined) this.#socket.end();
    // The process would work on for a client that has most likely left.
    else if (this.#current.req.isWatched) this.close();
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
      if (this.#looks > maxLooks) this.close();
      return;
    }
    // Slowly arriving bytes make the socket look active although the client takes nothing of the response.
    const { readableLength } = this.#socket;
    if (readableLength === this.#ahead) return;
    this.#ahead = readableLength;
    this.#trickles += 1;
    if (this.#trickles > maxLooks) this.close();
  }

  /** Keeps a new connection, whose first request may be on its way. */
  closeIfIdle(): void {
    if (this.#current === undefined && (this.#hasAnswered || this.#looks > 0)) this.close();
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    this.#looks = 0;
    if (this.#current !== undefined) {
      // The next request of a watched connection waits.
      this.#socket.pause();
      return this.#socket.unshift(chunk);
    }
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
    // Reads nothing more before the response is complete.
    if (this.#current === response && !request.isWatched) this.#wait();
  }

  #wait(): void {
    this.#socket.pause();
    this.#socket.setTimeout(this.#owner.stalledMs());
  }

  #ended(response: FastResponse): void {
    if (this.#socket.writableLength === 0) return this.#sent(response);
    // The callback of an empty write runs after all earlier writes.
    this.#socket.write('', () => this.#sent(response));
  }

  #sent(response: FastResponse): void {
    this.#hasAnswered = true;
    // The promised idle time begins when the response ends.
    this.#looks = 0;
    this.#ahead = 0;
    this.#trickles = 0;
    this.#current = undefined;
    response.close();
    if (!response.shouldKeepAlive) {
      // Bytes that the client sends after the last response are not read.
      this.#socket.pause();
      return this.#socket.destroySoon();
    }
    if (this.#socket.readableLength > 0) {
      // Other connections take their turn before the next request of this one.
      this.#socket.pause();
      return nextTurn(() => this.#resume());
    }
    if (this.#socket.isPaused()) this.#resume();
  }

  #resume(): void {
    this.#socket.setTimeout(0);
    this.#socket.resume();
  }

  /** Passes the connection to node:http as if it had begun with these bytes. */
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
