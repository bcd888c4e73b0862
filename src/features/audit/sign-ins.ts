import { type Sql, sql } from '../../platform/database/sql.ts';

/** Where people signed in from since a given time, according to the audit log. */
export type SignIns = {
  /** How many addresses had more than `limit` sign-ins within one minute, and the maximum from one address. */
  peaks(
    limit: number,
    since: number,
  ): Promise<{ readonly addressesOverLimit: number; readonly mostFromOneAddress: number }>;
  /** The number of distinct people and of distinct addresses, and one of the addresses. */
  origins(
    since: number,
  ): Promise<{ readonly people: number; readonly addresses: number; readonly address: string | null }>;
};

export function signInReader(db: Sql): SignIns {
  const found = (since: number) =>
    sql`from audit_events where event = 'session.started' and at >= ${new Date(since)} and address is not null`;
  return {
    async peaks(limit, since) {
      const row = await sql<{ over: number; most: number }>`
        select count(distinct address) filter (where signed_in > ${limit})::int as over,
               coalesce(max(signed_in), 0)::int as most
          from (select address, count(*) as signed_in ${found(since)}
                 group by address, date_trunc('minute', at)) minutes`.first(db);
      return { addressesOverLimit: row?.over ?? 0, mostFromOneAddress: row?.most ?? 0 };
    },
    async origins(since) {
      const row = await sql<{ people: number; addresses: number; address: string | null }>`
        select count(distinct actor_id)::int as people, count(distinct address)::int as addresses,
               min(address) as address ${found(since)}`.first(db);
      return row ?? { people: 0, addresses: 0, address: null };
    },
  };
}
