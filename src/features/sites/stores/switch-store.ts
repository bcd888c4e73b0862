import { type Sql, sql } from '../../../platform/database/sql.ts';

/** SQL of how often Sites was switched off: grants issued under an earlier number stay invalid (contract 6). */
export type SwitchStore = {
  generation(): Promise<number>;
  bump(): Promise<void>;
};

export function switchStore(db: Sql): SwitchStore {
  return {
    async generation() {
      const row = await sql<{ generation: number }>`select generation from sites_switch`.first(db);
      return row?.generation ?? 0;
    },
    async bump() {
      await sql`update sites_switch set generation = generation + 1`.run(db);
    },
  };
}
