/**
 * The key-value store that processes share: short-lived facts, never the only copy of anything. Text in, text out;
 * every value has an end. Two implementations, one contract suite (test/contract/kv.ts). A store that cannot be
 * reached, or does not answer within 250 ms, rejects with AppError `store_unavailable`.
 */
export type Kv = {
  get(key: string): Promise<string | null>;
  set(key: string, value: string, options: Lifetime): Promise<void>;
  /** Reads and deletes in one step: of many callers at once, exactly one gets the value. */
  take(key: string): Promise<string | null>;
  /** Whether there was something to delete. */
  delete(key: string): Promise<boolean>;
  /** True for the one caller whose value was stored. */
  setIfAbsent(key: string, value: string, options: Lifetime): Promise<boolean>;
  /** Several values, in one round trip. A store in this process answers at once. */
  getAll(keys: readonly string[]): KvValues | Promise<KvValues>;
  /**
   * Stores `<revision> <text>` unless a higher revision is there; false then. Revisions are whole numbers. Read back
   * with numbered().
   */
  setIfNewer(key: string, value: Numbered, options: Lifetime): Promise<boolean>;
  /** The store's own clock, milliseconds since the epoch. It decides where processes must agree (contract 10.5). */
  time(): Promise<number>;
  /** Resolves when the store answers and is set up as we need it; rejects otherwise. */
  ping(): Promise<void>;
  close(): Promise<void>;
};

export type KvValues = {
  readonly values: readonly (string | null)[];
  /** The store's clock, milliseconds since the epoch. */
  readonly now: number;
};

export type Numbered = { readonly revision: number; readonly text: string };

/** What setIfNewer() stored; undefined for anything else. */
export function numbered(value: string): Numbered | undefined {
  const found = /^(\d{1,15}) (.*)$/s.exec(value);
  if (found === null) return undefined;
  return { revision: Number(found[1]), text: found[2] ?? '' };
}

export type Lifetime = {
  /** Whole milliseconds, at least 1. */
  readonly ttlMs: number;
};
