import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { addressBucket } from '../../features/rate-limit/rate-limit.ts';
import { type Catalog, type Served, siteStatusOf } from '../../features/sites/sites.ts';
import type { Blobs } from '../../platform/blobs/blobs.ts';
import { FastRequest, type HttpRequest, type HttpResponse } from '../../platform/fast-http/fast-server.ts';
import { oncePerHead } from '../../platform/fast-http/once-per-head.ts';
import type { Log } from '../../platform/log.ts';
import {
  badTarget,
  failed,
  type GatewayAnswer,
  keyInRequest,
  nothingHere,
  tooLongTarget,
  unavailable,
  wrongHost,
  wrongMethod,
} from './answer.ts';
import { type PrivateAt, type PrivateSteps, reservedPaths, type Verdict } from './access.ts';
import type { BlobCache } from './blob-cache.ts';
import { type EnvironmentServing, environmentRequests } from './environment-requests.ts';
import type { Kind } from './response-headers.ts';
import { valuesOf } from './request-headers.ts';
import { type HostName, hostReader } from './hosts.ts';
import type { OpenStreams } from './open-streams.ts';
import { sendAnswer } from './send.ts';
import { contentServer, type Visibility } from './serve-content.ts';

/**
 * Answers a request for a file of a site; environment-requests.ts continues with those for Environments. The gateway's
 * listener calls it for every request, and nothing here writes. Each step refuses the request or passes it on, in this
 * order:
 * 1. `refuseEarly`: the target, the host, API keys in the request, rate limits, the Sites switch, the method.
 * 2. On a private host, the cookie: without the form of a grant, no site is looked up (threat T31).
 * 3. The site at the host's label.
 * 4. On a private host, the grant itself, in the key-value store.
 * 5. The file of the path, and its bytes.
 */
export type GatewayDeps = {
  /** Sites are below it. */
  readonly contentUrl: string;
  /** Environments are below it. */
  readonly environmentsContentUrl: string;
  readonly catalog: Catalog;
  readonly addressOf: (request: HttpRequest) => string | null;
  readonly privateSites: PrivateSteps;
  readonly environments: EnvironmentServing;
  readonly blobs: Pick<Blobs, 'read'>;
  readonly cache: BlobCache;
  readonly streams: OpenStreams;
  /** The switch of the Sites configuration, as this process received it last. */
  readonly isEnabled: () => boolean;
  /** False: changes may have been missed for too long to serve anything (contract 10.3: 30 s). */
  readonly isInformed: (now: number) => boolean;
  /** The refusal when an address or a host exceeds its rate limit, or null. */
  readonly limited: (request: HttpRequest, label: string | null, now: number) => GatewayAnswer | null;
  readonly exposures: {
    mentions(text: string): boolean;
    report(request: HttpRequest, text: string): void;
  };
  readonly clock: Clock;
  /** `reader`: what read the request, the gateway itself (`fast`) or node:http (decision 0032). */
  readonly count: (reader: 'fast' | 'node', visibility: Visibility, status: number) => void;
  readonly log: Log;
};

const maxTargetLength = 8_192;

/** The facts that follow from the headers alone. */
type RequestHead = {
  readonly host: HostName;
  /** Header texts that contain one of our keys. */
  readonly keys: readonly string[];
  /** A person opens it as a page. */
  readonly isDocument: boolean;
};

