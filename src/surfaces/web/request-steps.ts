import type { FastifyReply, FastifyRequest } from 'fastify';
import { anonymous } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import { isLoopback } from '../../core/loopback.ts';
import { isLimitedChange, type Route } from '../../platform/http.ts';
import { endOfTurn } from '../../platform/turns.ts';
import { version } from '../../platform/version.ts';
import type { Authentication } from './authentication.ts';
import type { Authorization } from './authorization.ts';
import type { OpenStreams } from './open-streams.ts';
import type { RequestLimits } from './request-limits.ts';

/**
 * The path of a request, read from top to bottom. A step refuses by returning or throwing an error, and the next step does
 * not run; all refusals leave through one translator (refusals.ts).
 */
export type RequestStepsDeps = {
  readonly uiOrigin: string;
  /** Where content is served; this server serves nothing there (threat T35). Absent = nowhere. */
  readonly contentUrls?: readonly string[];
  readonly isHttps: boolean;
  readonly authentication: Omit<Authentication, 'authenticateMcp'>;
  readonly authorization: Authorization;
  readonly limits: RequestLimits;
  readonly openStreams: OpenStreams;
  /** False: the process has not started on its database yet, and serves only routes that need none; absent = true. */
  readonly hasStarted?: () => boolean;
};

type Refusal = AppError | void;
export type Step = (request: FastifyRequest, reply: FastifyReply) => Refusal | Promise<Refusal>;
type Hook = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void;

/** The steps of every request, also to a page or to nothing. */
export function firstSteps(deps: RequestStepsDeps): Hook {
  const { refuseStrayKeys } = deps.authentication;
  return asHook([
    endOfTurn,
    identify(),
    setHeaders(deps),
    refuseStrayKeys,
    checkHost(deps),
    checkStarted(deps),
  ]);
}

/** Then the steps of a route of the API, before its body is read and after. */
export function routeSteps(route: Route, deps: RequestStepsDeps): { onRequest?: Hook; preHandler?: Hook } {
  if (typeof route.policy.callers === 'string') return {};
  const { policy } = route;
  const { authentication, authorization, limits } = deps;

  const authenticate: Step = async (request) => {
    const found = await authentication.authenticate(request);
    if (found instanceof AppError) return found;
    request.caller = found;
  };
  const limitKey: Step = limits.limitKey;
  const checkOrigin: Step = (request) => {
    if (request.caller.kind === 'session' && request.method !== 'GET' && request.method !== 'HEAD')
      checkOwnOrigin(request, deps.uiOrigin);
  };
  const limitChange: Step = (request) => limits.limitChange(request.caller);
  const authorize: Step = (request) => authorization.authorize(request.caller, policy);
  const reauthorizeCaller: Step = (request) => {
    // The handler of an upload reauthorizes the caller when it has the bytes.
    if (request.upload === null) return reauthorize(request, policy, deps);
  };

  return {
    onRequest: asHook([
      authenticate,
      ...(route.exemptFromLimit ? [] : [limitKey]),
      // Before the limit on changes, so that another site's page cannot use up a person's changes.
      checkOrigin,
      ...(isLimitedChange(route) ? [limitChange] : []),
      authorize,
    ]),
    ...(route.method === 'GET' ? {} : { preHandler: asHook([reauthorizeCaller]) }),
  };
}

/**
 * Runs after the body has arrived, which may take half a minute. A session, a role or a scope that was valid at the start
 * must still be valid when the request makes its change (SO-05).
 */
export async function reauthorize(
  request: FastifyRequest,
  policy: Route['policy'],
  { authentication, authorization }: Pick<RequestStepsDeps, 'authentication' | 'authorization'>,
): Promise<void> {
  // Such routes read no credential, so a bad one does not matter either.
  if (typeof policy.callers === 'string') return;
  const found = await authentication.authenticateAgain(request);
  if (found instanceof AppError) throw found;
  request.caller = found;
  await authorization.authorize(request.caller, policy);
}

/** One hook for all steps, because Fastify's way from one hook to the next costs more than most steps. */
export function asHook(steps: readonly Step[]): Hook {
  return (request, reply, done) => void runSteps(steps, request, reply, done);
}

