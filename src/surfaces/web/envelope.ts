import type { AppError } from '../../core/errors.ts';
import type { CursorPagination, PagePagination } from '../../platform/http.ts';

/** The one shape of every JSON answer (contract 2). */
export function successBody(
  requestId: string,
  data: unknown,
  pagination?: PagePagination | CursorPagination,
) {
  if (pagination === undefined) return { request_id: requestId, data, error: null };
  return { request_id: requestId, data, error: null, metadata: { pagination } };
}

/** Refusals of a flood are few objects thrown often: what follows from one is written out once. */
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
  // A request id is a UUID of ours: nothing in it needs escaping.
  return `{"request_id":"${requestId}","data":null,"error":${text}}`;
}
