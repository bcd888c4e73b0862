import { sql } from 'kysely';
import type { Clock } from '../../core/clock.ts';
import type { Sql } from '../../platform/database/database.ts';

/** The table `provider_signing_keys`: one encrypted key set, created once by the first process that starts. */
export type SigningKeyStore = {
  find(): Promise<string | undefined>;
  /** Keeps an existing key set. */
  insertIfAbsent(encrypted: string): Promise<void>;
  /** False when the stored value is no longer `was`. */
  replace(was: string, encrypted: string): Promise<boolean>;
};

export function signingKeyStore(db: Sql, clock: Clock): SigningKeyStore {
  return {
    async find() {
      const { rows } = await sql<{ encrypted: string }>`
        select sealed as encrypted from provider_signing_keys where id = 1`.execute(db);
      return rows[0]?.encrypted;
    },
    async insertIfAbsent(encrypted) {
      await sql`
        insert into provider_signing_keys (id, sealed, created_at) values (1, ${encrypted}, ${new Date(clock.now())})
        on conflict (id) do nothing`.execute(db);
    },
    async replace(was, encrypted) {
      const { rows } = await sql`
        update provider_signing_keys set sealed = ${encrypted} where id = 1 and sealed = ${was} returning id`.execute(
        db,
      );
      return rows.length === 1;
    },
  };
}
