import { type Clock, day, minute } from '../../core/clock.ts';
import type { RequestOrigin } from '../../core/caller.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import type { Log } from '../../platform/log.ts';
import type { AuditWriter } from '../audit/audit.ts';
import { addressBucket } from '../ratelimit/ratelimit.ts';
import type { Origin, Refusal } from './admitting.ts';
import { readFields } from './records.ts';
import type { GrantSeal } from './seal.ts';

/**
 * What a gateway refuses, and the keys it meets where none may be, on the way to the audit trail: the gateway writes nothing
 * to the database, so it leaves the news in the key-value store, where a worker fetches them (contract 6: within 5
 * seconds). Equal refusals of a minute are one entry with a count.
 */
type Entry = {
  readonly reason: string;
  readonly siteId: string | null;
  /** Of a key that was seen; null for a refusal. Never the key. */
  readonly digest: string | null;
  readonly address: string | null;
  readonly agent: string | null;
  readonly count: number;
};

/** The store lists nothing, so there is a fixed number of places for what waits. */
const keys = Array.from({ length: 16 }, (_, place) => `gateway-news:${place}`);
const keptMs = day;
const mostHeld = 1_000;
const mostPerBatch = 200;
/** Values in one request that are passed on: who shows more of them makes them up. */
const mostKeysOfRequest = 5;
/** Waiting keys that came from one address, so that a flood of made-up ones leaves room for everybody else's. */
const mostKeysOfAddress = 50;

/** As they stand in a row of the store. */
const rowFields = ['reason', 'siteId', 'address', 'agent', 'count', 'digest'] as const;

export type GatewayNews = {
  /** Never waits and never fails. */
  note(refusal: Refusal, from: Origin): void;
  /** The same of keys in an address or a header, by the digests of their values. */
  noteKeys(digests: readonly string[], from: Origin): void;
  /** Leaves what is due in the store; what finds no place there is kept. `all`: repetitions too, before the process ends. */
  flush(options?: { all: boolean }): Promise<void>;
};

export function createGatewayNews(deps: {
  kv: Pick<Kv, 'setIfAbsent'>;
  seal: GrantSeal;
  clock: Clock;
}): GatewayNews {
  const { kv, seal, clock } = deps;
  const held = new Map<string, { entry: Entry; nextAt: number }>();
  /** By digest; each is told once, and forgotten. */
  const seenKeys = new Map<string, Entry>();
  const keysOfAddress = new Map<string, number>();

  /** What is to be told now: the first of its kind at once, its repetitions a minute later. */
  function due(now: number, all: boolean): string[] {
    const found: string[] = [];
    for (const [id, { entry, nextAt }] of held) {
      if (nextAt > now && !all) continue;
      if (entry.count === 0) held.delete(id);
      else if (found.length < mostPerBatch) found.push(id);
    }
    return found;
  }

  function count(id: string, first: Omit<Entry, 'count'>): void {
    const known = held.get(id);
    const entry = known?.entry ?? { ...first, count: 0 };
    held.set(id, { entry: { ...entry, count: entry.count + 1 }, nextAt: known?.nextAt ?? 0 });
  }

  return {
    note({ reason, siteId }, { address, agent }) {
      // A flood of addresses is one entry more, not one each.
      const exact = `${reason} ${siteId} ${addressBucket(address)}`;
      const isFolded = held.size >= mostHeld && !held.has(exact);
      if (isFolded)
        count(`${reason} many`, { reason, siteId: null, digest: null, address: null, agent: null });
      else count(exact, { reason, siteId, digest: null, address, agent: agentOf(agent) });
    },
    noteKeys(digests, { address, agent }) {
      const bucket = addressBucket(address);
      for (const digest of digests.slice(0, mostKeysOfRequest)) {
        const ofAddress = keysOfAddress.get(bucket) ?? 0;
        if (seenKeys.has(digest) || seenKeys.size >= mostHeld || ofAddress >= mostKeysOfAddress) continue;
        keysOfAddress.set(bucket, ofAddress + 1);
        const seen = {
          reason: 'credential_in_url',
          siteId: null,
          digest,
          address,
          agent: agentOf(agent),
          count: 1,
        };
        seenKeys.set(digest, seen);
      }
    },
    async flush({ all } = { all: false }) {
      if (!(await leaveKeys())) return;
      for (let ids = due(clock.now(), all); ids.length > 0; ids = all ? due(clock.now(), all) : []) {
        if (!(await leave(ids))) return;
      }
    },
  };

  /** The keys first: somebody is to revoke them. False when there is no place for them. */
  async function leaveKeys(): Promise<boolean> {
    while (seenKeys.size > 0) {
      const batch = [...seenKeys.values()].slice(0, mostPerBatch);
      if (!(await put(batch))) return false;
      for (const { digest } of batch) if (digest !== null) seenKeys.delete(digest);
    }
    keysOfAddress.clear();
    return true;
  }

  /** False when there is no place for it. */
  async function leave(ids: readonly string[]): Promise<boolean> {
    const entries = ids.flatMap((id) => held.get(id)?.entry ?? []);
    if (!(await put(entries))) return false;
    const nextAt = clock.now() + minute;
    for (const [index, id] of ids.entries()) {
      const left = entries[index];
      // What came meanwhile is told next time.
      const count = (held.get(id)?.entry.count ?? 0) - (left?.count ?? 0);
      if (left !== undefined) held.set(id, { entry: { ...left, count }, nextAt });
    }
    return true;
  }

  async function put(entries: readonly Entry[]): Promise<boolean> {
    const text = JSON.stringify([1, entries.map((entry) => rowFields.map((field) => entry[field]))]);
    for (const key of keys)
      if (await kv.setIfAbsent(key, seal.sign(key, text), { ttlMs: keptMs })) return true;
    return false;
  }
}

