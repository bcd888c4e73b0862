import { type Clock, minute, second } from '../../core/clock.ts';
import { addressBucket } from './address.ts';
import { steadyClock } from './steady-clock.ts';
import { RollingWindow } from './rolling-window.ts';

/**
 * Throttles guessing (contract 4): an address that sent too many bad credentials in the last 60 seconds gets 429 for
 * further bad ones. Only failures are counted and throttled, so a valid key from the same address is not affected.
 * Counts in this process's memory, so an invalid credential costs no call to the database or the key-value store.
 */
export type FailedAuth = {
  /**
   * Counts one bad credential. `limit`: failures in any rolling 60 seconds, from the policy. A throttled attempt is not
   * counted, so the address may try again as the 60 seconds pass.
   */
  noteFailure(address: string | null, limit: number): Failure;
};

export type Failure = {
  readonly throttled: boolean;
  /** Whole seconds, at least 1 when throttled, otherwise 0. */
  readonly retryAfterSeconds: number;
  /** True for an address's first throttled attempt, and then at most once a minute: time to record auth.throttled. */
  readonly isNews: boolean;
};

const counted: Failure = { throttled: false, retryAfterSeconds: 0, isNews: false };

/** Slots of one second are fine enough to limit guessing, and one address then needs at most 61 of them. */
const slotMs = second;

type Address = { readonly failures: RollingWindow; newsAgainAt: number };

/**
 * Stores at most `maxAddresses`, in two generations. When the recent generation is full it becomes the older one, and the
 * previous older one is dropped. So an address is dropped only after half of `maxAddresses` others have failed too.
 * (Not one Map in order of use: deleting and adding a busy address leaves tombstones that make each look-up slower.)
 */
export function createFailedAuth(deps: { clock: Clock; maxAddresses?: number }): FailedAuth {
  const clock = steadyClock(deps.clock);
  const generationSize = Math.ceil((deps.maxAddresses ?? 20_000) / 2);
  let recent = new Map<string, Address>();
  let older = new Map<string, Address>();

  function seen(bucket: string, now: number): Address {
    const known = recent.get(bucket);
    if (known !== undefined) return known;
    const address = older.get(bucket) ?? { failures: new RollingWindow(now, slotMs), newsAgainAt: now };
    if (recent.size >= generationSize) {
      older = recent;
      recent = new Map();
    }
    recent.set(bucket, address);
    return address;
  }

  return {
    noteFailure(from, limit) {
      const now = clock.now();
      const address = seen(addressBucket(from), now);
      if (address.failures.spend(now, limit)) return counted;
      const isNews = now >= address.newsAgainAt;
      if (isNews) address.newsAgainAt = now + minute;
      const waitMs = address.failures.retryAfterMs(now, limit);
      return { throttled: true, retryAfterSeconds: Math.ceil(waitMs / second), isNews };
    },
  };
}