export function createPipeline(deps: GatewayDeps) {
  const {
    catalog,
    addressOf,
    privateSites,
    environments,
    isEnabled,
    isInformed,
    limited,
    exposures,
    clock,
    log,
  } = deps;
  const isHttps = deps.contentUrl.startsWith('https:');
  const readHost = hostReader(deps);
  const headOf = oncePerHead(
    (request): RequestHead => ({
      // Takes every Host header as it was sent; two of them count as no host (matrix GW-01).
      host: readHost(valuesOf(request, 'host')),
      // In the value or in the name of a header (threat T36).
      keys: request.rawHeaders.filter((text) => exposures.mentions(text)),
      isDocument: isDocument(request),
    }),
  );

  /** Refusals that need no lookup; null when the request may continue. */
  function refuseEarly(request: HttpRequest, { host, keys }: RequestHead, now: number): GatewayAnswer | null {
    const { url = '', method } = request;
    if (url.length > maxTargetLength) return tooLongTarget;
    // Also refuses an absolute target, from which some servers would read the host.
    if (!url.startsWith('/')) return badTarget;
    if (host.kind === 'foreign') return wrongHost;
    if (carriesKey(request, url, keys)) return keyInRequest;
    const excess = limited(request, 'label' in host ? host.label : null, now);
    if (excess !== null) return excess;
    if (host.kind === 'environment') return environments.isInformed(now) ? null : unavailable;
    if (host.kind === 'nobody' || !isEnabled()) return nothingHere;
    if (!isInformed(now)) return unavailable;
    const isReserved = url.startsWith(reservedPaths);
    if (method !== 'GET' && method !== 'HEAD' && !(method === 'POST' && isReserved)) return wrongMethod;
    return null;
  }

  /** Reports a key in the address or in `keys`, the header texts that contain one. */
  function carriesKey(request: HttpRequest, url: string, keys: readonly string[]): boolean {
    const isInAddress = exposures.mentions(url);
    if (isInAddress) exposures.report(request, url);
    for (const text of keys) exposures.report(request, text);
    return isInAddress || keys.length > 0;
  }

  function count(request: HttpRequest, visibility: Visibility, status: number): void {
    deps.count(request instanceof FastRequest ? 'fast' : 'node', visibility, status);
  }

  function finish(
    request: HttpRequest,
    response: HttpResponse,
    answer: GatewayAnswer,
    visibility: Visibility = 'none',
  ): void {
    count(request, visibility, answer.status);
    const { host } = headOf(request);
    const isPrivate = host.kind === 'environment' || (host.kind === 'site' && host.visibility === 'private');
    // Closes the connection; otherwise a client that sends too much would only be refused faster than it is served.
    if (answer.status === 429) response.shouldKeepAlive = false;
    sendAnswer(request, response, isPrivate ? closed(answer) : answer);
    // Discards what the client still sends.
    request.resume();
  }

  function fail(request: HttpRequest, response: HttpResponse, error: unknown): void {
    const isStore = error instanceof AppError && error.status === 503;
    // Not logged: a flood of requests must not become a flood of log lines.
    const isFlood = error instanceof AppError && error.code === 'overloaded';
    if (!isFlood)
      log.error({ err: error }, isStore ? 'a store did not answer the gateway' : 'gateway request failed');
    if (response.headersSent) return void response.destroy();
    finish(request, response, isStore ? unavailable : failed);
  }

  const serveContent = contentServer({ answering: { finish, count }, ...deps });
  const environmentRequest = environmentRequests({
    ...environments,
    answering: { finish, count },
    serveContent,
    addressOf,
    isDocument: (request) => headOf(request).isDocument,
    isHttps: deps.environmentsContentUrl.startsWith('https:'),
    clock,
  });

  function serve(
    request: HttpRequest,
    response: HttpResponse,
    { content, site }: Served,
    { kind, label, msLeft, now }: { kind: Kind; label: string; msLeft: number; now: number },
  ): void | Promise<void> {
    if (content === null) return finish(request, response, nothingHere, visibilityOf(kind));
    const { isDocument } = headOf(request);
    const stream = { targetId: site.id, label, epoch: site.epoch, msLeft };
    const serving = { kind, visibility: visibilityOf(kind), stream, isDocument, now };
    return serveContent(request, response, content, serving, deps.streams);
  }

  function servePublic(
    request: HttpRequest,
    response: HttpResponse,
    { label }: Extract<HostName, { kind: 'site' }>,
    served: Served | undefined,
    now: number,
  ): void | Promise<void> {
    if (served === undefined || !isServed(served, now) || served.site.visibility !== 'public')
      return finish(request, response, nothingHere, 'public');
    const { isPreview, endsAt, site } = served;
    const msLeft = Math.min(endsAt ?? Infinity, site.expiresAt ?? Infinity) - now;
    return serve(request, response, served, {
      kind: { isPrivate: false, isUnlisted: isPreview, isHttps },
      label,
      msLeft,
      now,
    });
  }

  /** Returns at once when the store does and the bytes are in memory. */
  function servePrivate(
    request: HttpRequest,
    response: HttpResponse,
    host: Extract<HostName, { kind: 'site' }>,
    served: Served | undefined,
    now: number,
  ): void | Promise<void> {
    const isOurs = served !== undefined && served.site.visibility === 'private';
    const at: PrivateAt = {
      host: host.host,
      label: host.label,
      target: request.url ?? '/',
      known: isOurs && isServed(served, now) ? served.site : undefined,
    };
    const reserved = privateSites.reserved(request, at);
    if (reserved !== null) return reserved.then((answer) => finish(request, response, answer, 'private'));
    const verdict = privateSites.authorize(request, at);
    const go = (decided: Verdict, time: number) => {
      if (decided.kind === 'answer') return finish(request, response, decided.answer, 'private');
      if (served === undefined || at.known === undefined) throw new Error('A grant without a site.');
      const kind = { isPrivate: true, isUnlisted: served.isPreview, isHttps };
      const msLeft = decided.until - decided.now;
      return serve(request, response, served, { kind, label: host.label, msLeft, now: time });
    };
    return verdict instanceof Promise
      ? verdict.then((decided) => go(decided, clock.now()))
      : go(verdict, now);
  }

  function serveSite(
    request: HttpRequest,
    response: HttpResponse,
    host: Extract<HostName, { kind: 'site' }>,
    now: number,
  ): void | Promise<void> {
    if (host.visibility === 'public' && request.method === 'POST')
      return finish(request, response, wrongMethod);
    const go = (served: Served | undefined, at: number) =>
      host.visibility === 'public'
        ? servePublic(request, response, host, served, at)
        : servePrivate(request, response, host, served, at);
    const look = (isAsked: boolean | GatewayAnswer, at: number): void | Promise<void> => {
      if (typeof isAsked === 'object') return finish(request, response, isAsked, 'private');
      const found = isAsked ? catalog.find(host.label, () => addressBucket(addressOf(request))) : undefined;
      return found instanceof Promise ? found.then((served) => go(served, clock.now())) : go(found, at);
    };
    // A request without a grant gets the same response for every label, so the label is not looked up. Otherwise the
    // response time would differ between labels (threat T31).
    const isAsked = host.visibility === 'public' || privateSites.mayHoldGrant(request, host.host);
    return isAsked instanceof Promise
      ? isAsked.then((asked) => look(asked, clock.now()))
      : look(isAsked, now);
  }

  function respond(request: HttpRequest, response: HttpResponse): void {
    const head = headOf(request);
    const { host } = head;
    // Read once, and again after each wait.
    const now = clock.now();
    const early = refuseEarly(request, head, now);
    if (early !== null || (host.kind !== 'site' && host.kind !== 'environment'))
      return finish(request, response, early ?? nothingHere);
    try {
      const going =
        host.kind === 'site'
          ? serveSite(request, response, host, now)
          : environmentRequest.respond(request, response, host, now);
      if (going instanceof Promise) going.catch((error: unknown) => fail(request, response, error));
    } catch (error) {
      fail(request, response, error);
    }
  }

  return { respond };
}

/** To the second (contract 6): expired, taken-down and deleted sites stop by the clock, whether or not a job has run. */
function isServed({ site, endsAt, content }: Served, now: number): boolean {
  return content !== null && siteStatusOf(site, now) === 'active' && (endsAt === null || now < endsAt);
}

/** Whether a person opens it as a page. Browsers send this; other clients count when they prefer HTML. */
function isDocument({ headers }: HttpRequest): boolean {
  const dest = headers['sec-fetch-dest'];
  if (dest !== undefined) return dest === 'document' || dest === 'iframe';
  return headers.accept?.includes('text/html') ?? false;
}

function visibilityOf({ isPrivate }: Kind): 'public' | 'private' {
  return isPrivate ? 'private' : 'public';
}

/** No response at a private address may be cached or indexed (threat T22). */
function closed(answer: GatewayAnswer): GatewayAnswer {
  return { ...answer, headers: { ...answer.headers, ...closedHeaders } };
}

const closedHeaders = {
  'cache-control': 'private, no-store',
  'cdn-cache-control': 'no-store',
  'x-robots-tag': 'noindex',
} as const;
