import { buffer } from 'node:stream/consumers';
import { LRUCache } from 'lru-cache';
import type { Blobs } from '../../platform/blobs/blobs.ts';

/**
 * Caches small content by digest: content with a digest never changes, so no entry becomes invalid. When the cache is
 * full, the least recently used entry goes first.
 */
export type BlobCache = {
  /** Returns at once when it is cached; undefined for content that is too large to cache. */
  get(digest: string, size: number): Content | Promise<Content> | undefined;
};

/**
 * Small content as text with one character for each byte (latin1). Node then sends head and body in one piece; sending
 * them is most of the cost of a small response.
 */
export type Content = Buffer | string;

const maxTextBytes = 32 * 1024;

const largest = 1024 * 1024;
const maxBytes = 96 * 1024 * 1024;

export function createBlobCache({ read }: Pick<Blobs, 'read'>, limit = maxBytes): BlobCache {
  const kept = new LRUCache<string, Content>({
    maxSize: limit,
    sizeCalculation: ({ length }) => Math.max(1, length),
  });
  const loading = new Map<string, Promise<Content>>();

  async function load(digest: string, size: number): Promise<Content> {
    const bytes = await buffer(await read(digest));
    // A store that returns half of a blob must not put that half into the cache.
    if (bytes.length !== size)
      throw new Error(`Blob ${digest} has ${bytes.length} bytes instead of ${size}.`);
    const content = size > maxTextBytes ? bytes : bytes.toString('latin1');
    kept.set(digest, content);
    return content;
  }

  return {
    get(digest, size) {
      if (size > largest) return undefined;
      const there = kept.get(digest);
      if (there !== undefined) return there;
      let already = loading.get(digest);
      if (already === undefined) {
        already = load(digest, size).finally(() => loading.delete(digest));
        loading.set(digest, already);
      }
      return already;
    },
  };
}
