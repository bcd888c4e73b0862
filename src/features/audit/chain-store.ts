import { type Sql, sql } from '../../platform/database/sql.ts';
import type { AuditEvent, Seal } from './audit.ts';
import { type EventRow, eventColumns, toAuditEvent } from './audit-store.ts';

/** The SQL of the chain: its links (seals in the tables), the events that wait for one, and the walks that verify both. */
export type ChainStore = {
  hasUnchained(): Promise<boolean>;
  /** Locks the chain: until the transaction ends, no other transaction extends it. */
  lock(): Promise<void>;
  head(): Promise<Pick<Seal, 'seq' | 'hash'> | null>;
  /** The oldest waiting events by insertion, at most `limit`. */
  unsealed(limit: number): Promise<readonly UnchainedEvent[]>;
  /** Adds the links, counts their events by hour, and takes them off the waiting list. */
  seal(seals: readonly NewSeal[], sealedAt: number): Promise<void>;
  /** Frees the space of events that no longer wait. Not inside a transaction. */
  tidy(): Promise<void>;
  /** Links after `afterSeq` in chain order; `event` is null when the chained event no longer exists. */
  walkSeals(afterSeq: number, limit: number): Promise<readonly SealedEvent[]>;
  /** How many events follow `afterSeq`, up to `limit`, and the first with neither a link nor a place on the waiting list. */
  walkEvents(afterSeq: string, limit: number): Promise<EventsWalk>;
  /** How many events wait for a link, and the first one on that list that no longer exists. */
  waiting(): Promise<{ count: number; missingSeq: string | null }>;
};

/** In UTC, whatever the session's time zone is. */
const hourOf = sql`date_bin('1 hour', e.at, timestamptz '2000-01-01 00:00:00+00')`;

export type UnchainedEvent = { readonly seq: string; readonly event: AuditEvent };
export type NewSeal = Seal & { readonly eventId: string; readonly eventSeq: string };
export type SealedEvent = {
  readonly seal: Seal;
  readonly eventId: string;
  readonly event: AuditEvent | null;
};
export type EventsWalk = {
  readonly count: number;
  readonly lastSeq: string | null;
  readonly strayId: string | null;
};

/** Advisory lock of the transaction that extends the chain; the adjacent number is the lock of the migrations. */
const chainLockKey = 7_263_002;

export function chainStore(db: Sql): ChainStore {
  return {
    async hasUnchained() {
      const waiting = await sql`select 1 from audit_unsealed limit 1`.first(db);
      return waiting !== undefined;
    },
    async lock() {
      await sql`select pg_advisory_xact_lock(${chainLockKey})`.run(db);
    },
    async head() {
      const head = await sql<{ seq: number; hash: string }>`
        select s.seq, encode(s.hash, 'hex') as hash from audit_seals s
         order by s.seq desc limit 1`.first(db);
      return head ?? null;
    },
    async unsealed(limit) {
      const rows = await sql<EventRow>`
        select ${eventColumns}
          from audit_unsealed u join audit_events e on e.seq = u.event_seq
          left join audit_seals s on s.event_id = e.id
         order by u.event_seq limit ${limit}`.all(db);
      return rows.map((row) => ({ seq: row.seq, event: toAuditEvent(row) }));
    },
    async seal(seals, sealedAt) {
      await sql`
        with given as (
          select * from jsonb_to_recordset(${JSON.stringify(seals)}::jsonb) as g(
            "seq" bigint, "eventId" text, "eventSeq" bigint, "previousHash" text, "hash" text)
        ), sealed as (
          insert into audit_seals (seq, event_id, previous_hash, hash, sealed_at)
          select "seq", "eventId", decode("previousHash", 'hex'), decode("hash", 'hex'), ${new Date(sealedAt)}
            from given
        ), counted as (
          insert into audit_counts (hour, event, outcome, count)
          select ${hourOf}, e.event, e.outcome, count(*)
            from given g join audit_events e on e.seq = g."eventSeq"
           group by 1, 2, 3 order by 1, 2, 3
          on conflict (hour, event, outcome) do update set count = audit_counts.count + excluded.count
        )
        delete from audit_unsealed where event_seq in (select "eventSeq" from given)`.run(db);
    },
    async tidy() {
      await sql`vacuum audit_unsealed`.run(db);
    },
    async walkSeals(afterSeq, limit) {
      const rows = await sql<SealRow>`
        select s.event_id, e.id is not null as is_found, ${eventColumns}
          from audit_seals s left join audit_events e on e.id = s.event_id
         where s.seq > ${afterSeq} order by s.seq limit ${limit}`.all(db);
      return rows.map((row) => ({
        seal: { seq: row.sealSeq ?? 0, previousHash: row.previousHash ?? '', hash: row.hash ?? '' },
        eventId: row.eventId,
        event: row.isFound ? toAuditEvent(row) : null,
      }));
    },
    async walkEvents(afterSeq, limit) {
      const row = await sql<{ count: number; lastSeq: string | null; strayId: string | null }>`
        with page as (
          select seq, id from audit_events where seq > ${afterSeq}::text::bigint order by seq limit ${limit}
        )
        select count(*)::int as count, max(page.seq)::text as last_seq,
               (array_agg(page.id order by page.seq)
                  filter (where s.seq is null and u.event_seq is null))[1] as stray_id
          from page
          left join audit_seals s on s.event_id = page.id
          left join audit_unsealed u on u.event_seq = page.seq`.first(db);
      return { count: row?.count ?? 0, lastSeq: row?.lastSeq ?? null, strayId: row?.strayId ?? null };
    },
    async waiting() {
      const row = await sql<{ count: number; missingSeq: string | null }>`
        select count(*)::int as count,
               (min(u.event_seq) filter (where e.seq is null))::text as missing_seq
          from audit_unsealed u left join audit_events e on e.seq = u.event_seq`.first(db);
      return { count: row?.count ?? 0, missingSeq: row?.missingSeq ?? null };
    },
  };
}

type SealRow = EventRow & { eventId: string; isFound: boolean };
