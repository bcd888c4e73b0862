import { type Clock, day, hour, minute } from '../../core/clock.ts';
import { type Sql, sql } from '../../platform/database/sql.ts';
import { inBatches } from '../../platform/in-batches.ts';
import { type UsedFrom, usedFrom, type UseOrigin } from './used-from.ts';

/**
 * Usage counters of keys. Requests count in memory; a job writes the counts in batches, at most 30 s late. An orderly
 * stop loses nothing (contract 4: never a write on the request path).
 */
export const usageOutcomes = ['allowed', 'denied', 'limited', 'failed', 'dead'] as const;
export type UsageOutcome = (typeof usageOutcomes)[number];
export const usagePeriods = ['minute', 'hour', 'day'] as const;
export type UsagePeriod = (typeof usagePeriods)[number];

export type UsageCount = {
  keyId: string;
  per: UsagePeriod;
  bucket: number;
  outcome: UsageOutcome;
  count: number;
};
export type LastUse = { readonly keyId: string; readonly at: number; readonly from: UsedFrom };
export type UsagePoint = { readonly from: number; readonly counts: Readonly<Record<UsageOutcome, number>> };

export const periodMs: Readonly<Record<UsagePeriod, number>> = { minute, hour, day };
/** How long each resolution is kept. Also the longest range that a request may ask for. */
export const keptMs: Readonly<Record<UsagePeriod, number>> = {
  minute: 2 * day,
  hour: 32 * day,
  day: 400 * day,
};

export type UsageStore = {
  add(counts: readonly UsageCount[]): Promise<void>;
  setLastUsed(lastUsed: readonly LastUse[]): Promise<void>;
  read(keyId: string, per: UsagePeriod, from: number, to: number): Promise<UsagePoint[]>;
  /** The same for many keys at once; keys without any use are left out. */
  readMany(
    keyIds: readonly string[],
    per: UsagePeriod,
    from: number,
    to: number,
  ): Promise<ReadonlyMap<string, UsagePoint[]>>;
  /** The same over all keys. */
  readAll(per: UsagePeriod, from: number, to: number): Promise<UsagePoint[]>;
  prune(per: UsagePeriod, before: number): Promise<void>;
};

export function usageStore(db: Sql): UsageStore {
  async function readMany(keyIds: readonly string[], per: UsagePeriod, from: number, to: number) {
    const rows = await sql<UsageRow>`
      select key_id, bucket, outcome, count from api_key_usage
       where key_id in (select jsonb_array_elements_text(${JSON.stringify(keyIds)}::jsonb)) and per = ${per}
         and bucket >= ${new Date(from)} and bucket < ${new Date(to)}
       order by key_id, bucket`.all(db);
    const ofKeys = Map.groupBy(rows, ({ keyId }) => keyId);
    return new Map([...ofKeys].map(([keyId, own]) => [keyId, toPoints(own)]));
  }

  return {
    async add(counts) {
      if (counts.length === 0) return;
      // Sorted, so that two processes that write the same rows take the locks in one order.
      const rows = [...counts].sort((a, b) =>
        a.keyId + a.per + a.bucket < b.keyId + b.per + b.bucket ? -1 : 1,
      );
      await sql`
        insert into api_key_usage (key_id, per, bucket, outcome, count)
        select x.key_id, x.per, x.bucket, x.outcome, x.count
          from jsonb_to_recordset(${JSON.stringify(rows.map(toRow))}::jsonb)
               as x(key_id text, per text, bucket timestamptz, outcome text, count bigint)
          join api_keys k on k.id = x.key_id
        on conflict (key_id, per, bucket, outcome) do update set count = api_key_usage.count + excluded.count`.run(
        db,
      );
      await sql`
        insert into api_key_usage_totals (per, bucket, outcome, count)
        select x.per, x.bucket, x.outcome, sum(x.count)
          from jsonb_to_recordset(${JSON.stringify(rows.map(toRow))}::jsonb)
               as x(key_id text, per text, bucket timestamptz, outcome text, count bigint)
         group by 1, 2, 3 order by 1, 2, 3
        on conflict (per, bucket, outcome) do update set count = api_key_usage_totals.count + excluded.count`.run(
        db,
      );
    },
    async setLastUsed(lastUsed) {
      if (lastUsed.length === 0) return;
      const rows = [...lastUsed].sort((a, b) => (a.keyId < b.keyId ? -1 : 1));
      await sql`
        insert into api_key_last_used (key_id, last_used_at, network, program)
        select x.key_id, x.at, x.network, x.program
          from jsonb_to_recordset(${JSON.stringify(rows.map(toLastUseRow))}::jsonb)
               as x(key_id text, at timestamptz, network text, program text)
          join api_keys k on k.id = x.key_id
        on conflict (key_id) do update
           set last_used_at = excluded.last_used_at, network = excluded.network, program = excluded.program
         where api_key_last_used.last_used_at is null or api_key_last_used.last_used_at < excluded.last_used_at`.run(
        db,
      );
    },
    async read(keyId, per, from, to) {
      return (await readMany([keyId], per, from, to)).get(keyId) ?? [];
    },
    async readAll(per, from, to) {
      const rows = await sql<CountRow>`
        select bucket, outcome, count from api_key_usage_totals
         where per = ${per} and bucket >= ${new Date(from)} and bucket < ${new Date(to)} order by bucket`.all(
        db,
      );
      return toPoints(rows);
    },
    readMany,
    async prune(per, before) {
      await sql`delete from api_key_usage_totals where per = ${per} and bucket < ${new Date(before)}`.run(db);
      await inBatches(10_000, async (limit) => {
        return await sql`
          delete from api_key_usage where ctid in (
            select ctid from api_key_usage where per = ${per} and bucket < ${new Date(before)} limit ${limit})`.run(
          db,
        );
      });
    },
  };
}

