import { pipeline } from 'node:stream/promises';
import type { ServedContent, ServedFile } from '../../features/sites/sites.ts';
import type { Blobs } from '../../platform/blobs/blobs.ts';
import { FastResponse, type HttpRequest, type HttpResponse } from '../../platform/fast-http/fast-server.ts';
import type { GatewayAnswer } from './answer.ts';
import type { BlobCache, Content } from './blob-cache.ts';
import { fileHeaders, type Kind, siteHeaders } from './response-headers.ts';
import { chooseForm, type Form, hasAlready, type Part, partOf } from './representation.ts';

/** The last step: conditional, range, bytes. A request without access to the file has been refused before. */
export function sendAnswer(
  { method }: HttpRequest,
  response: HttpResponse,
  { status, headers, body }: GatewayAnswer,
): void {
  const length = body === null ? 0 : Buffer.byteLength(body);
  response.writeHead(status, { ...headers, 'content-length': length });
  response.end(method === 'HEAD' || body === null ? undefined : body);
}

export function sendRedirect(
  response: HttpResponse,
  kind: Kind,
  { to, status }: { to: string; status: number },
): void {
  response.writeHead(status, [...siteHeaders(kind), 'location', to, 'content-length', '0']);
  response.end();
}

export type Sending = {
  readonly kind: Kind;
  readonly content: ServedContent;
  readonly file: ServedFile;
  readonly status: 200 | 404;
  /** Called when sending the bytes takes some time; the function it returns is called when they are sent. */
  readonly onStream: () => () => void;
};

type Heads = {
  readonly isPrivate: boolean;
  /** Headers of every response with this form. */
  readonly list: string[];
  /** Headers of a response with the whole form. */
  readonly whole: string[];
};

const madeHeads = new WeakMap<Form, Heads>();

/** A form belongs to one version at one label, so its headers are created once, and again when its site becomes private. */
function headsOf({ kind, content, file }: Sending, form: Form): Heads {
  let heads = madeHeads.get(form);
  if (heads?.isPrivate !== kind.isPrivate) {
    const list = fileHeaders(kind, content, file, form);
    heads = { isPrivate: kind.isPrivate, list, whole: [...list, 'content-length', String(form.size)] };
    madeHeads.set(form, heads);
  }
  return heads;
}

/** Rejects before anything is sent when the bytes are not available. Returns at once when they are in memory. */
export function sendFile(
  request: HttpRequest,
  response: HttpResponse,
  sending: Sending,
  { cache, blobs }: { cache: BlobCache; blobs: Pick<Blobs, 'read'> },
): void | Promise<void> {
  const { headers } = request;
  const form = chooseForm(sending.file, headers['accept-encoding'], headers.range !== undefined);
  const { list, whole } = headsOf(sending, form);
  const isFound = sending.status === 200;
  if (isFound && hasAlready(headers['if-none-match'], form.etag)) {
    response.writeHead(304, list);
    return void response.end();
  }
  const part: Part = isFound ? partOf(headers.range, ifRangeOf(headers), form) : { kind: 'whole' };
  if (part.kind === 'unsatisfiable') {
    response.writeHead(416, [...list, 'content-range', `bytes */${form.size}`, 'content-length', '0']);
    return void response.end();
  }
  const status = part.kind === 'part' ? 206 : sending.status;
  const head = part.kind === 'part' ? [...list, ...rangeHeaders(part, form)] : whole;
  if (request.method === 'HEAD') {
    response.writeHead(status, head);
    return void response.end();
  }
  const content = cache.get(form.digest, form.size);
  if (content === undefined) return stream(response, status, head, { form, part, sending, blobs });
  const send = (bytes: Content) => {
    // The connection closed while the bytes were read, so no event would ever end this response.
    if (response.req.socket.destroyed) return;
    sendBytes(response, status, head, bytes, part);
    // Sending to a slow client takes some time too.
    if (response.writableLength > 0) response.once('close', sending.onStream());
  };
  if (content instanceof Promise) return content.then(send);
  send(content);
}

function ifRangeOf(headers: HttpRequest['headers']): string | undefined {
  const value = headers['if-range'];
  return Array.isArray(value) ? value[0] : value;
}

function rangeHeaders({ start, end }: Extract<Part, { kind: 'part' }>, { size }: Form): string[] {
  return ['content-range', `bytes ${start}-${end}/${size}`, 'content-length', String(end - start + 1)];
}

function sendBytes(
  response: HttpResponse,
  status: number,
  head: string[],
  content: Content,
  part: Part,
): void {
  response.writeHead(status, head);
  if (typeof content === 'string')
    response.end(part.kind === 'part' ? content.slice(part.start, part.end + 1) : content, 'latin1');
  else response.end(part.kind === 'part' ? content.subarray(part.start, part.end + 1) : content);
}

async function stream(
  response: HttpResponse,
  status: number,
  head: string[],
  what: { form: Form; part: Part; sending: Sending; blobs: Pick<Blobs, 'read'> },
): Promise<void> {
  const { form, part, sending, blobs } = what;
  const source = await blobs.read(form.digest, part.kind === 'part' ? part : undefined);
  if (response.req.socket.destroyed) return void source.destroy();
  const leave = sending.onStream();
  try {
    response.writeHead(status, head);
    await pipeline(source, response instanceof FastResponse ? response.body() : response);
  } catch {
    // The only way left to report that the rest is missing: the client sees that the length does not match.
    response.destroy();
  } finally {
    // Nothing else closes the file of a response that ended before its first byte.
    source.destroy();
    leave();
  }
}
