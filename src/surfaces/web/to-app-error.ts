import type { FastifyRequest } from 'fastify';
import { AppError } from '../../core/errors.ts';
import { unsupportedType } from './body-types.ts';

/** The route's pattern, which names it in refusals: never the address that the client sent. */
export function routeOf(request: FastifyRequest): string {
  // Fastify's own refusals, such as of a malformed address, happen before a route is chosen.
  return `${request.method} ${request.routeOptions?.url ?? 'unknown'}`;
}

/** Turns any thrown value into a code of the registry. Unknown errors reveal nothing but their request id (SE-05). */
export function toAppError(error: unknown, request: FastifyRequest): AppError {
  if (error instanceof AppError) return error;
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new AppError('body_too_large');
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return unsupportedType(request);
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
    case 'FST_ERR_CTP_INVALID_JSON_BODY':
      return new AppError('invalid_body', {
        message: 'The request body is not valid JSON.',
        hint: 'Check its quotes, commas and brackets.',
      });
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_MAX_PARAM_LENGTH':
    case 'FST_ERR_ASYNC_CONSTRAINT':
      return new AppError('invalid_query', {
        message: 'The path is not valid.',
        hint: 'Check its percent-encoding and length.',
      });
    case 'FST_ERR_REQUEST_TIMEOUT':
      return new AppError('request_timeout');
    case 'ECONNRESET':
      // The client disconnected before its whole body arrived and does not read the response.
      if (request.raw.destroyed && !request.raw.complete) return new AppError('request_timeout');
  }
  // JSON that secure-json-parse refuses (`__proto__`) and the errors of JSON.parse come without a code.
  if (error instanceof SyntaxError && request.headers['content-length'] !== '0') {
    return new AppError('invalid_body', {
      message: 'The request body is not valid JSON.',
      hint: 'Check its quotes, commas and brackets.',
    });
  }
  return new AppError('internal_error', { cause: error });
}
