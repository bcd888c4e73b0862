import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { anonymous, type RequestOrigin } from '../../core/caller.ts';
import { minute } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { mcpScope } from '../../core/scopes.ts';
import { apiBase, type Route } from '../../platform/http.ts';
import { sendFinalError } from '../../platform/final-error.ts';
import type { Log } from '../../platform/log.ts';
import { isAnswering } from '../../platform/turns.ts';
import { hasTooManyCookies } from '../../platform/oversized-head.ts';
import { sessionCookie } from './credential.ts';
import { errorBody } from './envelope.ts';
import { isOAuth, oauthError, oauthErrorBody } from './oauth-answers.ts';
import { routeOf, toAppError } from './to-app-error.ts';
import { sendPage } from './pages/forms.ts';
import { keyInAddressPage } from './pages/messages.ts';
import { isForPerson, notFoundPage } from './pages/not-found.ts';
import type { RequestRecords } from './request-records.ts';

type RefusalDeps = {
  readonly log: Log;
  /** Code and message of a 503 → when its cause was logged, in ms of real time. */
  readonly outages: { get(failure: string): number | undefined; set(failure: string, at: number): unknown };
  readonly routes: readonly Route[];
  readonly records: Pick<RequestRecords, 'denied'>;
};

const nowhere: RequestOrigin = { requestId: null, address: null, agent: null };

/** The one exit for refusals and failures: log, audit log, and the envelope or a page for a person. */
export function sendError(
  deps: RefusalDeps,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  // Fastify may refuse a body (QUERY without a content type) before it notices that the path does not exist.
  const isNowhere = request.is404 && !(error instanceof AppError);
  const failure = isNowhere ? notFound(deps.routes, request) : toAppError(error, request);
  const isOAuthRoute = isOAuth(request.routeOptions?.config.route);
  // A flood of requests must not become a flood of log lines; the metrics count requests by status.
  request.isRefusedForLoad = failure.code === 'overloaded';
  if (request.isRefusedForLoad) deps.log.debug({ requestId: request.id }, 'request refused: overloaded');
  else if (failure.status >= 500) {
    if (isToBeLogged(deps, failure))
      deps.log.error(
        { err: failure.cause ?? error, requestId: request.id, code: failure.code },
        'request failed',
      );
  } else if (!isOAuthRoute || failure.code !== 'invalid_credential') {
    // The handler of an exchange records its refusals itself, with the reason.
    deps.records.denied(failure, request.caller ?? anonymous, routeOf(request), request.origin ?? nowhere);
  }
  if (failure.code === 'not_found' && isForPerson(request)) {
    return void sendPage(reply.code(404).header('x-request-id', request.id), notFoundPage(request.id));
  }
  if (failure.code === 'credential_in_url' && isForPerson(request)) {
    return void sendPage(reply.code(400).header('x-request-id', request.id), keyInAddressPage(request.id));
  }
  reply
    .code(isOAuthRoute ? oauthError(failure).status : failure.status)
    .headers(failure.headers)
    .header('content-type', 'application/json; charset=utf-8')
    .header('x-request-id', request.id);
  if (isOAuthRoute) return void reply.send(oauthErrorBody(request.id, failure));
  if (!isFromBrowser(request)) {
    const { resourceMetadata } = request.routeOptions.config;
    reply.headers(
      resourceMetadata === undefined ? challenge(failure) : mcpChallenge(failure, resourceMetadata),
    );
  }
  void reply.send(errorBody(request.id, failure));
}

/** While a store is unavailable, each request fails for the same reason, so the log has it once a minute. */
function isToBeLogged({ outages }: RefusalDeps, { status, code, message }: AppError): boolean {
  if (status !== 503) return true;
  const last = outages.get(`${code} ${message}`);
  const now = performance.now();
  if (last !== undefined && now - last < minute) return false;
  outages.set(`${code} ${message}`, now);
  return true;
}

/** Bearer clients get the challenge (contract 3); a client that sent a session cookie, even a dead one, does not. */
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

/** RFC 9728 section 5.1: where a client reads how to get a token, and which scope it needs. */
function mcpChallenge(error: AppError, metadata: string): Record<string, string> {
  const { 'www-authenticate': plain } = challenge(error);
  if (plain === undefined) return {};
  const scope = plain.includes('scope=') ? '' : `, scope="${mcpScope}"`;
  return { 'www-authenticate': `${plain}${scope}, resource_metadata="${metadata}"` };
}

/** 405 with Allow when the path exists under another method, otherwise 404. */
export function notFound(routes: readonly Route[], request: FastifyRequest): AppError {
  const path = request.url.split('?', 1)[0] ?? '';
  const allowed = routes
    .filter((route) => pathPattern(route.path).test(path))
    .map((route) => route.method as string);
  if (allowed.length === 0 || allowed.includes(request.method)) return new AppError('not_found');
  if (allowed.includes('GET')) allowed.push('HEAD');
  const allow = [...new Set(allowed)].sort().join(', ');
  return new AppError('method_not_allowed', {
    message: `This path does not support ${request.method}; it supports ${allow}.`,
    headers: { allow },
  });
}

function pathPattern(path: string): RegExp {
  const pattern = path
    .replaceAll('.', '\\.')
    .replaceAll(/\{\w+\*\}/g, '.+')
    .replaceAll(/\{\w+\}/g, '[^/]+');
  return new RegExp(`^${apiBase}${pattern}$`);
}

/** A request that Node's parser refuses never reaches Fastify, but the client still gets the envelope. */
export function answerBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  // The client would read anything written now as part of the current response.
  if (error.code === 'ECONNRESET' || !socket.writable || isAnswering(socket)) return void socket.destroy();
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
  const cookies = hasTooManyCookies(error) ? ['clear-site-data: "cookies"'] : [];
  sendFinalError(
    socket,
    [
      `HTTP/1.1 ${failure.status} ${STATUS_CODES[failure.status]}`,
      'content-type: application/json; charset=utf-8',
      'cache-control: no-store',
      `x-request-id: ${requestId}`,
      ...cookies,
    ],
    body,
  );
}
