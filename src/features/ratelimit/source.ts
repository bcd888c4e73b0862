/**
 * Where requests are counted: in this process (memory-source.ts) or in the shared store (redis-source.ts), by the
 * source's own clock. Both pass test/contract/limiter.ts.
 */
export type LimitSource = {
  /**
   * Counts one request and reads the key's revocation mark, in one step. Refused requests spend nothing. Rejects
   * within 250 ms when the source cannot answer.
   */
  spend(request: SpendRequest): Spend | Promise<Spend>;
  /** Where an owner stands; spends nothing. */
  peek(owner: string, limit: number): Budget | Promise<Budget>;
  setMark(mark: KeyMark): void | Promise<void>;
};

/** A source that answers at once and cannot fail. */
export type LocalSource = {
  spend(request: SpendRequest): Spend;
  peek(owner: string, limit: number): Budget;
  setMark(mark: KeyMark): void;
};

export type SpendRequest = {
  /** Whose budget it is: the user of a personal key, a service key itself (contract 4). */
  readonly owner: string;
  /** The key's id, for its mark; empty when no key asks. */
  readonly key: string;
  /** Requests in any rolling 60 seconds, by the policy of this moment; at least 1. */
  readonly limit: number;
  /** Milliseconds by the source's clock, when the caller has just read it. */
  readonly now?: number;
};

export type Budget = {
  readonly remaining: number;
  /** Milliseconds until the oldest counted slot is free again; 0 when nothing is counted. */
  readonly resetMs: number;
  /** Milliseconds until one more request is allowed; 0 when one is allowed now, or (of a Spend) this one was. */
  readonly retryAfterMs: number;
};

export type Spend = Budget & { readonly allowed: boolean; readonly mark: Mark };

/**
 * The revocation mark (contract 10.2). Whoever caches a verified key keeps the value it read then; another value now
 * means that the key changed. `unknown`: the shared store was not read, so a cached verification needs another lease.
 */
export type Mark = { readonly kind: 'read'; readonly value: string | null } | { readonly kind: 'unknown' };

export const noMark: Mark = { kind: 'read', value: null };
export const unknownMark: Mark = { kind: 'unknown' };

/**
 * The same source where its marks prove nothing: another process may have changed a key without this memory hearing.
 * Whoever caches a key then goes by the change feed.
 */
export function withUnknownMarks(source: LocalSource): LocalSource {
  return { ...source, spend: (request) => ({ ...source.spend(request), mark: unknownMark }) };
}

export type KeyMark = {
  readonly owner: string;
  readonly key: string;
  readonly mark: string;
  readonly ttlMs: number;
};
