import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { newId, type Random } from '../../core/ids.ts';
import { type Sql, sql, type Statement } from '../../platform/database/sql.ts';
import type {
  AuditEntry,
  AuditEvent,
  AuditFilter,
  AuditWriter,
  AuditPage,
  AuditPosition,
} from './audit-event.ts';
import { safeJson, safeText } from '../../core/safe-text.ts';

/** Writes and reads events. chain-store.ts has the chain over them. */
export type AuditStore = AuditWriter & {
  /** Several events in one statement, in the order given. */
  appendAll(entries: readonly AuditEntry[]): Promise<void>;
  find(id: string): Promise<AuditEvent | undefined>;
  /** Refusal events that include this request, newest first. */
  refusalsOf(requestId: string): Promise<AuditEvent[]>;
  /** The newest refusals of requests with these keys, newest first; `since` in milliseconds. */
  refusalsOfKeys(keyIds: readonly string[], since: number, limit: number): Promise<AuditEvent[]>;
  /** One page of the matching events after the position `after`, newest or oldest first. */
  page(
    filter: AuditFilter,
    order: 'newest' | 'oldest',
    after: AuditPosition | null,
    limit: number,
  ): Promise<AuditPage>;
};

export function auditStore(db: Sql, { clock, random }: { clock: Clock; random: Random }): AuditStore {
  /** A change must not commit without its event, whatever the reason: the request fails and the client can retry (AU-03). */
  async function appendAll(entries: readonly AuditEntry[]): Promise<void> {
    try {
      await insertAll(entries);
    } catch (error) {
      throw new AppError('store_unavailable', { cause: error });
    }
  }

  async function insertAll(entries: readonly AuditEntry[]): Promise<void> {
    const at = new Date(clock.now()).toISOString();
    const rows = entries.map((entry, ord) => ({ ord, id: newId(random, 'evt'), at, ...columnsOf(entry) }));
    await sql`
      with given as (
        select * from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as g(
          ord int, id text, at timestamptz(3), event text, actor_kind text, actor_id text, actor_name text,
          credential text, target_kind text, target_id text, outcome text, reason text, request_id text,
          address text, agent text, details jsonb, key_ids text[])
      ), added as (
        insert into audit_events (id, at, event, actor_kind, actor_id, actor_name, credential, target_kind,
               target_id, outcome, reason, request_id, address, agent, details, key_ids)
        select id, at, event, actor_kind, actor_id, actor_name, credential, target_kind,
               target_id, outcome, reason, request_id, address, agent, details, key_ids
          from given order by ord
        returning seq, at, key_ids
      ), queued as (
        insert into audit_unsealed (event_seq) select seq from added
      )
      insert into audit_event_keys (key_id, at, seq)
      select key_id, at, seq from added cross join unnest(key_ids) as key_id`.run(db);
  }

  return {
    append: (entry) => appendAll([entry]),
    appendAll: async (entries) => {
      if (entries.length > 0) await appendAll(entries);
    },
    async find(id) {
      const row = await sql<EventRow>`
        select ${eventColumns} from audit_events e left join audit_seals s on s.event_id = e.id
         where e.id = ${id}`.first(db);
      return row && toAuditEvent(row);
    },
    async refusalsOf(requestId) {
      const rows = await sql<EventRow>`
        select ${eventColumns} from audit_events e left join audit_seals s on s.event_id = e.id
         where e.outcome = 'denied' and e.seq in (
           ${ofRequest(requestId)})
         order by e.at desc, e.seq desc limit 20`.all(db);
      return rows.map(toAuditEvent);
    },
    async refusalsOfKeys(keyIds, since, limit) {
      // Read the newest events of each key by the index, then take the newest of all.
      const rows = await sql<EventRow>`
        select ${eventColumns}
          from (select f.at, f.seq
                  from jsonb_array_elements_text(${JSON.stringify(keyIds)}::jsonb) as o(key_id)
                 cross join lateral (
                   select k.at, k.seq from audit_event_keys k join audit_events x on x.seq = k.seq
                    where k.key_id = o.key_id and k.at >= ${new Date(since)}
                      and x.event in ('auth.denied', 'api_key.dead_use')
                    order by k.at desc, k.seq desc limit ${limit}) f
                 order by f.at desc, f.seq desc limit ${limit}) newest
          join audit_events e on e.seq = newest.seq left join audit_seals s on s.event_id = e.id
         order by e.at desc, e.seq desc`.all(db);
      return rows.map(toAuditEvent);
    },
    async page(filter, order, after, limit) {
      // The index that serves the filter is in order of time and insertion, so the database sorts nothing.
      const byKey = filter.keyId !== undefined;
      const place = byKey ? sql`k.at, k.seq` : sql`e.at, e.seq`;
      const direction = order === 'newest' ? sql`desc` : sql`asc`;
      const source = byKey
        ? sql`audit_event_keys k join audit_events e on e.seq = k.seq`
        : sql`audit_events e`;
      const rows = await sql<EventRow>`
        select ${eventColumns}
          from ${source} left join audit_seals s on s.event_id = e.id
         where ${sql.join([...conditions(filter), behind(after, order, place)], ' and ')}
         order by ${byKey ? sql`k.at` : sql`e.at`} ${direction}, ${byKey ? sql`k.seq` : sql`e.seq`} ${direction}
         limit ${limit + 1}`.all(db);
      const shown = rows.slice(0, limit);
      const last = shown.at(-1);
      return {
        events: shown.map(toAuditEvent),
        next: rows.length > limit && last ? { at: last.at, seq: last.seq } : null,
      };
    },
  };
}

