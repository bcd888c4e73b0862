import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { resolve, type Served, siteStatusOf } from '../../features/sites/sites.ts';
import type { Blobs } from '../../platform/blobs/blobs.ts';
import type { HttpRequest, HttpResponse } from '../../platform/fast-http/fast-server.ts';
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
import type { BlobCache } from './blob-cache.ts';
import { type Kind, siteHeaders } from './headers.ts';
import { valuesOf } from './header-values.ts';
import { type HostName, hostReader } from './hosts.ts';
import type { OpenStreams } from './open-streams.ts';
import { sendAnswer, sendFile, sendRedirect } from './send.ts';

/**
 * How a request for content goes, read from top to bottom: method → target → host → keys → limits → switch → label →
 * private? grant → file → bytes. The cheapest refusals come first; nothing here writes anything.
 */
export type GatewayDeps = {
  readonly contentUrl: string;
  readonly catalog: { find(label: string): Served | undefined | Promise<Served | undefined> };
  readonly privateSites: PrivateSites;
  readonly blobs: Pick<Blobs, 'read'>;
  readonly cache: BlobCache;
  readonly streams: OpenStreams;
  /** The switch of the Sites configuration, as this process heard of it last. */
  readonly isEnabled: () => boolean;
  /** False: changes may have been missed for too long to serve anything (contract 10.3: 30 s). */
  readonly isInformed: (now: number) => boolean;
  /** What an address or a host asks too often, or null. */
  readonly limited: (request: HttpRequest, label: string | null, now: number) => GatewayAnswer | null;
  readonly exposures: {
    mentions(text: string): boolean;
    report(request: HttpRequest, text: string): void;
  };
  readonly clock: Clock;
  readonly count: (visibility: 'public' | 'private' | 'none', status: number) => void;
  readonly log: Log;
};

/** Letting browsers into private sites (private-access.md 2.2): a verdict for each request, one round trip. */
export type PrivateSites = {
  /** Answers the paths that the service keeps for itself; null for every other. */
  reserved(request: HttpRequest, at: PrivateAt): Promise<GatewayAnswer> | null;
  admit(request: HttpRequest, at: PrivateAt): Verdict | Promise<Verdict>;
};

export type Verdict =
  | {
      readonly kind: 'granted';
      /** Milliseconds by the store's clock: the end of the grant, and now. */
      readonly until: number;
      readonly now: number;
    }
  | { readonly kind: 'answer'; readonly answer: GatewayAnswer };

export type PrivateAt = {
  /** As the browser addresses it, with the port. */
  readonly host: string;
  readonly label: string;
  /** Path and query. */
  readonly target: string;
  /** Undefined: nobody has this label; answered like one that is not open. */
  readonly site: Served['site'] | undefined;
};

/** What begins so on a private site is the service's own. */
export const reservedPaths = '/.postern/';
const longestTarget = 8_192;

/** What the headers alone say. */
type RequestHead = {
  readonly host: HostName;
  /** Texts that hold a value of ours. */
  readonly keys: readonly string[];
  /** A person opens it as a page. */
  readonly isDocument: boolean;
};

