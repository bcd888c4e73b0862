import type { Socket } from 'node:net';
import { minute, second } from '../../core/clock.ts';
import {
  FastRequest,
  FastResponse,
  type HttpRequest,
  type HttpResponse,
} from '../../platform/fast-http/fast-server.ts';
import { type AnswerHead, AnswerReader, UnreadableAnswer } from '../../platform/http-client/answer-reader.ts';
import type { Connection } from '../../platform/http-client/connection.ts';
import { valuesIn } from '../../platform/http-lines.ts';
import { nextTurn } from '../../platform/turns.ts';
import type { GatewayAnswer } from './answer.ts';
import { badAnswer, processGone, tooBusy, tooSlow } from './environment-pages.ts';
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

/**
 * Milliseconds without a byte until the head of an answer, from its first byte to its end, and without a byte in either
 * direction after it.
 */
const maxHeadMs = 2 * minute;
const maxSilenceMs = 15 * minute;

/** Chunks that are read of one answer before others have their turn. A process may send one for each byte. */
const maxPieces = 64;

export function createProxy(deps: {
  readonly pools: ProcessPools;
  readonly upgrades: Upgrades;
  /** Calls `work` after this many milliseconds, unless the returned function is called before. */
  readonly later: (work: () => void, ms: number) => () => void;
}): Proxy {
  const { pools, upgrades, later } = deps;

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

    const refuse = (refusal: GatewayAnswer): void => {
      if (isRefused) return;
      isRefused = true;
      connection.destroy();
      upload?.unpipe();
      // The client must not take a part for the whole.
      if (response.headersSent) response.destroy();
      else to.refuse(refusal);
    };

    let forgetLimit: (() => void) | undefined;
    /** Each byte restarts the idle timeout, so a head that arrives byte by byte needs a separate limit. */
    const limitHead = (): void => {
      const isSent = body === undefined || body.writableFinished;
      if (reader.head !== undefined) forgetLimit?.();
      else if (isSent && !isRefused) forgetLimit ??= later(() => refuse(tooSlow), maxHeadMs);
    };

    const release = (head: AnswerHead): void => {
      under.connection = undefined;
      upload?.unpipe();
      // The rest of an upload, which the process did not wait for, is not for the next request on the connection.
      if (reader.isKept && upgrade === undefined && body?.writableFinished !== false)
        pools.giveBack(to, connection, keptMs(head));
      else connection.destroy();
    };

    const join = (head: AnswerHead, socket: Socket): void => {
      if (upgrade === undefined || response instanceof FastResponse) return;
      for (const side of [request.socket, socket]) {
        side.on('data', to.used);
        // Messages may be hours apart. The grant ends the connection, and the system detects a lost peer.
        side.setTimeout(0).setKeepAlive(true, minute);
      }
      to.counted(101);
      joinSockets(upgrade.take(response), upgrade.head, socket, reader.rest, switchLines(head, to));
    };

    const send = (pieces: readonly Buffer[]): void => {
      const { head, isOver } = reader;
      if (head === undefined || isRefused) return;
      if (head.status === 101) return join(head, connection.detach());
      if (answer === undefined) {
        connection.setTimeout(maxSilenceMs);
        answer = beginAnswer(response, {
          ...head,
          rawHeaders: answerHeaders(head.rawHeaders, to, head.status),
        });
        to.counted(head.status);
      }
      to.used();
      if (isOver) {
        release(head);
        answer.end(joined(pieces));
        request.resume();
      } else if (pieces.length === 0) {
        // An event stream may send its first event much later.
        answer.flushHeaders();
      } else if (!answer.write(joined(pieces))) {
        connection.pause();
        answer.once('drain', () => connection.resume());
      } else if (pieces.length > maxPieces) {
        connection.pause();
        nextTurn(() => connection.resume());
      }
    };

    connection.setTimeout(maxHeadMs);
    const headers = requestHeaders(request.rawHeaders, to);
    if (upgrade !== undefined) headers.push('Connection', 'Upgrade', 'Upgrade', 'websocket');
    else if (isChunked) headers.push('Transfer-Encoding', 'chunked');
    else if (length !== undefined) headers.push('Content-Length', length);
    connection.begin(
      {
        read(chunk) {
          isHeard = true;
          // While the client is behind, copies wait for it: a view of one byte keeps the whole buffer.
          const isBehind = response.writableLength > 0;
          try {
            send(reader.read(isBehind ? Buffer.from(chunk) : chunk));
          } catch (error) {
            refuse(error instanceof UnreadableAnswer ? badAnswer(error.message) : processGone);
          }
          limitHead();
          // Pieces that the client has not taken are views of these bytes.
          return isBehind || response.writableLength === 0;
        },
        ended() {
          reader.end();
          if (reader.isOver) send([]);
        },
        closed() {
          forgetLimit?.();
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
      const { socket } = request;
      // The client left while access was checked: no event would ever end this exchange.
      if (socket.destroyed) return;
      const under: UnderWay = { connection: undefined };
      hold(request);
      to.used();
      const leave = to.enter(() => {
        under.connection?.destroy();
        socket.destroy();
      });
      // It was cut immediately: access changed during the check.
      if (socket.destroyed) return leave();
      const ended = () => {
        leave();
        to.used();
        // The client disconnected. Otherwise another request uses the connection now.
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

/** Takes the body of an answer whose head is known. */
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

/** Milliseconds that the process keeps an idle connection, as in `Keep-Alive: timeout=5`. Infinity: it does not say. */
function keptMs({ rawHeaders }: AnswerHead): number {
  const [value = ''] = valuesIn(rawHeaders, 'keep-alive');
  const [, seconds] = /(?:^|[\s,])timeout=(\d{1,6})\b/i.exec(value) ?? [];
  return seconds === undefined ? Infinity : Number(seconds) * second;
}

function isSafe({ method }: HttpRequest): boolean {
  return method === 'GET' || method === 'HEAD';
}