/** `done` is called outside the try: a failure of what follows is not reported as one of these steps. */
async function runSteps(
  steps: readonly Step[],
  request: FastifyRequest,
  reply: FastifyReply,
  done: (error?: Error) => void,
): Promise<void> {
  let failure: Error | undefined;
  try {
    for (const step of steps) {
      const result = step(request, reply);
      failure = (result instanceof Promise ? await result : result) ?? undefined;
      if (failure !== undefined) break;
    }
  } catch (error) {
    failure = error as Error;
  }
  done(failure);
}

function identify(): Step {
  return (request, reply) => {
    request.caller = anonymous;
    request.origin = {
      requestId: request.id,
      address: request.ip,
      agent: request.headers['user-agent']?.slice(0, 200) ?? null,
    };
    reply.header('x-request-id', request.id);
  };
}

function setHeaders({ isHttps }: RequestStepsDeps): Step {
  const headers: Record<string, string> = {
    // The command line says when it has another one. The OpenAPI document, which everyone can read, has it too.
    'postern-version': version,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'referrer-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    // Otherwise a page that opened a window on our page could see whether it leads on to a private site (threat T30).
    'cross-origin-opener-policy': 'same-origin',
    ...(isHttps ? { 'strict-transport-security': 'max-age=31536000; includeSubDomains' } : {}),
  };
  return (_request, reply) => void reply.headers(headers);
}

function checkHost(deps: RequestStepsDeps): Step {
  const isContentHost = contentHosts(deps);
  const isOurs = ownHosts(deps, isContentHost);
  return (request) => {
    // RFC 9112 section 3.2: a server must refuse a second Host header. It would have to use the host of an absolute target,
    // but only clients of a proxy send such a target.
    if (!namesOneHost(request))
      throw new AppError('invalid_query', { message: 'Send one Host header, and a path.' });
    // The host that the client used, according to a trusted proxy. The host that the proxy itself used must at least not
    // be a site's.
    const { host, headers } = request;
    // A pod reaches the web workload by the name of its Service. No browser has its ticket, so rebinding gains nothing.
    const isPods = request.routeOptions.config.access?.callers === 'pod';
    const isServed = isPods ? !isContentHost(host) : isOurs(host);
    if (!isServed || (headers.host !== host && isContentHost(headers.host)))
      throw new AppError('misdirected_request');
  };
}

function namesOneHost({ raw: { rawHeaders, url } }: FastifyRequest): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts <= 1 && url?.startsWith('/') === true;
}

function checkStarted({ hasStarted = () => true }: RequestStepsDeps): Step {
  return (request) => {
    if (!hasStarted() && request.routeOptions.config.needsNoStore !== true)
      throw new AppError('store_unavailable', { cause: new Error('The process has not started yet.') });
  };
}

/**
 * Browsers attach the session cookie automatically, so a change must prove that our own page made it (CS-01).
 * @throws `forbidden_origin`
 */
export function checkOwnOrigin({ headers }: FastifyRequest, uiOrigin: string): void {
  const { origin, 'sec-fetch-site': site } = headers;
  if (origin !== uiOrigin || (site !== undefined && site !== 'same-origin'))
    throw new AppError('forbidden_origin');
}

/**
 * True for the hosts that this server serves: the host of SERVICE_UI_URL, and for a loopback address also the other
 * names of this machine. The port depends on the proxy, so it is ignored. A page of another name that resolves here
 * (DNS rebinding) can read nothing.
 */
function ownHosts(
  { uiOrigin }: RequestStepsDeps,
  isContentHost: (host: string) => boolean,
): (host: string | undefined) => boolean {
  const { hostname } = new URL(uiOrigin);
  const names = [hostname, ...(isLoopback(hostname) ? ['localhost', '127.0.0.1', '[::1]'] : [])];
  const own = new Set(names.filter((name) => !isContentHost(name)));
  return (host) => host !== undefined && own.has(nameIn(host));
}

/** Without the port, and without the trailing dot of the root, which does not change the name (RFC 1034 section 3.1). */
function nameIn(host: string): string {
  return host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
}

/**
 * True for hosts of the gateway. A proxy that routes them here by mistake must not put the sign-in page on the origin
 * of a site or an Environment.
 */
function contentHosts({
  uiOrigin,
  contentUrls = [],
}: RequestStepsDeps): (host: string | undefined) => boolean {
  const own = new URL(uiOrigin);
  const contents = contentUrls.map((url) => new URL(url).hostname);
  return (host) => {
    if (host === undefined || host === own.host) return false;
    const name = nameIn(host);
    const isBelow = (content: string) => name === content || name.endsWith(`.${content}`);
    return name !== own.hostname && contents.some(isBelow);
  };
}
