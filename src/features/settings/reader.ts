import { type Clock, second } from '../../core/clock.ts';
import { type ChangeFeed, type ChangeTopic, concerns } from '../../platform/database/change-feed.ts';
import { type DocumentStore, type DocumentVersion, documentEtag } from './document-store.ts';
import { inShapeOf } from './stored-form.ts';

/** One version of a document with its parsed value. Version 0 is the built-in default. */
export type InForce<T> = {
  readonly version: number;
  readonly etag: string;
  readonly value: T;
  readonly changedAt: number | null;
  readonly changedBy: string | null;
};

/** Reads a configuration document from memory, and from the database after the feed has announced a change. */
export type DocumentReader<T> = {
  /** The version in force; a promise only when this process must read it first. */
  inForce(): InForce<T> | Promise<InForce<T>>;
  /** The value that this process read last, however long ago. */
  lastRead(): T;
  /** False: a change was announced more than a second ago and has not been read since. Each call retries the read. */
  isCurrent(): boolean;
  read(): Promise<InForce<T>>;
};

export type DocumentReaderDeps<T> = {
  readonly name: string;
  /** The built-in default. It must have every field, because stored values are converted to its shape (stored-form.ts). */
  readonly initial: T;
  /** Parses a stored value in that shape; throws on a value that no version of the program wrote. */
  readonly parse: (value: unknown) => T;
  readonly topic: ChangeTopic;
  readonly read: { documents: Pick<DocumentStore, 'current'> };
  readonly feed: Pick<ChangeFeed, 'subscribe'>;
  /** False = this process may have missed a change, so it reads the database. */
  readonly isFresh: () => boolean;
  readonly clock: Clock;
};

export function createDocumentReader<T>(deps: DocumentReaderDeps<T>): DocumentReader<T> & {
  toInForce(document: DocumentVersion | undefined): InForce<T>;
  /** @throws Error on a value that no version of the program wrote */
  fromStored(value: unknown): T;
} {
  const { name, initial, parse, topic, read, feed, isFresh, clock } = deps;
  let cached: InForce<T> | undefined;
  let last = initial;
  /** When the oldest change was announced that this process has not read yet. */
  let behindSince: number | undefined;
  let loading = false;
  // Counts announced changes, so that a document read before a change is not cached after it.
  let heard = 0;
  feed.subscribe((change) => {
    if (change.topic !== topic || !concerns(change, name)) return;
    heard += 1;
    cached = undefined;
    behindSince ??= clock.now();
    // Read immediately for callers of lastRead(), which never reads. If this fails, inForce() reads again itself.
    catchUp();
  });

  function catchUp(): void {
    loading = true;
    load()
      .catch(() => undefined)
      .finally(() => (loading = false));
  }

  const fromStored = (value: unknown) => parse(inShapeOf(initial, value));

  function toInForce(document: DocumentVersion | undefined): InForce<T> {
    const version = document?.version ?? 0;
    const value = document === undefined ? initial : fromStored(document.value);
    return {
      version,
      etag: documentEtag(name, version, value),
      value,
      changedAt: document?.changedAt ?? null,
      changedBy: document?.changedBy ?? null,
    };
  }

  async function load(): Promise<InForce<T>> {
    const heardBefore = heard;
    const loaded = toInForce(await read.documents.current(name));
    if (heard === heardBefore) {
      cached = loaded;
      last = loaded.value;
      behindSince = undefined;
    }
    return loaded;
  }

  // Concurrent callers share one read, so that a slow database does not cost one connection for each caller.
  let shared: { readonly heard: number; readonly look: Promise<InForce<T>> } | undefined;
  function loadShared(): Promise<InForce<T>> {
    // A read that began before a change may miss it, so do not share it.
    if (shared?.heard === heard) return shared.look;
    const mine = { heard, look: load() };
    shared = mine;
    const end = () => {
      if (shared === mine) shared = undefined;
    };
    mine.look.then(end, end);
    return mine.look;
  }

  return {
    toInForce,
    fromStored,
    lastRead: () => last,
    isCurrent() {
      if (behindSince === undefined) return true;
      if (!loading) catchUp();
      return clock.now() - behindSince <= second;
    },
    inForce: () => (cached !== undefined && isFresh() ? cached : loadShared()),
    read: load,
  };
}
