import type { FastifyInstance } from 'fastify';
import { AppError, type ErrorCode } from '../../core/errors.ts';
import type { Route } from '../../platform/http.ts';

/** Bodies of routes that speak OAuth: a form comes in, and errors leave as RFC 6749 section 5.2 describes them. */
export const formType = 'application/x-www-form-urlencoded';

export function isOAuth(route: Pick<Route, 'success'> | undefined): boolean {
  return route !== undefined && 'oauth' in route.success;
}

/** What a client reads for a code of the registry, when the error itself does not say. */
const names: Partial<Record<ErrorCode, string>> = {
  invalid_credential: 'invalid_grant',
  rate_limited: 'slow_down',
  internal_error: 'server_error',
};

export function oauthError({ code, status, details }: Pick<AppError, 'code' | 'status' | 'details'>) {
  const own = details?.['oauth'];
  const error =
    typeof own === 'string'
      ? own
      : (names[code] ?? (status === 503 ? 'temporarily_unavailable' : 'invalid_request'));
  // The client is not authenticated by the grant, so a bad one is no 401.
  return { error, status: code === 'invalid_credential' ? 400 : status };
}

export function oauthErrorBody(requestId: string, failure: AppError): string {
  const text = `${failure.message} ${failure.hint}`;
  return JSON.stringify({
    error: oauthError(failure).error,
    // RFC 6749 allows neither quotation marks nor characters outside ASCII.
    error_description: text.replaceAll(/["\\]|[^\x20-\x7e]/g, "'"),
    request_id: requestId,
  });
}

/** Lets the routes of `scope` take a form, and nothing else. */
export function acceptForm(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'string' }, (request, body, done) => {
    const type = request.headers['content-type'] ?? '';
    if (!/^application\/x-www-form-urlencoded(?: *; *charset="?utf-8"?)?$/i.test(type))
      return done(
        new AppError('unsupported_media_type', {
          message: `This route accepts ${formType}.`,
          hint: `Send "Content-Type: ${formType}".`,
          details: { accepted: [formType] },
        }),
      );
    // A body that is parsed as text is one.
    const fields = [...new URLSearchParams(body as string)];
    const names = fields.map(([name]) => name);
    if (new Set(names).size < names.length)
      return done(new AppError('invalid_body', { message: 'A field of the form is repeated.' }));
    done(null, Object.fromEntries(fields));
  });
  scope.addHook('preHandler', ({ body }, _reply, done) => {
    done(
      body === undefined ? new AppError('invalid_body', { message: 'The request has no form.' }) : undefined,
    );
  });
}
