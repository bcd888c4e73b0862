import { actorOf, anonymous, type RequestOrigin } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import type { Denials } from '../../features/audit/denials.ts';
import type { KeyPolicies } from '../../features/keys/policy-document.ts';
import type { FailedAuth } from '../../features/rate-limit/rate-limit.ts';

/**
 * Counts a bad credential of an address, and returns the error that refuses it: `refusal`, a 401, or 429 once the address
 * has sent too many (contract 4). It uses the policy read last, because refusing garbage must cost no I/O, even while this
 * process misses changes.
 */
export type RefuseBadCredential = (origin: RequestOrigin, refusal?: AppError) => AppError;

// A flood consists of these two errors, so they are created once; an AppError is never changed.
const invalidCredential = new AppError('invalid_credential');
const throttled = new Map<number, AppError>();

/** `seconds` is at most the limiter's window, so the map stays small. */
function throttledFor(seconds: number): AppError {
  let error = throttled.get(seconds);
  if (error === undefined) {
    error = new AppError('rate_limited', {
      message: 'This address sent too many invalid credentials.',
      retryAfterSeconds: seconds,
    });
    throttled.set(seconds, error);
  }
  return error;
}

export function refusingBadCredentials({
  policies,
  failedAuth,
  denials,
}: {
  readonly policies: Pick<KeyPolicies, 'lastRead'>;
  readonly failedAuth: FailedAuth;
  readonly denials: Pick<Denials, 'record'>;
}): RefuseBadCredential {
  return (origin, refusal = invalidCredential) => {
    const { failedAuthenticationsPerMinute } = policies.lastRead();
    const failure = failedAuth.noteFailure(origin.address, failedAuthenticationsPerMinute);
    if (!failure.throttled) return refusal;
    if (failure.isNews) {
      denials.record({
        event: 'auth.throttled',
        reason: 'rate_limited',
        auditContext: { actor: actorOf(anonymous), origin },
        target: { kind: 'address', id: origin.address ?? 'unknown' },
      });
    }
    return throttledFor(failure.retryAfterSeconds);
  };
}
