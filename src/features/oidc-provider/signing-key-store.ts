import type { Clock } from '../../core/clock.ts';
import { type Sql, sql } from '../../platform/database/sql.ts';

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
      const row = await sql<{ encrypted: string }>`
        select sealed as encrypted from provider_signing_keys where id = 1`.first(db);
      return row?.encrypted;
    },
    async insertIfAbsent(encrypted) {
      await sql`
        insert into provider_signing_keys (id, sealed, created_at) values (1, ${encrypted}, ${new Date(clock.now())})
        on conflict (id) do nothing`.run(db);
    },
    async replace(was, encrypted) {
      const changed = await sql`
        update provider_signing_keys set sealed = ${encrypted} where id = 1 and sealed = ${was}`.run(db);
      return changed === 1;
    },
  };
}
