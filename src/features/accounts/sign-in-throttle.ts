import { type Clock, day, minute } from '../../core/clock.ts';
import { type Attempt, createThrottle } from '../../platform/throttle.ts';
import { addressBucket } from '../rate-limit/rate-limit.ts';
import { canonicalEmail } from './email.ts';

/**
 * Counts failed sign-ins in a sliding quarter of an hour, with three limits: a strict one for an account from one address,
 * a looser one for an account from anywhere, and one for an address over all accounts. Addresses are counted in the
 * buckets of the rate limiter.
 *
 * The second limit slows down an attacker with many addresses, but alone it would let the attacker lock the owner out. So
 * it does not apply to origins that the account knows (OWASP, "device cookies"; decision 0012), and their attempts do not
 * count towards it. These are a browser with the cookie of an earlier correct password (known-devices.ts), which has its
 * own counter instead, and an address from which a person signed in to this account within a day. Both stay within the
 * other two limits, so neither allows faster guessing than from one address.
 */
export type SignInThrottle = {
  /** `account`: the e-mail that was typed. `device`: the known device's name, null for any other browser. */
  attempt(account: string, address: string | null, device?: string | null): Attempt;
  /**
   * A recovery code, after the right password. It counts with the passwords from this address. No origin is known: who has the
   * password could make any number of them known. Only wrong codes count for the account, so that only they can block its codes.
   */
  attemptCode(account: string, address: string | null): Attempt;
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
  /** Maximum pairs of account and address; beyond it, the one with the oldest sign-in is dropped. */
  maxKnownAddresses?: number;
}): SignInThrottle {
  const throttle = createThrottle({ clock, windowMs: 15 * minute });
  /** The time of the last successful sign-in, by address and account; the oldest first. */
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
      const who = canonicalEmail(account);
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
    attemptCode(account, address) {
      const who = canonicalEmail(account);
      const from = addressBucket(address);
      return throttle.attempt([
        { name: `both:${from} ${who}`, limit: perAccountAndAddress },
        { name: `codes:${who}`, limit: perAccount },
        { name: `address:${from}`, limit: perAddress },
      ]);
    },
  };
}
