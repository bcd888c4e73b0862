import { type Sql, sql } from '../../../platform/database/sql.ts';

/** SQL of previews: labels of one version that expire by themselves (site-store.ts has all other labels). */
export type PreviewStore = {
  /** When the preview at position `count`, newest first, was created, in milliseconds; undefined when there are fewer. */
  nthNewestAt(siteId: string, count: number): Promise<number | undefined>;
};

export function previewStore(db: Sql): PreviewStore {
  return {
    async nthNewestAt(siteId, count) {
      const row = await sql<{ mintedAt: number }>`
        select minted_at from site_labels where site_id = ${siteId} and version is not null
         order by minted_at desc limit 1 offset ${count - 1}`.first(db);
      return row?.mintedAt;
    },
  };
}
