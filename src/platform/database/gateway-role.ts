import type { Database } from './database.ts';
import { sql } from './sql.ts';
import { takeMigrationLock } from './migrate.ts';

/**
 * The database role of a standalone gateway: it can read the views of the schema `gateway` and nothing else (contract
 * 10.13).
 */
const views = [
  'changes',
  'config_documents',
  'sites',
  'site_labels',
  'site_versions',
  'blob_variants',
  'environments',
  'environment_labels',
  'environment_services',
  'artifacts',
];

/** Why the gateway cannot read its views, and the fix; null when it can. */
export async function unavailableReasonForViews(
  database: Database,
): Promise<{ problem: string; fix: string } | null> {
  const rows = await sql<{ name: string; there: boolean; readable: boolean }>`
    select name, c.oid is not null as there,
           coalesce(has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select'), false) as readable
      from jsonb_array_elements_text(${JSON.stringify(views)}::jsonb) as asked (name)
      left join pg_namespace n on n.nspname = 'gateway'
      left join pg_class c on c.relnamespace = n.oid and c.relname = asked.name`.all(database.sql);
  const named = (found: typeof rows) => found.map(({ name }) => `gateway.${name}`).join(', ');
  const missing = rows.filter(({ there }) => !there);
  if (missing.length > 0)
    return {
      problem: `its database has no ${named(missing)}`,
      fix: `With the role that owns the tables, ${grants}`,
    };
  const closed = rows.filter(({ readable }) => !readable);
  return closed.length === 0
    ? null
    : {
        problem: `its role may not read ${named(closed)}`,
        fix: `With the role that owns the tables, ${grants}`,
      };
}

const grants =
  'set GATEWAY_DATABASE_ROLE to the role of this gateway and run npm start -- migrate, or migrate and run: grant usage on schema gateway to ROLE; grant select on all tables in schema gateway to ROLE;';

/**
 * Grants the role read access to the views, including those of later migrations, and revokes temporary tables from every
 * role that does not own the database. Returns what prevents it, or null. When no privilege is missing, it runs one query
 * and changes nothing.
 */
export async function grantViews(
  database: Database,
  role: string,
): Promise<{ problem: string; fix: string } | null> {
  const found = await sql<{ lacks: boolean; owns: boolean; name: string }>`
    select (not has_schema_privilege(r.oid, n.oid, 'usage')
            or exists (select 1 from pg_class c
                        where c.relnamespace = n.oid and not has_table_privilege(r.oid, c.oid, 'select'))
            or not exists (select 1 from pg_default_acl later cross join lateral aclexplode(later.defaclacl) a
                            where later.defaclnamespace = n.oid and a.grantee = r.oid and a.privilege_type = 'SELECT')
            or pg_has_role(d.datdba, 'usage')
               and exists (select 1 from aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
                            where a.grantee = 0 and a.privilege_type = 'TEMPORARY')) as lacks,
           pg_has_role(d.datdba, 'usage') as owns, d.datname::text as name
      from pg_roles r, pg_namespace n, pg_database d
     where r.rolname = ${role} and n.nspname = 'gateway' and d.datname = current_database()`.first(
    database.sql,
  );
  if (found === undefined)
    return {
      problem: `PostgreSQL has no role ${role}`,
      fix: `As an administrator of PostgreSQL, run: create role ${role} login password '…'; then run this command again.`,
    };
  if (!found.lacks) return null;
  const name = sql.id(role);
  await database.tx(async (tx) => {
    // Concurrent changes of the same privileges fail in PostgreSQL: "tuple concurrently updated".
    await takeMigrationLock(tx);
    await sql`grant usage on schema gateway to ${name}`.run(tx);
    await sql`grant select on all tables in schema gateway to ${name}`.run(tx);
    await sql`alter default privileges in schema gateway grant select on tables to ${name}`.run(tx);
    if (found.owns) await sql`revoke temporary on database ${sql.id(found.name)} from public`.run(tx);
  });
  return null;
}

/**
 * Describes the privileges that the role has beyond reading its views; null when it has none. Checks tables, views and
 * sequences of every schema, functions that run with their owner's rights, places where it can create objects, attributes
 * of the role, and other roles that it can become. Objects of the system or of an extension are left out.
 */
export async function excessOf(database: Database): Promise<string | null> {
  const rows = await sql<{ name: string }>`
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
      select 3, 'making temporary tables in the database ' || current_database()
       where has_database_privilege(current_database(), 'temporary')
      union all
      select 3, 'making things in ' || nspname from places where has_schema_privilege(oid, 'create')
      union all
      select 4, 'the role ' || rolname from pg_roles
       where rolname <> current_user and pg_has_role(current_user, oid, 'member')
         and not (select rolsuper from me)) found
     order by place, name`.all(database.sql);
  if (rows.length === 0) return null;
  const names = rows.map(({ name }) => name);
  const rest = names.length > maxNamed ? ` and ${names.length - maxNamed} more` : '';
  return names.slice(0, maxNamed).join(', ') + rest;
}

const maxNamed = 20;
