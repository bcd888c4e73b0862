import type { AppError } from '../../core/errors.ts';
import type { CursorPagination, PagePagination } from '../../platform/http.ts';

/** The shape of every JSON response (contract 2). */
export function successBody(
  requestId: string,
  data: unknown,
  pagination?: PagePagination | CursorPagination,
) {
  if (pagination === undefined) return { request_id: requestId, data, error: null };
  return { request_id: requestId, data, error: null, metadata: { pagination } };
}

/** A flood throws the same few error objects again and again, so the text of each is created once. */
const written = new WeakMap<AppError, string>();

/** The body of a refusal as JSON text. */
export function errorBody(requestId: string, error: AppError): string {
  let text = written.get(error);
  if (text === undefined) {
    text = JSON.stringify({
      code: error.code,
      message: error.message,
      hint: error.hint,
      ...(error.details === undefined ? {} : { details: error.details }),
      docs: `/api/v2/docs#${error.code}`,
    });
    written.set(error, text);
  }
  // We generate the request id as a UUID, so it needs no escaping.
  return `{"request_id":"${requestId}","data":null,"error":${text}}`;
}
