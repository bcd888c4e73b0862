import { ApiProblem, readData, unreachable } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';

/** Sends bytes and reports progress, which `fetch` cannot do. */
type Sending = {
  readonly method: 'POST' | 'PUT';
  /** Below `/api/v2`. */
  readonly address: string;
  readonly type: string;
  readonly body: Blob;
  readonly ifMatch?: string | undefined;
  readonly signal: AbortSignal;
  readonly onBytes: (sent: number) => void;
};

/** An archive or a page as a whole site. @throws ApiProblem */
export async function sendSite(sending: Sending): Promise<Schemas['PublishedSite']> {
  return await readData(await send(sending));
}

/** Some contents of a digest upload; the answer says what is missing still. @throws ApiProblem */
export async function sendContents(sending: Sending): Promise<Schemas['Upload']> {
  return await readData(await send(sending));
}

function send({ method, address, type, body, ifMatch, signal, onBytes }: Sending): Promise<Response> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(aborted());
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    signal.addEventListener('abort', abort);
    request.upload.addEventListener('progress', ({ loaded }) => onBytes(Math.min(loaded, body.size)));
    request.upload.addEventListener('load', () => onBytes(body.size));
    request.addEventListener('loadend', () => signal.removeEventListener('abort', abort));
    request.addEventListener('abort', () => reject(aborted()));
    request.addEventListener('error', () => reject(unreachable()));
    request.addEventListener('load', () => resolve(answerOf(request)));
    request.open(method, `/api/v2${address}`);
    request.setRequestHeader('content-type', type);
    if (ifMatch !== undefined) request.setRequestHeader('if-match', ifMatch);
    request.send(body);
  });
}

function answerOf(request: XMLHttpRequest): Response {
  const headers = new Headers();
  for (const name of ['retry-after', 'x-request-id']) {
    const value = request.getResponseHeader(name);
    if (value !== null) headers.set(name, value);
  }
  return new Response(request.responseText, { status: request.status, headers });
}

function aborted(): DOMException {
  return new DOMException('The upload was stopped.', 'AbortError');
}

const passing = new Set([0, 429, 502, 503, 504]);

/** Temporary failures: a lost connection, a busy server, a rate limit. */
export function mayPass(error: unknown): error is ApiProblem {
  return error instanceof ApiProblem && passing.has(error.status) && error.code !== 'storage_full';
}

/** Whether the same upload can resume where it stopped. */
export function canGoOn(error: unknown): boolean {
  return mayPass(error) || (error instanceof ApiProblem && error.status === 401);
}

/** How long to wait after the `failures`-th failure in a row: the server's value, or longer each time. */
export function secondsAfter(error: ApiProblem, failures: number): number {
  return error.retryAfterSeconds ?? Math.min(30, 2 ** (failures - 1));
}

/** Ends early when the browser is online again, or when the upload is stopped. */
export async function pause(seconds: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(done, seconds * 1_000);
    function done() {
      clearTimeout(timer);
      globalThis.removeEventListener('online', done);
      signal.removeEventListener('abort', done);
      if (signal.aborted) reject(aborted());
      else resolve();
    }
    globalThis.addEventListener('online', done);
    signal.addEventListener('abort', done);
  });
}
