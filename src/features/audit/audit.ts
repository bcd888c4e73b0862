import type { Act, Actor } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { AuditStore } from './audit-store.ts';
import { decodeCursor, encodeCursor } from './cursor.ts';
import type { AuditEventName } from './events.ts';
import type { Json } from './safe-text.ts';

export type { Denials, Refusal } from './denials.ts';
export { auditEventResponse, toAuditEventResponse, toTimelineResponse } from './schemas.ts';

/**
 * The audit trail's door. Promises: an event written through a transaction's store commits with the change or
 * not at all; rows are never changed or removed; the sealer chains committed rows within seconds (contract 10.8).
 */
export type AuditEntry = {
  readonly event: AuditEventName;
  readonly act: Act;
  readonly target: {
    readonly kind:
      | 'api_key'
      | 'repository'
      | 'policy'
      | 'user'
      | 'group'
      | 'session'
      | 'client'
      | 'route'
      | 'address'
      | 'owners'
      | 'config'
      | 'site'
      | 'trail';
    readonly id: string;
  };
  readonly outcome: 'success' | 'denied' | 'failure';
  /** A short word of ours, such as an error code; never free text of a caller. */
  readonly reason?: string;
  /** Before and after, without secrets. */
  readonly details?: Readonly<Record<string, unknown>>;
  /**
   * Every key the event speaks of besides the target: `GET …/timeline` finds it by these.
   */
  readonly keyIds?: readonly string[];
};

/** What other features need of the trail: to write one event through their own transaction. */
export type AuditWriter = { append(entry: AuditEntry): Promise<void> };

/** An event as the trail holds it: text made safe, the keys it concerns collected. */
export type AuditEvent = {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** A name of events.ts, or one that an older version wrote. */
  readonly event: string;
  readonly actor: Actor;
  readonly target: { readonly kind: string; readonly id: string };
  readonly outcome: AuditEntry['outcome'];
  readonly reason: string | null;
  readonly requestId: string | null;
  readonly address: string | null;
  readonly agent: string | null;
  readonly details: { readonly [name: string]: Json };
  readonly keyIds: readonly string[];
  /** Null until the sealer has chained the event. */
  readonly seal: Seal | null;
};

/** A link of the chain. `seq` counts from 1 without gaps; hashes are 64 hex digits. */
export type Seal = { readonly seq: number; readonly previousHash: string; readonly hash: string };

/** Which events; every field given must match. Times in milliseconds, `from` inclusive, `to` exclusive. */
export type AuditFilter = {
  /** An actor's id, or `anonymous` or `system`. */
  readonly actor?: string | undefined;
  readonly event?: AuditEventName | undefined;
  /** A target's id. */
  readonly target?: string | undefined;
  readonly outcome?: AuditEntry['outcome'] | undefined;
  readonly requestId?: string | undefined;
  readonly keyId?: string | undefined;
  readonly from?: number | undefined;
  readonly to?: number | undefined;
};

/** A place in the trail's order: by time, then by insertion. `seq` in decimal digits. */
export type TrailPosition = { readonly at: number; readonly seq: string };

export type TrailPage = { readonly events: readonly AuditEvent[]; readonly next: TrailPosition | null };

/** What administrators and the owners of keys read. */
export type Audit = {
  search(filter: AuditFilter, cursor: string | undefined, limit: number): Promise<TrailSlice>;
  /** Throws `not_found`. */
  get(id: string): Promise<AuditEvent>;
  /** The events of one key, newest first. Whether the caller may see that key is the caller's question. */
  timeline(keyId: string, cursor: string | undefined, limit: number): Promise<TrailSlice>;
  /** What refused this request; usually one event. Whether the caller may see it is the caller's question. */
  refusalsOf(requestId: string): Promise<readonly AuditEvent[]>;
  /** Everything that matches up to now, oldest first, page by page without an open transaction. */
  walk(filter: AuditFilter): AsyncGenerator<readonly AuditEvent[]>;
  /** Whoever takes the trail away is in it: what was asked for, in which form. */
  recordExport(act: Act, filter: AuditFilter, format: string): Promise<void>;
};

export type TrailSlice = { readonly events: readonly AuditEvent[]; readonly nextCursor: string | null };

const pageOfWalk = 500;

export function createAudit({
  read,
  tx,
  clock,
}: {
  read: Pick<AuditStore, 'page' | 'find' | 'refusalsOf'>;
  tx: Tx<{ audit: AuditWriter }>;
  clock: Clock;
}): Audit {
  async function search(filter: AuditFilter, cursor: string | undefined, limit: number): Promise<TrailSlice> {
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
    async *walk(filter) {
      // Without an end, a busy trail would grow faster than a slow reader follows.
      const end = clock.now() + 1;
      const to = filter.to === undefined ? end : Math.min(filter.to, end);
      let after: TrailPosition | null = null;
      do {
        const page: TrailPage = await read.page({ ...filter, to }, 'oldest', after, pageOfWalk);
        yield page.events;
        after = page.next;
      } while (after !== null);
    },
    recordExport: (act, filter, format) =>
      tx(({ audit }) =>
        audit.append({
          event: 'audit.exported',
          act,
          target: { kind: 'trail', id: 'all' },
          outcome: 'success',
          details: { format, ...filter },
        }),
      ),
  };
}
