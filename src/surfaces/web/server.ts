import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import underPressure from '@fastify/under-pressure';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { RoutePolicy } from '../../core/authorize.ts';
import { type Act, actorOf, type Caller, type RequestOrigin } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import {
  isLimitedChange,
  type RequestBudget,
  type RequestUpload,
  type Route,
  type RouteReply,
  type RouteRequest,
  type StreamReply,
} from '../../platform/http.ts';
import type { Log } from '../../platform/log.ts';
import { hasTooManyCookies } from '../../platform/oversized-head.ts';
import { sessionCookie } from './credential.ts';
import { errorBody, successBody } from './envelope.ts';
import { type Authenticated, budgetOf, type Gate } from './gate.ts';
import { routeOf, toAppError } from './errors.ts';
import { parseInput } from './input.ts';
import type { RequestMetrics } from './metrics.ts';
import { sendPage } from './pages/forms.ts';
import { keyInAddressPage } from './pages/messages.ts';
import { isForPerson, notFoundPage } from './pages/not-found.ts';
import { acceptUploads, isUpload } from './uploads.ts';

/**
 * How a request goes, read from top to bottom: request id → security headers → no keys in URLs → authenticate →
 * limit (keys) → origin → limit (changes by people) → authorize → body → verb → answer. Refusals leave through one translator.
 */
export type WebServerDeps = {
  readonly uiOrigin: string;
  /** Where content is served, and nothing of this server (threat T35); absent = nowhere. */
  readonly contentUrl?: string;
  readonly isHttps: boolean;
  readonly trustedProxies: readonly string[];
  readonly log: Log;
  readonly metrics: RequestMetrics;
  readonly routes: readonly Route[];
  /** Pages beside the API: sign-in, the identity provider, health, the reference. Each declares its access. */
  readonly pages: readonly ((app: FastifyInstance) => void | Promise<void>)[];
  readonly gate: Gate;
  readonly jsonBodyBytes?: number;
  /** Milliseconds in which nothing of an answer is taken before its connection is closed; half a minute without it. */
  readonly idleMs?: number;
  /** Milliseconds the event loop may lag before requests are refused with 503; absent = never. */
  readonly overloadDelayMs?: number | undefined;
};

declare module 'fastify' {
  interface FastifyRequest {
    /** The answer is 503 `overloaded`: one of many, and not worth a line each in the log. */
    isRefusedForLoad: boolean;
  }
  interface FastifyContextConfig {
    /** Every route says who may call it; the server refuses to start when one does not. */
    access?: RoutePolicy;
    route?: Route;
  }
}

const anonymous: Caller = { kind: 'anonymous' };
const nowhere: RequestOrigin = { requestId: null, address: null, agent: null };
const apiBase = '/api/v2';
/** Milliseconds that the head of a request may take, and then again its body. */
const bodyMs = 15_000;
const idleMs = 30_000;
/** Milliseconds for a client to take the answer to a broken request, before the connection goes. */
const lingerMs = 1_000;

export async function createWebServer(deps: WebServerDeps): Promise<FastifyInstance> {
  const app = Fastify({
    logger: false,
    genReqId: () => randomUUID(),
    requestIdHeader: false,
    trustProxy: deps.trustedProxies.length > 0 ? [...deps.trustedProxies] : false,
    bodyLimit: deps.jsonBodyBytes ?? 65_536,
    // For uploads; what other requests send has to be there much sooner, see limitTime().
    requestTimeout: 1_800_000,
    // How often Node looks for requests that take too long; its own default lets them have half a minute more.
    http: { connectionsCheckingInterval: 2_000, headersTimeout: bodyMs },
    handlerTimeout: 0,
    // Between requests keepAliveTimeout rules; while a request is under way, cutUnread() decides.
    connectionTimeout: deps.idleMs ?? idleMs,
    routerOptions: { maxParamLength: 512, caseSensitive: true, ignoreTrailingSlash: false },
    clientErrorHandler: answerBrokenRequest,
    frameworkErrors: (error, request, reply) => sendError(deps, error, request, reply),
    forceCloseConnections: 'idle',
  });

  // Null, because Fastify would share a decorated object between requests; sendError() copes until they are set.
  app.decorateRequest('caller', null as never);
  app.decorateRequest('origin', null as never);
  app.decorateRequest('keyUse', null);
  app.decorateRequest('isRefusedForLoad', false);
  app.decorateRequest('upload', null);
  app.addHook('onRoute', (route) => {
    if (route.config?.access === undefined) {
      throw new Error(`Route ${String(route.method)} ${route.url} declares no access; say who may call it.`);
    }
    if (route.method !== 'GET') route.preParsing = limitTime;
  });
  app.addHook('onRequest', startRequest(deps));
  if (deps.overloadDelayMs !== undefined) await refuseWhenOverloaded(app, deps.overloadDelayMs);
  app.addHook('onResponse', finishRequest(deps));
  app.setErrorHandler((error, request, reply) => sendError(deps, error, request, reply));
  app.setNotFoundHandler((request, reply) => sendError(deps, notFound(deps.routes, request), request, reply));

  for (const page of deps.pages) {
    await app.register(async (scope) => {
      await page(scope);
    });
  }
  await app.register(async (scope) => mountApi(scope, deps));
  return app;
}

