import createClient, { createQuerySerializer } from 'openapi-fetch';
import type { Schemas } from './contract.ts';
import type { paths } from './openapi.ts';
import { noteAnswer } from './session.ts';

const serialize = createQuerySerializer<Record<string, unknown>>();

/**
 * Calls Postern's API, typed by its OpenAPI document. Every failure is thrown as an ApiProblem with the server's message;
 * `dataOf` and `unwrap` read the envelope of a success.
 */
export const api = createClient<paths, 'application/json'>({
  baseUrl: '/api/v2',
  // An empty search field filters nothing.
  querySerializer: (query) =>
    serialize(Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ''))),
});

api.use({
  async onResponse({ request, response }) {
    // A request without the session, such as one with a key, says nothing about it.
    if (request.credentials !== 'omit') noteAnswer(response.status);
    // A response without a body (204) has no envelope: await such a request without unwrap().
    if (response.status !== 204) await envelopeOf(response.clone());
  },
  onError({ error }) {
    return error instanceof DOMException && error.name === 'AbortError' ? undefined : unreachable();
  },
});

type Sent<Envelope> = Promise<{ readonly data?: Envelope; readonly response: Response }>;

/** The envelope of a response, with its data and metadata, and the ETag of the version. @throws ApiProblem */
export async function unwrap<Envelope extends object>(sent: Sent<Envelope>) {
  const { data, response } = await sent;
  // `onResponse` has thrown unless there is an envelope.
  return { ...(data as Envelope), etag: response.headers.get('etag') };
}

/** @throws ApiProblem */
export async function dataOf<Data>(sent: Sent<{ data: Data }>): Promise<Data> {
  return (await unwrap(sent)).data;
}

/** An error of one field of a body, such as `repositoryAccess.repositories.0`. */
type FieldProblem = { readonly field: string; readonly problem: string };

export class ApiProblem extends Error {
  override readonly name = 'ApiProblem';
  /** 0: the server did not answer. */
  readonly status: number;
  readonly code: Schemas['Error']['code'] | 'unreachable' | 'unexpected';
  readonly hint: string;
  readonly requestId: string | null;
  readonly fields: readonly FieldProblem[];
  /** Further details from the server, such as the files of an upload that it refuses. */
  readonly details: unknown;
  /** When to retry, from the server; null if it does not say. */
  readonly retryAfterSeconds: number | null;

  constructor(
    facts: Pick<ApiProblem, 'status' | 'code' | 'message' | 'hint' | 'requestId'> & {
      fields?: readonly FieldProblem[];
      details?: unknown;
      retryAfterSeconds?: number | null;
    },
  ) {
    super(facts.message);
    this.status = facts.status;
    this.code = facts.code;
    this.hint = facts.hint;
    this.requestId = facts.requestId;
    this.fields = facts.fields ?? [];
    this.details = facts.details;
    this.retryAfterSeconds = facts.retryAfterSeconds ?? null;
  }
}

/** The server's errors, a sentence for each field; empty if it names none. */
export function wrongFields(problem: unknown): Readonly<Record<string, string>> {
  if (!(problem instanceof ApiProblem)) return {};
  return Object.fromEntries(problem.fields.map(({ field, problem: words }) => [field, sentenceOf(words)]));
}

/** Most problems continue “This …”, such as “must be at most 50”; one that ends with a full stop is a sentence already. */
export function sentenceOf(problem: string): string {
  return problem.endsWith('.') ? problem : `This ${problem}.`;
}

/** Reads the data of a response that did not come through `api`. @throws ApiProblem */
export async function readData<T>(response: Response): Promise<T> {
  noteAnswer(response.status);
  // The types are generated from the document that the server's tests hold every answer against.
  return (await envelopeOf(response)).data as T;
}

/**
 * Reads what a key is and may do, with the key and without the session. A check, so that it does not count as the first use of a successor. @throws ApiProblem
 */
export async function contextOfKey(token: string): Promise<Schemas['Context']> {
  const headers = { authorization: `Bearer ${token}` };
  const query = { check: true };
  return await dataOf(api.GET('/auth/context', { params: { query }, headers, credentials: 'omit' }));
}

export function unreachable(): ApiProblem {
  return new ApiProblem({
    status: 0,
    code: 'unreachable',
    message: 'The server could not be reached.',
    hint: 'Check the connection and try again. Nothing you typed is lost.',
    requestId: null,
  });
}

async function envelopeOf(response: Response): Promise<{ data: unknown }> {
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.ok && isEnvelope(answer)) return answer;
  throw problemOf(response, answer);
}

function isEnvelope(answer: unknown): answer is { data: unknown } {
  return typeof answer === 'object' && answer !== null && 'data' in answer;
}

function isFailure(answer: unknown): answer is Schemas['Failure'] {
  if (typeof answer !== 'object' || answer === null || !('error' in answer)) return false;
  const { error } = answer;
  return typeof error === 'object' && error !== null && 'code' in error && 'message' in error;
}

function problemOf(response: Response, answer: unknown): ApiProblem {
  const { status } = response;
  const retryAfterSeconds = Number(response.headers.get('retry-after')) || null;
  if (!isFailure(answer)) {
    return new ApiProblem({
      status,
      code: 'unexpected',
      message: `The server answered with ${status} and no details.`,
      hint: 'Try again. If the problem persists, contact your administrator.',
      requestId: response.headers.get('x-request-id'),
      retryAfterSeconds,
    });
  }
  const { code, message, hint = '', details } = answer.error;
  return new ApiProblem({
    status,
    code,
    message,
    hint,
    requestId: answer.request_id,
    fields: fieldsOf(details),
    details,
    retryAfterSeconds,
  });
}

function fieldsOf(details: unknown): FieldProblem[] {
  if (typeof details !== 'object' || details === null || !('fields' in details)) return [];
  return Array.isArray(details.fields) ? details.fields.filter(isFieldProblem) : [];
}

function isFieldProblem(value: unknown): value is FieldProblem {
  return (
    typeof value === 'object' &&
    value !== null &&
    'field' in value &&
    'problem' in value &&
    typeof value.field === 'string' &&
    typeof value.problem === 'string'
  );
}
