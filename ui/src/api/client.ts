import type { Operations, Schemas } from './contract.ts';
import { noteAnswer } from './session.ts';

/**
 * Calls Postern's API. What can be asked and what comes back is typed from the API's own contract; a refusal is thrown
 * as an ApiProblem, whose words are the server's.
 */
type Operation = keyof Operations;

type Part<O extends Operation, Name extends 'params' | 'body'> = Operations[O][Name] extends undefined
  ? unknown
  : { readonly [key in Name]: Operations[O][Name] };
type Query<O extends Operation> = Operations[O]['query'] extends undefined
  ? unknown
  : { readonly query?: Operations[O]['query'] };
type Request<O extends Operation> = Part<O, 'params'> &
  Part<O, 'body'> &
  Query<O> & {
    readonly signal?: AbortSignal;
    /** The ETag of the version that the user saw, so that a change does not overwrite another one. */
    readonly ifMatch?: string | undefined;
  };

type Answer<O extends Operation> = {
  readonly data: Operations[O]['data'];
  readonly metadata: Operations[O]['metadata'];
  readonly etag: string | null;
};

/** What the server names as wrong with one field of a body, such as `repositoryAccess.repositories.0`. */
type FieldProblem = { readonly field: string; readonly problem: string };

export class ApiProblem extends Error {
  override readonly name = 'ApiProblem';
  /** 0 = no answer came. */
  readonly status: number;
  readonly code: Schemas['Error']['code'] | 'unreachable' | 'unexpected';
  readonly hint: string;
  readonly requestId: string | null;
  readonly fields: readonly FieldProblem[];
  /** Further details from the server, such as the files of an upload that it refuses. */
  readonly details: unknown;
  /** When to retry, as the server says; null if it does not say. */
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

/** What the server says is wrong, a sentence for each field; empty when it is about none. */
export function wrongFields(problem: unknown): Readonly<Record<string, string>> {
  if (!(problem instanceof ApiProblem)) return {};
  return Object.fromEntries(problem.fields.map(({ field, problem: words }) => [field, sentenceOf(words)]));
}

/** Most problems continue “This …”, such as “must be at most 50”; one that ends with a full stop is a sentence already. */
export function sentenceOf(problem: string): string {
  return problem.endsWith('.') ? problem : `This ${problem}.`;
}

/** @throws ApiProblem */
export async function call<O extends Operation>(operation: O, request: Request<O>): Promise<Answer<O>> {
  const { params, query, body, signal, ifMatch }: LooseRequest = request;
  const [method = 'GET', path = ''] = operation.split(' ');
  const response = await send(addressOf(path, params, query), {
    method,
    ...(signal === undefined ? {} : { signal }),
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return await readAnswer<O>(response);
}

/** Reads the response of an operation, however the request was sent. @throws ApiProblem */
export async function readAnswer<O extends Operation>(response: Response): Promise<Answer<O>> {
  noteAnswer(response.status);
  return await read<Answer<O>>(response);
}

/**
 * What a key is and may do, asked with the key itself and without the session. As a check, so that looking at a successor
 * does not start the end of the key it replaces. @throws ApiProblem
 */
export async function contextOfKey(token: string): Promise<Schemas['Context']> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await send('/api/v2/auth/context?check=true', { headers, credentials: 'omit' });
  return (await read<Answer<'GET /auth/context'>>(response)).data;
}

type LooseRequest = {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  readonly ifMatch?: string | undefined;
};

function addressOf(path: string, params: LooseRequest['params'], query: LooseRequest['query']): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params?.[name] ?? ''));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== '') search.set(name, String(value));
  }
  return `/api/v2${filled}${search.size === 0 ? '' : `?${search.toString()}`}`;
}

async function send(address: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw unreachable();
  }
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

async function read<T>(response: Response): Promise<T> {
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.ok && isEnvelope(answer)) {
    // The types are written from the document that the server's tests hold every answer against.
    return { data: answer.data, metadata: answer.metadata, etag: response.headers.get('etag') } as T;
  }
  throw problemOf(response, answer);
}

function isEnvelope(answer: unknown): answer is { data: unknown; metadata?: unknown } {
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
