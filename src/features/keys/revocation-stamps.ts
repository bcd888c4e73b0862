import { type Clock, minute } from '../../core/clock.ts';
import type { Log } from '../../platform/log.ts';

/**
 * Revocation stamps (contract 10.2): from its next request on, each process sees by the stamp that a key changed. A write
 * that the key-value store did not accept is retried until it succeeds. Meanwhile the change feed notifies the processes,
 * except those that cannot reach the database either.
 */
export type RevocationStamps = {
  /** Call after the change is committed. Never rejects. */
  set(owner: string, keyId: string): Promise<void>;
  /** Retries the writes that failed. Rejects while the store is unavailable, and keeps them for the next call. */
  writeOwed(): Promise<void>;
};

/** Longer than any process caches a verified key (verifier.ts). */
export const stampMs = 10 * minute;

export function createRevocationStamps(deps: {
  write: (owner: string, keyId: string, ttlMs: number) => void | Promise<void>;
  clock: Clock;
  log: Log;
}): RevocationStamps {
  const { write, clock, log } = deps;
  const owed = new Map<string, { readonly owner: string; readonly since: number }>();
  return {
    async set(owner, keyId) {
      try {
        await write(owner, keyId, stampMs);
      } catch (error) {
        owed.set(keyId, { owner, since: clock.now() });
        log.warn({ err: error, key: keyId }, 'could not write a revocation stamp; it is retried');
      }
    },
    async writeOwed() {
      for (const [keyId, stamp] of owed) {
        // After this time no process can have the old key cached, so the stamp is not needed.
        if (clock.now() - stamp.since <= stampMs) await write(stamp.owner, keyId, stampMs);
        // A later change may have replaced this entry meanwhile.
        if (owed.get(keyId) === stamp) owed.delete(keyId);
      }
    },
  };
}
