import { type Sql, sql } from '../../../platform/database/sql.ts';
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
      return await sql<Creator>`
        select creator_kind as kind, creator_id as id from environments where id = ${id}`.first(db);
    },
    async labelOf(id) {
      // PostgreSQL text cannot contain a zero byte, so no id has one.
      if (id.includes('\0')) return undefined;
      const row = await sql<{ label: string }>`select label from environments where id = ${id}`.first(db);
      return row?.label;
    },
  };
}
