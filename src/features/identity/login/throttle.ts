import { type Clock, day, minute } from '../../../core/clock.ts';
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
 * account from anywhere, and for one address over all accounts. Addresses count in the buckets of the rate limiter.
 *
 * The account's own counter slows down a guesser with many addresses, and would let him lock the owner out. So it does
 * not hold for whom the account knows (OWASP, "device cookies"; decision 0012): a browser that brings the cookie of an
 * earlier right password (known-devices.ts), which has a counter of its own instead, and an address from which somebody
 * signed in rightly to this account within a day. Their tries do not count towards it either. Both stay within the
 * other two limits, so neither is a way to guess faster than from one address.
 */
export type SignInThrottle = {
  /** `account`: the e-mail that was typed. `device`: the known device's name, null for any other browser. */
  attempt(account: string, address: string | null, device?: string | null): Attempt;
};

const knownAddressMs = day;

export function createSignInThrottle({
  clock,
  perAccountAndAddress = 10,
  perAccount = 100,
  perAddress = 50,
  perDevice = 10,
  maxKnownAddresses = 50_000,
}: {
  clock: Clock;
  perAccountAndAddress?: number;
  perAccount?: number;
  perAddress?: number;
  perDevice?: number;
  /** Accounts with an address each; beyond it the one that signed in longest ago is forgotten. */
  maxKnownAddresses?: number;
}): SignInThrottle {
  const throttle = createThrottle({ clock, windowMs: 15 * minute });
  /** When somebody last signed in rightly, by address and account; the oldest first. */
  const knownSince = new Map<string, number>();

  function remember(both: string): void {
    knownSince.delete(both);
    knownSince.set(both, clock.now());
    for (const oldest of knownSince.keys()) {
      if (knownSince.size <= maxKnownAddresses) break;
      knownSince.delete(oldest);
    }
  }

  const isKnown = (both: string) =>
    (knownSince.get(both) ?? Number.NEGATIVE_INFINITY) > clock.now() - knownAddressMs;

  return {
    attempt(account, address, device = null) {
      const who = account.toLowerCase();
      const from = addressBucket(address);
      const both = `${from} ${who}`;
      const widest =
        device !== null
          ? [{ name: `device:${device}`, limit: perDevice }]
          : isKnown(both)
            ? []
            : [{ name: `account:${who}`, limit: perAccount }];
      const attempt = throttle.attempt([
        { name: `both:${both}`, limit: perAccountAndAddress },
        ...widest,
        { name: `address:${from}`, limit: perAddress },
      ]);
      if (attempt.kind === 'refused') return attempt;
      return {
        kind: 'allowed',
        succeed() {
          attempt.succeed();
          remember(both);
        },
      };
    },
  };
}
