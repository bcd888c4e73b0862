import { LRUCache } from 'lru-cache';

/**
 * Keeps the `most` entries that were used last. Its memory grows with what it keeps: the option `max` of LRUCache would reserve
 * room for all of them at once, in every process.
 */
export function keepLastUsed<T extends NonNullable<unknown>>(most: number): LRUCache<string, T> {
  return new LRUCache<string, T>({ maxSize: most, sizeCalculation: () => 1 });
}
