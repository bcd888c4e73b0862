import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import type { RequestListener, Server } from 'node:http';
import underPressure from '@fastify/under-pressure';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { RoutePolicy } from '../../core/authorize.ts';
import { AppError } from '../../core/errors.ts';
import { patternOf, type Route, type UploadType } from '../../platform/http.ts';
import { keepLastUsed } from '../../platform/last-used.ts';
import type { Log } from '../../platform/log.ts';
import type { Tracing } from '../../platform/tracing.ts';
import { createFairServer, isServing } from '../../platform/turns.ts';
import { isJson, isUpload, unsupportedType } from './body-types.ts';
import type { RequestMetrics } from './metrics.ts';
import { acceptForm, isOAuth } from './oauth-answers.ts';
import { answerBrokenRequest, notFound, sendError } from './refusals.ts';
import type { RequestRecords } from './request-records.ts';
import { firstSteps, type RequestStepsDeps, routeSteps } from './request-steps.ts';
import { runRoute } from './run-route.ts';
import { traceRequests } from './tracing.ts';
import { acceptUploads } from './upload-bodies.ts';

/** The server of the web workload: its connections, its routes and pages. request-steps.ts lists the path of a request. */
export type WebServerDeps = RequestStepsDeps & {
  readonly trustedProxies: readonly string[];
  readonly log: Log;
  /** Null or absent: nothing is traced. */
  readonly tracing?: Tracing | null;
  readonly metrics: RequestMetrics;
  readonly routes: readonly Route[];
  /** Pages besides the API: sign-in, the identity provider, health, the reference. Each declares its access. */
  readonly pages: readonly ((app: FastifyInstance) => void | Promise<void>)[];
  readonly records: RequestRecords;
  readonly jsonBodyBytes?: number;
  /** Milliseconds in which a client reads nothing of a response before its connection is closed; default half a minute. */
  readonly idleMs?: number;
  /** Milliseconds the event loop may lag before requests are refused with 503; absent = never. */
  readonly overloadDelayMs?: number | undefined;
};

declare module 'fastify' {
  interface FastifyRequest {
    /** The response is 503 `overloaded`: one of many, so it gets no separate log line. */
    isRefusedForLoad: boolean;
  }
  interface FastifyContextConfig {
    /** Every route declares who may call it; the server refuses to start when one does not. */
    access?: RoutePolicy;
    route?: Route;
    /** Content types that a page takes unparsed; a route of the API names its own. */
    uploads?: readonly UploadType[];
    /** Address of the metadata of a protected resource (RFC 9728), for its challenge. */
    resourceMetadata?: string;
    /** The response comes from memory, so it is served even before the process has started on its database. */
    needsNoStore?: boolean;
  }
}

/** Failures of which the log has the cause once a minute. */
const maxOutages = 100;
/** Milliseconds allowed for the head of a request, and again for its body. */
const bodyMs = 15_000;
const idleMs = 30_000;
/** Milliseconds for an upload; the bodies of other requests must arrive much sooner, see limitTime(). */
const uploadMs = 1_800_000;
/** Milliseconds for which an unused connection stays open: longer than a load balancer keeps its side. */
const keptMs = 72_000;

export async function createWebServer(given: WebServerDeps): Promise<FastifyInstance> {
  const deps = { ...given, outages: keepLastUsed<number>(maxOutages) };
  const app = Fastify({
    logger: false,
    genReqId: () => randomUUID(),
    requestIdHeader: false,
    trustProxy: deps.trustedProxies.length > 0 ? [...deps.trustedProxies] : false,
    bodyLimit: deps.jsonBodyBytes ?? 65_536,
    serverFactory: (handler) => createServer(handler, deps.idleMs ?? idleMs),
    handlerTimeout: 0,
    routerOptions: { maxParamLength: 512, caseSensitive: true, ignoreTrailingSlash: false },
    clientErrorHandler: answerBrokenRequest,
    frameworkErrors: (error, request, reply) => sendError(deps, error, request, reply),
    forceCloseConnections: 'idle',
    // A request that arrives on an open connection while the process stops still gets its response; then the connection
    // closes (FT-09).
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
  app.addHook('onRequest', firstSteps(deps));
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

function createServer(handler: RequestListener, connectionMs: number): Server {
  const server = createFairServer(
    {
      requestTimeout: uploadMs,
      headersTimeout: bodyMs,
      // How often Node checks for requests that take too long; its default would give them up to half a minute more.
      connectionsCheckingInterval: 2_000,
      keepAliveTimeout: keptMs,
    },
    handler,
  );
  // Runs when nothing was sent or received for a while; between requests that is keepAliveTimeout. A client that reads
  // nothing of a response would hold files and memory in vain. A response that is not ready yet, and a body still arriving,
  // have separate limits.
  server.setTimeout(connectionMs, (socket) => {
    if (socket.writableLength > 0 || !isServing(socket)) socket.destroy();
  });
  return server;
}

/**
 * A body that arrives slowly holds a connection and a place in the queue. Uploads of known callers have their own rule
 * (upload-bodies.ts); a git server is known only when its whole body has arrived.
 */
function limitTime(request: FastifyRequest, reply: FastifyReply, _payload: unknown, done: () => void): void {
  const { raw } = request;
  const isKnown = request.routeOptions.config.access?.callers !== 'git_server';
  if (!raw.complete && !(isKnown && isUpload(request))) {
    const late = Object.assign(new Error('The body took too long.'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    const timer = setTimeout(() => answerBrokenRequest(late, raw.socket), bodyMs);
    timer.unref();
    const stop = () => clearTimeout(timer);
    raw.once('end', stop).once('close', stop);
    // Also stops when the response was sent without reading the body.
    reply.raw.once('finish', stop).once('close', stop);
  }
  done();
}

/** Serving some requests well is better than serving all late, and refusing costs next to nothing. */
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
    deps.routes.filter((route) => route.uploads === undefined && !isOAuth(route)),
    deps,
  );
  await scope.register(async (own) => {
    acceptForm(own);
    mountRoutes(own, deps.routes.filter(isOAuth), deps);
  });
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
      ...routeSteps(route, deps),
      handler: (request, reply) => runRoute(route, request, reply, deps),
    });
  }
}

function finishRequest(deps: WebServerDeps) {
  return (request: FastifyRequest, reply: FastifyReply, done: () => void) => {
    const route = request.routeOptions.url ?? 'unknown';
    const isStream = String(reply.getHeader('content-type')).startsWith('text/event-stream');
    deps.metrics.count(request.method, route, reply.statusCode, isStream ? null : reply.elapsedTime);
    deps.records.finished(request, reply.statusCode);
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
  scope.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, done) => {
    const bytes = body as Buffer;
    if (bytes.length === 0) return done(null, undefined);
    if (!isJson(request)) return done(unsupportedType(request));
    // Decoding would replace invalid bytes with U+FFFD, and that text would be stored (RFC 8259 section 8.1).
    if (!isUtf8(bytes))
      return done(
        new AppError('invalid_body', {
          message: 'The request body is not valid UTF-8.',
          hint: 'Encode the JSON text as UTF-8.',
        }),
      );
    const text = bytes.toString();
    // The parser responds through the callback; the promise in its type is for other parsers.
    void parse(request, text, done as (error: Error | null, body?: unknown) => void);
  });
}
