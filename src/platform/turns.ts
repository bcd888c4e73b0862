import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';

/** Maximum unanswered requests of one connection. A client that sends more waits for responses. */
const maxUnanswered = 16;

/** Connections served in one turn of the event loop, so that a turn stays short however many wait. */
const turnsAtOnce = 16;

/** Pieces of a chunked body that are parsed in one turn. Each ends with a blank line, of which a client may send many. */
const maxPieces = 64;

/** The end of a request without a body, of the head of any other, and of a chunked body (RFC 9112 section 2.1). */
const blankLine = '\n\r\n';

/**
 * An HTTP server in which connections take turns (decision 0034). The web listener uses it; the gateway uses `inTurns`.
 * A client may send many requests without waiting for responses, and one read of 64 KiB can hold 841 of them. node:http
 * would answer all of them first, and every other connection would wait. Here a connection has one request parsed, or one
 * part of a body, and then waits for its next turn. While it has 16 unanswered requests, none is parsed.
 */
export function createFairServer(options: ServerOptions, listener: RequestListener): Server {
  const server = createServer(options, listener);
  server.on('connection', inTurns(server));
  return server;
}

/** Takes over the connections of `server` from node:http. The returned function gives one back, to be read in turns. */
export function inTurns(server: Server): (socket: Socket) => void {
  const listeners = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.prependListener('request', (request, response) => {
    connections.get(request.socket)?.begin(request, response);
  });
  // node:http would answer 417 by itself, to any number of requests. RFC 9110 section 10.1.1 allows to ignore the header.
  server.on('checkExpectation', (request, response) => void server.emit('request', request, response));
  return (socket) => {
    for (const listen of listeners) listen.call(server, socket);
    connections.set(socket, new Connection(socket));
  };
}

/** True: the next bytes on the connection belong to a response, so a client would read anything else as part of it. */
export function isAnswering(socket: Socket): boolean {
  return connections.get(socket)?.isAnswering() ?? false;
}

/** True: a request of the connection has no complete response yet. */
export function isServing(socket: Socket): boolean {
  return connections.get(socket)?.isServing() ?? false;
}

/** The connection was upgraded, and is read by others from now on. False: an earlier request has no complete response yet. */
export function leaveTurns(socket: Socket): boolean {
  return connections.get(socket)?.leave() ?? true;
}

const line: (() => void)[] = [];
let isPlanned = false;

/** Calls `go` after everything queued earlier, and after other connections were read. */
export function nextTurn(go: () => void): void {
  line.push(go);
  plan();
}

function plan(): void {
  if (isPlanned || line.length === 0) return;
  isPlanned = true;
  setImmediate(() => {
    isPlanned = false;
    // Removed first: a connection that has its turn may queue again at once.
    for (const go of line.splice(0, turnsAtOnce)) go();
    plan();
  });
}

let ending: Promise<void> | undefined;

/**
 * Resolves when this turn of the event loop has read what had arrived. All requests that are read in one turn then go
 * through each step together, while the code of the step is in the processor's caches: with 64 connections a request with
 * a key costs 32 µs of processor time instead of 61 (bench/README.md).
 */
export function endOfTurn(): Promise<void> {
  return (ending ??= new Promise((resolve) => {
    setImmediate(() => {
      ending = undefined;
      resolve();
    });
  }));
}

const connections = new WeakMap<Socket, Connection>();

class Connection {
  readonly #socket: Socket;
  readonly #parse: (chunk: Buffer) => void;
  readonly #pause: () => void;
  readonly #resume: () => void;
  /** Unanswered responses, in the order of their requests. */
  readonly #open: ServerResponse[] = [];
  #newest: IncomingMessage | undefined;
  /** Bytes of the newest request's body that were not parsed yet; undefined when only the body itself says where it ends. */
  #bodyLeft: number | undefined;
  /** The last request of node:http: true after resume(), false after pause(). */
  #isWanted = true;
  /** Bytes wait in the socket for a turn or for a response. */
  #isHeld = false;
  #isNextTurnSet = false;
  #hasTurn = false;
  #hasLeft = false;
  readonly #onData = (chunk: Buffer) => this.#read(chunk);