type CountRow = { bucket: number; outcome: UsageOutcome; count: number };
type UsageRow = CountRow & { keyId: string };

function toPoints(rows: readonly CountRow[]): UsagePoint[] {
  const points = new Map<number, Record<UsageOutcome, number>>();
  for (const row of rows) {
    const counts = points.get(row.bucket) ?? { allowed: 0, denied: 0, limited: 0, failed: 0, dead: 0 };
    counts[row.outcome] += row.count;
    points.set(row.bucket, counts);
  }
  return [...points].map(([at, counts]) => ({ from: at, counts }));
}

function toRow({ keyId, per, bucket, outcome, count }: UsageCount) {
  return { key_id: keyId, per, bucket: new Date(bucket), outcome, count };
}

function toLastUseRow({ keyId, at, from }: LastUse) {
  return { key_id: keyId, at: new Date(at), ...from };
}

export type UsageMeter = {
  /** Synchronous and cheap, because it runs in every request. A check counts as a request but does not update the last use. */
  count(keyId: string, outcome: UsageOutcome, origin: UseOrigin, isCheck?: boolean): void;
  flush(): Promise<void>;
};

type Slot = {
  readonly keyId: string;
  readonly minute: number;
  readonly counts: Record<UsageOutcome, number>;
  lastUsedAt: number;
  /** The raw origin; network and program are derived from it only when the count is written. */
  origin: UseOrigin;
};

/** Enough for every key in a busy minute. Beyond it, the oldest counts are written early. */
const maxBuckets = 100_000;

export function createUsageMeter(deps: {
  write: (counts: readonly UsageCount[], lastUsed: readonly LastUse[]) => Promise<void>;
  clock: Clock;
}): UsageMeter {
  const { write, clock } = deps;
  let slots = new Map<string, Slot>();
  let finished: Slot[] = [];
  let flushing: Promise<void> = Promise.resolve();

  async function flushOnce(): Promise<void> {
    const batch = [...finished, ...slots.values()];
    finished = [];
    slots = new Map();
    if (batch.length === 0) return;
    try {
      await write(toCounts(batch), toLastUsed(batch));
    } catch (error) {
      // The next flush retries them. If the database stays unavailable, only the newest are kept, to bound memory.
      finished = [...batch, ...finished].slice(-maxBuckets);
      throw error;
    }
  }

  return {
    count(keyId, outcome, origin, isCheck = false) {
      const now = clock.now();
      const current = now - (now % minute);
      let slot = slots.get(keyId);
      if (slot === undefined || slot.minute !== current) {
        if (slot !== undefined) finished.push(slot);
        slot = {
          keyId,
          minute: current,
          lastUsedAt: 0,
          origin,
          counts: { allowed: 0, denied: 0, limited: 0, failed: 0, dead: 0 },
        };
        slots.set(keyId, slot);
      }
      slot.counts[outcome] += 1;
      if (outcome === 'dead' || isCheck) return;
      slot.lastUsedAt = now;
      slot.origin = origin;
    },
    flush() {
      flushing = flushing.catch(() => undefined).then(flushOnce);
      return flushing;
    },
  };
}

function toCounts(
  batch: readonly { keyId: string; minute: number; counts: Record<UsageOutcome, number> }[],
): UsageCount[] {
  const totals = new Map<string, UsageCount>();
  for (const slot of batch) {
    for (const outcome of usageOutcomes) {
      const count = slot.counts[outcome];
      if (count === 0) continue;
      for (const per of usagePeriods) {
        const bucket = slot.minute - (slot.minute % periodMs[per]);
        const id = `${slot.keyId} ${per} ${bucket} ${outcome}`;
        const total = totals.get(id);
        if (total === undefined) totals.set(id, { keyId: slot.keyId, per, bucket, outcome, count });
        else total.count += count;
      }
    }
  }
  return [...totals.values()];
}

function toLastUsed(batch: readonly Slot[]): LastUse[] {
  const latest = new Map<string, Slot>();
  for (const slot of batch) {
    if (slot.lastUsedAt > (latest.get(slot.keyId)?.lastUsedAt ?? 0)) latest.set(slot.keyId, slot);
  }
  return [...latest.values()].map(({ keyId, lastUsedAt, origin }) => ({
    keyId,
    at: lastUsedAt,
    from: usedFrom(origin),
  }));
}
