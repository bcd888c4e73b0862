import { type ErrorCode, errorCodes, statusOf } from '../../src/core/errors.ts';
import type { Route } from '../../src/platform/http.ts';
import type { OperationAt } from './requests.ts';

/** What an answer must be, whatever the request was. Says what is wrong in one line, or nothing. */
export type RawAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
};

/** `at` is the operation that the method and path belong to; undefined = none, so only a refusal is right. */
export function problemOf(
  answer: RawAnswer,
  at: OperationAt | undefined,
  route: Route | undefined,
): string | undefined {
  const { status, headers, text } = answer;
  const id = headers['x-request-id'];
  if (status >= 500 && status !== 503) return `answers ${status}`;
  if (typeof id !== 'string' || !/^[0-9a-f-]{36}$/.test(id)) return `answers ${status} without a request id`;
  if (/\n\s+at |\.ts:\d+|syntax error at|node_modules/.test(text)) return `answers ${status} with an inside`;
  const wait = Number(headers['retry-after']);
  if ((status === 429 || status === 503) && !(Number.isInteger(wait) && wait >= 1))
    return `answers ${status} without a Retry-After`;
  if (text === '' && status >= 400) return undefined;
  return status < 400 ? successProblem(answer, id, at, route) : failureProblem(answer, id, at, route);
}

function successProblem(
  { status, headers, text }: RawAnswer,
  id: string,
  at: OperationAt | undefined,
  route: Route | undefined,
): string | undefined {
  if (at === undefined || route === undefined) return `answers ${status} where there is no operation`;
  const documented = at.operation.responses[String(status)];
  if (documented === undefined) return `answers ${status}, which is not documented`;
  if (documented.content === undefined) return text === '' ? undefined : `answers ${status} with a body`;
  const type = String(headers['content-type']).split(';', 1)[0] ?? '';
  if (documented.content[type] === undefined) return `answers ${type}, which is not documented`;
  if (!('data' in route.success)) return undefined;
  const body = parse(text);
  if (body === undefined || body['request_id'] !== id || body['error'] !== null)
    return `answers ${status} without the envelope`;
  const names = ['data', 'error', ...(route.success.pagination ? ['metadata'] : []), 'request_id'];
  if (Object.keys(body).sort().join() !== names.join())
    return `answers ${status} with ${Object.keys(body).join()}`;
  const checked = route.success.data.safeParse(body['data']);
  return checked.success
    ? undefined
    : `breaks its schema: ${checked.error.issues[0]?.path.join('.')} ${checked.error.issues[0]?.message}`;
}

function failureProblem(
  { status, headers, text }: RawAnswer,
  id: string,
  at: OperationAt | undefined,
  route: Route | undefined,
): string | undefined {
  if (!String(headers['content-type']).startsWith('application/json'))
    return `answers ${status} that is not JSON`;
  const body = parse(text);
  const error = body?.['error'];
  if (route !== undefined && 'oauth' in route.success) {
    const isOAuth = typeof error === 'string' && typeof body?.['error_description'] === 'string';
    return isOAuth && body['request_id'] === id ? undefined : `answers ${status} without an error of OAuth`;
  }
  if (body === undefined || body['request_id'] !== id || body['data'] !== null || !isRecord(error))
    return `answers ${status} without the envelope`;
  const { code, message, hint, docs } = error;
  if (!errorCodes.includes(code as ErrorCode)) return `answers the unknown code ${String(code)}`;
  if (statusOf(code as ErrorCode) !== status) return `answers ${String(code)} with ${status}`;
  if (![message, hint, docs].every((one) => typeof one === 'string' && one !== ''))
    return `answers ${String(code)} without words`;
  if (at === undefined) return undefined;
  const codes = at.operation.responses[String(status)]?.['x-postern-codes'] ?? [];
  return codes.includes(code as ErrorCode)
    ? undefined
    : `answers ${status} ${String(code)}, which is not documented`;
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
