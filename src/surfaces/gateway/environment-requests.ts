import { addressBucket } from '../../features/rate-limit/rate-limit.ts';
import {
  type EnvironmentCatalog,
  exposedService,
  isGone,
  isRunning,
  type LabelledEnvironment,
  type ServedService,
} from '../../features/environments/environments.ts';
import type { Clock } from '../../core/clock.ts';
import type { HttpRequest, HttpResponse } from '../../platform/fast-http/fast-server.ts';
import type { PrivateAt, PrivateSteps, Verdict } from './access.ts';
import { noGrant, nothingHere, unavailable, wrongMethod } from './answer.ts';
import { gone, notReady } from './environment-pages.ts';
import type { HeldRequests } from './held-requests.ts';
import type { HostName } from './hosts.ts';
import type { OpenStream, OpenStreams } from './open-streams.ts';
import type { Proxy } from './proxy.ts';
import { type Answering, type contentServer, notFoundOn } from './serve-content.ts';

const noAccess: Verdict = { kind: 'answer', answer: noGrant };

export type EnvironmentHost = Extract<HostName, { kind: 'environment' }>;

/** Dependencies for serving Environments. */
export type EnvironmentServing = {
  readonly catalog: EnvironmentCatalog;
  readonly steps: PrivateSteps;
  readonly streams: OpenStreams;
  readonly proxy: Proxy;
  readonly held: HeldRequests;
  /** An Environment is used. */
  readonly used: (environmentId: string) => void;
  /** The switch of the Environment policy, as this process received it last. */
  readonly isEnabled: () => boolean;
  /** False: changes may have been missed for too long to serve anything. */
  readonly isInformed: (now: number) => boolean;
};

/**
 * Answers a request at the host of an Environment, in this order: the Environment at the label, who may open it, its
 * service, the sibling that answers the path, then a file or the process. Without a grant, the answer is the same for a
 * label in use that is not public, one that was, and one that never was (threat T31). Status pages come after access.
 */
