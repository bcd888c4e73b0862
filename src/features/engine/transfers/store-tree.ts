import { PassThrough, Readable, type Writable } from 'node:stream';
import type { Blobs } from '../../../platform/blobs/blobs.ts';
import type { Artifact } from '../contract.ts';
import { entriesOf, type TreeLimits, WrongTree } from '../tree.ts';

/**
 * Stores an untrusted tar while checking it. Throws WrongTree and the errors of `source`; then nothing is stored.
 */
export async function storeTree(
  source: AsyncIterable<Uint8Array>,
  blobs: Pick<Blobs, 'write'>,
  limits: TreeLimits,
): Promise<Artifact> {
  const copy = new PassThrough().on('error', () => undefined);
  const counting = countsOf(copy, limits);
  // Awaited below. Until then it must not end the process.
  counting.catch(() => undefined);

  async function* checked(): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    try {
      for await (const chunk of source) {
        bytes += chunk.length;
        // Empty members of a gzip file unpack to nothing, so the reader would never refuse them.
        if (bytes > limits.bytes)
          throw new WrongTree(`The archive has more than ${limits.bytes} bytes.`, 'output_too_large');
        if (!copy.destroyed && !copy.write(chunk)) await drained(copy);
        if (copy.destroyed) {
          await counting;
          throw new WrongTree('The archive has bytes after its end.');
        }
        yield chunk;
      }
      copy.end();
      await counting;
    } finally {
      copy.destroy();
    }
  }

  const blob = await blobs.write(Readable.from(checked()));
  return { ...blob, ...(await counting) };
}

async function countsOf(source: Readable, limits: TreeLimits): Promise<Pick<Artifact, 'files' | 'bytes'>> {
  let files = 0;
  let bytes = 0;
  try {
    for await (const entry of entriesOf(source, limits)) {
      if (entry.kind !== 'directory') files += 1;
      if (entry.kind === 'file') bytes += entry.size;
    }
  } catch (error) {
    throw isUnreadable(error) ? new WrongTree('The archive is not a whole tar.gz file.') : error;
  }
  return { files, bytes };
}

/** Errors of gzip have a code; those of the tar reader have only a message. */
function isUnreadable(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof WrongTree) return false;
  return 'code' in error
    ? String(error.code).startsWith('Z_')
    : /\btar\b|header|end of data/i.test(error.message);
}

/** Also resolves when the stream is closed. */
async function drained(stream: Writable): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = () => resolve();
  stream.once('drain', done).once('close', done);
  await promise;
  stream.off('drain', done).off('close', done);
}
