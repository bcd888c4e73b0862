import { readFile } from 'node:fs/promises';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { rootCertificates } from 'node:tls';
import { bodyText, type Fetch } from './fetch.ts';
import type { Outbound } from './outbound.ts';

/** Far more than an answer of an external server needs, and little enough to hold in memory. */
export const maxOutboundBytes = 1_048_576;

/**
 * Fetch for addresses that people and clients choose: it connects to the address that `outbound` checked and to no other (CWE-918), and
 * follows no redirect. An answer has a maximum size; the caller limits the time with its signal.
 */
export function createGuardedFetch({
  outbound,
  caFile = null,
  maxBytes,
}: {
  readonly outbound: Outbound;
  /** OUTBOUND_CA_FILE: its authorities are trusted besides those of Node. */
  readonly caFile?: string | null;
  readonly maxBytes: number;
}): Fetch {
  return async (url, { method, headers, body, signal }) => {
    const target = new URL(url);
    // Before the name server is asked, which may take its time.
    signal?.throwIfAborted();
    const checked = await outbound.addressOf(target.hostname.replace(/^\[|\]$/g, ''));
    if (checked.kind !== 'address') throw new RefusedAddress(checked.kind);
    signal?.throwIfAborted();
    const isTls = target.protocol === 'https:';
    const answer = await send(isTls ? httpsRequest : httpRequest, target, {
      method,
      // No coding: the size of an answer is that of its bytes.
      headers: { ...headers, 'accept-encoding': 'identity' },
      agent: false,
      lookup: always(checked.address),
      ...(signal === undefined ? {} : { signal }),
      ...(isTls && caFile !== null ? { ca: [...rootCertificates, await readFile(caFile, 'utf8')] } : {}),
      body: body === undefined || body === null ? undefined : bodyText(body),
    });
    return toResponse(answer, maxBytes);
  };
}

/** The address is not one that Postern connects to. */
export class RefusedAddress extends Error {
  readonly kind: 'private' | 'unknown_host';

  constructor(kind: 'private' | 'unknown_host') {
    super(kind === 'private' ? 'The host has a private address.' : 'The name server does not know the host.');
    this.name = 'RefusedAddress';
    this.kind = kind;
  }
}

type Sent = {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly agent: false;
  readonly lookup: LookupFunction;
  readonly signal?: AbortSignal;
  readonly ca?: string[];
  readonly body: string | undefined;
};

async function send(request: typeof httpRequest, target: URL, { body, ...options }: Sent) {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const sent = request(target, options);
  sent.once('response', resolve);
  // Also after the answer began: without a listener the error would end the process.
  sent.on('error', reject);
  // An answer that switches protocols (status 101) emits neither of them.
  sent.once('close', () => reject(new Error('The server closed the connection without an answer.')));
  sent.end(body);
  return await promise;
}

function always(address: string): LookupFunction {
  const family = isIP(address);
  return (_host, options, done) =>
    options.all === true ? done(null, [{ address, family }]) : done(null, address, family);
}

function toResponse(answer: IncomingMessage, maxBytes: number): Response {
  const status = answer.statusCode ?? 0;
  const headers = new Headers();
  for (const [name, values] of Object.entries(answer.headersDistinct))
    for (const value of values ?? []) headers.append(name, value);
  const isEmpty = status === 204 || status === 205 || status === 304;
  if (isEmpty) answer.resume();
  // A Response has no other status. The connection would stay open until the signal ends it.
  if (status < 200 || status > 599) {
    answer.destroy();
    throw new Error(`The answer has the status ${status}, which is not a status of HTTP.`);
  }
  return new Response(isEmpty ? null : bodyOf(answer, maxBytes), { status, headers });
}

function bodyOf(answer: IncomingMessage, maxBytes: number): ReadableStream<Uint8Array> {
  // A request without an encoding yields buffers.
  const pieces: AsyncIterator<Buffer> = answer[Symbol.asyncIterator]();
  let bytes = 0;
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await pieces.next();
        if (done === true) return controller.close();
        bytes += value.length;
        if (bytes <= maxBytes) return controller.enqueue(new Uint8Array(value));
        answer.destroy();
        throw new Error(`The answer is larger than ${maxBytes} bytes.`);
      },
      // Otherwise the connection would stay open until the signal ends it.
      cancel: () => void answer.destroy(),
    },
    { highWaterMark: 0 },
  );
}