export function createPipeline(deps: GatewayDeps) {
  const { catalog, privateSites, isEnabled, isInformed, limited, exposures, clock, log } = deps;
  const isHttps = deps.contentUrl.startsWith('https:');
  const readHost = hostReader(deps.contentUrl);
  const headOf = oncePerHead(
    (request): RequestHead => ({
      // Every Host header as it was sent; two of them are no host at all (matrix GW-01).
      host: readHost(valuesOf(request, 'host')),
      // In a value, and in what a header is called (threat T36).
      keys: request.rawHeaders.filter((text) => exposures.mentions(text)),
      isDocument: isDocument(request),
    }),
  );

  /** What can be said without looking anything up; null when the request may go on. */
  function refuseEarly(request: HttpRequest, { host, keys }: RequestHead, now: number): GatewayAnswer | null {
    const { url = '', method } = request;
    if (url.length > longestTarget) return tooLongTarget;
    // Also refuses an absolute target, which some would read the host from.
    if (!url.startsWith('/')) return badTarget;
    if (host.kind === 'foreign') return wrongHost;
    if (carriesKey(request, url, keys)) return keyInRequest;
    const excess = limited(request, host.kind === 'site' ? host.label : null, now);
    if (excess !== null) return excess;
    if (host.kind === 'nobody' || !isEnabled()) return nothingHere;
    if (!isInformed(now)) return unavailable;
    const isReserved = url.startsWith(reservedPaths);
    if (method !== 'GET' && method !== 'HEAD' && !(method === 'POST' && isReserved)) return wrongMethod;
    return null;
  }

  /** In the address or in `keys`, the texts of the headers that hold one. */
  function carriesKey(request: HttpRequest, url: string, keys: readonly string[]): boolean {
    const isInAddress = exposures.mentions(url);
    if (isInAddress) exposures.report(request, url);
    for (const text of keys) exposures.report(request, text);
    return isInAddress || keys.length > 0;
  }

  function finish(
    request: HttpRequest,
    response: HttpResponse,
    answer: GatewayAnswer,
    visibility: 'public' | 'private' | 'none' = 'none',
  ): void {
    deps.count(visibility, answer.status);
    const { host } = headOf(request);
    const isPrivate = host.kind === 'site' && host.visibility === 'private';
    sendAnswer(request, response, isPrivate ? closed(answer) : answer);
    // What a client still sends is of no interest to anybody.
    request.resume();
  }

  function fail(request: HttpRequest, response: HttpResponse, error: unknown): void {
    const isStore = error instanceof AppError && error.status === 503;
    // A flood must not become a flood of log lines.
    const isFlood = error instanceof AppError && error.code === 'overloaded';
    if (!isFlood)
      log.error({ err: error }, isStore ? 'a store did not answer the gateway' : 'gateway request failed');
    if (response.headersSent) return void response.destroy();
    finish(request, response, isStore ? unavailable : failed);
  }

  function serve(
    request: HttpRequest,
    response: HttpResponse,
    served: Served,
    { kind, label, msLeft, now }: { kind: Kind; label: string; msLeft: number; now: number },
  ): void | Promise<void> {
    const { content, site } = served;
    if (content === null) return finish(request, response, nothingHere, visibilityOf(kind));
    const { url = '/' } = request;
    const query = url.indexOf('?');
    const found = resolve(content, query < 0 ? url : url.slice(0, query), {
      isDocument: headOf(request).isDocument,
      now,
    });
    if (found.kind === 'missing') return finish(request, response, notFoundOn(kind), visibilityOf(kind));
    if (found.kind === 'redirect') {
      deps.count(visibilityOf(kind), found.status);
      return sendRedirect(response, kind, { ...found, to: withQuery(found.to, request.url ?? '') });
    }
    deps.count(visibilityOf(kind), found.status);
    const onStream = () =>
      deps.streams.enter(response, { siteId: site.id, label, epoch: site.epoch, msLeft });
    return sendFile(
      request,
      response,
      { kind, content, file: found.file, status: found.status, onStream },
      deps,
    );
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
      kind: { isPrivate: false, isPreview, isHttps },
      label,
      msLeft,
      now,
    });
  }

  /** At once when the store answers at once and the bytes are in memory. */
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
      site: isOurs && isServed(served, now) ? served.site : undefined,
    };
    const reserved = privateSites.reserved(request, at);
    if (reserved !== null) return reserved.then((answer) => finish(request, response, answer, 'private'));
    const verdict = privateSites.admit(request, at);
    const go = (decided: Verdict, time: number) => {
      if (decided.kind === 'answer') return finish(request, response, decided.answer, 'private');
      if (served === undefined || at.site === undefined) throw new Error('A grant without a site.');
      const kind = { isPrivate: true, isPreview: served.isPreview, isHttps };
      const msLeft = decided.until - decided.now;
      return serve(request, response, served, { kind, label: host.label, msLeft, now: time });
    };
    return verdict instanceof Promise
      ? verdict.then((decided) => go(decided, clock.now()))
      : go(verdict, now);
  }

  return (request: HttpRequest, response: HttpResponse): void => {
    const head = headOf(request);
    const { host } = head;
    // Read once; again after whatever had to be waited for.
    const now = clock.now();
    const early = refuseEarly(request, head, now);
    if (early !== null || host.kind !== 'site') return finish(request, response, early ?? nothingHere);
    if (host.visibility === 'public' && request.method === 'POST')
      return finish(request, response, wrongMethod);
    const go = (served: Served | undefined, at: number) =>
      host.visibility === 'public'
        ? servePublic(request, response, host, served, at)
        : servePrivate(request, response, host, served, at);
    try {
      const found = catalog.find(host.label);
      const going =
        found instanceof Promise ? found.then((served) => go(served, clock.now())) : go(found, now);
      if (going instanceof Promise) going.catch((error: unknown) => fail(request, response, error));
    } catch (error) {
      fail(request, response, error);
    }
  };
}

/** To the second (contract 6): expired, taken down and deleted stop by the clock, whatever a job has done. */
function isServed({ site, endsAt, content }: Served, now: number): boolean {
  return content !== null && siteStatusOf(site, now) === 'active' && (endsAt === null || now < endsAt);
}

/** A person opens it as a page. Browsers say so; of other clients, those that would rather have HTML. */
function isDocument({ headers }: HttpRequest): boolean {
  const dest = headers['sec-fetch-dest'];
  if (dest !== undefined) return dest === 'document' || dest === 'iframe';
  return headers.accept?.includes('text/html') ?? false;
}

function visibilityOf({ isPrivate }: Kind): 'public' | 'private' {
  return isPrivate ? 'private' : 'public';
}

/** Whatever is answered at a private address, no cache keeps it and nobody lists it (threat T22). */
function closed(answer: GatewayAnswer): GatewayAnswer {
  return { ...answer, headers: { ...answer.headers, ...closedHeaders } };
}

const closedHeaders = {
  'cache-control': 'private, no-store',
  'cdn-cache-control': 'no-store',
  'x-robots-tag': 'noindex',
} as const;

/** On a private site with all that its files carry too (threat T22). */
function notFoundOn(kind: Kind): GatewayAnswer {
  if (!kind.isPrivate) return nothingHere;
  const { 'content-security-policy': policy = '' } = nothingHere.headers;
  const headers = { ...nothingHere.headers, ...headersOfSite(kind), 'content-security-policy': policy };
  return { ...nothingHere, headers };
}

function headersOfSite(kind: Kind): Record<string, string> {
  const list = siteHeaders(kind);
  const pairs = list.flatMap((name, at) => (at % 2 === 0 ? [[name, list[at + 1] ?? ''] as const] : []));
  return Object.fromEntries(pairs);
}

function withQuery(to: string, url: string): string {
  const query = url.indexOf('?');
  return query < 0 || to.includes('?') ? to : to + url.slice(query);
}
