import type { Caller } from '../../../core/caller.ts';
import { type Clock, minute } from '../../../core/clock.ts';
import { AppError } from '../../../core/errors.ts';

/**
 * Whether the person proved a short time ago who they are. What creates or widens access needs that, so that a browser
 * that was left open, or a stolen session, cannot make itself a key.
 */
export type FreshProof = {
  /** @throws `fresh_authentication_required` */
  require(caller: Caller): void;
  /** When the proof of a session ends, in milliseconds; null when it has ended, and for other credentials. */
  until(caller: Caller): number | null;
};

export function createFreshProof({
  minutes,
  uiOrigin,
  clock,
}: {
  /** `freshProofMinutes` of `/config/access`. */
  readonly minutes: () => number;
  readonly uiOrigin: string;
  readonly clock: Clock;
}): FreshProof {
  function until(caller: Caller): number | null {
    if (caller.kind !== 'session') return null;
    if (minutes() === 0) return caller.expiresAt;
    if (caller.authenticatedAt === null) return null;
    const end = Math.min(caller.authenticatedAt + minutes() * minute, caller.expiresAt);
    return end > clock.now() ? end : null;
  }
  return {
    until,
    require(caller) {
      if (minutes() === 0 || until(caller) !== null) return;
      throw new AppError('fresh_authentication_required', {
        details: { url: `${uiOrigin}/auth/login?fresh=true` },
      });
    },
  };
}
