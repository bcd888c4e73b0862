import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { exitCodeOf, Failure, wrongUsage } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import type { ApiRequest, Body } from './request.ts';
import verbs from '../verbs.json' with { type: 'json' };

/** A server, and what a request to it is signed in with. */
export type Session = {
  /** The origin of the web app, without a trailing slash. */
  readonly origin: string;
  /** A key or an access token; undefined = the request is sent without a credential. */
  readonly credential: string | undefined;
  /** Renews an access token or an exchanged token, which may end while a verb waits; absent = the credential stays the same. */
  readonly renew?: () => Promise<string>;
};

export type Answer = {
  readonly data: unknown;
  readonly pagination: Pagination | undefined;
  readonly etag: string | undefined;
  /** The body, where it is not the envelope of the API, such as a file. */
  readonly stream: ReadableStream<Uint8Array> | undefined;
};

export type Pagination = {
  readonly current?: number;
  readonly total?: number;
  readonly nextCursor?: string | null;
};

/** The longest wait that a server may ask for, and how often. */
const maxWaitSeconds = 60;
const maxAttempts = 3;

/** @throws Failure */
export async function send(
  session: Session,
  request: ApiRequest,
  io: Pick<Io, 'err' | 'wait'>,
): Promise<Answer> {
  return await answerOf(await sendWithRetries(session, request, io));
}

/** Sends a form to a route of OAuth, without a credential. The response has no envelope. @throws Failure */
export async function sendForm(
  origin: string,
  path: string,
  form: Readonly<Record<string, string>>,
  io: Pick<Io, 'err' | 'wait'>,
): Promise<Readonly<Record<string, unknown>>> {
  const body = {
    kind: 'bytes',
    type: 'application/x-www-form-urlencoded',
    bytes: Buffer.from(new URLSearchParams(form).toString()),
  } as const;
  const session = { origin, credential: undefined };
  const response = await sendWithRetries(session, { method: 'POST', path, body }, io);
  return Object(await response.json().catch(() => undefined));
}

/**
 * Sends the request; waits and repeats it where the server says when to. 429 and 503 mean that nothing was done, so a
 * change is repeated too. @throws Failure, unless the response is a success
 */
async function sendWithRetries(
  session: Session,
  request: ApiRequest,
  io: Pick<Io, 'err' | 'wait'>,
): Promise<Response> {
  for (let attempt = 1; ; attempt += 1) {
    const response = await sendOnce(session, request);
    reportVersion(session, response.headers.get(versionHeader), io);
    if (response.ok) return response;
    const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
    const isLast = attempt === maxAttempts || !(seconds <= maxWaitSeconds);
    if ((response.status !== 429 && response.status !== 503) || isLast) throw await refusalOf(response);
    await response.body?.cancel();
    const why = response.status === 429 ? 'Too many requests' : 'The server is not available';
    io.err(`${why}; the next attempt is in ${seconds} s.\n`);
    await io.wait(seconds * 1000);
  }
}

/** Which version of the server answers; every response has it. */
export const versionHeader = 'postern-version';
const reported = new Set<string>();

/** Once for each server: other versions have other routes. The command line never updates itself. */
function reportVersion({ origin }: Session, version: string | null, { err }: Pick<Io, 'err'>): void {
  if (version === null || version === verbs.version || reported.has(origin)) return;
  reported.add(origin);
  err(`${versionsDiffer(version)} ${origin}/cli/postern.mjs has the version of the server.\n`);
}

export function versionsDiffer(version: string): string {
  return `The server has the version ${version}, and this command line ${verbs.version}.`;
}

async function sendOnce(session: Session, request: ApiRequest): Promise<Response> {
  const { origin, renew } = session;
  const { method, path, body, ifMatch, headers } = request;
  const credential = renew === undefined ? session.credential : await renew();
  const content = body === undefined ? undefined : await contentOf(body);
  try {
    return await fetch(`${origin}/api/v2${path}`, {
      method,
      // A redirect could lead the credential to another server.
      redirect: 'manual',
      headers: {
        ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
        ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
        ...content?.headers,
        ...headers,
      },
      ...(content === undefined ? {} : { body: content.body, duplex: 'half' }),
    });
  } catch (error) {
    throw unreachable(origin, error);
  }
}

