import { createHash } from 'node:crypto';
import { type Readable, Transform } from 'node:stream';
import type { Blob } from '../../../platform/blobs/blobs.ts';
import { ArchiveRefused } from './archive.ts';
import { type JudgeDeps, keyInContent, type ProblemText, type UploadProblem } from './judge.ts';
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
): Promise<ProblemText | undefined> {
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
  constructor({ code, problem }: ProblemText) {
    super(problem);
    this.code = code;
  }
}

const wrong = (problem: string) => new Unfit({ code: 'wrong_content', problem });

/** Fails before the stream ends, so that the blob store does not keep content that differs from its announcement. */
function exactly({ digest, size }: Blob, hasKey: () => boolean): Transform {
  const hash = createHash('sha256');
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > size) return done(wrong(`has more than the ${size} bytes that were announced`));
      hash.update(chunk);
      done(null, chunk);
    },
    flush(done) {
      if (hasKey()) done(new Unfit(keyInContent));
      else if (bytes !== size) done(wrong(`has ${bytes} bytes; ${size} were announced`));
      else if (hash.digest('hex') !== digest) done(wrong('does not have the SHA-256 that it was sent under'));
      else done();
    },
  });
}
