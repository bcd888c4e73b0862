import { AppError } from '../../core/errors.ts';
import { type RateLimiter, retryAfterSeconds } from './rate-limit.ts';

/**
 * Changes that a person may request in any rolling 60 seconds, over all sessions, access tokens and processes. Far more
 * than a person can click, and few enough that a loop cannot fill the tables and the audit log.
 */
export const changesPerMinute = 120;

/** Counts one change requested by a user; rejects with `rate_limited` above the limit. */
export type ChangeLimit = (userId: string) => Promise<void>;

/** Counts with the limiter of key requests, but under a separate owner name, so that the two budgets are independent. */
export function createChangeLimit(deps: {
  limiter: Pick<RateLimiter, 'spend'>;
  perMinute?: number | undefined;
}): ChangeLimit {
  const limit = deps.perMinute ?? changesPerMinute;
  return async (userId) => {
    // The caller is not a key, so there is no revocation stamp to read.
    const spend = await deps.limiter.spend({ owner: `changes:${userId}`, key: '', limit });
    if (spend.allowed) return;
    const wait = retryAfterSeconds(spend);
    throw new AppError('rate_limited', {
      message: 'You made too many changes.',
      hint: `A person may make ${limit} changes in any 60 seconds. Wait the number of seconds in Retry-After, then try again. You can still read, and revoke keys.`,
      retryAfterSeconds: wait,
      details: { limit, retryAfterSeconds: wait },
    });
  };
}
