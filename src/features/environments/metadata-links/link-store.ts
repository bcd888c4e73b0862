import { type Sql, sql } from '../../../platform/database/sql.ts';
import type { MetadataLink } from './metadata-link.ts';

export type LinkStore = {
  /** All links in their order. */
  list(): Promise<MetadataLink[]>;
  /** Lists the links and blocks other changes until the transaction ends. */
  hold(): Promise<MetadataLink[]>;
  /** Each change also needs place(). */
  insert(link: MetadataLink): Promise<void>;
  update(link: MetadataLink): Promise<void>;
  remove(id: string): Promise<void>;
  /** Gives the links this order. */
  place(ids: readonly string[]): Promise<void>;
};

export function linkStore(db: Sql): LinkStore {
  async function list(): Promise<MetadataLink[]> {
    return await sql<MetadataLink>`
      select id, text, icon, link from metadata_links order by position, id`.all(db);
  }
  return {
    list,
    async hold() {
      await sql`select pg_advisory_xact_lock(hashtextextended('environments:metadata-links', 0))`.run(db);
      return await list();
    },
    async insert({ id, text, icon, link }) {
      await sql`
        insert into metadata_links (id, position, text, icon, link)
        values (${id}, 0, ${text}, ${icon}, ${link})`.run(db);
    },
    async update({ id, text, icon, link }) {
      await sql`
        update metadata_links set text = ${text}, icon = ${icon}, link = ${link} where id = ${id}`.run(db);
    },
    async remove(id) {
      await sql`delete from metadata_links where id = ${id}`.run(db);
    },
    async place(ids) {
      await sql`
        update metadata_links set position = placed.position
          from jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb) with ordinality as placed (id, position)
         where metadata_links.id = placed.id`.run(db);
    },
  };
}
