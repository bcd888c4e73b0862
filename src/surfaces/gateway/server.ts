import { type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { LRUCache } from 'lru-cache';
import { addressBucket, type LocalSource } from '../../features/ratelimit/ratelimit.ts';
import { badRequest, type GatewayAnswer, tooLongTarget, tooMany } from './answer.ts';
import { FastServer, type HttpListener, type HttpRequest } from '../../platform/fast-http/fast-server.ts';
import { sendLastWords } from '../../platform/last-words.ts';
import { hasTooManyCookies } from '../../platform/oversized-head.ts';
import { trustedPeers } from '../../platform/peers.ts';
import type { Tracing } from '../../platform/tracing.ts';
import { createPipeline, type GatewayDeps } from './pipeline.ts';
import { oversizedAnswer } from './private.ts';

/**
 * The gateway answers on the content hosts of Sites, and on nothing else. It holds no session secret, asks no identity
 * service and writes nothing to the database (contract 1).
 */
export type GatewayServerDeps = Omit<GatewayDeps, 'limited'> & {
  readonly trustedProxies: readonly string[];
  readonly source: LocalSource;
  /** Requests in any 60 seconds. */
  readonly perAddress: number;
  readonly perHost: number;
  readonly tracing: Tracing | null;
};

/** Enough for a page of a thousand parts opened again and again; a flood is more. */
export const gatewayLimits = { perAddress: 60_000, perHost: 600_000 };

/** Milliseconds in which nothing goes over a connection. */
const idleMs = 30_000;

export function createGateway(deps: GatewayServerDeps): Server {
  const pipeline = createPipeline({ ...deps, limited: limitsOf(deps) });
  const server = new FastServer(
    {
      maxHeaderSize: 16_384,
      requestTimeout: 10_000,
      connectionsCheckingInterval: 2_000,
      // Most requests have no body, and a stream for it is a part of what a small answer costs.
      optimizeEmptyRequests: true,
    },
    traced(pipeline, deps.tracing),
  );
  // Whoever takes nothing of an answer for so long holds a file and a connection for nobody.
  server.setTimeout(idleMs);
  server.on('clientError', answerBroken);
  return server;
}

/** With a span for each request. What it asks for is in none: hosts and paths are between a site and its visitors. */
function traced(listener: HttpListener, tracing: Tracing | null): HttpListener {
  if (tracing === null) return listener;
  return (request, response) => {
    const span = tracing.request(request);
    response.once('close', () => span.end(response.statusCode));
    span.run(() => listener(request, response));
  };
}

/** Addresses whose bucket is remembered. */
const mostAddresses = 10_000;

function limitsOf({ source, perAddress, perHost, trustedProxies }: GatewayServerDeps) {
  const addressOf = addressReader(trustedProxies);
  const owners = new LRUCache<string, string>({ max: mostAddresses });
  return (request: HttpRequest, label: string | null, now: number): GatewayAnswer | null => {
    const mine = source.spend({ owner: ownerOf(addressOf(request)), key: '', limit: perAddress, now });
    if (!mine.allowed) return tooMany(mine.retryAfterMs / 1000);
    if (label === null) return null;
    const ours = source.spend({ owner: label, key: '', limit: perHost, now });
    return ours.allowed ? null : tooMany(ours.retryAfterMs / 1000);
  };

  /** No label has a colon, so the two kinds of owner never meet. */
  function ownerOf(address: string | null): string {
    const known = owners.get(address ?? '');
    if (known !== undefined) return known;
    const owner = `address:${addressBucket(address)}`;
    owners.set(address ?? '', owner);
    return owner;
  }
}

/** Who asks, by the connection; by X-Forwarded-For only as far as proxies of ours wrote it (matrix GW-03). */
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
 * Headers that are too large are mostly cookies that a neighbour set for the whole domain (threat T32): the page that
 * says so also takes them away.
 */
function answerBroken(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const isTooLarge = error.code === 'HPE_HEADER_OVERFLOW';
  const { status, headers, body } = !isTooLarge
    ? badRequest
    : hasTooManyCookies(error)
      ? oversizedAnswer()
      : tooLongTarget;
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`);
  sendLastWords(socket, [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines], body ?? '');
}
