/**
 * The key-value store that processes share: short-lived facts, never the only copy of anything. Keys and values are text,
 * and every value expires. Two implementations, one contract suite (test/contract/kv.ts). When the store cannot be
 * reached, or does not respond within 250 ms, a call rejects with AppError `store_unavailable`.
 */
export type Kv = {
  get(key: string): Promise<string | null>;
  set(key: string, value: string, options: Lifetime): Promise<void>;
  /** Reads and deletes atomically: of many concurrent callers, exactly one gets the value. */
  take(key: string): Promise<string | null>;
  /** True when the key existed. */
  delete(key: string): Promise<boolean>;
  /** True for the one caller that stored its value. */
  setIfAbsent(key: string, value: string, options: Lifetime): Promise<boolean>;
  /** Reads several values in one round trip. A store in this process returns them synchronously. */
  getAll(keys: readonly string[]): KvValues | Promise<KvValues>;
  /**
   * Stores `<revision> <text>` unless the stored revision is higher; returns false then. Revisions are whole numbers.
   * Read the value back with numbered().
   */
  setIfNewer(key: string, value: Numbered, options: Lifetime): Promise<boolean>;
  /** The store's own clock, milliseconds since the epoch. It decides where processes must agree (contract 10.5). */
  time(): Promise<number>;
  /** Resolves when the store responds and has the required configuration; rejects otherwise. */
  ping(): Promise<void>;
  close(): Promise<void>;
};

export type KvValues = {
  readonly values: readonly (string | null)[];
  /** The store's clock, milliseconds since the epoch. */
  readonly now: number;
};

export type Numbered = { readonly revision: number; readonly text: string };

/** Parses a value that setIfNewer() stored; undefined for any other value. */
export function numbered(value: string): Numbered | undefined {
  const found = /^(\d{1,15}) (.*)$/s.exec(value);
  if (found === null) return undefined;
  return { revision: Number(found[1]), text: found[2] ?? '' };
}

export type Lifetime = {
  /** Whole milliseconds, at least 1. */
  readonly ttlMs: number;
};
