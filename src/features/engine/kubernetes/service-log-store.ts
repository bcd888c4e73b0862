import { type Sql, sql } from '../../../platform/database/sql.ts';
import type { LogStream } from '../build-log.ts';
import type { LogEntry } from '../contract.ts';
import type { ServiceLogStore } from './service-logs.ts';

type Row = { firstLine: number; lines: [at: number, stream: LogStream, text: string][] };

/** Rows that one statement reads. */
const rowsAtOnce = 16;

/**
 * SQL of the logs of services that run on Kubernetes. The worker copies them from the pods, and web, which has no engine, reads
 * them. Ids of a service only grow, even after trim(), which keeps the newest row. append() writes one row, or none for an
 * Environment that was torn down.
 */
export function serviceLogStore(db: Sql): ServiceLogStore {
  return {
    async append(environmentId, service, lines) {
      if (lines.length === 0) return;
      const text = JSON.stringify(lines.map(({ at, stream, text: words }) => [at, stream, words]));
      await sql`
        insert into environment_service_logs (environment_id, service, first_line, lines, bytes)
        select id, ${service},
               coalesce((select first_line + jsonb_array_length(lines) from environment_service_logs
                          where environment_id = ${environmentId} and service = ${service}
                          order by first_line desc limit 1), 1),
               ${text}::jsonb, ${Buffer.byteLength(text)}::int
          from environments where id = ${environmentId} and deleted_at is null`.run(db);
    },
    async read(environmentId, service, after, limit) {
      const found: LogEntry[] = [];
      for (let next = after + 1; found.length < limit; ) {
        const rows = await sql<Row>`
          select first_line, lines from environment_service_logs
           where environment_id = ${environmentId} and service = ${service}
             and first_line >= coalesce((select max(first_line) from environment_service_logs
                                          where environment_id = ${environmentId} and service = ${service}
                                            and first_line <= ${next}), 1)
           order by first_line limit ${rowsAtOnce}`.all(db);
        const fresh = rows.flatMap(entriesOf).filter(({ id }) => id >= next);
        if (fresh.length === 0) break;
        found.push(...fresh);
        next = (fresh.at(-1)?.id ?? next) + 1;
      }
      return found.slice(0, limit);
    },
    async trim(environmentId, service, maxBytes) {
      await sql`
        with newest_first as (
          select first_line, sum(bytes) over newer as kept, row_number() over newer as position
            from environment_service_logs where environment_id = ${environmentId} and service = ${service}
          window newer as (order by first_line desc))
        delete from environment_service_logs l using newest_first n
         where l.environment_id = ${environmentId} and l.service = ${service} and l.first_line = n.first_line
           and n.kept > ${maxBytes} and n.position > 1`.run(db);
    },
    async remove(environmentId) {
      await sql`delete from environment_service_logs where environment_id = ${environmentId}`.run(db);
    },
  };
}

function entriesOf({ firstLine: first, lines }: Row): LogEntry[] {
  return lines.map(([at, stream, text], index) => ({ id: first + index, at, stream, text }));
}
