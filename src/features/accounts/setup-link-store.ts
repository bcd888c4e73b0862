import type { Clock } from '../../core/clock.ts';
import { type Sql, sql } from '../../platform/database/sql.ts';

/** The table `setup_links_used`. */
export type SetupLinkStore = {
  /** Marks the link as used; false when it was used before. */
  use(digest: string): Promise<boolean>;
};

export function setupLinkStore(db: Sql, clock: Clock): SetupLinkStore {
  return {
    async use(digest) {
      const added = await sql`
        insert into setup_links_used (digest, used_at) values (${digest}, ${new Date(clock.now())})
        on conflict (digest) do nothing`.run(db);
      return added === 1;
    },
  };
}
