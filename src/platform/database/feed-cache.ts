import { LRUCache } from 'lru-cache';
import { keepLastUsed } from '../last-used.ts';
import { createFairQueue } from '../fair-queue.ts';
import { type Change, type ChangeFeed, type ChangeTopic, concerns } from './change-feed.ts';

/**
 * Caches what is stored under a name, such as what a host name serves: read from the database once, and kept until the
 * change feed reports a change of its subject. The caller must check that the change feed is still received.
 */
export type FeedCache<T> = {
  /**
   * Undefined when nothing has this name. Returns without a promise when the name is cached.
   * @param sender lookups of one sender wait for each other, not for lookups of other senders
   * @throws AppError overloaded when too many lookups of this sender wait
   */
  find(name: string, sender: () => string): T | undefined | Promise<T | undefined>;
};

const maxNames = 20_000;

/** Cached names that nothing has. Clients can make them up, so they must not evict real ones. */
const maxAbsent = 10_000;

export function createFeedCache<T extends object>(deps: {
  feed: Pick<ChangeFeed, 'subscribe'>;
  topic: ChangeTopic;
  /** What the feed reports when the value changes. */
  subjectOf: (value: T) => string;
  /** The sum of the weights of all cached values is at most `maxWeight`. */
  weightOf: (value: T) => number;
  maxWeight: number;
  /** False: the value is read again, although nothing was reported. */
  isCurrent?: (value: T) => boolean;
  load: (name: string) => Promise<T | undefined>;
}): FeedCache<T> {
  const { feed, topic, subjectOf, weightOf, load } = deps;
  const entries = new LRUCache<string, T>({
    maxSize: deps.maxWeight,
    // The option `max` would also bound the names, but allocate memory for all of them in advance.
    sizeCalculation: (value) => Math.max(weightOf(value), Math.ceil(deps.maxWeight / maxNames)),
  });
  const absent = keepLastUsed<true>(maxAbsent);
  // A flood of made-up names waits in this queue instead of loading the database, and delays only its sender.
  const queue = createFairQueue({ width: 16, perSender: 8, queue: 500 });
  const loading = new Map<string, Promise<T | undefined>>();
  /** Changes reported during a lookup, whose answer may be older. */
  const underWay = new Set<Change[]>();

  feed.subscribe((change) => {
    if (change.topic !== topic) return;
    for (const since of underWay) since.push(change);
    loading.clear();
    // A name that nothing had may have been given out just now. Clearing costs as much as the cache can hold.
    if (absent.size > 0) absent.clear();
    const changed = [...entries].filter(([, value]) => concerns(change, subjectOf(value)));
    for (const [name] of changed) entries.delete(name);
  });

  function keep(name: string, value: T | undefined): void {
    if (value === undefined) absent.set(name, true);
    else entries.set(name, value);
  }

  return {
    find(name, sender) {
      const known = entries.get(name);
      if (known !== undefined && (deps.isCurrent?.(known) ?? true)) return known;
      if (absent.has(name)) return undefined;
      const already = loading.get(name);
      if (already !== undefined) return already;
      const since: Change[] = [];
      underWay.add(since);
      const read = queue(sender(), () => load(name)).then((value) => {
        const isStale = (change: Change) => value === undefined || concerns(change, subjectOf(value));
        if (!since.some(isStale)) keep(name, value);
        return value;
      });
      loading.set(name, read);
      const done = read.catch(() => undefined);
      void done.finally(() => {
        underWay.delete(since);
        if (loading.get(name) === read) loading.delete(name);
      });
      return read;
    },
  };
}
