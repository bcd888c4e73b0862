import { type Clock, minute } from '../../../core/clock.ts';
import { AppError } from '../../../core/errors.ts';
import { addressBucket } from '../../rate-limit/rate-limit.ts';
import { createThrottle } from '../../../platform/throttle.ts';

/**
 * The steps without a credential that store a row or can guess a secret: starting a sign-in, an authorization or a
 * device authorization, opening a page of the provider, entering a device code (RFC 8628 section 5.1), and presenting a
 * token or a client secret.
 */
export type AnonymousStep = 'login' | 'authorization' | 'device' | 'page' | 'device_code' | 'credential';

/** `succeed` undoes the count, because the step was not a guess. */
export type CountedStep = { succeed(): void };

/** Limits of one address in a minute; for device codes, in a quarter of an hour. */
function limitsAt(signIns: number): Readonly<Record<AnonymousStep, number>> {
  return {
    login: signIns,
    authorization: signIns,
    device: signIns,
    // A sign-in opens one page, connecting a device opens three.
    page: 2 * signIns,
    device_code: 30,
    // Correct ones are not counted, so this limits only failures.
    credential: 120,
  };
}

/** Counts one step of an address in this process; throws `rate_limited` above the limit. */
export function createSignInLimit({
  clock,
  signInsPerMinute,
}: {
  clock: Clock;
  /** What one address may start of each kind, in any 60 seconds (`/config/access`). */
  signInsPerMinute: () => number;
}) {
  const perMinute = createThrottle({ clock, windowMs: minute });
  const perQuarterHour = createThrottle({ clock, windowMs: 15 * minute });
  return (step: AnonymousStep, address: string | null): CountedStep => {
    const limit = limitsAt(signInsPerMinute())[step];
    const counter = { name: `${step} ${addressBucket(address)}`, limit };
    const throttle = step === 'device_code' ? perQuarterHour : perMinute;
    const attempt = throttle.attempt([counter]);
    if (attempt.kind === 'refused') {
      throw new AppError('rate_limited', { retryAfterSeconds: attempt.retryAfterSeconds });
    }
    return attempt;
  };
}
