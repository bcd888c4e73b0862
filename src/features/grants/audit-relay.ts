import { safeAgent } from '../../core/safe-text.ts';
import { type Clock, day, minute } from '../../core/clock.ts';
import type { RequestOrigin } from '../../core/caller.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import type { Log } from '../../platform/log.ts';
import type { AuditWriter } from '../audit/audit.ts';
import { addressBucket } from '../rate-limit/rate-limit.ts';
import type { Origin, Refusal } from './gateway-grants.ts';
import { environmentGrants, type GrantKind, siteGrants } from './grant-kind.ts';
import { readFields } from './records.ts';
import type { GrantSigner } from './grant-signer.ts';

/**
 * Relays to the audit log what a gateway refuses, and the keys it finds where no key may be. The gateway writes nothing
 * to the database, so it leaves its entries in the key-value store. A worker fetches them (contract 6: within 5
 * seconds). Equal refusals within a minute become one entry with a count.
 */
type Entry = {
  readonly kind: GrantKind['name'];
  readonly reason: string;
  readonly targetId: string | null;
  /** The digest of an exposed key, never the key; null for a refusal. */
  readonly digest: string | null;
  readonly address: string | null;
  readonly agent: string | null;
  readonly count: number;
};

/** The key-value store cannot list its keys, so waiting entries take a fixed number of slots. */
const keys = Array.from({ length: 16 }, (_, place) => `gateway-news:${place}`);
const keptMs = day;
const maxHeld = 1_000;
const maxPerBatch = 200;
/** Number of keys in one request that are reported: a client that sends more is making them up. */
const maxKeysOfRequest = 5;
/** Number of waiting keys from one address, so that a flood of made-up keys leaves room for keys from other addresses. */
const maxKeysOfAddress = 50;

/** In the order of a row in the store. */
const rowFields = ['reason', 'targetId', 'address', 'agent', 'count', 'digest', 'kind'] as const;

export type AuditRelay = {
  /** Returns immediately and never fails. */
  note(kind: GrantKind['name'], refusal: Refusal, from: Origin): void;
  /** Notes keys in an address or a header, by the digests of their values. */
  noteKeys(digests: readonly string[], from: Origin): void;
  /**
   * Writes due entries to the store; entries without a free slot stay in memory. `all`: also repetitions, before the
   * process ends.
   */
  flush(options?: { all: boolean }): Promise<void>;
};

export function createAuditRelay(deps: {
  kv: Pick<Kv, 'setIfAbsent'>;
  signer: GrantSigner;
  clock: Clock;
}): AuditRelay {
  const { kv, signer, clock } = deps;
  const held = new Map<string, { entry: Entry; nextAt: number }>();
  /** By digest; each key is reported once, then forgotten. */
  const seenKeys = new Map<string, Entry>();
  const keysOfAddress = new Map<string, number>();

  /** The entries to report now: the first of its kind immediately, its repetitions a minute later. */
  function due(now: number, all: boolean): string[] {
    const found: string[] = [];
    for (const [id, { entry, nextAt }] of held) {
      if (nextAt > now && !all) continue;
      if (entry.count === 0) held.delete(id);
      else if (found.length < maxPerBatch) found.push(id);
    }
    return found;
  }

  function count(id: string, first: Omit<Entry, 'count'>): void {
    const known = held.get(id);
    const entry = known?.entry ?? { ...first, count: 0 };
    held.set(id, { entry: { ...entry, count: entry.count + 1 }, nextAt: known?.nextAt ?? 0 });
  }

  return {
    note(kind, { reason, targetId }, { address, agent }) {
      // Beyond the limit, a flood of addresses adds one entry, not one for each address.
      const exact = `${kind} ${reason} ${targetId} ${addressBucket(address)}`;
      const isFolded = held.size >= maxHeld && !held.has(exact);
      if (isFolded)
        count(`${kind} ${reason} many`, {
          kind,
          reason,
          targetId: null,
          digest: null,
          address: null,
          agent: null,
        });
      else count(exact, { kind, reason, targetId, digest: null, address, agent: safeAgent(agent) });
    },
    noteKeys(digests, { address, agent }) {
      const bucket = addressBucket(address);
      for (const digest of digests.slice(0, maxKeysOfRequest)) {
        const ofAddress = keysOfAddress.get(bucket) ?? 0;
        if (seenKeys.has(digest) || seenKeys.size >= maxHeld || ofAddress >= maxKeysOfAddress) continue;
        keysOfAddress.set(bucket, ofAddress + 1);
        const seen = {
          kind: 'site' as const,
          reason: 'credential_in_url',
          targetId: null,
          digest,
          address,
          agent: safeAgent(agent),
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

  /** Keys go first, because a person must revoke them. False when no slot is free. */
  async function leaveKeys(): Promise<boolean> {
    while (seenKeys.size > 0) {
      const batch = [...seenKeys.values()].slice(0, maxPerBatch);
      if (!(await put(batch))) return false;
      for (const { digest } of batch) if (digest !== null) seenKeys.delete(digest);
    }
    keysOfAddress.clear();
    return true;
  }

  /** False when no slot is free. */
  async function leave(ids: readonly string[]): Promise<boolean> {
    const entries = ids.flatMap((id) => held.get(id)?.entry ?? []);
    if (!(await put(entries))) return false;
    const nextAt = clock.now() + minute;
    for (const [index, id] of ids.entries()) {
      const left = entries[index];
      // Refusals that arrived meanwhile are reported next time.
      const count = (held.get(id)?.entry.count ?? 0) - (left?.count ?? 0);
      if (left !== undefined) held.set(id, { entry: { ...left, count }, nextAt });
    }
    return true;
  }

  async function put(entries: readonly Entry[]): Promise<boolean> {
    const text = JSON.stringify([1, entries.map((entry) => rowFields.map((field) => entry[field]))]);
    for (const key of keys)
      if (await kv.setIfAbsent(key, signer.sign(key, text), { ttlMs: keptMs })) return true;
    return false;
  }
}

/** The worker's side: writes the stored entries to the audit log, and only then deletes them from the store. */
export function createAuditRelayReader(deps: {
  kv: Pick<Kv, 'getAll' | 'delete'>;
  signer: GrantSigner;
  tx: Tx<{ audit: AuditWriter }>;
  /** Called when a gateway found a key with this digest where no key may be. */
  seenKey: (digest: string, origin: RequestOrigin) => void;
  log: Log;
}): { run(): Promise<void> } {
  const { kv, signer, tx, seenKey, log } = deps;

  function read(key: string, value: string): Entry[] {
    const fields = readFields(signer, key, value, 2);
    if (!Array.isArray(fields?.[1])) {
      log.warn({ key }, 'cannot read audit events that a gateway relayed');
      return [];
    }
    // A gateway of this installation signed the rows, so they have the shape that it writes. One of an earlier release
    // writes no kind.
    const rows = fields[1] as (readonly [
      string,
      string | null,
      string | null,
      string | null,
      number,
      string | null,
      GrantKind['name']?,
    ])[];
    return rows.map(([reason, targetId, address, agent, count, digest, kind = 'site']) => ({
      kind,
      reason,
      targetId,
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
          for (const { kind, reason, targetId, address, agent, count, digest } of entries) {
            if (digest !== null) continue;
            await audit.append({
              event: kind === 'site' ? siteGrants.refusedEvent : environmentGrants.refusedEvent,
              auditContext: {
                actor: { kind: 'anonymous', id: null, name: null, credential: null },
                origin: { requestId: null, address, agent },
              },
              target: targetId === null ? { kind: 'route', id: 'gateway' } : { kind, id: targetId },
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
