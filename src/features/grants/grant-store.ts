import { type Sql, sql } from '../../platform/database/sql.ts';
import { inBatches } from '../../platform/in-batches.ts';

/** A row of the ledger: one issued browser grant, for the site's owner to see. It never contains the grant's secret. */
export type LedgerEntry = {
  readonly id: string;
  readonly siteId: string;
  readonly userId: string;
  readonly epoch: number;
  /** The generation of the Sites switch, see switch-records.ts. */
  readonly generation: number;
  /** Milliseconds. */
  readonly issuedAt: number;
  readonly endsAt: number;
  readonly address: string | null;
  readonly agent: string | null;
};

export type GrantStore = {
  insert(entry: LedgerEntry): Promise<void>;
  /** Newest first. */
  page(siteId: string, page: number, limit: number): Promise<{ items: LedgerEntry[]; total: number }>;
  prune(endedBefore: number): Promise<void>;
};

export function grantStore(db: Sql): GrantStore {
  return {
    async insert({ id, siteId, userId, epoch, generation, issuedAt, endsAt, address, agent }) {
      await sql`
        insert into site_grants (id, site_id, user_id, epoch, generation, issued_at, ends_at, address, agent)
        values (${id}, ${siteId}, ${userId}, ${epoch}, ${generation}, ${new Date(issuedAt)},
          ${new Date(endsAt)}, ${address}, ${agent})`.run(db);
    },
    async page(siteId, page, limit) {
      const rows = await sql<LedgerEntry>`
        select id, site_id, user_id, epoch, generation, issued_at, ends_at, address, agent
          from site_grants where site_id = ${siteId}
         order by issued_at desc, id limit ${limit} offset ${(page - 1) * limit}`.all(db);
      const counted = await sql<{ total: number }>`
        select count(*)::int as total
          from (select 1 from site_grants where site_id = ${siteId} limit 2000) counted`.first(db);
      return { items: rows, total: counted?.total ?? 0 };
    },
    async prune(endedBefore) {
      await inBatches(5_000, async (limit) => {
        return await sql`
          delete from site_grants where id in (
            select id from site_grants where ends_at < ${new Date(endedBefore)} order by ends_at limit ${limit})`.run(
          db,
        );
      });
    },
  };
}
