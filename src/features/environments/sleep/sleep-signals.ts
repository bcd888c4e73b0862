import { createHash } from 'node:crypto';
import { keepLastUsed } from '../../../platform/last-used.ts';
import { type Clock, day, second } from '../../../core/clock.ts';
import type { Kv } from '../../../platform/kv/kv.ts';

/**
 * Signals from gateways to the worker through the key-value store: the last use of an Environment, and a request that waits for
 * a sleeping one. A lost signal lets an Environment fall asleep too early, or makes the gateway ask again.
 */
export type SleepSignals = {
  /** Call it on every use of the Environment; it writes at most every ten seconds. */
  used(environmentId: string): void;
  /** Times of last uses in ms, in the order of the ids. Null: unknown. Rejects with `store_unavailable`. */
  lastUses(environmentIds: readonly string[]): Promise<readonly (number | null)[]>;
  /** Call it until the Environment is awake: another one may overwrite the signal. Rejects with `store_unavailable`. */
  askToWake(environmentId: string): Promise<void>;
  /** IDs of Environments for which requests wait. Each is returned to one caller. Rejects with `store_unavailable`. */
  takeAsked(): Promise<string[]>;
};

const writtenEveryMs = 10 * second;
/** Longer than the policy allows a service to run unused. */
const useKeptMs = 31 * day;
const askedKeptMs = 5 * second;

/** A worker reads fixed keys, because it cannot list the keys of the store. */
const places = Array.from({ length: 32 }, (_, at) => `environment-wake:${at}`);

function placeOf(environmentId: string): string {
  const [first = 0] = createHash('sha256').update(environmentId).digest();
  return `environment-wake:${first % places.length}`;
}

const useOf = (environmentId: string) => `environment-use:${environmentId}`;

export function createSleepSignals({ kv, clock }: { readonly kv: Kv; readonly clock: Clock }): SleepSignals {
  const writtenAt = keepLastUsed<number>(10_000);
  return {
    used(id) {
      const now = clock.now();
      if (now - (writtenAt.get(id) ?? 0) < writtenEveryMs) return;
      writtenAt.set(id, now);
      void kv.set(useOf(id), String(now), { ttlMs: useKeptMs }).catch(() => writtenAt.delete(id));
    },
    async lastUses(ids) {
      if (ids.length === 0) return [];
      const { values } = await kv.getAll(ids.map(useOf));
      return values.map((value) => (value === null ? null : Number(value)));
    },
    async askToWake(id) {
      await kv.setIfAbsent(placeOf(id), id, { ttlMs: askedKeptMs });
    },
    async takeAsked() {
      const { values } = await kv.getAll(places);
      const filled = places.filter((_, at) => values[at] !== null);
      const taken = await Promise.all(filled.map((place) => kv.take(place)));
      return taken.filter((id) => id !== null);
    },
  };
}
