import type { Database } from '../src/platform/database/database.ts';
import { sql } from '../src/platform/database/sql.ts';

/** What tells whether two schemas are the same, within one engine. */
export async function schemaOf(database: Database): Promise<string> {
  const row = await sql<{ schema: string }>`
    with own as (select oid, relname, relkind from pg_class
      where relnamespace in (select oid from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema')),
    facts(fact) as (
      select concat_ws(' ', 'relation', oid, relname, relkind) from own
      union all select concat_ws(' ', 'column', attrelid, attnum, attname, atttypid, attnotnull, attisdropped, atthasdef)
        from pg_attribute where attrelid in (select oid from own)
      union all select concat_ws(' ', 'default', oid, adbin) from pg_attrdef
      union all select concat_ws(' ', 'constraint', oid, conname, convalidated) from pg_constraint
      union all select concat_ws(' ', 'trigger', oid, tgname, tgenabled) from pg_trigger
      union all select concat_ws(' ', 'function', oid, md5(prosrc), prosecdef) from pg_proc where oid >= 16384
      union all select concat_ws(' ', 'view', oid, pg_get_viewdef(oid)) from own where relkind = 'v'
      union all select concat_ws(' ', 'rights', oid, relacl::text) from pg_class where oid in (select oid from own)
      union all select concat_ws(' ', 'schema', oid, nspname, nspacl::text) from pg_namespace where nspname !~ '^pg_'
      union all select concat_ws(' ', 'role', rolname) from pg_roles)
    select md5(string_agg(fact, ',' order by fact)) as schema from facts`.first(database.sql);
  return row?.schema ?? '';
}

/** The script that brings back the data that migrations wrote, and removes everything else. */
export async function emptyingOf(database: Database): Promise<string> {
  const tables = await sql<{ name: string }>`
    select format('%I.%I', schemaname, tablename) as name from pg_tables
    where schemaname !~ '^pg_' and schemaname <> 'information_schema'`.all(database.sql);
  const sequences = await sql<{ name: string; last: string; isUsed: boolean }>`
    select format('%I.%I', schemaname, sequencename) as name, coalesce(last_value, start_value)::text as last,
      last_value is not null as is_used from pg_sequences`.all(database.sql);
  // A session that calls itself a replica skips the other triggers, and foreign keys.
  const triggers = await sql<{ table: string; name: string }>`
    select tgrelid::regclass::text as table, quote_ident(tgname) as name from pg_trigger
    where tgenabled = 'A'`.all(database.sql);
  const kept: string[] = [];
  for (const { name } of tables) {
    const rows = await sql<{ insert: string }>`
      select format('insert into %s overriding system value select * from jsonb_populate_recordset(null::%s, %L);',
        ${name}::text, ${name}::text, jsonb_agg(to_jsonb(t))) as insert
      from ${sql.raw(name)} t having count(*) > 0`.all(database.sql);
    kept.push(...rows.map(({ insert }) => insert));
  }
  return [
    '-- script',
    'reset session authorization; reset role; reset all;',
    `set timezone = 'UTC'; select pg_advisory_unlock_all();`,
    'begin; set local session_replication_role = replica;',
    ...triggers.map(({ table, name }) => `alter table ${table} disable trigger ${name};`),
    ...tables.map(({ name }) => `delete from ${name};`),
    ...kept,
    ...sequences.map(({ name, last, isUsed }) => `select setval('${name}', ${last}, ${isUsed});`),
    ...triggers.map(({ table, name }) => `alter table ${table} enable always trigger ${name};`),
    'commit;',
  ].join('\n');
}
