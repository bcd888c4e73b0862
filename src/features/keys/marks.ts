import { type Clock, minute } from '../../core/clock.ts';
import type { Log } from '../../platform/log.ts';

/**
 * Revocation marks (contract 10.2): what tells every process, with its next request, that a key changed. A mark that the
 * store did not take is written again until it does. Meanwhile the change feed carries the news, but not to a process
 * that the database does not reach either.
 */
export type Marks = {
  /** After the change was committed. Never rejects. */
  set(owner: string, keyId: string): Promise<void>;
  /** Writes what is still owed. Rejects while the store is away; what is owed stays so. */
  writeOwed(): Promise<void>;
};

/** Longer than any process keeps a verified key (verifier.ts). */
export const markMs = 10 * minute;

export function createMarks(deps: {
  write: (owner: string, keyId: string, ttlMs: number) => void | Promise<void>;
  clock: Clock;
  log: Log;
}): Marks {
  const { write, clock, log } = deps;
  const owed = new Map<string, { readonly owner: string; readonly since: number }>();
  return {
    async set(owner, keyId) {
      try {
        await write(owner, keyId, markMs);
      } catch (error) {
        owed.set(keyId, { owner, since: clock.now() });
        log.warn({ err: error, key: keyId }, 'revocation mark not written yet');
      }
    },
    async writeOwed() {
      for (const [keyId, mark] of owed) {
        // Afterwards nobody can hold the key as it was before.
        if (clock.now() - mark.since <= markMs) await write(mark.owner, keyId, markMs);
        // A later change may be owed by now.
        if (owed.get(keyId) === mark) owed.delete(keyId);
      }
    },
  };
}
