import type { Caller } from '../../../core/caller.ts';
import { type Clock, minute, timestamp } from '../../../core/clock.ts';
import { AppError } from '../../../core/errors.ts';

/**
 * Whether the person proved who they are within `freshProofMinutes` of `/config/access`. What creates or widens access
 * requires that, so that a browser that was left open, or a stolen session, cannot create a key.
 */
export type FreshProof = {
  /** Null when the proof is fresh, or none is required. @throws `store_unavailable` while the setting cannot be read */
  refusal(caller: Caller): Promise<AppError | null>;
  /** When the proof of a session ends, in milliseconds; null when it has ended, and for other credentials. */
  until(caller: Caller): number | null;
};

export type FreshProofMinutes = {
  /** The stored setting; 0 = off. */
  readonly now: () => Promise<number>;
  /** What this process read last. */
  readonly last: () => number;
};

export function createFreshProof({
  minutes,
  uiOrigin,
  clock,
}: {
  readonly minutes: FreshProofMinutes;
  readonly uiOrigin: string;
  readonly clock: Clock;
}): FreshProof {
  function endOf(caller: Extract<Caller, { kind: 'session' }>, freshFor: number): number | null {
    if (freshFor === 0) return caller.expiresAt;
    if (caller.authenticatedAt === null) return null;
    const end = Math.min(caller.authenticatedAt + freshFor * minute, caller.expiresAt);
    return end > clock.now() ? end : null;
  }

  return {
    until: (caller) => (caller.kind === 'session' ? endOf(caller, minutes.last()) : null),
    async refusal(caller) {
      const freshFor = await minutes.now();
      if (freshFor === 0) return null;
      if (caller.kind !== 'session') return new AppError('fresh_authentication_required', byAccessToken);
      if (endOf(caller, freshFor) !== null) return null;
      const { authenticatedAt } = caller;
      const last = authenticatedAt === null ? 'at an unknown time' : `at ${timestamp(authenticatedAt)}`;
      return new AppError('fresh_authentication_required', {
        message: `This request needs a sign-in of the last ${freshFor} minutes. You last signed in ${last}.`,
        details: { url: `${uiOrigin}/auth/login?fresh=true` },
      });
    },
  };
}

const byAccessToken = {
  message: 'This request needs a fresh sign-in, which an access token cannot show.',
  hint: 'Make the change in the web app.',
};
