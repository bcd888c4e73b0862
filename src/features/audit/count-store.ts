import { type Sql, sql } from '../../platform/database/sql.ts';
import type { AuditEntry } from './audit.ts';

/** How many events of one kind and outcome an hour or a day has. The chain writer counts them when it chains them. */
export type AuditCount = {
  /** The beginning of the hour or day, in UTC. */
  readonly from: number;
  readonly event: string;
  readonly outcome: AuditEntry['outcome'];
  readonly count: number;
};

export type CountStore = {
  read(per: 'hour' | 'day', from: number, to: number): Promise<AuditCount[]>;
};

export function countStore(db: Sql): CountStore {
  return {
    async read(per, from, to) {
      const step = per === 'hour' ? sql`interval '1 hour'` : sql`interval '1 day'`;
      return await sql<AuditCount>`
        select date_bin(${step}, hour, timestamptz '2000-01-01 00:00:00+00') as "from", event, outcome,
               sum(count)::bigint as count
          from audit_counts where hour >= ${new Date(from)} and hour < ${new Date(to)}
         group by 1, 2, 3 order by 1, 2, 3`.all(db);
    },
  };
}
