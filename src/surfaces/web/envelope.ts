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

export function errorBody(requestId: string, error: AppError) {
  return {
    request_id: requestId,
    data: null,
    error: {
      code: error.code,
      message: error.message,
      hint: error.hint,
      ...(error.details === undefined ? {} : { details: error.details }),
      docs: `/api/v2/docs#${error.code}`,
    },
  };
}
