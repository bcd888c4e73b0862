import type { ServerResponse } from 'node:http';
import type Provider from 'oidc-provider';
import type { ErrorOut, KoaContextWithOIDC } from 'oidc-provider';
import type { Log } from '../../platform/log.ts';
import type { ProviderViews } from './views.ts';

/**
 * Error answers of the provider. A browser gets a page, a program gets OAuth's error object (RFC 6749 section 5.2); both
 * contain the request id. Internal errors are logged with their cause.
 */
export function tellFailures(provider: Provider, { views, log }: { views: ProviderViews; log: Log }): void {
  provider.on('server_error', (ctx, error) => logFailure(log, ctx, error));
  provider.on('grant.error', (ctx, error) => {
    if (error.error === 'authorization_pending' || error.error === 'slow_down') patient.add(ctx.res);
  });
  // Outermost middleware. Without it, koa would answer in plain text for unknown routes and for errors that occur
  // after the library has composed its answer.
  provider.use(async (ctx, next) => {
    try {
      await next();
      if (ctx.status === 404 && (ctx.body === undefined || ctx.body === null)) answerNowhere(ctx, views);
    } catch (error) {
      logFailure(log, ctx, error);
      ctx.status = 500;
      answerFailure(ctx, views, serverError);
    }
  });
}

const serverError = { error: 'server_error', error_description: 'An internal error occurred.' };

const patient = new WeakSet<ServerResponse>();

/** True for an answer that refuses the request. A device that must keep polling (RFC 8628 section 3.5) did nothing wrong. */
export function isRefusal(response: ServerResponse): boolean {
  return response.statusCode >= 400 && response.statusCode < 500 && !patient.has(response);
}

/** Errors for which the library shows the device-code form again, because the person can enter another code. */
const typedWrong: ReadonlySet<string> = new Set([
  'NoCodeError',
  'NotFoundError',
  'ExpiredError',
  'AlreadyUsedError',
  'AbortedError',
]);

/**
 * Answers the other errors of the device-code form: a form of another browser, an expired page, an internal error.
 * Showing the form again would not help. Returns true when it answered.
 */
export function answersDeviceFailure(
  ctx: KoaContextWithOIDC,
  views: ProviderViews,
  out: ErrorOut | undefined,
  error: Error | undefined,
): boolean {
  if (error === undefined || typedWrong.has(error.name)) return false;
  const { session } = ctx.oidc;
  // The library has put the form's secret into a session that was never stored, and would fail to save it.
  // `touched` is missing in the types.
  if (session !== undefined && (session.exp as number | undefined) === undefined)
    Reflect.set(session, 'touched', false);
  answerFailure(ctx, views, ctx.status >= 500 || out === undefined ? serverError : out);
  return true;
}

/** The context outside the library's routes, where `oidc` does not exist yet. */
type Context = Omit<KoaContextWithOIDC, 'oidc'>;

function answerFailure(ctx: Context, views: ProviderViews, out: ErrorOut): void {
  if (ctx.accepts('json', 'html') !== 'html') {
    ctx.body = out;
    return;
  }
  const requestId = requestIdOf(ctx);
  show(ctx, views, (page) =>
    out === serverError ? page.failed({ requestId }) : page.deviceExpired({ requestId }),
  );
}

/** The answer for an unknown path, or a method that the path does not support. */
function answerNowhere(ctx: Context, views: ProviderViews): void {
  ctx.status = 404;
  if (ctx.accepts('json', 'html') === 'html')
    show(ctx, views, (page) => page.nowhere({ requestId: requestIdOf(ctx) }));
  else
    ctx.body = {
      error: 'not_found',
      error_description: 'This path does not exist, or does not support this method.',
    };
}

function logFailure(log: Log, ctx: Context, error: unknown): void {
  log.error({ err: error, requestId: requestIdOf(ctx) }, 'identity provider request failed');
}

export function show(ctx: Context, views: ProviderViews, render: (views: ProviderViews) => string): void {
  ctx.set('content-security-policy', views.contentSecurityPolicy);
  ctx.type = 'html';
  ctx.body = render(views);
}

export function requestIdOf(ctx: Context): string {
  const id = ctx.response.get('x-request-id');
  return Array.isArray(id) ? (id[0] ?? '') : id;
}
