import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { minute, second } from '../../core/clock.ts';
import {
  FastRequest,
  FastResponse,
  type HttpRequest,
  type HttpResponse,
} from '../../platform/fast-http/fast-server.ts';
import { type AnswerHead, AnswerReader } from '../../platform/http-client/answer-reader.ts';
import type { Connection } from '../../platform/http-client/connection.ts';
import type { GatewayAnswer } from './answer.ts';
import { processGone, tooBusy, tooSlow } from './environment-pages.ts';
import type { ProcessPools } from './process-pools.ts';
import { answerHeaders, type Forwarded, requestHeaders } from './proxy-headers.ts';
import { hasBodyIn } from './request-headers.ts';
import { joinSockets, switchLines, type Upgrades } from './web-sockets.ts';

/**
 * Passes a request to a process of an Environment and its answer back, both as streams. The request was allowed before; the
 * process sees neither our cookies nor our keys. Only addresses that the worker observed are dialled.
 */
export type Proxy = {
  forward(request: HttpRequest, response: HttpResponse, to: Destination): void;
  /** Call it for a request that forward() gets later. */
  hold(request: HttpRequest): void;
  /** Whether forward() or hold() was called. */
  isPassedOn(request: HttpRequest): boolean;
};

export type Destination = Forwarded & {
  /** Tells the service from every other. */
  readonly name: string;
  /** host:port */
  readonly address: string;
  readonly isPrivate: boolean;
  /** Registers the exchange as long as it lasts; `cut` ends it. */
  readonly enter: (cut: () => void) => () => void;
  /** Called when the exchange begins and ends, and with each piece of an answer or of a WebSocket. */
  readonly used: () => void;
  readonly counted: (status: number) => void;
  readonly refuse: (answer: GatewayAnswer) => void;
};

/** Milliseconds until the head of an answer, and without a byte in either direction after it. */
const maxHeadMs = 2 * minute;
const maxSilenceMs = 15 * minute;

