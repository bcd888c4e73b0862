import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { AppError } from '../../core/errors.ts';
import { within } from '../kv/deadline.ts';

/**
 * Milliseconds without a byte before a body fails. Counts only while a reader waits, so a slow reader is not taken for a
 * slow store.
 */
const idleMs = 5_000;

export type Expected = {
  /** Expected number of bytes. */
  readonly size: number;
  /** SHA-256 of the whole blob; null for a range, of which only the length can be checked. */
  readonly digest: string | null;
};

/**
 * Passes the bytes of `source` on, and holds the last chunk back until size and digest are verified. On a mismatch the
 * stream fails with `store_unavailable` before its end. So a reader sees that bytes are missing, and never takes wrong
 * bytes for the blob.
 */
export function verified(source: Readable, expected: Expected): Readable {
  const out = Readable.from(pieces(source, expected), { objectMode: false });
  // A generator that waits for bytes notices the close only when they arrive, so `source` is closed here.
  out.once('close', () => source.destroy());
  return out;
}

async function* pieces(source: Readable, { size, digest }: Expected): AsyncGenerator<Buffer> {
  const sum = createHash('sha256');
  let bytes = 0;
  let held: Buffer | undefined;
  try {
    const chunks = (source as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
    for (;;) {
      const next = await within(idleMs, chunks.next(), () => new Error('The body of a blob stalled.'));
      if (next.done) break;
      sum.update(next.value);
      bytes += next.value.length;
      if (held !== undefined) yield held;
      held = next.value;
    }
    if (bytes !== size) throw new Error(`A blob arrived with ${bytes} bytes instead of ${size}.`);
    if (digest !== null && sum.digest('hex') !== digest)
      throw new Error(`Blob ${digest} arrived with bytes of another digest.`);
  } catch (error) {
    throw new AppError('store_unavailable', { cause: error });
  } finally {
    source.destroy();
  }
  if (held !== undefined) yield held;
}
