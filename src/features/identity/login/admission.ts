import { type Clock, minute } from '../../../core/clock.ts';
import { AppError } from '../../../core/errors.ts';
import { addressBucket } from '../../ratelimit/ratelimit.ts';
import { createThrottle } from './throttle.ts';

/**
 * Steps anybody may take without a credential that store a row or guess a secret: the start of a sign-in, of an
 * authorization and of a device's, and a typed device code (RFC 8628 section 5.1).
 */
export type AnonymousStep = 'login' | 'authorization' | 'device' | 'device_code';

const startsPerMinute = 60;
const codesPerQuarterHour = 30;

/** Counts one step of an address, on this process; throws `rate_limited` when it takes too many. */
export function createAdmission({ clock }: { clock: Clock }) {
  const starts = createThrottle({ clock, windowMs: minute });
  const codes = createThrottle({ clock, windowMs: 15 * minute });
  return (step: AnonymousStep, address: string | null): void => {
    const name = `${step} ${addressBucket(address)}`;
    const attempt =
      step === 'device_code'
        ? codes.attempt([{ name, limit: codesPerQuarterHour }])
        : starts.attempt([{ name, limit: startsPerMinute }]);
    if (attempt.kind === 'refused') {
      throw new AppError('rate_limited', { retryAfterSeconds: attempt.retryAfterSeconds });
    }
  };
}
