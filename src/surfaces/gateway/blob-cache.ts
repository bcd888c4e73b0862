import { buffer } from 'node:stream/consumers';
import { LRUCache } from 'lru-cache';
import type { Blobs } from '../../platform/blobs/blobs.ts';

/**
 * Small content in memory, by digest: what has a digest never changes, so nothing has to be invalidated. The least used
 * goes first when there is no room.
 */
export type BlobCache = {
  /** At once when it is there; undefined for what is too large to be kept. */
  get(digest: string, size: number): Content | Promise<Content> | undefined;
};

/**
 * Small content as text of one character a byte (latin1): Node sends head and body of such an answer in one piece, which
 * is most of what a small answer costs.
 */
export type Content = Buffer | string;

const largestText = 32 * 1024;

const largest = 1024 * 1024;
const mostBytes = 96 * 1024 * 1024;

export function createBlobCache({ read }: Pick<Blobs, 'read'>, limit = mostBytes): BlobCache {
  const kept = new LRUCache<string, Content>({
    maxSize: limit,
    sizeCalculation: ({ length }) => Math.max(1, length),
  });
  const loading = new Map<string, Promise<Content>>();

  async function load(digest: string, size: number): Promise<Content> {
    const bytes = await buffer(await read(digest));
    // A store that hands out half of a blob must not make it the blob.
    if (bytes.length !== size)
      throw new Error(`Blob ${digest} has ${bytes.length} bytes instead of ${size}.`);
    const content = size > largestText ? bytes : bytes.toString('latin1');
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
