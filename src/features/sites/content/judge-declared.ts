import { setImmediate as othersFirst } from 'node:timers/promises';
import type { UploadLimits } from './upload-limits.ts';
import { judged, type JudgeDeps, type Received } from './judge.ts';
import type { Manifest } from './manifest.ts';

const otherSize = {
  code: 'wrong_content',
  problem: 'has the same SHA-256 as another file, but another size',
} as const;

/** Files judged before other tasks get a turn. */
const filesAtOnce = 100;

/**
 * Judges the files that a digest upload announces, by the same rules as the entries of an archive. Their bytes come
 * later.
 */
export async function judgeDeclared(
  files: Manifest,
  limits: UploadLimits,
  deps: JudgeDeps,
): Promise<Received> {
  const sizes = new Map<string, number>();
  return await judged(limits, deps, async (judge) => {
    let seen = 0;
    for (const [name, { digest, size }] of files) {
      if (seen % filesAtOnce === 0) await othersFirst();
      seen += 1;
      const path = judge.admit(name);
      if (path === undefined) continue;
      judge.weigh(size);
      const before = sizes.get(digest);
      const tooLong = judge.fileProblem(size);
      if (tooLong !== undefined) judge.refuse(name, tooLong);
      else if (before !== undefined && before !== size) judge.refuse(name, otherSize);
      else judge.keep(path, { digest, size });
      sizes.set(digest, size);
    }
  });
}
