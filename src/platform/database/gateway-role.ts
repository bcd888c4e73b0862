import { sql } from 'kysely';
import type { Database } from './database.ts';

/** The database role of a gateway on its own: it sees the views of the schema `gateway` and nothing else (contract 10.13). */
const views = ['changes', 'config_documents', 'sites', 'site_labels', 'site_versions', 'blob_variants'];

/** What keeps a gateway from its views, and what to do; null when nothing does. */
export async function obstacleToViews(database: Database): Promise<{ problem: string; fix: string } | null> {
  const { rows } = await sql<{ name: string; there: boolean; readable: boolean }>`
    select name, c.oid is not null as there,
           coalesce(has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select'), false) as readable
      from jsonb_array_elements_text(${JSON.stringify(views)}::jsonb) as asked (name)
      left join pg_namespace n on n.nspname = 'gateway'
      left join pg_class c on c.relnamespace = n.oid and c.relname = asked.name`.execute(database.sql);
  const named = (found: typeof rows) => found.map(({ name }) => `gateway.${name}`).join(', ');
  const missing = rows.filter(({ there }) => !there);
  if (missing.length > 0)
    return {
      problem: `its database has no ${named(missing)}`,
      fix: `With the role that owns the tables, run npm start -- migrate, and then: ${grants}`,
    };
  const closed = rows.filter(({ readable }) => !readable);
  return closed.length === 0
    ? null
    : {
        problem: `its role may not read ${named(closed)}`,
        fix: `With the role that owns them, run: ${grants}`,
      };
}

const grants = 'grant usage on schema gateway to ROLE; grant select on all tables in schema gateway to ROLE;';

/** Tables of everybody else that the role may read or change, for people; null when it is as narrow as it should be. */
export async function excessOf(database: Database): Promise<string | null> {
  const { rows } = await sql<{ name: string }>`
    select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'public' and c.relkind = 'r'
       and has_table_privilege(c.oid, 'select, insert, update, delete')
     order by c.relname`.execute(database.sql);
  return rows.length === 0 ? null : rows.map(({ name }) => name).join(', ');
}
