import type { Blob } from '../../platform/blobs/blobs.ts';
import type { Manifest } from './content/manifest.ts';

/**
 * What an owner keeps is counted in runs: unbroken rows of a site's kept versions that hold the same content. Only where
 * a run begins or is over has anything to be written, so publishing one changed file among a thousand writes one row.
 */

/** What a new version holds and the newest before it does not: their runs begin. */
export function begun(before: Manifest | undefined, next: Manifest): Blob[] {
  const there = digestsIn(before);
  const found = new Map<string, Blob>();
  for (const blob of next.values()) if (!there.has(blob.digest)) found.set(blob.digest, blob);
  return [...found.values()];
}

/**
 * What has a run less when a version goes from between its neighbours: what only it held, and what both neighbours hold
 * and it did not, because their two runs become one.
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