/** A copy: a piece cut from a header would keep the whole header in memory. */
function agentOf(agent: string | null): string | null {
  return agent === null ? null : Buffer.from(agent.slice(0, 200)).toString();
}

/** The worker's end: whatever lies in the store goes into the trail, and only then from the store. */
export function createNewsDesk(deps: {
  kv: Pick<Kv, 'getAll' | 'delete'>;
  seal: GrantSeal;
  tx: Tx<{ audit: AuditWriter }>;
  /** A gateway saw the value of this digest where no key may be. */
  seenKey: (digest: string, origin: RequestOrigin) => void;
  log: Log;
}): { run(): Promise<void> } {
  const { kv, seal, tx, seenKey, log } = deps;

  function read(key: string, value: string): Entry[] {
    const fields = readFields(seal, key, value, 2);
    if (!Array.isArray(fields?.[1])) {
      log.warn({ key }, 'what a gateway left for the audit trail cannot be read');
      return [];
    }
    // Signed by a gateway of ours, so it is what it wrote.
    const rows = fields[1] as (readonly [
      string,
      string | null,
      string | null,
      string | null,
      number,
      string | null,
    ])[];
    return rows.map(([reason, siteId, address, agent, count, digest]) => ({
      reason,
      siteId,
      address,
      agent,
      count,
      digest,
    }));
  }

  return {
    async run() {
      const { values } = await kv.getAll(keys);
      for (const [place, key] of keys.entries()) {
        const value = values[place];
        if (typeof value !== 'string') continue;
        const entries = read(key, value);
        for (const { digest, address, agent } of entries) {
          if (digest !== null) seenKey(digest, { requestId: null, address, agent });
        }
        await tx(async ({ audit }) => {
          for (const { reason, siteId, address, agent, count, digest } of entries) {
            if (digest !== null) continue;
            await audit.append({
              event: 'site.grant_refused',
              act: {
                actor: { kind: 'anonymous', id: null, name: null, credential: null },
                origin: { requestId: null, address, agent },
              },
              target: siteId === null ? { kind: 'route', id: 'gateway' } : { kind: 'site', id: siteId },
              outcome: 'denied',
              reason,
              details: { count },
            });
          }
        });
        await kv.delete(key);
      }
    },
  };
}
