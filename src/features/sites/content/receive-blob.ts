import { createHash } from 'node:crypto';
import { type Readable, Transform } from 'node:stream';
import type { Blob } from '../../../platform/blobs/blobs.ts';
import { ArchiveRefused } from './archive.ts';
import type { JudgeDeps, UploadProblem } from './judge.ts';
import { keyScan, type LookBudget } from './key-scan.ts';
import { chain } from './receive-entries.ts';

type TakeBlobDeps = JudgeDeps & {
  readonly write: (source: Readable) => Promise<Blob>;
  readonly budget: LookBudget;
};

/**
 * Takes bytes that were announced by digest and size, and scans them for our keys. Returns what is wrong with them;
 * content with a problem is not kept.
 */
export async function takeBlob(
  source: Readable,
  wanted: Blob,
  { write, format, onKey, budget }: TakeBlobDeps,
): Promise<Pick<UploadProblem, 'code' | 'problem'> | undefined> {
  let hasKey = false;
  const found = (value: string) => {
    hasKey = true;
    onKey(value);
  };
  try {
    await write(
      chain(
        source,
        keyScan(format, found, budget),
        exactly(wanted, () => hasKey),
      ),
    );
    return undefined;
  } catch (error) {
    // The unread rest would block the content behind it.
    source.destroy();
    if (error instanceof Unfit) return { code: error.code, problem: error.message };
    if (error instanceof ArchiveRefused) return { code: 'bad_entry', problem: error.message };
    throw error;
  }
}

class Unfit extends Error {
  readonly code: UploadProblem['code'];
  constructor(code: UploadProblem['code'], problem: string) {
    super(problem);
    this.code = code;
  }
}

/** Fails before the stream ends, so that the blob store does not keep content that differs from its announcement. */
function exactly({ digest, size }: Blob, hasKey: () => boolean): Transform {
  const hash = createHash('sha256');
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > size)
        return done(new Unfit('wrong_content', `has more than the ${size} bytes that were announced`));
      hash.update(chunk);
      done(null, chunk);
    },
    flush(done) {
      if (hasKey())
        done(new Unfit('credential_in_content', 'contains an API key; revoke that key and remove it'));
      else if (bytes !== size) done(new Unfit('wrong_content', `has ${bytes} bytes; ${size} were announced`));
      else if (hash.digest('hex') !== digest)
        done(new Unfit('wrong_content', 'does not have the SHA-256 that it was sent under'));
      else done();
    },
  });
}
