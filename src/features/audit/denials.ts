import type { AuditContext } from '../../core/caller.ts';
import { type Clock, minute, timestamp } from '../../core/clock.ts';
import type { Tx } from '../../platform/database/database.ts';
import { addressBucket } from '../rate-limit/rate-limit.ts';
import type { AuditEntry } from './audit-event.ts';
import type { AuditStore } from './audit-store.ts';

/**
 * Collects refusals and writes them to the audit log (contract 10.8, AU-02). record() never waits, fails or does I/O. The next
 * flush writes the first refusal of a kind; equal ones that follow become one event a minute with a count. Memory stays
 * bounded, however many refusals and addresses there are.
 */
export type Refusal = {
  readonly event:
    | 'auth.denied'
    | 'auth.throttled'
    | 'user.passkey_refused'
    | 'api_key.dead_use'
    | 'api_key.exposed'
    | 'api_key.exchange_refused'
    | 'site.grant_refused'
    | 'environment.grant_refused';
  /** An error code, or a fixed word for the cause, such as `wrong_password` or `credential_in_url`. */
  readonly reason: string;
  /** The caller, as far as known, and the origin of the request. */
  readonly auditContext: AuditContext;
  /** The route's pattern, never the requested URL; for the events of keys, the key's public id. */
  readonly target: AuditEntry['target'];
};

export type Denials = {
  record(refusal: Refusal): void;
  /** Writes the refusals that are due; `all`: all of them, before the process ends. Keeps those that it could not write. */
  flush(options?: { all: boolean }): Promise<void>;
  /** How many different refusals are held in memory now. */
  held(): number;
};

type Bucket = {
  readonly refusal: Refusal;
  /** The first refusal of a kind is due immediately, later ones after a minute. */
  readonly dueAt: number;
  readonly firstAt: number;
  lastAt: number;
  /** 0: no refusal since the last event was written. */
  count: number;
  /** Distinct addresses, the first five. */
  readonly addresses: string[];
  /** The last ten, so that one of many equal requests can be found by its id. */
  readonly requestIds: string[];
  readonly isFolded: boolean;
};

const addressesShown = 5;
const requestsShown = 10;
const entriesPerTransaction = 500;

export function createDenials(deps: {
  clock: Clock;
  tx: Tx<{ audit: Pick<AuditStore, 'appendAll'> }>;
  /** Called with the number of refusals that were dropped because memory was full. */
  onDropped: (count: number) => void;
  maxBuckets?: number;
}): Denials {
  const { clock, tx, onDropped } = deps;
  const maxBuckets = deps.maxBuckets ?? 10_000;
  // Three maps, so that a flood of one kind cannot displace another.
  const aboutKeys = new Map<string, Bucket>();
  const exact = new Map<string, Bucket>();
  const folded = new Map<string, Bucket>();
  let flushing: Promise<void> = Promise.resolve();

  function count(buckets: Map<string, Bucket>, id: string, max: number, refusal: Refusal): boolean {
    const bucket = buckets.get(id);
    if (bucket !== undefined && bucket.count > 0) {
      bucket.count += 1;
      bucket.lastAt = clock.now();
      addAddress(bucket.addresses, refusal.auditContext.origin.address);
      addRequest(bucket.requestIds, refusal.auditContext.origin.requestId);
      return true;
    }
    if (bucket === undefined && buckets.size >= max) return false;
    const now = clock.now();
    const opened = openBucket(refusal, now, buckets === folded);
    buckets.set(id, { ...opened, dueAt: bucket?.dueAt ?? now });
    return true;
  }

  /** Puts entries back after a failed write, and merges them with newer refusals of the same kind. */
  function restore(buckets: Map<string, Bucket>, entries: readonly (readonly [string, Bucket])[]): void {
    for (const [id, bucket] of entries) {
      const newer = buckets.get(id);
      if (newer !== undefined && newer.count > 0) {
        bucket.count += newer.count;
        bucket.lastAt = newer.lastAt;
        for (const address of newer.addresses) addAddress(bucket.addresses, address);
        for (const requestId of newer.requestIds) addRequest(bucket.requestIds, requestId);
      }
      buckets.set(id, bucket);
    }
  }

  async function flushMap(buckets: Map<string, Bucket>, all: boolean): Promise<void> {
    const now = clock.now();
    for (const [id, { count: since, dueAt }] of buckets) if (since === 0 && dueAt <= now) buckets.delete(id);
    const due = [...buckets].filter(([, { count: since, dueAt }]) => since > 0 && (all || dueAt <= now));
    for (let from = 0; from < due.length; from += entriesPerTransaction) {
      const entries = due.slice(from, from + entriesPerTransaction);
      // Keep the entry for a minute, so that later refusals of this kind are counted.
      for (const [id, bucket] of entries) buckets.set(id, { ...bucket, count: 0, dueAt: now + minute });
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
      const { event, reason, auditContext, target } = refusal;
      if (event === 'api_key.dead_use' || event === 'api_key.exposed') {
        if (!count(aboutKeys, `${event} ${target.id}`, maxBuckets, refusal)) onDropped(1);
        return;
      }
      const who = auditContext.actor.credential ?? auditContext.actor.id ?? auditContext.actor.kind;
      const what = `${event} ${reason} ${who}`;
      // One IPv6 customer has more addresses than fit in memory, so count by the same bucket as the rate limiter.
      const from = addressBucket(auditContext.origin.address);
      const where = `${target.kind} ${target.kind === 'address' ? from : target.id}`;
      if (count(exact, `${from} ${what} ${where}`, maxBuckets, refusal)) return;
      const foldedWhere = isOpenEnded(refusal) ? target.kind : where;
      if (!count(folded, `${what} ${foldedWhere}`, Math.ceil(maxBuckets / 10), refusal)) onDropped(1);
    },
    async flush({ all } = { all: false }) {
      // Run flushes one after another: the last flush at stop must also write what a failed one put back.
      const run = flushing.then(async () => {
        for (const buckets of [aboutKeys, folded, exact]) await flushMap(buckets, all);
      });
      flushing = run.catch(() => undefined);
      await run;
    },
    held: () =>
      [aboutKeys, exact, folded].reduce(
        (sum, buckets) => sum + [...buckets.values()].filter(({ count: since }) => since > 0).length,
        0,
      ),
  };
}

/** Whether a sender can choose the target among more than fit in memory. */
function isOpenEnded({ event, target }: Refusal): boolean {
  return target.kind === 'address' || event === 'api_key.exchange_refused';
}

function openBucket(refusal: Refusal, now: number, isFolded: boolean): Bucket {
  const { origin } = refusal.auditContext;
  const { target } = refusal;
  const kept: Refusal = {
    ...refusal,
    target: isFolded && isOpenEnded(refusal) ? { kind: target.kind, id: 'many' } : target,
    auditContext: {
      actor: refusal.auditContext.actor,
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
  return { refusal: kept, dueAt: now, firstAt: now, lastAt: now, count: 1, addresses, requestIds, isFolded };
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

/** Copies the text: a substring of a header would keep the whole header in memory. */
function detached(text: string): string {
  return Buffer.from(text).toString();
}

function toEntry({ refusal, firstAt, lastAt, count, addresses, requestIds, isFolded }: Bucket): AuditEntry {
  return {
    event: refusal.event,
    auditContext: refusal.auditContext,
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
