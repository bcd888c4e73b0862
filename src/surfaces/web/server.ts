import { randomUUID } from 'node:crypto';
import underPressure from '@fastify/under-pressure';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { RoutePolicy } from '../../core/authorize.ts';
import { AppError } from '../../core/errors.ts';
import type { Route } from '../../platform/http.ts';
import type { Log } from '../../platform/log.ts';
import type { Tracing } from '../../platform/tracing.ts';
import { admitTo } from './admitting.ts';
import type { Gate } from './gate.ts';
import type { RequestMetrics } from './metrics.ts';
import { anonymous, answerBrokenRequest, notFound, patternOf, sendError } from './refusals.ts';
import { serve } from './serving.ts';
import { cutUnread } from './stream-reply.ts';
import { traceRequests } from './tracing.ts';
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
  /** Null or absent: nothing is traced. */
  readonly tracing?: Tracing | null;
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

/** Milliseconds that the head of a request may take, and then again its body. */
const bodyMs = 15_000;
const idleMs = 30_000;

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
    // A request that comes on a kept connection while the process stops is answered, and the connection ends with it (FT-09).
    return503OnClosing: false,
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
  if (deps.tracing) traceRequests(app, deps.tracing);
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
      url: patternOf(route),
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
      // Also by what a trusted proxy says the client asked for.
      if (isContentHost(request.headers.host) || isContentHost(request.host))
        throw new AppError('misdirected_request');
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
    const [spelled = ''] = host.toLowerCase().split(':', 1);
    // With the dot of the root it is the same name (RFC 1034 section 3.1).
    const name = spelled.replace(/\.$/, '');
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