export function environmentRequests(
  deps: EnvironmentServing & {
    readonly answering: Answering;
    readonly serveContent: ReturnType<typeof contentServer>;
    readonly addressOf: (request: HttpRequest) => string | null;
    readonly isDocument: (request: HttpRequest) => boolean;
    readonly isHttps: boolean;
    readonly clock: Clock;
  },
) {
  const { catalog, steps, streams, proxy, held, serveContent, addressOf, clock } = deps;
  const finish: Answering['finish'] = (request, response, answer) =>
    deps.answering.finish(request, response, answer, 'environment');

  type At = {
    readonly host: EnvironmentHost;
    readonly environment: LabelledEnvironment;
    readonly stream: OpenStream;
  };

  /** Everything up to here decided that this request may see the Environment. */
  function serve(request: HttpRequest, response: HttpResponse, at: At, now: number): void | Promise<void> {
    const { environment, host } = at;
    const front = exposedService(environment, host.service);
    if (front === undefined) return finish(request, response, notFoundOn(kindOf(environment)));
    const service = behindPath(environment, front, request.url ?? '/');
    if (isRunning(service)) return proxyTo(request, response, at, service);
    if (request.method !== 'GET' && request.method !== 'HEAD') return finish(request, response, wrongMethod);
    const content = catalog.contentOf(environment, service, () => addressBucket(addressOf(request)));
    const go = (found: typeof content, time: number) => {
      if (found instanceof Promise || found === undefined)
        return finish(request, response, notReady(environment, service));
      return serveContent(
        request,
        response,
        found,
        {
          kind: kindOf(environment),
          visibility: 'environment',
          stream: at.stream,
          isDocument: deps.isDocument(request),
          now: time,
        },
        streams,
      );
    };
    return content instanceof Promise ? content.then((found) => go(found, clock.now())) : go(content, now);
  }

  function proxyTo(
    request: HttpRequest,
    response: HttpResponse,
    at: At,
    service: ServedService,
  ): void | Promise<void> {
    const { environment, host, stream } = at;
    if (service.status === 'asleep') return hold(request, response, at, service);
    if (service.address === null) return finish(request, response, notReady(environment, service));
    const { isPrivate, isHttps } = kindOf(environment);
    proxy.forward(request, response, {
      name: `${environment.id} ${service.name}`,
      address: service.address,
      host: host.host,
      client: addressOf(request),
      isPrivate,
      isHttps,
      enter: (cut) => streams.enter(cut, stream),
      used: () => deps.used(environment.id),
      counted: (status) => deps.answering.count(request, 'environment', status),
      refuse: (answer) => finish(request, response, answer),
    });
  }

  /** Waits until the process is awake, and then handles the request from the start, which checks its grant again. */
  async function hold(
    request: HttpRequest,
    response: HttpResponse,
    { environment, host, stream }: At,
    service: ServedService,
  ): Promise<void> {
    proxy.hold(request);
    const leave = streams.enter(() => request.socket.destroy(), stream);
    const isAwake = await held.wait(request, {
      environmentId: environment.id,
      service: service.name,
      async isAsleep() {
        const found = await catalog.find(host.label, () => addressBucket(addressOf(request)));
        return found?.services.get(service.name)?.status === 'asleep';
      },
    });
    leave();
    if (request.socket.destroyed) return;
    const now = clock.now();
    if (!isAwake) return finish(request, response, notReady(environment, service));
    if (!deps.isInformed(now)) return finish(request, response, unavailable);
    return await respond(request, response, host, now);
  }

  const kindOf = ({ access }: LabelledEnvironment) => ({
    isPrivate: access !== 'public',
    isUnlisted: true,
    isHttps: deps.isHttps,
  });

  function servePrivate(
    request: HttpRequest,
    response: HttpResponse,
    host: EnvironmentHost,
    environment: LabelledEnvironment | undefined,
    now: number,
  ): void | Promise<void> {
    const isOpen = environment !== undefined && !isGone(environment, now) && environment.access !== 'public';
    const at: PrivateAt = {
      host: host.host,
      label: host.name,
      target: request.url ?? '/',
      known: isOpen ? environment : undefined,
    };
    const reserved = steps.reserved(request, at);
    if (reserved !== null) return reserved.then((answer) => finish(request, response, answer));
    const verdict = isFromElsewhere(request, host, deps.isHttps) ? noAccess : steps.authorize(request, at);
    const go = (decided: Verdict, time: number) => {
      if (decided.kind === 'answer') return finish(request, response, decided.answer);
      if (environment === undefined) throw new Error('A grant without an Environment.');
      const stream = {
        ...streamOf(environment, time),
        msLeft: Math.min(decided.until - decided.now, environment.expiresAt - time),
        grant: steps.watch(request, at),
      };
      return serve(request, response, { host, environment, stream }, time);
    };
    return verdict instanceof Promise
      ? verdict.then((decided) => go(decided, clock.now()))
      : go(verdict, now);
  }

  /** An address that ended says so to everyone when it was public, otherwise to a browser that had access. */
  function sayGone(
    request: HttpRequest,
    response: HttpResponse,
    host: EnvironmentHost,
    environment: LabelledEnvironment,
    now: number,
  ): void | Promise<void> {
    if (environment.access === 'public' && environment.isLastLabel) return finish(request, response, gone);
    const held = steps.mayHoldGrant(request, host.host);
    const go = (found: Awaited<typeof held>, time: number) => {
      if (typeof found === 'object') return finish(request, response, found);
      if (found) return finish(request, response, gone);
      return servePrivate(request, response, host, undefined, time);
    };
    return held instanceof Promise ? held.then((found) => go(found, clock.now())) : go(held, now);
  }

  function answer(
    request: HttpRequest,
    response: HttpResponse,
    host: EnvironmentHost,
    environment: LabelledEnvironment | undefined,
    now: number,
  ): void | Promise<void> {
    if (environment === undefined) return servePrivate(request, response, host, undefined, now);
    if (isGone(environment, now)) return sayGone(request, response, host, environment, now);
    if (environment.access !== 'public') return servePrivate(request, response, host, environment, now);
    return serve(request, response, { host, environment, stream: streamOf(environment, now) }, now);
  }

  function respond(
    request: HttpRequest,
    response: HttpResponse,
    host: EnvironmentHost,
    now: number,
  ): void | Promise<void> {
    if (!deps.isEnabled()) return finish(request, response, nothingHere);
    const found = catalog.find(host.label, () => addressBucket(addressOf(request)));
    return found instanceof Promise
      ? found.then((environment) => answer(request, response, host, environment, clock.now()))
      : answer(request, response, host, found, now);
  }

  return { respond };
}

function streamOf({ id, label, epoch, expiresAt }: LabelledEnvironment, now: number): OpenStream {
  return { targetId: id, label, epoch, msLeft: expiresAt - now };
}

/** A page of another origin sent it, which may be a sibling with the same registrable domain: cookies come with it (T34). */
function isFromElsewhere(
  { method, headers }: HttpRequest,
  { host }: EnvironmentHost,
  isHttps: boolean,
): boolean {
  const { origin, 'sec-fetch-site': site, 'sec-fetch-mode': mode = 'navigate' } = headers;
  // A person follows a link, which changes nothing.
  const isLink = method === 'GET' && mode === 'navigate' && headers.upgrade === undefined;
  if (isLink && (headers['sec-fetch-dest'] ?? 'document') === 'document') return false;
  if (site === 'same-site' || site === 'cross-site') return true;
  // Older browsers send only this, and not with every GET.
  return origin !== undefined && origin !== `${isHttps ? 'https' : 'http'}://${host}`;
}

/** The service itself, or the sibling to which the longest matching path leads. Whole segments match: `/api` is not `/apis`. */
function behindPath({ services }: LabelledEnvironment, front: ServedService, url: string): ServedService {
  const path = url.split('?', 1)[0] ?? '/';
  const [longest] = Object.keys(front.routes)
    .filter((prefix) => path === prefix || path.startsWith(`${prefix}/`))
    .sort((one, other) => other.length - one.length);
  const sibling = longest === undefined ? undefined : services.get(front.routes[longest] ?? '');
  return sibling ?? front;
}
