import { type Clock, second } from '../../core/clock.ts';
import { type Random, randomBase62 } from '../../core/ids.ts';
import {
  type Budget,
  type LimitSource,
  type LocalSource,
  type Spend,
  type SpendRequest,
  unknownMark,
} from './source.ts';
import { steadyClock } from './steady-clock.ts';
import { windowMs } from './window.ts';

/**
 * The limiter's door (contract 4). It promises: never more than the limit in any rolling 60 seconds over all
 * processes; with the shared source gone, the same limit in each process and requests go on. It leaves the policy's
 * number, the 429 and what an unknown mark means to the caller.
 */
export { addressBucket } from './address.ts';
export { createFailedAuth, type FailedAuth } from './failed-auth.ts';
export { memorySource } from './memory-source.ts';
export { redisSource } from './redis-source.ts';
export type { Budget, LimitSource, LocalSource, Spend, SpendRequest } from './source.ts';
export { withUnknownMarks } from './source.ts';

export type RateLimiter = {
  /** Never rejects. `mark` is unknown exactly when this process limited on its own. */
  spend(request: SpendRequest): Spend | Promise<Spend>;
  /** Where an owner stands, without spending. */
  peek(owner: string, limit: number): Budget | Promise<Budget>;
  /**
   * Tells every process that a key changed, from its next request on. Random, so that a mark which was lost or has
   * ended never looks like a later one; `ttlMs` must exceed the time a verified key may stay cached. Rejects with
   * `store_unavailable`; the change feed then carries the news alone.
   */
  markChanged(owner: string, key: string, ttlMs: number): void | Promise<void>;
  /** The header fields of an answer to a key. */
  headers(limit: number, spend: Spend): Record<string, string>;
};

export type RateLimiterDeps = {
  readonly source: LimitSource;
  /** Takes over, at the same limit, while `source` does not answer. */
  readonly fallback: LocalSource;
  readonly clock: Clock;
  readonly random: Random;
  /** Once for every request limited by this process alone, with the failure that led to it. */
  readonly onFallback: (cause: unknown) => void;
};

export function createRateLimiter({ source, fallback, random, ...deps }: RateLimiterDeps): RateLimiter {
  const clock = steadyClock(deps.clock);
  let outage: Outage | null = null;

  /** During an outage one request a second asks again; the others do not wait for a dead store. */
  function mayAsk(): boolean {
    if (outage === null) return true;
    const now = clock.now();
    if (now < outage.askAgainAt) return false;
    outage.askAgainAt = now + second;
    return true;
  }

  function alone(request: SpendRequest, cause: unknown): Spend {
    deps.onFallback(cause);
    return { ...fallback.spend(request), mark: unknownMark };
  }

  async function shared(answer: Promise<Spend>, request: SpendRequest): Promise<Spend> {
    try {
      const spend = await answer;
      outage = null;
      // The fallback hears of it too: should the store die now, this process knows what it has let through already.
      if (spend.allowed) fallback.spend(request);
      return spend;
    } catch (error) {
      // Refusing everybody because a counter is away would turn a small fault into an outage (contract 4).
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
      // Nothing is spent, so nothing is alarmed: the next spend finds out by itself.
      return answer instanceof Promise ? answer.catch(() => fallback.peek(owner, limit)) : answer;
    },
    markChanged: (owner, key, ttlMs) => source.setMark({ owner, key, mark: randomBase62(random, 22), ttlMs }),
    headers: createHeaders(),
  };
}

type Outage = { readonly cause: unknown; askAgainAt: number };

/**
 * draft-ietf-httpapi-ratelimit-headers-11, and Retry-After (RFC 9110 section 10.2.3) on a refusal. With nothing left,
 * `t` is the moment of Retry-After; with something left nobody has to wait, and `t` stays within the window `w`.
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
