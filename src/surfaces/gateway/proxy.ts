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
    request: HttpRequest,
    response: HttpResponse,
    to: Destination,
    under: UnderWay,
    isRetry: boolean,
  ): void {
    const upload = request instanceof FastRequest ? undefined : request;
    const upgrade = upload && upgrades.of(upload);
    // A WebSocket keeps its connection, and a retry must not get another one that is about to close.
    const connection = pools.open(to, { isNew: isRetry, isUpgrade: upgrade !== undefined });
    if (connection === undefined) return to.refuse(tooBusy);
    under.connection = connection;
    const { method = 'GET', url: path = '/' } = request;
    const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
    const isChunked = coding !== undefined;
    const body = hasBodyIn(request) ? connection.body({ isChunked }) : undefined;
    const reader = new AnswerReader({ method, isUpgrade: upgrade !== undefined });
    let answer: Answer | undefined;
    let isHeard = false;
    let isRefused = false;

    function refuse(refusal: GatewayAnswer): void {
      if (isRefused) return;
      isRefused = true;
      connection?.destroy();
      upload?.unpipe();
      // The client must not take a part for the whole.
      if (response.headersSent) response.destroy();
      else to.refuse(refusal);
    }

    function send(pieces: readonly Buffer[]): void {
      const { head, isOver } = reader;
      if (head === undefined || isRefused || connection === undefined) return;
      if (head.status === 101) return join(head, connection.detach());
      if (answer === undefined) {
        connection.setTimeout(maxSilenceMs);
        answer = beginAnswer(response, { ...head, rawHeaders: answerHeaders(head.rawHeaders, to) });
        to.counted(head.status);
      }
      to.used();
      if (isOver) {
        release(head, connection);
        answer.end(joined(pieces));
        request.resume();
      } else if (pieces.length === 0) {
        // An event stream may send its first event much later.
        answer.flushHeaders();
      } else if (!answer.write(joined(pieces))) {
        connection.pause();
        answer.once('drain', () => connection.resume());
      }
    }

    function release(head: AnswerHead, over: Connection): void {
      under.connection = undefined;
      upload?.unpipe();
      // The rest of an upload, which the process did not wait for, is not for the next request on the connection.
      if (reader.isKept && body?.writableFinished !== false) pools.giveBack(to, over, keptMs(head));
      else over.destroy();
    }

    function join(head: AnswerHead, socket: Socket): void {
      if (upgrade === undefined || response instanceof FastResponse) return;
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
    else if (length !== undefined) headers.push('Content-Length', length);
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
          return response.writableLength === 0;
        },
        ended() {
          reader.end();
          if (reader.isOver) send([]);
        },
        closed() {
          if (reader.isOver || isRefused || response.destroyed) return;
          // A process may close an idle connection while a request is on its way to it.
          const isStale = connection.isReused && !isHeard && body === undefined && isSafe(request);
          if (isStale) pass(request, response, to, under, true);
          else refuse(processGone);
        },
        timedOut: () => refuse(tooSlow),
      },
      { method, path, headers },
    );
    if (body !== undefined) upload?.pipe(body);
  }

  const passedOn = new WeakSet<HttpRequest>();
  function hold(request: HttpRequest): void {
    passedOn.add(request);
    if (request instanceof FastRequest) request.watch();
    request.socket.setTimeout(maxSilenceMs);
  }
  return {
    isPassedOn: (request) => passedOn.has(request),
    hold,
    forward(request, response, to) {
      const under: UnderWay = { connection: undefined };
      hold(request);
      to.used();
      const { socket } = request;
      const leave = to.enter(() => {
        under.connection?.destroy();
        socket.destroy();
      });
      const ended = () => {
        leave();
        to.used();
        // The client went away. Otherwise the connection is another request's now.
        under.connection?.destroy();
      };
      if (request instanceof FastRequest || response instanceof FastResponse) response.once('close', ended);
      else {
        const over = upgrades.of(request) === undefined ? response : socket;
        over.once('close', ended);
        if (request.headers.expect?.toLowerCase() === '100-continue') response.writeContinue();
      }
      pass(request, response, to, under, false);
    },
  };
}

/** Takes an answer whose head is said. */
type Answer = {
  flushHeaders(): void;
  write(piece: Buffer): boolean;
  end(piece: Buffer): void;
  once(event: 'drain', listener: () => void): void;
};

function beginAnswer(response: HttpResponse, head: AnswerHead): Answer {
  if (response instanceof FastResponse) return response.pass(head);
  return response.writeHead(head.status, head.reason, [...head.rawHeaders]);
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

function isSafe({ method }: HttpRequest): boolean {
  return method === 'GET' || method === 'HEAD';
}
