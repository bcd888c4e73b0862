import type { Act } from '../../core/caller.ts';
import { type Clock, second } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { ChangeFeed, ChangeStore, ChangeTopic } from '../../platform/database/changes.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { AuditEntry, AuditWriter } from '../audit/audit.ts';
import { type DocumentStore, type DocumentVersion, documentEtag, requireMatch } from './settings.ts';

/** One version of a document with its meaning. Version 0 is what an installation starts with. */
export type InForce<T> = {
  readonly version: number;
  readonly etag: string;
  readonly value: T;
  readonly changedAt: number | null;
  readonly changedBy: string | null;
};

/** A configuration document in use: read from memory, changed with If-Match, every version kept (contract 2). */
export type ConfigDocument<T> = {
  /** What is in force; a promise only when this process must read it first. */
  inForce(): InForce<T> | Promise<InForce<T>>;
  /** What this process read last, however long ago. */
  lastRead(): T;
  /** False: a change was heard of more than a second ago and could not be read since. Asking tries again. */
  isCurrent(): boolean;
  read(): Promise<InForce<T>>;
  /** Throws unless `ifMatch` names the newest version; otherwise that version. For dry runs. */
  matched(ifMatch: string | undefined): Promise<InForce<T>>;
  put(act: Act, ifMatch: string | undefined, next: T): Promise<InForce<T>>;
  /** Newest first, without version 0. */
  history(page: number, limit: number): Promise<{ items: InForce<T>[]; total: number }>;
  /** Writes an earlier version as a new one. */
  revert(act: Act, ifMatch: string | undefined, version: number): Promise<InForce<T>>;
};

export type DocumentStores = { documents: DocumentStore; audit: AuditWriter; changes: ChangeStore };

export type ConfigDocumentDeps<T, Stores extends DocumentStores> = {
  readonly name: string;
  readonly initial: T;
  /** Reads a stored value; throws on one that no version of the program wrote. */
  readonly parse: (value: unknown) => T;
  readonly topic: ChangeTopic;
  /** What a change is called in the trail. */
  readonly eventOf: (reason: 'changed' | 'reverted') => Pick<AuditEntry, 'event' | 'target'>;
  readonly read: { documents: DocumentStore };
  readonly tx: Tx<Stores>;
  readonly feed: Pick<ChangeFeed, 'announce' | 'subscribe'>;
  /** False = this process may have missed a change, so the database is asked. */
  readonly isFresh: () => boolean;
  readonly clock: Clock;
  /** Runs before a change; when it rejects, nothing is changed. */
  readonly beforehand?: () => Promise<void>;
  /** Runs after a change, or after one that did not come about. Must not reject. */
  readonly afterwards?: () => Promise<void>;
  /** What else commits with the change. */
  readonly alongside?: (stores: Stores, before: T, after: T) => Promise<void>;
};

export function createDocument<T, Stores extends DocumentStores>(
  deps: ConfigDocumentDeps<T, Stores>,
): ConfigDocument<T> {
  const { name, initial, parse, topic, eventOf, read, tx, feed, isFresh, clock, alongside } = deps;
  let cached: InForce<T> | undefined;
  let last = initial;
  /** When a change was heard of that is not read yet. */
  let behindSince: number | undefined;
  let loading = false;
  // Counts changes heard of, so that a document read before a change is not kept after it.
  let heard = 0;
  feed.subscribe((change) => {
    if (change.topic !== topic || change.subject !== name) return;
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

  function toInForce(document: DocumentVersion | undefined): InForce<T> {
    const version = document?.version ?? 0;
    const value = document === undefined ? initial : parse(document.value);
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

  async function change(
    act: Act,
    ifMatch: string | undefined,
    reason: 'changed' | 'reverted',
    pick: (stores: Stores) => Promise<T>,
  ): Promise<InForce<T>> {
    await deps.beforehand?.();
    try {
      const next = await commit(act, ifMatch, reason, pick);
      feed.announce({ topic, subject: name });
      return next;
    } finally {
      await deps.afterwards?.();
    }
  }

  function commit(
    act: Act,
    ifMatch: string | undefined,
    reason: 'changed' | 'reverted',
    pick: (stores: Stores) => Promise<T>,
  ): Promise<InForce<T>> {
    return tx(async (stores) => {
      const before = toInForce(await stores.documents.current(name));
      requireMatch(ifMatch, before.etag);
      const value = await pick(stores);
      const document = {
        version: before.version + 1,
        value,
        changedAt: clock.now(),
        changedBy: act.actor.id,
      };
      await stores.documents.add(name, document);
      await alongside?.(stores, before.value, value);
      await stores.audit.append({
        ...eventOf(reason),
        act,
        outcome: 'success',
        reason,
        details: { version: document.version, before: before.value, after: value },
      });
      await stores.changes.publish({ topic, subject: name });
      return toInForce(document);
    });
  }

  return {
    lastRead: () => last,
    isCurrent() {
      if (behindSince === undefined) return true;
      if (!loading) catchUp();
      return clock.now() - behindSince <= second;
    },
    inForce: () => (cached !== undefined && isFresh() ? cached : load()),
    read: load,
    async matched(ifMatch) {
      const current = await load();
      requireMatch(ifMatch, current.etag);
      return current;
    },
    put: (act, ifMatch, next) => change(act, ifMatch, 'changed', async () => next),
    async history(page, limit) {
      const { items, total } = await read.documents.history(name, page, limit);
      return { items: items.map(toInForce), total };
    },
    revert: (act, ifMatch, version) =>
      change(act, ifMatch, 'reverted', async (stores) => {
        if (version === 0) return initial;
        const earlier = await stores.documents.at(name, version);
        if (!earlier)
          throw new AppError('not_found', { message: `There is no version ${version} of this document.` });
        return parse(earlier.value);
      }),
  };
}
