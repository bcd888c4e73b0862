import type { Act } from '../../core/caller.ts';
import { type Clock, second, timestamp } from '../../core/clock.ts';
import type { Tx } from '../../platform/database/database.ts';
import { addressBucket } from '../ratelimit/ratelimit.ts';
import type { AuditEntry } from './audit.ts';
import type { AuditStore } from './audit-store.ts';

/**
 * Refusals on their way to the trail (contract 10.8, AU-02). record() never waits, fails or does I/O; equal
 * refusals become one event with a count; memory stays bounded however many come from however many addresses.
 */
export type Refusal = {
  readonly event:
    | 'auth.denied'
    | 'auth.throttled'
    | 'api_key.dead_use'
    | 'api_key.exposed'
    | 'site.grant_refused';
  /** An error code. */
  readonly reason: string;
  /** Who asked, as far as known, and from where. */
  readonly act: Act;
  /** The route's pattern, never the address that was typed; for the two key events the key's public id. */
  readonly target: AuditEntry['target'];
};

export type Denials = {
  record(refusal: Refusal): void;
  /** Writes what is due; `all`: everything, before the process ends. What could not be written is kept. */
  flush(options?: { all: boolean }): Promise<void>;
  /** How many different refusals are held in memory now. */
  held(): number;
};

type Bucket = {
  readonly refusal: Refusal;
  readonly firstAt: number;
  lastAt: number;
  count: number;
  /** Distinct addresses, the first five. */
  readonly addresses: string[];
  /** The last ten, so that who asks about one request of many finds it. */
  readonly requestIds: string[];
  readonly isFolded: boolean;
};

/** With a job every 5 seconds no refusal is written more than a minute late. */
const bucketMs = 55 * second;
const addressesShown = 5;
const requestsShown = 10;
const entriesPerTransaction = 500;

export function createDenials(deps: {
  clock: Clock;
  tx: Tx<{ audit: Pick<AuditStore, 'appendAll'> }>;
  /** Told how many refusals found no room at all. */
  onDropped: (count: number) => void;
  maxBuckets?: number;
}): Denials {
  const { clock, tx, onDropped } = deps;
  const maxBuckets = deps.maxBuckets ?? 10_000;
  // Three maps, so that a flood of one kind cannot push out another.
  const aboutKeys = new Map<string, Bucket>();
  const exact = new Map<string, Bucket>();
  const folded = new Map<string, Bucket>();
  let flushing: Promise<void> = Promise.resolve();

  function count(buckets: Map<string, Bucket>, id: string, max: number, refusal: Refusal): boolean {
    const bucket = buckets.get(id);
    if (bucket !== undefined) {
      bucket.count += 1;
      bucket.lastAt = clock.now();
      addAddress(bucket.addresses, refusal.act.origin.address);
      addRequest(bucket.requestIds, refusal.act.origin.requestId);
      return true;
    }
    if (buckets.size >= max) return false;
    buckets.set(id, openBucket(refusal, clock.now(), buckets === folded));
    return true;
  }

  /** Back where they came from, when the database refused them; newer refusals of the same kind may wait there. */
  function restore(buckets: Map<string, Bucket>, entries: readonly (readonly [string, Bucket])[]): void {
    for (const [id, bucket] of entries) {
      const newer = buckets.get(id);
      if (newer !== undefined) bucket.count += newer.count;
      if (newer !== undefined) bucket.lastAt = newer.lastAt;
      for (const address of newer?.addresses ?? []) addAddress(bucket.addresses, address);
      for (const requestId of newer?.requestIds ?? []) addRequest(bucket.requestIds, requestId);
      if (newer === undefined && buckets.size >= maxBuckets) onDropped(bucket.count);
      else buckets.set(id, bucket);
    }
  }

  async function flushMap(buckets: Map<string, Bucket>, all: boolean): Promise<void> {
    const due = [...buckets].filter(([, { firstAt }]) => all || clock.now() - firstAt >= bucketMs);
    for (let from = 0; from < due.length; from += entriesPerTransaction) {
      const entries = due.slice(from, from + entriesPerTransaction);
      for (const [id] of entries) buckets.delete(id);
      try {
        await tx(({ audit }) => audit.appendAll(entries.map(([, bucket]) => toEntry(bucket))));
      } catch (error) {
        restore(buckets, entries);
        throw error;
      }
    }
  }

  return {
    record(refusal) {
      const { event, reason, act, target } = refusal;
      if (event === 'api_key.dead_use' || event === 'api_key.exposed') {
        if (!count(aboutKeys, `${event} ${target.id}`, maxBuckets, refusal)) onDropped(1);
        return;
      }
      const who = act.actor.credential ?? act.actor.id ?? act.actor.kind;
      const what = `${event} ${reason} ${who}`;
      // One IPv6 customer has more addresses than there is room for, so what is throttled as one is counted as one.
      const from = addressBucket(act.origin.address);
      const where = `${target.kind} ${target.kind === 'address' ? from : target.id}`;
      if (count(exact, `${from} ${what} ${where}`, maxBuckets, refusal)) return;
      const foldedWhere = target.kind === 'address' ? 'address' : where;
      if (!count(folded, `${what} ${foldedWhere}`, Math.ceil(maxBuckets / 10), refusal)) onDropped(1);
    },
    async flush({ all } = { all: false }) {
      // One after another: the last flush at stop must also see what a failing one puts back.
      const run = flushing.then(async () => {
        for (const buckets of [aboutKeys, folded, exact]) await flushMap(buckets, all);
      });
      flushing = run.catch(() => undefined);
      await run;
    },
    held: () => aboutKeys.size + exact.size + folded.size,
  };
}

function openBucket(refusal: Refusal, now: number, isFolded: boolean): Bucket {
  const { origin } = refusal.act;
  const { target } = refusal;
  const kept: Refusal = {
    ...refusal,
    target: isFolded && target.kind === 'address' ? { kind: 'address', id: 'many' } : target,
    act: {
      actor: refusal.act.actor,
      origin: {
        requestId: origin.requestId,
        address: isFolded ? null : origin.address,
        agent: isFolded || origin.agent === null ? null : detached(origin.agent),
      },
    },
  };
  const addresses: string[] = [];
  addAddress(addresses, origin.address);
  const requestIds: string[] = [];
  addRequest(requestIds, origin.requestId);
  return { refusal: kept, firstAt: now, lastAt: now, count: 1, addresses, requestIds, isFolded };
}

function addAddress(addresses: string[], address: string | null): void {
  if (address === null || addresses.length >= addressesShown || addresses.includes(address)) return;
  addresses.push(detached(address));
}

function addRequest(requestIds: string[], requestId: string | null): void {
  if (requestId === null) return;
  requestIds.push(detached(requestId));
  if (requestIds.length > requestsShown) requestIds.shift();
}

/** A copy: a piece cut from a header would keep the whole header in memory. */
function detached(text: string): string {
  return Buffer.from(text).toString();
}

function toEntry({ refusal, firstAt, lastAt, count, addresses, requestIds, isFolded }: Bucket): AuditEntry {
  return {
    event: refusal.event,
    act: refusal.act,
    target: refusal.target,
    outcome: 'denied',
    reason: refusal.reason,
    details: {
      count,
      firstAt: timestamp(firstAt),
      lastAt: timestamp(lastAt),
      ...(addresses.length > 1 || isFolded ? { addresses } : {}),
      ...(requestIds.length > 1 ? { requestIds } : {}),
    },
  };
}
