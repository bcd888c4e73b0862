import { LRUCache } from 'lru-cache';
import type { Manifest } from './manifest.ts';

/**
 * Caches manifests by their receipt. Content with a digest never changes, so no entry becomes invalid. A publish
 * compares with the previous version, and reading that manifest each time would be most of the cost of a small
 * redeploy.
 */
export type ManifestCache = {
  /** Calls `read` for a manifest that is not cached. Undefined: `read` found none. */
  of(digest: string, read: () => Promise<Manifest | undefined>): Promise<Manifest | undefined>;
  keep(digest: string, files: Manifest): void;
};

/** Files of all manifests together, about 250 bytes each. */
const maxFiles = 100_000;

export function createManifestCache(): ManifestCache {
  const kept = new LRUCache<string, Manifest>({
    maxSize: maxFiles,
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
