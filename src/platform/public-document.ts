import { request as requestTls } from 'node:https';
import type { IncomingMessage } from 'node:http';
import type { Outbound } from './outbound.ts';

/**
 * Reads a small document at an https address that a client chose. It connects to exactly the address that was checked, follows
 * no redirect, and reads no more than it may.
 */
export type ReadDocument = (url: URL, signal: AbortSignal) => Promise<PublicDocument>;

export type PublicDocument = {
  readonly text: string;
  /** The header Cache-Control. */
  readonly cacheControl: string | undefined;
};

/** Why there is no document; completes the sentence "The document …". */
export class DocumentRefused extends Error {
  override readonly name = 'DocumentRefused';
}

export function documentReader({
  outbound,
  maxBytes,
  request = requestTls,
}: {
  /** Must refuse private addresses. */
  readonly outbound: Outbound;
  readonly maxBytes: number;
  readonly request?: typeof requestTls;
}): ReadDocument {
  return async (url, signal) => {
    const found = await outbound.addressOf(url.hostname);
    if (found.kind === 'private') throw new DocumentRefused('is at a host with a private address');
    if (found.kind === 'unknown_host')
      throw new DocumentRefused('is at a host that the name server does not know');
    const { promise, resolve, reject } = Promise.withResolvers<PublicDocument>();
    const asked = request(
      {
        host: found.address,
        // The certificate must be that of the name, not of the address.
        servername: url.hostname,
        port: url.port === '' ? 443 : Number(url.port),
        path: url.pathname + url.search,
        headers: { host: url.host, accept: 'application/json' },
        agent: false,
        signal,
      },
      (answer) => {
        textOf(answer, maxBytes)
          .then((text) => resolve({ text, cacheControl: answer.headers['cache-control'] }), reject)
          .finally(() => asked.destroy());
      },
    );
    asked.on('error', reject);
    asked.end();
    return await promise;
  };
}

async function textOf(answer: IncomingMessage, maxBytes: number): Promise<string> {
  if (answer.statusCode !== 200)
    throw new DocumentRefused(`is answered with the status ${answer.statusCode}, and must be with 200`);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new DocumentRefused(`is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
