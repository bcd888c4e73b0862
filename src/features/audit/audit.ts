import type { AuditContext } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { AuditEvent, AuditFilter, AuditPage, AuditPosition, AuditWriter } from './audit-event.ts';
import type { AuditStore } from './audit-store.ts';

/**
 * The public interface of the audit log. Promises: an event written through a transaction's store commits with the change or
 * not at all; rows are never changed or removed; the chain writer chains committed rows within seconds (contract 10.8).
 */
export type { AuditEntry, AuditEvent, AuditFilter, AuditWriter, Seal } from './audit-event.ts';
export { canonicalJson } from './chain.ts';
export type { Denials, Refusal } from './denials.ts';
export {
  auditEventResponse,
  type AuditEventResponse,
  toAuditEventResponse,
  toTimelineResponse,
} from './schemas.ts';

/** Read access for administrators and the owners of keys. */
export type Audit = {
  search(filter: AuditFilter, cursor: string | undefined, limit: number): Promise<AuditSlice>;
  /** Throws `not_found`. */
  get(id: string): Promise<AuditEvent>;
  /** The events of one key, newest first. The calling code must check access to the key. */
  timeline(keyId: string, cursor: string | undefined, limit: number): Promise<AuditSlice>;
  /** The refusal events of this request, usually one. The calling code must check access to them. */
  refusalsOf(requestId: string): Promise<readonly AuditEvent[]>;
  /** The newest refusals of requests with these keys. The calling code must check access to the keys. */
  refusalsOfKeys(keyIds: readonly string[], since: number, limit: number): Promise<readonly AuditEvent[]>;
  /** All matching events up to now, oldest first, page by page without an open transaction. */
  walk(filter: AuditFilter): AsyncGenerator<readonly AuditEvent[]>;
  /** Records that a person exported the audit log: the filter and the format. */
  recordExport(auditContext: AuditContext, filter: AuditFilter, format: string): Promise<void>;
};

export type AuditSlice = { readonly events: readonly AuditEvent[]; readonly nextCursor: string | null };

const pageOfWalk = 500;

export function createAudit({
  read,
  tx,
  clock,
}: {
  read: Pick<AuditStore, 'page' | 'find' | 'refusalsOf' | 'refusalsOfKeys'>;
  tx: Tx<{ audit: AuditWriter }>;
  clock: Clock;
}): Audit {
  async function search(filter: AuditFilter, cursor: string | undefined, limit: number): Promise<AuditSlice> {
    const after = cursor === undefined ? null : decodeCursor(cursor);
    const { events, next } = await read.page(filter, 'newest', after, limit);
    return { events, nextCursor: next === null ? null : encodeCursor(next) };
  }

  return {
    search,
    async get(id) {
      const event = await read.find(id);
      if (event === undefined) throw new AppError('not_found');
      return event;
    },
    timeline: (keyId, cursor, limit) => search({ keyId }, cursor, limit),
    refusalsOf: (requestId) => read.refusalsOf(requestId),
    refusalsOfKeys: (keyIds, since, limit) => read.refusalsOfKeys(keyIds, since, limit),
    async *walk(filter) {
      // Without an end, the walk might never finish: a busy audit log can grow faster than a slow client reads.
      const end = clock.now() + 1;
      const to = filter.to === undefined ? end : Math.min(filter.to, end);
      let after: AuditPosition | null = null;
      do {
        const page: AuditPage = await read.page({ ...filter, to }, 'oldest', after, pageOfWalk);
        yield page.events;
        after = page.next;
      } while (after !== null);
    },
    recordExport: (auditContext, filter, format) =>
      tx(({ audit }) =>
        audit.append({
          event: 'audit.exported',
          auditContext,
          target: { kind: 'trail', id: 'all' },
          outcome: 'success',
          details: { format, ...filter },
        }),
      ),
  };
}

/** Encodes a position in the audit log as a cursor. Opaque to clients: its form may change at any time. */
function encodeCursor({ at, seq }: AuditPosition): string {
  return Buffer.from(`${at}.${seq}`).toString('base64url');
}

/** Throws `invalid_query` for anything encodeCursor() did not make. */
function decodeCursor(cursor: string): AuditPosition {
  const match = /^(\d{1,15})\.(\d{1,18})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1'));
  if (match?.[1] === undefined || match[2] === undefined) {
    throw new AppError('invalid_query', {
      message: 'cursor: must be the nextCursor of an earlier response',
      details: { fields: [{ field: 'cursor', problem: 'must be the nextCursor of an earlier response' }] },
    });
  }
  return { at: Number(match[1]), seq: match[2] };
}
