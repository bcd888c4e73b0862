import type { Fetch } from './fetch.ts';

/** Reads a small document at an https address that a client chose. */
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

/** `fetch`: a guarded one, which refuses private addresses and limits the size. */
export function documentReader(fetch: Fetch): ReadDocument {
  return async (url, signal) => {
    if (url.protocol !== 'https:') throw new DocumentRefused('is not at an https address');
    const answer = await fetch(url.href, { method: 'GET', headers: { accept: 'application/json' }, signal });
    if (answer.status === 200)
      return { text: await answer.text(), cacheControl: answer.headers.get('cache-control') ?? undefined };
    await answer.body?.cancel();
    throw new DocumentRefused(`is answered with the status ${answer.status}, and must be with 200`);
  };
}
