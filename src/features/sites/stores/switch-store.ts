import { sql } from 'kysely';
import type { Sql } from '../../../platform/database/database.ts';

/** SQL of how often Sites was switched off: grants issued under an earlier number stay invalid (contract 6). */
export type SwitchStore = {
  generation(): Promise<number>;
  bump(): Promise<void>;
};

export function switchStore(db: Sql): SwitchStore {
  return {
    async generation() {
      const { rows } = await sql<{ generation: string }>`select generation::text from sites_switch`.execute(
        db,
      );
      return Number(rows[0]?.generation ?? 0);
    },
    async bump() {
      await sql`update sites_switch set generation = generation + 1`.execute(db);
    },
  };
}
