import { type Clock, minute } from '../../../core/clock.ts';
import { addressBucket } from '../../ratelimit/ratelimit.ts';

/** A try is counted before it is made and given back when it was right, so parallel tries cannot slip through. */
export type Throttle = {
  /** `refused` with the whole seconds until the oldest try that counts leaves the window. Refused ones do not count. */
  attempt(counters: readonly { readonly name: string; readonly limit: number }[]): Attempt;
};

type Attempt = { kind: 'allowed'; succeed(): void } | { kind: 'refused'; retryAfterSeconds: number };

const maxTracked = 50_000;

/** Counts tries by name in a sliding window, on this process. */
export function createThrottle({ clock, windowMs }: { clock: Clock; windowMs: number }): Throttle {
  const tries = new Map<string, number[]>();

  function recent(name: string): number[] {
    const since = clock.now() - windowMs;
    const kept = (tries.get(name) ?? []).filter((at) => at > since);
    // Re-inserted, so that the map's first entries are those touched longest ago.
    tries.delete(name);
    if (kept.length > 0) tries.set(name, kept);
    return kept;
  }

  function add(name: string, at: number): void {
    const entry = [...recent(name), at];
    tries.delete(name);
    tries.set(name, entry);
    for (const oldest of tries.keys()) {
      if (tries.size <= maxTracked) break;
      tries.delete(oldest);
    }
  }

  function giveBack(name: string, at: number): void {
    const entry = tries.get(name);
    const index = entry?.indexOf(at) ?? -1;
    if (entry !== undefined && index >= 0) entry.splice(index, 1);
  }

  return {
    attempt(counters) {
      const now = clock.now();
      for (const { name, limit } of counters) {
        const past = recent(name);
        const oldest = past[past.length - limit];
        if (oldest !== undefined) {
          return {
            kind: 'refused',
            retryAfterSeconds: Math.max(1, Math.ceil((oldest + windowMs - now) / 1000)),
          };
        }
      }
      for (const { name } of counters) add(name, now);
      return {
        kind: 'allowed',
        succeed() {
          for (const { name } of counters) giveBack(name, now);
        },
      };
    },
  };
}

/**
 * Counts failed sign-ins in a sliding quarter of an hour: strictly for one account from one address, loosely for an
 * account from anywhere, so that a stranger's wrong passwords do not lock its owner out, and for one address over
 * all accounts. Addresses count in the buckets of the rate limiter.
 */
export type SignInThrottle = {
  attempt(account: string, address: string | null): Attempt;
};

export function createSignInThrottle({
  clock,
  perAccountAndAddress = 10,
  perAccount = 100,
  perAddress = 50,
}: {
  clock: Clock;
  perAccountAndAddress?: number;
  perAccount?: number;
  perAddress?: number;
}): SignInThrottle {
  const throttle = createThrottle({ clock, windowMs: 15 * minute });
  return {
    attempt(account, address) {
      const who = account.toLowerCase();
      const from = addressBucket(address);
      return throttle.attempt([
        { name: `both:${from} ${who}`, limit: perAccountAndAddress },
        { name: `account:${who}`, limit: perAccount },
        { name: `address:${from}`, limit: perAddress },
      ]);
    },
  };
}