function behind(after: AuditPosition | null, order: 'newest' | 'oldest', place: Statement): Statement {
  if (after === null) return sql`true`;
  const mark = sql`(${new Date(after.at)}::timestamptz, ${after.seq}::text::bigint)`;
  return order === 'newest' ? sql`(${place}) < ${mark}` : sql`(${place}) > ${mark}`;
}

/** Searches three indexes: when one event counts many requests, the column has only the first request id. */
function ofRequest(requestId: string): Statement {
  const counted = sql`details -> 'requestIds' @> ${JSON.stringify([requestId])}::jsonb`;
  return sql`
    select seq from audit_events where request_id = ${requestId}
    union
    select seq from audit_events where event = 'auth.denied' and ${counted}
    union
    select seq from audit_events where event = 'api_key.exchange_refused' and ${counted}`;
}

function conditions(filter: AuditFilter): Statement[] {
  const time = filter.keyId === undefined ? sql`e.at` : sql`k.at`;
  const all: Statement[] = [];
  if (filter.keyId !== undefined) all.push(sql`k.key_id = ${filter.keyId}`);
  if (filter.actor !== undefined) all.push(sql`coalesce(e.actor_id, e.actor_kind) = ${filter.actor}`);
  if (filter.event !== undefined) all.push(sql`e.event = ${filter.event}`);
  if (filter.target !== undefined) all.push(sql`e.target_id = ${filter.target}`);
  if (filter.outcome !== undefined) all.push(sql`e.outcome = ${filter.outcome}`);
  if (filter.requestId !== undefined) all.push(sql`e.seq in (${ofRequest(filter.requestId)})`);
  if (filter.from !== undefined) all.push(sql`${time} >= ${new Date(filter.from)}`);
  if (filter.to !== undefined) all.push(sql`${time} < ${new Date(filter.to)}`);
  return all;
}

/** Columns of `e` (audit_events) and `s` (audit_seals, may be missing). */
export const eventColumns = sql`
  e.seq::text as seq, e.id, e.at, e.event, e.actor_kind, e.actor_id, e.actor_name, e.credential, e.target_kind,
  e.target_id, e.outcome, e.reason, e.request_id, e.address, e.agent, e.details, e.key_ids,
  s.seq as seal_seq, encode(s.previous_hash, 'hex') as previous_hash, encode(s.hash, 'hex') as hash`;

export type EventRow = Omit<AuditEvent, 'actor' | 'target' | 'seal'> & {
  readonly seq: string;
  readonly actorKind: AuditEvent['actor']['kind'];
  readonly actorId: string | null;
  readonly actorName: string | null;
  readonly credential: string | null;
  readonly targetKind: string;
  readonly targetId: string;
  readonly sealSeq: number | null;
  readonly previousHash: string | null;
  readonly hash: string | null;
};

export function toAuditEvent(row: EventRow): AuditEvent {
  const { sealSeq, previousHash, hash } = row;
  return {
    id: row.id,
    at: row.at,
    event: row.event,
    actor: { kind: row.actorKind, id: row.actorId, name: row.actorName, credential: row.credential },
    target: { kind: row.targetKind, id: row.targetId },
    outcome: row.outcome,
    reason: row.reason,
    requestId: row.requestId,
    address: row.address,
    agent: row.agent,
    details: row.details,
    keyIds: row.keyIds,
    seal:
      sealSeq === null || previousHash === null || hash === null
        ? null
        : { seq: sealSeq, previousHash, hash },
  };
}

function columnsOf({ event, auditContext, target, outcome, reason, details, keyIds }: AuditEntry) {
  const { actor, origin } = auditContext;
  return {
    event,
    actor_kind: actor.kind,
    actor_id: safeOrNull(actor.id),
    actor_name: safeOrNull(actor.name),
    credential: safeOrNull(actor.credential),
    target_kind: target.kind,
    target_id: safeText(target.id),
    outcome,
    reason: safeOrNull(reason),
    request_id: safeOrNull(origin.requestId),
    address: safeOrNull(origin.address),
    agent: safeOrNull(origin.agent),
    details: safeJson(details ?? {}),
    key_ids: keysOf(auditContext.actor, target, keyIds ?? []),
  };
}

function safeOrNull(text: string | null | undefined): string | null {
  return text === null || text === undefined ? null : safeText(text);
}

/** Twelve characters of base62 are a key's public id; session and client ids have other shapes (contract 2). */
const keyIdShape = /^[0-9A-Za-z]{12}$/;

/** The keys whose timelines include the event: the target, the keys in `keyIds`, and the key that made the request. */
function keysOf(
  actor: AuditEntry['auditContext']['actor'],
  target: AuditEntry['target'],
  named: readonly string[],
): string[] {
  const ids = new Set(named.map(safeText));
  if (target.kind === 'api_key') ids.add(safeText(target.id));
  if (actor.credential !== null && keyIdShape.test(actor.credential)) ids.add(actor.credential);
  return [...ids];
}
