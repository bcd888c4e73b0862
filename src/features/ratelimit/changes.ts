import { AppError } from '../../core/errors.ts';
import { type RateLimiter, retryAfterSeconds } from './ratelimit.ts';

/**
 * Changes a person may ask for in any rolling 60 seconds, over all sessions, access tokens and processes. Far more
 * than anybody clicks, few enough that a loop cannot fill the tables and the trail.
 */
export const changesPerMinute = 120;

/** Counts one change asked for by a user; rejects with `rate_limited` when there were too many. */
export type ChangeLimit = (userId: string) => Promise<void>;

/** Counts where the requests of keys are counted, under a name of its own: neither budget spends the other's. */
export function createChangeLimit(deps: {
  limiter: Pick<RateLimiter, 'spend'>;
  perMinute?: number | undefined;
}): ChangeLimit {
  const limit = deps.perMinute ?? changesPerMinute;
  return async (userId) => {
    // No key asks, so there is no mark to read.
    const spend = await deps.limiter.spend({ owner: `changes:${userId}`, key: '', limit });
    if (spend.allowed) return;
    const wait = retryAfterSeconds(spend);
    throw new AppError('rate_limited', {
      message: 'You made too many changes.',
      hint: `A person may make ${limit} changes in any 60 seconds. Wait for the seconds in Retry-After, then try again. Reading, and revoking a key, go on meanwhile.`,
      retryAfterSeconds: wait,
      details: { limit, retryAfterSeconds: wait },
    });
  };
}
