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

/**
 * What the role may do beyond reading its views, for people; null when it is as narrow as it should be. Tables, views and
 * sequences of every schema, functions that run with their owner's rights, places to make something in, what the role
 * itself may, other roles it can become. What belongs to the system or to an extension is left out.
 */
export async function excessOf(database: Database): Promise<string | null> {
  const { rows } = await sql<{ name: string }>`
    with places as (
      select oid, nspname from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'
    ), spaces as (
      select oid, nspname from places where has_schema_privilege(oid, 'usage')
    ), me as (
      select * from pg_roles where rolname = current_user
    ), extended as (
      select objid from pg_depend where deptype = 'e'
    ), reached as (
      select 1 as place, c.relname::text as thing, n.nspname::text as space
        from pg_class c join spaces n on n.oid = c.relnamespace
       where c.oid not in (select objid from extended)
         and case when c.relkind = 'S' then has_sequence_privilege(c.oid, 'usage, select, update')
                  when c.relkind not in ('r', 'p', 'v', 'm', 'f') then false
                  when n.nspname = 'gateway' then has_table_privilege(c.oid, 'insert, update, delete, truncate')
                                               or has_any_column_privilege(c.oid, 'insert, update')
                  else has_table_privilege(c.oid, 'select, insert, update, delete, truncate')
                       or has_any_column_privilege(c.oid, 'select, insert, update') end
      union all
      select 2, p.proname || '()', n.nspname from pg_proc p join spaces n on n.oid = p.pronamespace
       where p.prosecdef and p.prorettype <> 'trigger'::regtype and has_function_privilege(p.oid, 'execute')
         and p.oid not in (select objid from extended)
    )
    select name from (
      select 0 as place, 'everything, as a superuser' as name from me where rolsuper
      union all
      select 0, may.name from me cross join lateral (values
               (rolreplication, 'every row, by replication'), (rolbypassrls, 'rows past row security'),
               (rolcreaterole, 'making roles'), (rolcreatedb, 'making databases')) as may (is_so, name)
       where may.is_so and not rolsuper
      union all
      select place, case when space = 'public' then thing else space || '.' || thing end from reached
      union all
      select 3, 'making schemas in the database ' || current_database()
       where has_database_privilege(current_database(), 'create')
      union all
      select 3, 'making things in ' || nspname from places where has_schema_privilege(oid, 'create')
      union all
      select 4, 'the role ' || rolname from pg_roles
       where rolname <> current_user and pg_has_role(current_user, oid, 'member')
         and not (select rolsuper from me)) found
     order by place, name`.execute(database.sql);
  if (rows.length === 0) return null;
  const names = rows.map(({ name }) => name);
  const rest = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : '';
  return names.slice(0, mostNamed).join(', ') + rest;
}

const mostNamed = 20;