export function createProxy({ pools, upgrades }: { pools: ProcessPools; upgrades: Upgrades }): Proxy {
  function pass(
    request: IncomingMessage,
    response: ServerResponse,
    to: Destination,
    under: UnderWay,
    isRetry: boolean,
  ): void {
    const upgrade = upgrades.of(request);
    // A WebSocket keeps its connection, and a retry must not get another one that is about to close.
    const connection = pools.open(to, { isNew: isRetry || upgrade !== undefined });
    if (connection === undefined) return to.refuse(tooBusy);
    under.connection = connection;
    const { method = 'GET', url: path = '/' } = request;
    const hasBody = hasBodyIn(request);
    const isChunked = request.headers['transfer-encoding'] !== undefined;
    const body = hasBody ? connection.body({ isChunked }) : undefined;
    const reader = new AnswerReader({ method, isUpgrade: upgrade !== undefined });
    let isHeard = false;
    let isRefused = false;

    function refuse(answer: GatewayAnswer): void {
      if (isRefused) return;
      isRefused = true;
      connection?.destroy();
      request.unpipe();
      // The client must not take a part for the whole.
      if (response.headersSent) response.destroy();
      else to.refuse(answer);
    }

    function send(pieces: readonly Buffer[]): void {
      const { head, isOver } = reader;
      if (head === undefined || isRefused || connection === undefined) return;
      if (head.status === 101) return join(head, connection.detach());
      if (!response.headersSent) {
        connection.setTimeout(maxSilenceMs);
        response.writeHead(head.status, head.reason, answerHeaders(head.rawHeaders, to));
        to.counted(head.status);
      }
      to.used();
      if (isOver) finish(head, pieces, connection);
      // An event stream may send its first event much later.
      else if (pieces.length === 0) response.flushHeaders();
      else if (!response.write(joined(pieces))) {
        connection.pause();
        response.once('drain', () => connection.resume());
      }
    }

    function finish(head: AnswerHead, pieces: readonly Buffer[], over: Connection): void {
      under.connection = undefined;
      request.unpipe();
      // The rest of an upload, which the process did not wait for, is not for the next request on the connection.
      if (reader.isKept && body?.writableFinished !== false) pools.giveBack(to, over, keptMs(head));
      else over.destroy();
      response.end(joined(pieces));
      request.resume();
    }

    function join(head: AnswerHead, socket: Socket): void {
      if (upgrade === undefined) return;
      for (const side of [request.socket, socket]) {
        side.on('data', to.used);
        // Messages may be hours apart. The grant ends the connection, and the system notices a peer that is gone.
        side.setTimeout(0).setKeepAlive(true, minute);
      }
      to.counted(101);
      joinSockets(upgrade.take(response), upgrade.head, socket, reader.rest, switchLines(head, to));
    }

    connection.setTimeout(maxHeadMs);
    const headers = requestHeaders(request.rawHeaders, to);
    if (upgrade !== undefined) headers.push('Connection', 'Upgrade', 'Upgrade', 'websocket');
    else if (isChunked) headers.push('Transfer-Encoding', 'chunked');
    connection.begin(
      {
        read(chunk) {
          isHeard = true;
          try {
            send(reader.read(chunk));
          } catch {
            // It is no answer, or its status or a header is one that HTTP does not allow.
            refuse(processGone);
          }
        },
        ended() {
          reader.end();
          if (reader.isOver) send([]);
        },
        closed() {
          if (reader.isOver || isRefused || response.destroyed) return;
          // A process may close an idle connection while a request is on its way to it.
          const isStale = connection.isReused && !isHeard && !hasBody && isSafe(request);
          if (isStale) pass(request, response, to, under, true);
          else refuse(processGone);
        },
        timedOut: () => refuse(tooSlow),
      },
      { method, path, headers },
    );
    if (body !== undefined) request.pipe(body);
  }

  const passedOn = new WeakSet<HttpRequest>();
  return {
    isPassedOn: (request) => passedOn.has(request),
    hold(request) {
      passedOn.add(request);
      request.socket.setTimeout(maxSilenceMs);
    },
    forward(request, response, to) {
      // The gateway passes requests for processes to node:http before it reads them (server.ts).
      if (request instanceof FastRequest || response instanceof FastResponse)
        throw new Error('The fast reader cannot pass on a request.');
      const under: UnderWay = { connection: undefined };
      passedOn.add(request);
      const { socket } = request;
      socket.setTimeout(maxSilenceMs);
      to.used();
      const leave = to.enter(() => {
        under.connection?.destroy();
        socket.destroy();
      });
      const over = upgrades.of(request) === undefined ? response : socket;
      over.once('close', () => {
        leave();
        to.used();
        // The client went away, or has all of the answer.
        if (!response.writableFinished) under.connection?.destroy();
      });
      if (request.headers.expect?.toLowerCase() === '100-continue') response.writeContinue();
      pass(request, response, to, under, false);
    },
  };
}

/** The connection of an exchange; undefined before it and after it. */
type UnderWay = { connection: Connection | undefined };

function joined(pieces: readonly Buffer[]): Buffer {
  const [first] = pieces;
  return pieces.length === 1 && first !== undefined ? first : Buffer.concat(pieces);
}

/** How long the process keeps an idle connection, as it says: `Keep-Alive: timeout=5`, in seconds. */
function keptMs(head: AnswerHead | undefined): number {
  const at = head?.rawHeaders.findIndex((text, place) => place % 2 === 0 && /^keep-alive$/i.test(text)) ?? -1;
  const [, seconds] = /(?:^|[\s,])timeout=(\d{1,6})\b/i.exec(head?.rawHeaders[at + 1] ?? '') ?? [];
  return at < 0 || seconds === undefined ? Infinity : Number(seconds) * second;
}

function isSafe({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD';
}
