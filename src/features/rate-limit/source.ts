/**
 * Counts requests, in this process (memory-source.ts) or in the shared store (redis-source.ts), by the source's own
 * clock. Both pass test/contract/limiter.ts.
 */
export type LimitSource = {
  /**
   * Counts one request and reads the key's revocation stamp, in one step. Refused requests spend nothing. Rejects
   * within 250 ms when the source cannot answer.
   */
  spend(request: SpendRequest): Spend | Promise<Spend>;
  /** The owner's remaining budget; spends nothing. */
  peek(owner: string, limit: number): Budget | Promise<Budget>;
  setStamp(stamp: KeyStamp): void | Promise<void>;
};

/** A source that answers immediately and cannot fail. */
export type LocalSource = {
  spend(request: SpendRequest): Spend;
  peek(owner: string, limit: number): Budget;
  setStamp(stamp: KeyStamp): void;
};

export type SpendRequest = {
  /** Whose budget it is: the user of a personal key, a service key itself (contract 4). */
  readonly owner: string;
  /** The key's id, for its revocation stamp; empty when the caller is not a key. */
  readonly key: string;
  /** Requests in any rolling 60 seconds, from the policy in force; at least 1. */
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

export type Spend = Budget & { readonly allowed: boolean; readonly stamp: Stamp };

/**
 * The revocation stamp of a key (contract 10.2). A cache of verified keys stores the value that it read with the key;
 * another value later means that the key changed. `unknown`: the shared store was not read, so a cached verification
 * needs other evidence that it is current.
 */
export type Stamp = { readonly kind: 'read'; readonly value: string | null } | { readonly kind: 'unknown' };

export const noStamp: Stamp = { kind: 'read', value: null };
export const unknownStamp: Stamp = { kind: 'unknown' };

/**
 * The same source, but with unknown stamps: another process may change a key without a stamp in this process's memory.
 * Caches of keys then rely on the change feed.
 */
export function withUnknownStamps(source: LocalSource): LocalSource {
  return { ...source, spend: (request) => ({ ...source.spend(request), stamp: unknownStamp }) };
}

export type KeyStamp = {
  readonly owner: string;
  readonly key: string;
  readonly stamp: string;
  readonly ttlMs: number;
};
