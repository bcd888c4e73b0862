import { type Clock, second } from '../../core/clock.ts';
import { type ChangeFeed, type ChangeTopic, concerns } from '../../platform/database/changes.ts';
import { type DocumentStore, type DocumentVersion, documentEtag } from './settings.ts';
import { inShapeOf } from './stored-form.ts';

/** One version of a document with its meaning. Version 0 is what an installation starts with. */
export type InForce<T> = {
  readonly version: number;
  readonly etag: string;
  readonly value: T;
  readonly changedAt: number | null;
  readonly changedBy: string | null;
};

/** A configuration document as its readers have it: from memory, and anew when the feed says that it changed. */
export type DocumentReader<T> = {
  /** What is in force; a promise only when this process must read it first. */
  inForce(): InForce<T> | Promise<InForce<T>>;
  /** What this process read last, however long ago. */
  lastRead(): T;
  /** False: a change was heard of more than a second ago and could not be read since. Asking tries again. */
  isCurrent(): boolean;
  read(): Promise<InForce<T>>;
};

export type DocumentReaderDeps<T> = {
  readonly name: string;
  /** What an installation starts with. Has every field there is: a stored value is brought into its shape (stored-form.ts). */
  readonly initial: T;
  /** Reads a stored value in that shape; throws on one that no version of the program wrote. */
  readonly parse: (value: unknown) => T;
  readonly topic: ChangeTopic;
  readonly read: { documents: Pick<DocumentStore, 'current'> };
  readonly feed: Pick<ChangeFeed, 'subscribe'>;
  /** False = this process may have missed a change, so the database is asked. */
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
  /** When a change was heard of that is not read yet. */
  let behindSince: number | undefined;
  let loading = false;
  // Counts changes heard of, so that a document read before a change is not kept after it.
  let heard = 0;
  feed.subscribe((change) => {
    if (change.topic !== topic || !concerns(change, name)) return;
    heard += 1;
    cached = undefined;
    behindSince ??= clock.now();
    // At once, for those who only ask lastRead(); whoever asks inForce() reads for himself when this fails.
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

  // While the database is slow to answer, whoever asks waits for one look together, and not for a connection each.
  let shared: { readonly heard: number; readonly look: Promise<InForce<T>> } | undefined;
  function loadShared(): Promise<InForce<T>> {
    // A look that was begun before a change may not know of it.
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
