import { type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { keepLastUsed } from '../../platform/last-used.ts';
import { addressBucket, type LocalSource } from '../../features/rate-limit/rate-limit.ts';
import { badRequest, type GatewayAnswer, tooLongTarget, tooMany } from './answer.ts';
import {
  FastRequest,
  FastServer,
  type HttpListener,
  type HttpRequest,
} from '../../platform/fast-http/fast-server.ts';
import { sendFinalError } from '../../platform/final-error.ts';
import { hasTooManyCookies } from '../../platform/oversized-head.ts';
import { trustedPeers } from '../../platform/trusted-proxies.ts';
import type { Tracing } from '../../platform/tracing.ts';
import { createFairServer, isAnswering } from '../../platform/turns.ts';
import { createPipeline, type GatewayDeps } from './pipeline.ts';
import { oversizedAnswer } from './private.ts';
import { hasBodyIn } from './request-headers.ts';
import { asksForWebSocket, type Upgrades } from './web-sockets.ts';

/**
 * The gateway responds on the content hosts of Sites and Environments and nowhere else. It holds no session secret, calls
 * no identity service and writes nothing to the database (contract 1).
 */
export type GatewayServerDeps = Omit<GatewayDeps, 'limited'> & {
  readonly source: LocalSource;
  /** Requests in any 60 seconds; 0 = no limit. */
  readonly perAddress: number;
  readonly perHost: number;
  /** False: node:http reads every request (decision 0032). */
  readonly isFast: boolean;
  /** A process of an Environment takes the body. */
  readonly isPassedOn: (request: HttpRequest) => boolean;
  readonly upgrades: Upgrades;
  readonly tracing: Tracing | null;
};

/** Enough for a page of a thousand parts that is opened again and again; only a flood exceeds it. */
export const gatewayLimits = { perAddress: 60_000, perHost: 600_000 };

/** Milliseconds without traffic on a connection. */
const idleMs = 30_000;

/** Milliseconds for a body: of a request that the gateway answers itself, and of one that it passes to a process. */
const bodyMs = 10_000;
const maxUploadMs = 3_600_000;

export function createGateway(deps: GatewayServerDeps): Server {
  const { respond } = createPipeline({ ...deps, limited: limitsOf(deps) });
  const options = {
    maxHeaderSize: 16_384,
    headersTimeout: bodyMs,
    requestTimeout: maxUploadMs,
    connectionsCheckingInterval: 2_000,
    // Most requests have no body, and creating a stream for it is a large part of the cost of a small response.
    optimizeEmptyRequests: true,
    shouldUpgradeCallback: asksForWebSocket,
  };
  const listener = traced(withBodyLimit(respond, deps.isPassedOn), deps.tracing);
  const server = deps.isFast ? new FastServer(options, listener) : createFairServer(options, listener);
  deps.upgrades.listen(server);
  // A client that reads nothing of a response for this long would hold a file and a connection in vain.
  server.setTimeout(idleMs);
  server.on('clientError', answerBroken);
  return server;
}

/** A body that arrives too slowly ends its connection, unless a process takes it. */
function withBodyLimit(listener: HttpListener, isPassedOn: (request: HttpRequest) => boolean): HttpListener {
  return (request, response) => {
    listener(request, response);
    if (request instanceof FastRequest || !hasBodyIn(request)) return;
    const timer = setTimeout(() => {
      if (!request.complete && !isPassedOn(request)) request.destroy();
    }, bodyMs).unref();
    request.once('close', () => clearTimeout(timer));
  };
}

/** Adds a span for each request. Spans contain neither host nor path: these are between a site and its visitors. */
function traced(listener: HttpListener, tracing: Tracing | null): HttpListener {
  if (tracing === null) return listener;
  return (request, response) => {
    const span = tracing.request(request);
    response.once('close', () => span.end(response.statusCode));
    span.run(() => listener(request, response));
  };
}

/** Maximum addresses whose rate-limit bucket is cached. */
const maxAddresses = 10_000;

function limitsOf({ source, perAddress, perHost, addressOf }: GatewayServerDeps) {
  const owners = keepLastUsed<string>(maxAddresses);
  return (request: HttpRequest, label: string | null, now: number): GatewayAnswer | null => {
    const excess = perAddress === 0 ? null : spend(ownerOf(addressOf(request)), perAddress, now);
    return excess !== null || label === null || perHost === 0 ? excess : spend(label, perHost, now);
  };

  function spend(owner: string, limit: number, now: number): GatewayAnswer | null {
    const { allowed, retryAfterMs } = source.spend({ owner, key: '', limit, now });
    return allowed ? null : tooMany(retryAfterMs / 1000);
  }

  /** No label contains a colon, so addresses and labels never collide. */
  function ownerOf(address: string | null): string {
    const known = owners.get(address ?? '');
    if (known !== undefined) return known;
    const owner = `address:${addressBucket(address)}`;
    owners.set(address ?? '', owner);
    return owner;
  }
}

/** The client's address: of the connection, or from X-Forwarded-For as far as our own proxies wrote it (matrix GW-03). */
export function addressReader(trustedProxies: readonly string[]): (request: HttpRequest) => string | null {
  if (trustedProxies.length === 0) return ({ socket }) => socket.remoteAddress ?? null;
  const isTrusted = trustedPeers(trustedProxies);
  return ({ socket, headers }) => {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) return null;
    const sent = headers['x-forwarded-for'];
    const hops = (Array.isArray(sent) ? sent.join(',') : (sent ?? '')).split(',').map((hop) => hop.trim());
    let address = remoteAddress;
    for (const hop of hops.reverse()) {
      if (hop === '' || !isTrusted(address)) break;
      address = hop;
    }
    return address;
  };
}

/**
 * Headers that are too large are mostly cookies that a neighbouring site set for the whole domain (threat T32). The
 * page that reports this also deletes them.
 */
function answerBroken(error: Error & { code?: string }, socket: Socket): void {
  // The client would read anything written now as part of the current response.
  if (error.code === 'ECONNRESET' || !socket.writable || isAnswering(socket)) return void socket.destroy();
  const isTooLarge = error.code === 'HPE_HEADER_OVERFLOW';
  const { status, headers, body } = !isTooLarge
    ? badRequest
    : hasTooManyCookies(error)
      ? oversizedAnswer()
      : tooLongTarget;
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`);
  sendFinalError(socket, [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines], body ?? '');
}
