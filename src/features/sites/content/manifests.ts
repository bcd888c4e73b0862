import { LRUCache } from 'lru-cache';
import type { Manifest } from './manifest.ts';

/**
 * Manifests in memory, by their receipt: what has a digest never changes, so nothing has to be invalidated. A publish
 * compares with the version before, and reading that again each time would be most of what a small redeploy costs.
 */
export type Manifests = {
  /** `read` when it is not there. Undefined: `read` found none. */
  of(digest: string, read: () => Promise<Manifest | undefined>): Promise<Manifest | undefined>;
  keep(digest: string, files: Manifest): void;
};

/** Files of all manifests together, about 250 bytes each. */
const mostFiles = 100_000;

export function createManifests(): Manifests {
  const kept = new LRUCache<string, Manifest>({
    maxSize: mostFiles,
    sizeCalculation: ({ size }) => size + 1,
  });
  return {
    async of(digest, read) {
      const there = kept.get(digest);
      if (there !== undefined) return there;
      const found = await read();
      if (found !== undefined) kept.set(digest, found);
      return found;
    },
    keep: (digest, files) => void kept.set(digest, files),
  };
}