export function unreachable(origin: string, error: unknown): Failure {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new Failure('unreachable', 7, `${origin} cannot be reached: ${reason || 'the connection failed'}.`);
}

type Sendable = NonNullable<RequestInit['body']>;

async function contentOf(body: Body): Promise<{ headers: Record<string, string>; body: Sendable }> {
  if (body.kind === 'json')
    return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body.value) };
  if (body.kind === 'bytes') return { headers: { 'content-type': body.type }, body: Buffer.from(body.bytes) };
  const type = body.type ?? typeOf(body.path);
  const found = await stat(body.path).catch(() => undefined);
  if (found?.isFile() !== true) throw wrongUsage(`${body.path} is not a file that can be read.`);
  return {
    headers: { 'content-type': type, 'content-length': String(found.size) },
    // The web stream of node:stream/web is that of fetch; the types name them twice.
    body: Readable.toWeb(
      createReadStream(body.path).on('data', (part) => body.onRead?.(part.length)),
    ) as unknown as Sendable,
  };
}

const types: readonly (readonly [ending: RegExp, type: string])[] = [
  [/\.zip$/i, 'application/zip'],
  [/\.(?:tar\.gz|tgz)$/i, 'application/gzip'],
  [/\.html?$/i, 'text/html'],
];

function typeOf(path: string): string {
  const found = types.find(([ending]) => ending.test(path));
  if (found === undefined) throw wrongUsage('--file must be a .zip, .tar.gz, .tgz or .html file.');
  return found[1];
}

/** Attempts in a row after a lost connection, and the wait before the first; each next wait is twice as long. */
const maxLosses = 6;
const firstWaitMs = 1_000;

/** Waits after a lost connection, and says so. @throws the error, when it is another one or there were too many */
export async function waitAfterLoss(
  error: unknown,
  losses: number,
  io: Pick<Io, 'err' | 'wait'>,
): Promise<void> {
  if (!(error instanceof Failure) || error.code !== 'unreachable' || losses === maxLosses) throw error;
  const ms = firstWaitMs * 2 ** losses;
  io.err(`${error.message} The next attempt is in ${ms / 1000} s.\n`);
  await io.wait(ms);
}

async function answerOf(response: Response): Promise<Answer> {
  const etag = response.headers.get('etag') ?? undefined;
  const none = { data: null, pagination: undefined, etag, stream: undefined };
  if (response.status === 204) return none;
  const isFile = response.headers.has('content-disposition');
  if (isFile || !isJson(response)) return { ...none, stream: response.body ?? undefined };
  const { data, metadata } = asEnvelope(await response.json());
  return { ...none, data, pagination: metadata?.pagination };
}

function isJson(response: Response): boolean {
  return response.headers.get('content-type')?.startsWith('application/json') === true;
}

async function refusalOf(response: Response): Promise<Failure> {
  const { status } = response;
  if (status >= 300 && status < 400) {
    await response.body?.cancel();
    return new Failure('redirected', 1, 'The server redirects to another address, which is not followed.', {
      hint: `Use the address that it names: ${response.headers.get('location') ?? ''}`,
    });
  }
  const envelope = isJson(response) ? asEnvelope(await response.json().catch(() => ({}))) : {};
  const {
    code = `http_${status}`,
    message = `The server answered ${status}.`,
    hint,
    details,
  } = errorIn(envelope);
  return new Failure(code, exitCodeOf(status, code), message, {
    hint: hint ?? null,
    requestId: envelope.request_id ?? response.headers.get('x-request-id'),
    details: details ?? null,
  });
}

type Envelope = {
  readonly request_id?: string;
  readonly data?: unknown;
  readonly metadata?: { readonly pagination?: Pagination };
  readonly error?: EnvelopeError | string | null;
  readonly error_description?: string;
};

type EnvelopeError = { code?: string; message?: string; hint?: string; details?: unknown };

/** Routes of OAuth have the code and its text beside each other (RFC 6749 section 5.2). */
function errorIn({ error, error_description: message = '' }: Envelope): EnvelopeError {
  return typeof error === 'string' ? { code: error, message } : (error ?? {});
}

function asEnvelope(value: unknown): Envelope {
  // Every JSON response of the API has this shape; another server's fails at the field that is missing.
  return typeof value === 'object' && value !== null ? (value as Envelope) : {};
}
