import {
  type ClientRequest,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { minute } from '../../core/clock.ts';
import {
  FastRequest,
  FastResponse,
  type HttpRequest,
  type HttpResponse,
} from '../../platform/fast-http/fast-server.ts';
import type { GatewayAnswer } from './answer.ts';
import { processGone, tooSlow } from './environment-pages.ts';
import { hostAndPort, type ProcessPools } from './process-pools.ts';
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
  function open(request: IncomingMessage, to: Destination, isRetry: boolean): ClientRequest | undefined {
    const at = hostAndPort(to.address);
    if (at === undefined) return undefined;
    const upgrade = upgrades.of(request);
    const headers = requestHeaders(request.rawHeaders, to);
    // Said explicitly: with some methods Node would send a body without any framing, and the process would read it as the
    // next request on the connection.
    const isChunked = request.headers['transfer-encoding'] !== undefined;
    const framing =
      upgrade === undefined
        ? isChunked
          ? ['Transfer-Encoding', 'chunked']
          : []
        : ['Connection', 'Upgrade', 'Upgrade', 'websocket'];
    return httpRequest({
      ...at,
      method: request.method ?? 'GET',
      path: request.url ?? '/',
      headers: [...headers, ...framing],
      setHost: false,
      // A WebSocket keeps its connection, and a retry must not get another one that is about to close.
      agent: upgrade === undefined && !isRetry ? pools.agentOf(to) : false,
      timeout: maxHeadMs,
      maxHeaderSize: 65_536,
    });
  }

  function pass(
    request: IncomingMessage,
    response: ServerResponse,
    to: Destination,
    leave: { upstream: ClientRequest | undefined },
    isRetry: boolean,
  ): void {
    const upstream = open(request, to, isRetry);
    if (upstream === undefined) return to.refuse(processGone);
    leave.upstream = upstream;
    const hasBody = hasBodyIn(request);
    let isAnswered = false;
    const fail = (answer: GatewayAnswer) => {
      request.unpipe(upstream);
      // The client still gets what the process answered before its end; sendBack() sees whether that is the whole.
      if (isAnswered || response.headersSent) return void request.resume();
      isAnswered = true;
      upstream.destroy();
      to.refuse(answer);
    };
    upstream.on('error', (error: NodeJS.ErrnoException) => {
      // A process may close an idle connection while a request is on its way to it.
      const isStale = upstream.reusedSocket && error.code === 'ECONNRESET' && !response.headersSent;
      if (isStale && !isRetry && !isAnswered && !hasBody && isSafe(request))
        return pass(request, response, to, leave, true);
      fail(processGone);
    });
    upstream.on('timeout', () => {
      if (response.headersSent) upstream.destroy(new Error('The process sent nothing for too long.'));
      else fail(tooSlow);
    });
    upstream.on('response', (answer) => {
      if (isAnswered) return answer.destroy();
      upstream.setTimeout(maxSilenceMs);
      try {
        sendBack(answer, response, to);
        isAnswered = true;
      } catch {
        // Its status or a header is one that HTTP does not allow.
        fail(processGone);
      }
    });
    upstream.on('upgrade', (answer, socket, head) => {
      const upgrade = upgrades.of(request);
      if (upgrade === undefined) {
        socket.destroy();
        return fail(processGone);
      }
      isAnswered = true;
      for (const side of [request.socket, socket]) side.on('data', to.used);
      // Messages may be hours apart. The grant ends the connection, and the system notices a peer that is gone.
      for (const side of [request.socket, socket as Socket]) side.setTimeout(0).setKeepAlive(true, minute);
      to.counted(101);
      joinSockets(upgrade.take(response), upgrade.head, socket, head, switchLines(answer, to));
    });
    if (hasBody) request.pipe(upstream);
    else upstream.end();
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
      const under: { upstream: ClientRequest | undefined } = { upstream: undefined };
      passedOn.add(request);
      const { socket } = request;
      socket.setTimeout(maxSilenceMs);
      to.used();
      const leave = to.enter(() => {
        under.upstream?.destroy();
        socket.destroy();
      });
      const over = upgrades.of(request) === undefined ? response : socket;
      over.once('close', () => {
        leave();
        to.used();
        // The client went away, or has all of the answer.
        if (!response.writableFinished) under.upstream?.destroy();
      });
      if (request.headers.expect?.toLowerCase() === '100-continue') response.writeContinue();
      pass(request, response, to, under, false);
    },
  };
}

function sendBack(answer: IncomingMessage, response: ServerResponse, to: Destination): void {
  const { statusCode = 502, statusMessage = '' } = answer;
  response.writeHead(statusCode, statusMessage, answerHeaders(answer.rawHeaders, to));
  to.counted(statusCode);
  // An event stream may send its first event much later.
  response.flushHeaders();
  answer.on('data', to.used);
  answer.on('error', () => response.destroy());
  // Ended before its end: the client must not take a part for the whole.
  answer.once('close', () => {
    if (!answer.complete) response.destroy();
  });
  answer.pipe(response);
}

function isSafe({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD';
}
