import { type Clock, minute } from '../../../core/clock.ts';
import { AppError } from '../../../core/errors.ts';
import { addressBucket } from '../../ratelimit/ratelimit.ts';
import { createThrottle } from './throttle.ts';

/**
 * Steps anybody may take without a credential that store a row or guess a secret: the start of a sign-in, of an
 * authorization and of a device's, a page of the provider, a typed device code (RFC 8628 section 5.1), and a token or
 * a client's secret that is tried.
 */
export type AnonymousStep = 'login' | 'authorization' | 'device' | 'page' | 'device_code' | 'credential';

/** `succeed` gives the step back: it was no guess. */
export type Admitted = { succeed(): void };

/** For one address in a minute; of device codes in a quarter of an hour. */
const limits: Readonly<Record<AnonymousStep, number>> = {
  login: 60,
  authorization: 60,
  device: 60,
  // A sign-in comes back to one of them, connecting a device to three.
  page: 120,
  device_code: 30,
  // Those that were right are given back, so only failures count.
  credential: 120,
};

/** Counts one step of an address, on this process; throws `rate_limited` when it takes too many. */
export function createAdmission({ clock }: { clock: Clock }) {
  const perMinute = createThrottle({ clock, windowMs: minute });
  const perQuarterHour = createThrottle({ clock, windowMs: 15 * minute });
  return (step: AnonymousStep, address: string | null): Admitted => {
    const counter = { name: `${step} ${addressBucket(address)}`, limit: limits[step] };
    const throttle = step === 'device_code' ? perQuarterHour : perMinute;
    const attempt = throttle.attempt([counter]);
    if (attempt.kind === 'refused') {
      throw new AppError('rate_limited', { retryAfterSeconds: attempt.retryAfterSeconds });
    }
    return attempt;
  };
}
