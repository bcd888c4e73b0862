import type { Clock } from '../../../core/clock.ts';
import { type Sql, sql } from '../../../platform/database/sql.ts';

/** The table `login_attempts`: one row per started sign-in, used once. */
export type LoginAttemptStore = {
  /** Inserts an attempt, and keeps only the newest `keep` attempts of this browser. */
  insert(
    attempt: {
      stateHash: string;
      browserHash: string;
      encrypted: string;
      returnTo: string;
      expiresAt: number;
    },
    keep: number,
  ): Promise<void>;
  /** Returns and deletes the attempt, so that a second answer finds nothing. */
  take(stateHash: string, browserHash: string): Promise<{ encrypted: string; returnTo: string } | undefined>;
  /** Resolves with how many were removed. */
  removeExpired(limit: number): Promise<number>;
};

export function loginAttemptStore(db: Sql, clock: Clock): LoginAttemptStore {
  return {
    async insert({ stateHash, browserHash, encrypted, returnTo, expiresAt }, keep) {
      await sql`
        insert into login_attempts (state_hash, browser_hash, sealed, return_to, created_at, expires_at)
        values (${stateHash}, ${browserHash}, ${encrypted}, ${returnTo}, ${new Date(clock.now())},
                ${new Date(expiresAt)})`.run(db);
      await sql`
        delete from login_attempts where state_hash in (
          select state_hash from login_attempts where browser_hash = ${browserHash} and state_hash <> ${stateHash}
           order by created_at desc offset ${keep - 1})`.run(db);
    },
    async take(stateHash, browserHash) {
      const row = await sql<{ encrypted: string; returnTo: string; expiresAt: number }>`
        delete from login_attempts where state_hash = ${stateHash} and browser_hash = ${browserHash}
        returning sealed as encrypted, return_to, expires_at`.first(db);
      if (row === undefined || row.expiresAt <= clock.now()) return undefined;
      return { encrypted: row.encrypted, returnTo: row.returnTo };
    },
    async removeExpired(limit) {
      return await sql`
        delete from login_attempts where state_hash in (
          select state_hash from login_attempts where expires_at <= ${new Date(clock.now())} limit ${limit})`.run(
        db,
      );
    },
  };
}