  constructor(socket: Socket) {
    this.#socket = socket;
    this.#pause = socket.pause.bind(socket);
    this.#resume = socket.resume.bind(socket);
    // node:http has one such listener. It reads from the handle directly until a second listener exists, which this one
    // is.
    const [parse] = socket.listeners('data') as ((chunk: Buffer) => void)[];
    if (parse === undefined) throw new Error('node:http does not listen to the connection.');
    this.#parse = parse;
    socket.off('data', parse);
    socket.on('data', this.#onData);
    // node:http resumes a connection at each request. Held bytes must wait nevertheless.
    socket.pause = () => {
      this.#isWanted = false;
      this.#pause();
      return socket;
    };
    socket.resume = () => {
      this.#isWanted = true;
      if (!this.#isHeld) this.#resume();
      return socket;
    };
  }

  begin(request: IncomingMessage, response: ServerResponse): void {
    this.#newest = request;
    const length = request.headers['content-length'];
    this.#bodyLeft = length === undefined ? undefined : Number(length);
    this.#open.push(response);
    response.once('close', () => {
      this.#open.splice(this.#open.indexOf(response), 1);
      if (this.#newest?.complete === true) this.#newest = undefined;
      if (this.#isHeld) this.#setNextTurn();
    });
  }

  leave(): boolean {
    this.#hasLeft = true;
    const socket = this.#socket;
    socket.off('data', this.#onData);
    socket.pause = this.#pause as typeof socket.pause;
    socket.resume = this.#resume as typeof socket.resume;
    return this.#open.length === 0;
  }

  isServing(): boolean {
    return this.#open.length > 0;
  }

  isAnswering(): boolean {
    const newest = this.#open.at(-1);
    if (newest === undefined) return false;
    // A request that is still being read is the broken one; nothing of its response was sent.
    return this.#open.length > 1 || newest.req.complete || newest.headersSent;
  }

  #read(chunk: Buffer): void {
    const hasTurn = this.#hasTurn;
    this.#hasTurn = false;
    if (!this.#mayRead()) return this.#hold(chunk);
    let rest = chunk;
    let pieces = 0;
    do {
      const end = this.#isInBody() ? this.#endInBody(rest) : endOfHead(rest);
      // A client that pipelines requests queues from its first request on.
      const isMore = end < rest.length && !this.#isInBody() && rest.includes(blankLine, end, 'latin1');
      if (isMore && !hasTurn) return this.#hold(rest);
      this.#parse(rest.subarray(0, end));
      rest = rest.subarray(end);
      pieces += 1;
      if (this.#hasLeft) {
        if (rest.length > 0) this.#socket.unshift(rest);
        return;
      }
      // The bytes that follow within a body start no request.
    } while (rest.length > 0 && this.#isInBody() && this.#isWanted && pieces <= maxPieces);
    if (rest.length > 0 || this.#socket.readableLength > 0) this.#hold(rest);
  }

  /** The offset of the end of the body, or of a part of it: never inside the next request. */
  #endInBody(rest: Buffer): number {
    if (this.#bodyLeft === undefined) return endOfBlankLine(rest);
    const end = Math.max(1, Math.min(rest.length, this.#bodyLeft));
    this.#bodyLeft -= end;
    return end;
  }

  #isInBody(): boolean {
    return this.#newest?.complete === false && !this.#socket.destroyed;
  }

  #mayRead(): boolean {
    return this.#open.length < maxUnanswered || this.#isInBody();
  }

  #hold(rest: Buffer): void {
    if (this.#socket.destroyed) return;
    this.#isHeld = true;
    this.#pause();
    if (rest.length > 0) this.#socket.unshift(rest);
    this.#setNextTurn();
  }

  #setNextTurn(): void {
    if (this.#isNextTurnSet || !this.#mayRead()) return;
    this.#isNextTurnSet = true;
    nextTurn(() => {
      this.#isNextTurnSet = false;
      // Bytes that the client sends after its last response are not read (RFC 9112 section 9.6).
      if (this.#socket.destroyed || this.#socket.writableEnded || this.#hasLeft) return;
      this.#isHeld = false;
      this.#hasTurn = true;
      if (this.#isWanted) this.#resume();
    });
  }
}

/**
 * The offset behind the first blank line, or the end. Leading line breaks are passed on their own: they may end the
 * previous head, and otherwise mean nothing (RFC 9112 section 2.2). Three at most, because a body may begin with others.
 */
function endOfHead(chunk: Buffer): number {
  let at = 0;
  while (at < blankLine.length && (chunk[at] === 0x0d || chunk[at] === 0x0a)) at += 1;
  return at > 0 ? at : endOfBlankLine(chunk);
}

/** The offset behind the next blank line, or the end. */
function endOfBlankLine(chunk: Buffer): number {
  const found = chunk.indexOf(blankLine, 0, 'latin1');
  return found < 0 ? chunk.length : found + blankLine.length;
}
