import { setImmediate as othersFirst } from 'node:timers/promises';
import { judged, type JudgeDeps, type Received, type UploadLimits } from './judge.ts';
import type { Manifest } from './manifest.ts';

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
      if (!judge.weigh(size)) judge.stopTooHeavy();
      const before = sizes.get(digest);
      if (judge.isTooLong(size)) judge.refuseTooLong(name);
      else if (before !== undefined && before !== size)
        judge.refuse(name, 'wrong_content', 'has the same SHA-256 as another file, but another size');
      else judge.keep(path, { digest, size });
      sizes.set(digest, size);
    }
  });
}
