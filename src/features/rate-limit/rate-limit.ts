import { type Clock, second } from '../../core/clock.ts';
import { type Random, randomBase62 } from '../../core/ids.ts';
import {
  type Budget,
  type LimitSource,
  type LocalSource,
  type Spend,
  type SpendRequest,
  unknownStamp,
} from './source.ts';
import { steadyClock } from './steady-clock.ts';
import { windowMs } from './rolling-window.ts';

/**
 * Limits how many requests the keys of one owner may send in any 60 seconds (contract 4). The API calls `spend` once for
 * each request with a key. The limit holds over all processes together, because they count in Redis; a single process counts
 * in memory. While Redis does not answer, each process counts alone with the same limit, and no request fails for it. The
 * caller chooses the limit and sends the 429. `spend` also returns the key's revocation stamp, read in the same round trip.
 */
export { addressBucket } from './address.ts';
export { createFailedAuth, type FailedAuth } from './failed-auth.ts';
export { memorySource } from './memory-source.ts';
export { redisSource } from './redis-source.ts';
export type { Budget, LimitSource, LocalSource, Spend, SpendRequest } from './source.ts';
export { withUnknownStamps } from './source.ts';

export type RateLimiter = {
  /** Never rejects. `stamp` is unknown exactly when this process applied the limit without the shared source. */
  spend(request: SpendRequest): Spend | Promise<Spend>;
  /** The owner's remaining budget, without spending. */
  peek(owner: string, limit: number): Budget | Promise<Budget>;
  /**
   * Sets a new revocation stamp, by which every process sees from its next request on that the key changed. The stamp is
   * random, so that a lost or expired one never equals a later one. `ttlMs` must exceed the time that a verified key may stay
   * cached. Rejects with `store_unavailable`; then only the change feed notifies the processes.
   */
  stampChanged(owner: string, key: string, ttlMs: number): void | Promise<void>;
  /** The header fields of an answer to a request with a key. */
  headers(limit: number, spend: Spend): Record<string, string>;
};

export type RateLimiterDeps = {
  readonly source: LimitSource;
  /** Used with the same limit while `source` does not answer. */
  readonly fallback: LocalSource;
  readonly clock: Clock;
  readonly random: Random;
  /** Called for every request that only this process limited, with the error that caused it. */
  readonly onFallback: (cause: unknown) => void;
};

export function createRateLimiter({ source, fallback, random, ...deps }: RateLimiterDeps): RateLimiter {
  const clock = steadyClock(deps.clock);
  let outage: Outage | null = null;

  /** During an outage one request a second retries the store; the others do not wait for it. */
  function mayAsk(): boolean {
    if (outage === null) return true;
    const now = clock.now();
    if (now < outage.askAgainAt) return false;
    outage.askAgainAt = now + second;
    return true;
  }

  function alone(request: SpendRequest, cause: unknown): Spend {
    deps.onFallback(cause);
    return { ...fallback.spend(request), stamp: unknownStamp };
  }

  async function shared(answer: Promise<Spend>, request: SpendRequest): Promise<Spend> {
    try {
      const spend = await answer;
      outage = null;
      // Count in the fallback too: if the store fails next, this process knows how many requests it has already allowed.
      if (spend.allowed) fallback.spend(request);
      return spend;
    } catch (error) {
      // Refusing all requests because a counter is unavailable would turn a small fault into an outage (contract 4).
      outage = { cause: error, askAgainAt: clock.now() + second };
      return alone(request, error);
    }
  }

  return {
    spend(request) {
      if (outage !== null && !mayAsk()) return alone(request, outage.cause);
      const answer = source.spend(request);
      return answer instanceof Promise ? shared(answer, request) : answer;
    },
    peek(owner, limit) {
      if (outage !== null) return fallback.peek(owner, limit);
      const answer = source.peek(owner, limit);
      // A failed peek starts no outage, because it spends nothing: the next spend detects the failure itself.
      return answer instanceof Promise ? answer.catch(() => fallback.peek(owner, limit)) : answer;
    },
    stampChanged: (owner, key, ttlMs) =>
      source.setStamp({ owner, key, stamp: randomBase62(random, 22), ttlMs }),
    headers: createHeaders(),
  };
}

type Outage = { readonly cause: unknown; askAgainAt: number };

/**
 * draft-ietf-httpapi-ratelimit-headers-11, and Retry-After (RFC 9110 section 10.2.3) on a refusal. With no budget left,
 * `t` equals Retry-After. With budget left the client need not wait, and `t` stays within the window `w`.
 */
function createHeaders(): RateLimiter['headers'] {
  let policyLimit = 0;
  let policy = '';
  return (limit, spend) => {
    if (limit !== policyLimit) {
      policyLimit = limit;
      policy = `"default";q=${limit};w=${windowMs / second}`;
    }
    const headers: Record<string, string> = {
      'ratelimit-policy': policy,
      ratelimit: `"default";r=${spend.remaining};t=${resetSeconds(spend)}`,
    };
    if (!spend.allowed) headers['retry-after'] = String(retryAfterSeconds(spend));
    return headers;
  };
}

/** Whole seconds until capacity returns: the `t` of the header and `resetSeconds` of the auth context. */
export function resetSeconds(budget: Budget): number {
  if (budget.retryAfterMs > 0) return retryAfterSeconds(budget);
  const seconds = Math.ceil(budget.resetMs / second);
  return budget.remaining > 0 ? Math.min(seconds, windowMs / second) : seconds;
}

/** The fewest whole seconds, at least 1, after which one more request is allowed. */
export function retryAfterSeconds({ retryAfterMs }: { readonly retryAfterMs: number }): number {
  return Math.max(1, Math.ceil(retryAfterMs / second));
}
