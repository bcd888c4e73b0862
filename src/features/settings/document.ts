import type { AuditContext } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import type { ChangeStore } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { AuditEntry, AuditWriter } from '../audit/audit.ts';
import {
  createDocumentReader,
  type DocumentReader,
  type DocumentReaderDeps,
  type InForce,
} from './reader.ts';
import { type DocumentStore, requireMatch } from './document-store.ts';

export type { InForce };

/**
 * A configuration document in use: read from memory, changed with If-Match, every version kept (contract 2). It can read a
 * document that another release wrote. A change stores exactly what was sent, so it removes the fields of a newer release
 * (stored-form.ts).
 */
export type ConfigDocument<T> = DocumentReader<T> & {
  /** Returns the newest version; throws unless `ifMatch` names it. For dry runs. */
  matched(ifMatch: string | undefined): Promise<InForce<T>>;
  put(
    auditContext: AuditContext,
    ifMatch: string | undefined,
    next: T | ((before: T) => T),
    judge?: Judge<T>,
  ): Promise<InForce<T>>;
  /** Newest first; the last is version 0, the built-in default. */
  history(page: number, limit: number): Promise<{ items: InForce<T>[]; total: number }>;
  /** Writes an earlier version as a new one. */
  revert(
    auditContext: AuditContext,
    ifMatch: string | undefined,
    version: number,
    judge?: Judge<T>,
  ): Promise<InForce<T>>;
};

/** Refuses a change by throwing, in its transaction. */
export type Judge<T> = (before: T, after: T) => void;

export type DocumentStores = { documents: DocumentStore; audit: AuditWriter; changes: ChangeStore };

export type ConfigDocumentDeps<T, Stores extends DocumentStores> = DocumentReaderDeps<T> & {
  /** The audit event of a change. */
  readonly eventOf: (reason: 'changed' | 'reverted') => Pick<AuditEntry, 'event' | 'target'>;
  readonly read: { documents: DocumentStore };
  readonly tx: Tx<Stores>;
  /** Runs before a change; if it rejects, nothing is changed. */
  readonly beforehand?: () => Promise<void>;
  /** Runs after a change, whether it succeeded or failed. Must not reject. */
  readonly afterwards?: () => Promise<void>;
  /** Further writes in the transaction of the change. */
  readonly alongside?: (stores: Stores, before: T, after: T) => Promise<void>;
};

export function createDocument<T, Stores extends DocumentStores>(
  deps: ConfigDocumentDeps<T, Stores>,
): ConfigDocument<T> {
  const { name, initial, topic, eventOf, read, tx, clock, alongside } = deps;
  const reader = createDocumentReader(deps);
  const { toInForce, fromStored } = reader;

  async function change(
    auditContext: AuditContext,
    ifMatch: string | undefined,
    reason: 'changed' | 'reverted',
    pick: (stores: Stores, before: T) => T | Promise<T>,
    judge: Judge<T> | undefined,
  ): Promise<InForce<T>> {
    await deps.beforehand?.();
    try {
      return await commit(auditContext, ifMatch, reason, pick, judge);
    } finally {
      await deps.afterwards?.();
    }
  }

  function commit(
    auditContext: AuditContext,
    ifMatch: string | undefined,
    reason: 'changed' | 'reverted',
    pick: (stores: Stores, before: T) => T | Promise<T>,
    judge: Judge<T> | undefined,
  ): Promise<InForce<T>> {
    return tx(async (stores) => {
      const before = toInForce(await stores.documents.current(name));
      requireMatch(ifMatch, before.etag);
      const value = await pick(stores, before.value);
      judge?.(before.value, value);
      const document = {
        version: before.version + 1,
        value,
        changedAt: clock.now(),
        changedBy: auditContext.actor.id,
      };
      await stores.documents.add(name, document);
      await alongside?.(stores, before.value, value);
      await stores.audit.append({
        ...eventOf(reason),
        auditContext,
        outcome: 'success',
        reason,
        details: { version: document.version, before: before.value, after: value },
      });
      await stores.changes.publish({ topic, subject: name });
      return toInForce(document);
    });
  }

  return {
    lastRead: reader.lastRead,
    isCurrent: reader.isCurrent,
    inForce: reader.inForce,
    read: reader.read,
    async matched(ifMatch) {
      const current = await reader.read();
      requireMatch(ifMatch, current.etag);
      return current;
    },
    put(auditContext, ifMatch, next, judge) {
      const pick = (_: Stores, before: T) => (next instanceof Function ? next(before) : next);
      return change(auditContext, ifMatch, 'changed', pick, judge);
    },
    async history(page, limit) {
      const { items, total } = await read.documents.history(name, page, limit);
      // Version 0 has no row: it is part of the program.
      const hasStart = page === Math.ceil((total + 1) / limit);
      return {
        items: [...items.map(toInForce), ...(hasStart ? [toInForce(undefined)] : [])],
        total: total + 1,
      };
    },
    revert(auditContext, ifMatch, version, judge) {
      const pick = async (stores: Stores) => {
        if (version === 0) return initial;
        const earlier = await stores.documents.at(name, version);
        if (!earlier)
          throw new AppError('not_found', { message: `This document has no version ${version}.` });
        return fromStored(earlier.value);
      };
      return change(auditContext, ifMatch, 'reverted', pick, judge);
    },
  };
}
