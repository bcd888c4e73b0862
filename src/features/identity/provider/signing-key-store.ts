import { sql } from 'kysely';
import type { Clock } from '../../../core/clock.ts';
import type { Sql } from '../../../platform/database/database.ts';

/** The table `provider_signing_keys`: one sealed key set, made once by whichever process starts first. */
export type SigningKeyStore = {
  find(): Promise<string | undefined>;
  /** Keeps what is there already. */
  insertIfAbsent(sealed: string): Promise<void>;
  /** False when something else than `was` is there now. */
  replace(was: string, sealed: string): Promise<boolean>;
};

export function signingKeyStore(db: Sql, clock: Clock): SigningKeyStore {
  return {
    async find() {
      const { rows } = await sql<{ sealed: string }>`
        select sealed from provider_signing_keys where id = 1`.execute(db);
      return rows[0]?.sealed;
    },
    async insertIfAbsent(sealed) {
      await sql`
        insert into provider_signing_keys (id, sealed, created_at) values (1, ${sealed}, ${new Date(clock.now())})
        on conflict (id) do nothing`.execute(db);
    },
    async replace(was, sealed) {
      const { rows } = await sql`
        update provider_signing_keys set sealed = ${sealed} where id = 1 and sealed = ${was} returning id`.execute(
        db,
      );
      return rows.length === 1;
    },
  };
}
