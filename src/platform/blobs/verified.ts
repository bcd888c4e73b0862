import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { AppError } from '../../core/errors.ts';
import { within } from '../kv/deadline.ts';

/** Milliseconds a body may stand still. Counted only while somebody waits for it, so a slow reader is not a slow store. */
const idleMs = 5_000;

export type Expected = {
  /** Bytes to come. */
  readonly size: number;
  /** Of all of them; null for a part of a blob, of which only the length can be checked. */
  readonly digest: string | null;
};

/**
 * The bytes of `source`, whose last piece comes only when everything was what it should be. Otherwise the stream fails
 * with `store_unavailable` before its end: whoever counts bytes sees that some are missing, and never takes wrong ones
 * for the blob.
 */
export function verified(source: Readable, expected: Expected): Readable {
  const out = Readable.from(pieces(source, expected), { objectMode: false });
  // A generator that waits for bytes is told of the end only when they come.
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
      const next = await within(idleMs, chunks.next(), () => new Error('The body of a blob stood still.'));
      if (next.done) break;
      sum.update(next.value);
      bytes += next.value.length;
      if (held !== undefined) yield held;
      held = next.value;
    }
    if (bytes !== size) throw new Error(`A blob came with ${bytes} bytes instead of ${size}.`);
    if (digest !== null && sum.digest('hex') !== digest)
      throw new Error(`Blob ${digest} came with other bytes.`);
  } catch (error) {
    throw new AppError('store_unavailable', { cause: error });
  } finally {
    source.destroy();
  }
  if (held !== undefined) yield held;
}
