import { sql } from 'kysely';
import type { Sql } from '../../../platform/database/database.ts';
import type { Creator } from '../environment/environment.ts';

/** Read by the web app when a person opens an Environment. A standalone gateway may not read it. */
export type OpeningStore = {
  creatorOf(environmentId: string): Promise<Creator | undefined>;
  /** The current label. Undefined for an Environment without a row. */
  labelOf(environmentId: string): Promise<string | undefined>;
};

export function openingStore(db: Sql): OpeningStore {
  return {
    async creatorOf(id) {
      const { rows } = await sql<Creator>`
        select creator_kind as kind, creator_id as id from environments where id = ${id}`.execute(db);
      return rows[0];
    },
    async labelOf(id) {
      // PostgreSQL text cannot contain a zero byte, so no id has one.
      if (id.includes('\0')) return undefined;
      const { rows } = await sql<{ label: string }>`select label from environments where id = ${id}`.execute(
        db,
      );
      return rows[0]?.label;
    },
  };
}