/** A body that trickles in holds a connection and a place in line; uploads have their own rule (uploads.ts). */
function limitTime(request: FastifyRequest, reply: FastifyReply, _payload: unknown, done: () => void): void {
  const { raw } = request;
  if (!raw.complete && !isUpload(request)) {
    const late = Object.assign(new Error('The body took too long.'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    const timer = setTimeout(() => answerBrokenRequest(late, raw.socket), bodyMs);
    timer.unref();
    const stop = () => clearTimeout(timer);
    raw.once('end', stop).once('close', stop);
    // Also of one that was answered without its body being read.
    reply.raw.once('finish', stop).once('close', stop);
  }
  done();
}

/**
 * Nothing moved for a while. Whoever takes nothing of an answer holds files and memory for nobody; one that is still
 * being made, and a body that is still coming, have limits of their own.
 */
function cutUnread(this: ServerResponse): void {
  const { socket } = this;
  if (socket !== null && socket.writableLength > 0) socket.destroy();
}

/** Answering some well beats answering all late; refusing costs next to nothing. */
async function refuseWhenOverloaded(app: FastifyInstance, maxEventLoopDelay: number): Promise<void> {
  await app.register(underPressure, {
    maxEventLoopDelay,
    pressureHandler: () => {
      throw new AppError('overloaded', { retryAfterSeconds: 2 });
    },
  });
}

async function mountApi(scope: FastifyInstance, deps: WebServerDeps): Promise<void> {
  acceptOnlyJson(scope);
  mountRoutes(
    scope,
    deps.routes.filter(({ uploads }) => uploads === undefined),
    deps,
  );
  for (const route of deps.routes) {
    const { uploads } = route;
    if (uploads === undefined) continue;
    await scope.register(async (own) => {
      await acceptUploads(own, uploads);
      mountRoutes(own, [route], deps);
    });
  }
}

function mountRoutes(scope: FastifyInstance, routes: readonly Route[], deps: WebServerDeps): void {
  for (const route of routes) {
    scope.route({
      method: route.method,
      url: apiBase + route.path.replaceAll(/\{\w+\*\}/g, '*').replaceAll(/\{(\w+)\}/g, ':$1'),
      exposeHeadRoute: route.method === 'GET' && !('stream' in route.success),
      config: { access: route.policy, route },
      ...(route.bodyBytes === undefined ? {} : { bodyLimit: route.bodyBytes }),
      ...(route.policy.callers === 'anyone' ? {} : { onRequest: admitTo(route, deps) }),
      // A handler that takes the bytes itself asks again itself, when it has them.
      ...(route.policy.callers === 'anyone' || route.method === 'GET' || route.uploads !== undefined
        ? {}
        : { preHandler: (request: FastifyRequest) => deps.gate.readmit(request, route.policy) }),
      handler: (request, reply) => serve(route, request, reply, deps.gate),
    });
  }
}

/** Everything that happens before the body is read. Without a promise when nothing has to be waited for. */
function admitTo(route: Route, { gate, uiOrigin }: WebServerDeps) {
  const isLimited = isLimitedChange(route);

  function admit(
    request: FastifyRequest,
    reply: FastifyReply,
    found: Authenticated,
  ): Refusal | Promise<Refusal> {
    if (found instanceof AppError) return found;
    request.caller = found;
    if (!route.exemptFromLimit) gate.limit(request, reply);
    if (found.kind === 'session') checkOrigin(request, uiOrigin);
    // After the origin, so that another site's page cannot use up a person's changes.
    const counted = isLimited ? gate.limitChange(found) : undefined;
    return counted === undefined ? judge(found) : counted.then(() => judge(found));
  }

  function judge(found: Caller): Refusal | Promise<Refusal> {
    const asked = gate.principal(found, route.policy);
    if (asked instanceof Promise) {
      return asked.then((facts) => {
        gate.authorize(found, route.policy, facts);
        return undefined;
      });
    }
    gate.authorize(found, route.policy, asked);
    return undefined;
  }

  function start(request: FastifyRequest, reply: FastifyReply): Refusal | Promise<Refusal> {
    const found = gate.authenticate(request);
    return found instanceof Promise
      ? found.then((caller) => admit(request, reply, caller))
      : admit(request, reply, found);
  }

  return (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => {
    let admitted: Refusal | Promise<Refusal>;
    try {
      admitted = start(request, reply);
    } catch (error) {
      return done(error as Error);
    }
    if (admitted instanceof Promise) void finish(admitted, done);
    else done(admitted);
  };
}

type Refusal = AppError | undefined;

/** Fastify's hooks take a callback; awaiting keeps a failure of the next step from being reported as ours. */
async function finish(admitted: Promise<Refusal>, done: (error?: Error) => void): Promise<void> {
  let failure: Error | undefined;
  try {
    failure = await admitted;
  } catch (error) {
    failure = error as Error;
  }
  done(failure);
}

/** Browsers attach the session cookie by themselves, so a write must prove that our own page made it (CS-01). */
function checkOrigin(request: FastifyRequest, uiOrigin: string): void {
  if (request.method === 'GET' || request.method === 'HEAD') return;
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (origin !== uiOrigin || (site !== undefined && site !== 'same-origin'))
    throw new AppError('forbidden_origin');
}

function serve(route: Route, request: FastifyRequest, reply: FastifyReply, gate: Gate): unknown {
  const readmit = () => gate.readmit(request, route.policy);
  const result = route.handle(new ApiRequest(parseInput(route, request), request, readmit));
  if (!(result instanceof Promise)) return answer(route, request, reply, result, gate);
  return result.then((settled): unknown => answer(route, request, reply, settled, gate));
}

function answer(
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
  result: RouteReply<unknown> | StreamReply,
  gate: Gate,
): string | undefined | Promise<void> {
  if ('stream' in result) return sendStream(reply, result, () => gate.readmit(request, route.policy));
  if ('empty' in route.success) return void reply.code(204).send();
  reply.code(route.success.status);
  if (result.headers) reply.headers(result.headers);
  reply.header('content-type', 'application/json; charset=utf-8');
  return JSON.stringify(successBody(request.id, result.data, result.pagination));
}

/** What a handler sees of a request. What few handlers ask for is made when it is asked for. */
class ApiRequest implements RouteRequest<unknown, unknown, unknown> {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly caller: Caller;
  readonly origin: RequestOrigin;
  readonly #request: FastifyRequest;

  readonly readmit: () => Promise<void>;

  constructor(input: ReturnType<typeof parseInput>, request: FastifyRequest, readmit: () => Promise<void>) {
    this.readmit = readmit;
    this.params = input.params;
    this.query = input.query;
    this.body = input.body;
    this.caller = request.caller;
    this.origin = request.origin;
    this.#request = request;
  }

  get act(): Act {
    return { actor: actorOf(this.caller), origin: this.origin };
  }

  get upload(): RequestUpload | null {
    return this.#request.upload;
  }

  get budget(): RequestBudget | null {
    return budgetOf(this.#request.keyUse);
  }

  /** A getter, because handlers take it out of the request and call it alone. */
  get header(): (name: string) => string | undefined {
    return (name) => {
      const value = this.#request.headers[name];
      return Array.isArray(value) ? value[0] : value;
    };
  }
}

/** RFC 6266 and 8187: any name, for any client. */
function attachment(fileName: string): string {
  const plain = fileName.replaceAll(/[^\w.-]/g, '_');
  return plain === fileName
    ? `attachment; filename="${plain}"`
    : `attachment; filename="${plain}"; filename*=UTF-8''${encodeURIComponent(fileName).replaceAll("'", '%27')}`;
}

/** `readmit` rejects when the caller may no longer read: a long answer must not outlive its session. */
async function sendStream(
  reply: FastifyReply,
  result: StreamReply,
  readmit: () => Promise<void>,
): Promise<void> {
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(200, {
    ...(reply.getHeaders() as Record<string, string>),
    ...result.headers,
    'content-type': result.contentType,
    'content-disposition': attachment(result.fileName),
  });
  try {
    let isFirst = true;
    for await (const chunk of result.stream) {
      if (!isFirst) await readmit();
      isFirst = false;
      if (raw.destroyed) return;
      if (!raw.write(chunk)) await drained(raw);
    }
    raw.end();
  } catch {
    // The status is sent already; cutting the connection is the only way to say that the export is not whole.
    raw.destroy();
  }
}

/** Also when the connection is gone. */
async function drained(raw: ServerResponse): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = () => {
      raw.off('drain', done).off('close', done);
      resolve();
    };
    raw.on('drain', done).on('close', done);
  });
}

function startRequest(deps: WebServerDeps) {
  const headers: Record<string, string> = {
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'referrer-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    // Else who opened a window on a page of ours sees by it whether the way leads on to a private site (threat T30).
    'cross-origin-opener-policy': 'same-origin',
    ...(deps.isHttps ? { 'strict-transport-security': 'max-age=31536000; includeSubDomains' } : {}),
  };
  const isContentHost = contentHosts(deps);
  return (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => {
    reply.raw.on('timeout', cutUnread);
    request.caller = anonymous;
    request.origin = {
      requestId: request.id,
      address: request.ip,
      agent: request.headers['user-agent']?.slice(0, 200) ?? null,
    };
    reply.header('x-request-id', request.id);
    reply.headers(headers);
    try {
      deps.gate.refuseStrayKeys(request, request.origin);
      if (isContentHost(request.headers.host)) throw new AppError('misdirected_request');
      done();
    } catch (error) {
      done(error as Error);
    }
  };
}

/**
 * True of hosts that are the gateway's: a proxy that sends them here must not put the sign-in page on the origin of
 * somebody's site. Any other name is let through: an address, a proxy's own, what a load balancer asks by.
 */
function contentHosts({ uiOrigin, contentUrl }: WebServerDeps): (host: string | undefined) => boolean {
  const own = new URL(uiOrigin);
  const content = contentUrl === undefined ? undefined : new URL(contentUrl).hostname;
  return (host) => {
    if (content === undefined || host === undefined || host === own.host) return false;
    const [name = ''] = host.toLowerCase().split(':', 1);
    return name !== own.hostname && (name === content || name.endsWith(`.${content}`));
  };
}

function finishRequest(deps: WebServerDeps) {
  return (request: FastifyRequest, reply: FastifyReply, done: () => void) => {
    const route = request.routeOptions.url ?? 'unknown';
    deps.metrics.count(request.method, route, reply.statusCode, reply.elapsedTime);
    deps.gate.finished(request, reply.statusCode);
    if (reply.statusCode >= 500 && !request.isRefusedForLoad) {
      deps.log.warn(
        { requestId: request.id, method: request.method, route, status: reply.statusCode },
        'request failed',
      );
    } else {
      deps.log.debug(
        { requestId: request.id, method: request.method, route, status: reply.statusCode },
        'request',
      );
    }
    done();
  };
}

function acceptOnlyJson(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  const parse = scope.getDefaultJsonParser('error', 'error');
  scope.addContentTypeParser('*', { parseAs: 'string' }, (request, body, done) => {
    const text = body as string;
    const type = request.headers['content-type'] ?? '';
    if (text === '') return done(null, undefined);
    // Exact, because lenient matching has let bodies past validation before (PB-07).
    if (!/^application\/json(?: *; *charset="?utf-8"?)?$/i.test(type))
      return done(new AppError('unsupported_media_type'));
    // It answers through the callback; the promise in its type is for other parsers.
    void parse(request, text, done as (error: Error | null, body?: unknown) => void);
  });
}

function sendError(deps: WebServerDeps, error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  // Fastify may refuse a body (QUERY without a content type) before it notices that nothing is served there.
  const isNowhere = request.is404 && !(error instanceof AppError);
  const failure = isNowhere ? notFound(deps.routes, request) : toAppError(error, request);
  // A flood must not become a flood of log lines; requests by status are counted in the metrics.
  request.isRefusedForLoad = failure.code === 'overloaded';
  if (request.isRefusedForLoad) deps.log.debug({ requestId: request.id }, 'request refused: overloaded');
  else if (failure.status >= 500) {
    deps.log.error(
      { err: failure.cause ?? error, requestId: request.id, code: failure.code },
      'request failed',
    );
  } else {
    deps.gate.denied(failure, request.caller ?? anonymous, routeOf(request), request.origin ?? nowhere);
  }
  if (failure.code === 'not_found' && isForPerson(request)) {
    return void sendPage(reply.code(404).header('x-request-id', request.id), notFoundPage(request.id));
  }
  if (failure.code === 'credential_in_url' && isForPerson(request)) {
    return void sendPage(reply.code(400).header('x-request-id', request.id), keyInAddressPage(request.id));
  }
  reply.code(failure.status).headers(failure.headers);
  if (!isFromBrowser(request)) reply.headers(challenge(failure));
  void reply
    .header('content-type', 'application/json; charset=utf-8')
    .header('x-request-id', request.id)
    .send(errorBody(request.id, failure));
}

/** Bearer callers get the challenge (contract 3); whoever sent a session cookie, even a dead one, is none. */
function isFromBrowser(request: FastifyRequest): boolean {
  return request.caller?.kind === 'session' || (request.headers.cookie ?? '').includes(sessionCookie);
}

/** RFC 6750 section 3. */
function challenge(error: AppError): Record<string, string> {
  if (error.code === 'authentication_required') return { 'www-authenticate': 'Bearer realm="postern"' };
  if (error.code === 'invalid_credential') {
    return { 'www-authenticate': 'Bearer realm="postern", error="invalid_token"' };
  }
  if (error.code === 'forbidden_scope') {
    const required = error.details?.['requiredScope'];
    const scope = typeof required === 'string' ? required : '';
    return { 'www-authenticate': `Bearer realm="postern", error="insufficient_scope", scope="${scope}"` };
  }
  return {};
}

/** 405 with Allow when the path exists under another method, otherwise 404. */
function notFound(routes: readonly Route[], request: FastifyRequest): AppError {
  const path = request.url.split('?', 1)[0] ?? '';
  const allowed = routes
    .filter((route) => pathPattern(route.path).test(path))
    .map((route) => route.method as string);
  if (allowed.length === 0 || allowed.includes(request.method)) return new AppError('not_found');
  if (allowed.includes('GET')) allowed.push('HEAD');
  return new AppError('method_not_allowed', { headers: { allow: [...new Set(allowed)].sort().join(', ') } });
}

function pathPattern(path: string): RegExp {
  const pattern = path
    .replaceAll('.', '\\.')
    .replaceAll(/\{\w+\*\}/g, '.+')
    .replaceAll(/\{\w+\}/g, '[^/]+');
  return new RegExp(`^${apiBase}${pattern}$`);
}

/** What Node's parser refuses never reaches Fastify; it gets the envelope all the same. */
function answerBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) return void socket.destroy();
  const failure =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? new AppError('header_too_large')
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? new AppError('request_timeout')
        : new AppError('invalid_query', {
            message: 'The request is not valid HTTP.',
            hint: 'Check the request line and headers.',
          });
  const requestId = randomUUID();
  const body = errorBody(requestId, failure);
  const reason = { 431: 'Request Header Fields Too Large', 408: 'Request Timeout', 400: 'Bad Request' }[
    failure.status
  ];
  socket.end(
    `HTTP/1.1 ${failure.status} ${reason}\r\ncontent-type: application/json; charset=utf-8\r\ncache-control: no-store\r\n` +
      `x-request-id: ${requestId}\r\n${hasTooManyCookies(error) ? 'clear-site-data: "cookies"\r\n' : ''}` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
  // A client that keeps its side open would keep the connection; cut at once, it might lose the answer.
  setTimeout(() => socket.destroy(), lingerMs).unref();
}
