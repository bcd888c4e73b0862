import { type Clock, minute, second } from '../../core/clock.ts';
import { addressBucket } from './address.ts';
import { steadyClock } from './steady-clock.ts';
import { RollingWindow } from './window.ts';

/**
 * Throttles guessing (contract 4): an address that sent too many bad credentials in the last 60 seconds gets 429 for
 * further bad ones. Only failures are counted and asked about, so a valid key from the same address never notices.
 * In this process's memory, no I/O: garbage costs no database and no key-value call.
 */
export type FailedAuth = {
  /**
   * Counts one bad credential. `limit`: failures in any rolling 60 seconds, by the policy. A throttled one is not
   * counted, so an address is let try again as the minute rolls on.
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

/** A guesser needs no finer slots than one second, and an address then costs at most 61 of them. */
const slotMs = second;

type Address = { readonly failures: RollingWindow; newsAgainAt: number };

/**
 * Remembers at most `maxAddresses`, in two generations: when the recent one is full it becomes the older one, and what
 * was older and not seen since goes. So an address is forgotten only after half of `maxAddresses` others failed too.
 * (Not one Map in order of use: deleting and adding one busy address leaves tombstones that make each look-up slower.)
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
