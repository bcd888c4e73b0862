import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import type { LiveKey } from '../../features/keys/verifier.ts';
import type { ChangeLimit } from '../../features/rate-limit/change-limit.ts';
import { type RateLimiter, resetSeconds } from '../../features/rate-limit/rate-limit.ts';
import type { RequestBudget } from '../../platform/http.ts';
import type { KeyUse } from './authentication.ts';

/** The two rate limits of a request (contract 5): requests by the owner of a key, and changes by a person. */
export type RequestLimits = {
  /**
   * Sets the rate-limit headers of a request with a key. The charge was made during authentication, with the stamp.
   * @throws `rate_limited`
   */
  limitKey(request: FastifyRequest, reply: FastifyReply): void;
  /** Counts a change by a person. Keys have a separate limit. Rejects with `rate_limited`. */
  limitChange(caller: Caller): Promise<void>;
};

export function createRequestLimits(deps: {
  readonly limiter: Pick<RateLimiter, 'headers'>;
  readonly changes: ChangeLimit;
}): RequestLimits {
  return {
    limitKey({ keyUse }, reply) {
      if (keyUse === null) return;
      const { spend, limit, live, at } = keyUse;
      reply.headers(deps.limiter.headers(limit, spend));
      warnOfExpiry(live, reply, at);
      if (spend.allowed) return;
      const retryAfterSeconds = resetSeconds(spend);
      throw new AppError('rate_limited', {
        message: `Too many requests: the keys of this owner may make ${limit} in any 60 seconds.`,
        retryAfterSeconds,
        details: { limit, retryAfterSeconds },
      });
    },
    async limitChange(caller) {
      if (caller.kind === 'session' || caller.kind === 'access_token') await deps.changes(caller.user.id);
    },
  };
}

/** What remains of the owner's rate limit after the request. */
export function budgetOf(use: KeyUse | null): RequestBudget | null {
  if (use === null) return null;
  return { limit: use.limit, remaining: use.spend.remaining, resetSeconds: resetSeconds(use.spend) };
}

const warnedForMs = 7 * 86_400_000;

/** In its last seven days, a key's responses state when it expires (contract 10.14). */
function warnOfExpiry({ key }: LiveKey, reply: FastifyReply, now: number): void {
  if (key.expiresAt !== null && key.expiresAt - now <= warnedForMs) {
    reply.header('postern-key-expires-at', new Date(key.expiresAt).toISOString());
  }
}
