import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { resolve, type Served, siteStatusOf } from '../../features/sites/sites.ts';
import type { Blobs } from '../../platform/blobs/blobs.ts';
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
  readonly isInformed: () => boolean;
  /** What an address or a host asks too often, or null. */
  readonly limited: (request: IncomingMessage, label: string | null) => GatewayAnswer | null;
  readonly exposures: {
    mentions(text: string): boolean;
    report(request: IncomingMessage, text: string): void;
  };
  readonly clock: Clock;
  readonly count: (visibility: 'public' | 'private' | 'none', status: number) => void;
  readonly log: Log;
};

/** Letting browsers into private sites (private-access.md 2.2): a verdict for each request, one round trip. */
export type PrivateSites = {
  /** Answers the paths that the service keeps for itself; null for every other. */
  reserved(request: IncomingMessage, at: PrivateAt): Promise<GatewayAnswer> | null;
  admit(request: IncomingMessage, at: PrivateAt): Verdict | Promise<Verdict>;
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

export function createPipeline(deps: GatewayDeps) {
  const { catalog, privateSites, isEnabled, isInformed, limited, exposures, clock, log } = deps;
  const isHttps = deps.contentUrl.startsWith('https:');
  const readHost = hostReader(deps.contentUrl);

  /** What can be said without looking anything up; null when the request may go on. */
  function refuseEarly(request: IncomingMessage, host: HostName): GatewayAnswer | null {
    const { url = '', method } = request;
    if (url.length > longestTarget) return tooLongTarget;
    // Also refuses an absolute target, which some would read the host from.
    if (!url.startsWith('/')) return badTarget;
    if (host.kind === 'foreign') return wrongHost;
    if (carriesKey(request, url)) return keyInRequest;
    const excess = limited(request, host.kind === 'site' ? host.label : null);
    if (excess !== null) return excess;
    if (host.kind === 'nobody' || !isEnabled()) return nothingHere;
    if (!isInformed()) return unavailable;
    const isReserved = url.startsWith(reservedPaths);
    if (method !== 'GET' && method !== 'HEAD' && !(method === 'POST' && isReserved)) return wrongMethod;
    return null;
  }

  /** In the address, in any header, and in what a header is called (threat T36). */
  function carriesKey(request: IncomingMessage, url: string): boolean {
    let isFound = false;
    const look = (text: string) => {
      if (!exposures.mentions(text)) return;
      exposures.report(request, text);
      isFound = true;
    };
    look(url);
    for (const text of request.rawHeaders) look(text);
    return isFound;
  }

  function finish(
    request: IncomingMessage,
    response: ServerResponse,
    answer: GatewayAnswer,
    visibility: 'public' | 'private' | 'none' = 'none',
  ): void {
    deps.count(visibility, answer.status);
    sendAnswer(request, response, answer);
    // What a client still sends is of no interest to anybody.
    request.resume();
  }

  function fail(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    const isStore = error instanceof AppError && error.status === 503;
    // A flood must not become a flood of log lines.
    const isFlood = error instanceof AppError && error.code === 'overloaded';
    if (!isFlood)
      log.error({ err: error }, isStore ? 'a store did not answer the gateway' : 'gateway request failed');
    if (response.headersSent) return void response.destroy();
    finish(request, response, isStore ? unavailable : failed);
  }

  function serve(
    request: IncomingMessage,
    response: ServerResponse,
    served: Served,
    { kind, label, msLeft }: { kind: Kind; label: string; msLeft: number },
  ): void | Promise<void> {
    const { content, site } = served;
    const now = clock.now();
    if (content === null) return finish(request, response, nothingHere, visibilityOf(kind));
    const { url = '/' } = request;
    const query = url.indexOf('?');
    const found = resolve(content, query < 0 ? url : url.slice(0, query), {
      isDocument: isDocument(request),
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
    request: IncomingMessage,
    response: ServerResponse,
    { label }: Extract<HostName, { kind: 'site' }>,
    served: Served | undefined,
  ): void | Promise<void> {
    const now = clock.now();
    if (served === undefined || !isServed(served, now) || served.site.visibility !== 'public')
      return finish(request, response, nothingHere, 'public');
    const { isPreview, endsAt, site } = served;
    const msLeft = Math.min(endsAt ?? Infinity, site.expiresAt ?? Infinity) - now;
    return serve(request, response, served, {
      kind: { isPrivate: false, isPreview, isHttps },
      label,
      msLeft,
    });
  }

  /** At once when the store answers at once and the bytes are in memory. */
  function servePrivate(
    request: IncomingMessage,
    response: ServerResponse,
    host: Extract<HostName, { kind: 'site' }>,
    served: Served | undefined,
  ): void | Promise<void> {
    const isOurs = served !== undefined && served.site.visibility === 'private';
    const at: PrivateAt = {
      host: host.host,
      label: host.label,
      target: request.url ?? '/',
      site: isOurs && isServed(served, clock.now()) ? served.site : undefined,
    };
    const reserved = privateSites.reserved(request, at);
    if (reserved !== null) return reserved.then((answer) => finish(request, response, answer, 'private'));
    const verdict = privateSites.admit(request, at);
    const go = (decided: Verdict) => {
      if (decided.kind === 'answer') return finish(request, response, decided.answer, 'private');
      if (served === undefined || at.site === undefined) throw new Error('A grant without a site.');
      const kind = { isPrivate: true, isPreview: served.isPreview, isHttps };
      const msLeft = decided.until - decided.now;
      return serve(request, response, served, { kind, label: host.label, msLeft });
    };
    return verdict instanceof Promise ? verdict.then(go) : go(verdict);
  }

  return (request: IncomingMessage, response: ServerResponse): void => {
    // Every Host header as it was sent; two of them are no host at all (matrix GW-01).
    const host = readHost(valuesOf(request, 'host'));
    const early = refuseEarly(request, host);
    if (early !== null || host.kind !== 'site') return finish(request, response, early ?? nothingHere);
    if (host.visibility === 'public' && request.method === 'POST')
      return finish(request, response, wrongMethod);
    const go = (served: Served | undefined) =>
      host.visibility === 'public'
        ? servePublic(request, response, host, served)
        : servePrivate(request, response, host, served);
    try {
      const found = catalog.find(host.label);
      const going = found instanceof Promise ? found.then(go) : go(found);
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
function isDocument({ headers }: IncomingMessage): boolean {
  const dest = headers['sec-fetch-dest'];
  if (dest !== undefined) return dest === 'document' || dest === 'iframe';
  return headers.accept?.includes('text/html') ?? false;
}

function visibilityOf({ isPrivate }: Kind): 'public' | 'private' {
  return isPrivate ? 'private' : 'public';
}

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
