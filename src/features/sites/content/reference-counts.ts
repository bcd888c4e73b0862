import type { Blob } from '../../../platform/blobs/blobs.ts';
import type { Manifest } from './manifest.ts';

/**
 * What an owner keeps is counted in runs. A run is an unbroken series of a site's kept versions that hold the same
 * content. Only the beginning and the end of a run are written, so publishing one changed file among a thousand writes
 * one row.
 */

/** Content that the new version holds and the newest version before it does not: its runs begin. */
export function begun(before: Manifest | undefined, next: Manifest): Blob[] {
  const there = digestsIn(before);
  const found = new Map<string, Blob>();
  for (const blob of next.values()) if (!there.has(blob.digest)) found.set(blob.digest, blob);
  return [...found.values()];
}

/**
 * Content that loses a run when a version between its neighbours is removed. That is content only this version held,
 * and content both neighbours hold but it did not, because their two runs merge.
 */
export function overWithout(
  before: Manifest | undefined,
  gone: Manifest,
  after: Manifest | undefined,
): string[] {
  const [earlier, own, later] = [digestsIn(before), digestsIn(gone), digestsIn(after)];
  const alone = [...own].filter((digest) => !earlier.has(digest) && !later.has(digest));
  const joined = [...earlier].filter((digest) => later.has(digest) && !own.has(digest));
  return [...alone, ...joined];
}

function digestsIn(manifest: Manifest | undefined): Set<string> {
  return new Set([...(manifest?.values() ?? [])].map(({ digest }) => digest));
}
