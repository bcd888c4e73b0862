import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'kysely';
import type { Sql } from './database.ts';

/**
 * The steps of the development before 0.1.0 were replaced by a few (decision 0045). A database at the last of them is adopted:
 * when it has exactly the tables, views and functions that the new steps create, it counts as having them. Any other is
 * refused.
 */
const lastFormerStep = '0031_parts_of_key_names.sql';

/** The first and the last of the steps that replace them. Later steps apply to an adopted database as to any other. */
const firstReplacement = '0001_change_feed_and_leases.sql';
export const lastReplacement = '0011_parts_of_names.sql';

/** What `readSchema` returns after `lastReplacement`, one line each; compared by migrate.test.ts. */
const schemaFile = '0011_schema.txt';

/** The database cannot be migrated as it is. `message` is the problem. */
export class MigrationRefused extends Error {
  readonly fix: string;
  constructor(problem: string, fix: string) {
    super(problem);
    this.name = 'MigrationRefused';
    this.fix = fix;
  }
}

/** The newest step of a database that has steps of the development before 0.1.0; undefined for any other database. */
export function formerStepOf(applied: readonly string[]): string | undefined {
  return applied.includes(firstReplacement) ? undefined : applied.toSorted().at(-1);
}

/** Why a database at this step cannot be adopted; undefined for the last one. */
export function refusalOfStep(step: string): MigrationRefused | undefined {
  if (step === lastFormerStep) return undefined;
  return new MigrationRefused(
    `the database is of a development version before 0.1.0, at its step ${step}, and this version upgrades it from the step ${lastFormerStep} only`,
    'First run npm start -- migrate with the last development version, the commit d5123e2 of 2026-11-24. Then start this version.',
  );
}

/** @throws MigrationRefused when the database cannot count as having the steps up to `lastReplacement` */
export async function requireAdoptable(tx: Sql, step: string, folder: string): Promise<void> {
  const refusal = refusalOfStep(step);
  if (refusal !== undefined) throw refusal;
  const expected = (await readFile(join(folder, schemaFile), 'utf8')).trimEnd().split('\n');
  const found = await readSchema(tx);
  const ours = new Set(expected.map(thingOf));
  const differences = [
    // A server without pg_trgm has none of these indexes (decision 0043).
    ...without(expected, found)
      .filter((line) => !line.includes('_name_parts'))
      .map((line) => `it lacks "${shortened(line)}"`),
    // Whatever else the operator keeps in the database is no part of the comparison.
    ...without(found, expected)
      .filter((line) => ours.has(thingOf(line)))
      .map((line) => `it has "${shortened(line)}"`),
  ];
  if (differences.length === 0) return;
  const more = differences.length > maxNamed ? `; and ${differences.length - maxNamed} more` : '';
  throw new MigrationRefused(
    `the schema of the database differs from the one of this version: ${differences.slice(0, maxNamed).join('; ')}${more}`,
    'Change it to match, with the role that owns the tables, or restore a backup. Nothing was migrated.',
  );
}

const maxNamed = 5;

/** Enough to find it; a function is longer. */
const shortened = (line: string) => (line.length > 240 ? `${line.slice(0, 240)}…` : line);

const thingOf = (line: string) => line.slice(0, line.indexOf(': '));

function without(lines: readonly string[], others: readonly string[]): string[] {
  const known = new Set(others);
  return lines.filter((line) => !known.has(line));
}

/**
 * Describes the tables, views and functions of Postern's schemas, one line for each column, constraint, index and trigger, in
 * the same words for each version of PostgreSQL from 15 on. Leaves out objects of extensions, privileges, the order of columns
 * in tables, and the names that versions give to NOT NULL constraints.
 */
export async function readSchema(tx: Sql): Promise<string[]> {
  const { rows } = await sql<{ thing: string; fact: string }>`
    with spaces as (
      select oid, case when nspname = 'gateway' then 'gateway.' else '' end as prefix
        from pg_namespace where nspname in (current_schema(), 'gateway')
    ), extended as (
      select classid, objid from pg_depend where deptype = 'e'
    ), things as (
      select c.oid, s.prefix || c.relname as thing, c.relkind, c.reloptions
        from pg_class c join spaces s on s.oid = c.relnamespace
       where c.relkind in ('r', 'p', 'v', 'm', 'f') and c.relname <> 'schema_migrations'
         and ('pg_class'::regclass, c.oid) not in (select classid, objid from extended)
    )
    select thing, concat_ws(' ', case when relkind = 'v' then 'view' else 'table' end, array_to_string(reloptions, ' '),
                            case when relkind = 'v' then pg_get_viewdef(oid) end) as fact
      from things where relkind = 'v' or reloptions is not null
    union all
    select t.thing, concat_ws(' ', 'column', case when t.relkind = 'v' then a.attnum end, a.attname,
                              format_type(a.atttypid, a.atttypmod), case when a.attnotnull then 'not null' end,
                              'default ' || pg_get_expr(d.adbin, d.adrelid), 'identity ' || nullif(a.attidentity::text, ''),
                              'generated ' || nullif(a.attgenerated::text, ''),
                              case when a.attstorage <> y.typstorage then 'storage ' || a.attstorage::text end)
      from things t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
      join pg_type y on y.oid = a.atttypid
      left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    union all
    select t.thing, concat_ws(' ', 'constraint', c.conname, pg_get_constraintdef(c.oid))
      from things t join pg_constraint c on c.conrelid = t.oid and c.contype <> 'n'
    union all
    select t.thing, concat_ws(' ', 'index', pg_get_indexdef(i.indexrelid), case when not i.indisvalid then 'invalid' end)
      from things t join pg_index i on i.indrelid = t.oid
     where i.indexrelid not in (select conindid from pg_constraint)
    union all
    select t.thing, concat_ws(' ', 'trigger', pg_get_triggerdef(g.oid), 'enabled ' || g.tgenabled::text)
      from things t join pg_trigger g on g.tgrelid = t.oid and not g.tgisinternal
    union all
    select s.prefix || p.proname || '()',
           concat_ws(' ', 'function', pg_get_function_identity_arguments(p.oid), 'returns', p.prorettype::regtype, l.lanname,
                     p.provolatile::text, case when p.prosecdef then 'security definer' end,
                     array_to_string(p.proconfig, ' '), p.prosrc)
      from pg_proc p join spaces s on s.oid = p.pronamespace join pg_language l on l.oid = p.prolang
     where ('pg_proc'::regclass, p.oid) not in (select classid, objid from extended)`.execute(tx);
  return rows.map(({ thing, fact }) => `${thing}: ${unqualified(fact)}`).toSorted();
}

/** Versions of PostgreSQL differ in the names that they qualify, and `pg_trgm` may be in any schema. Strings stay. */
function unqualified(fact: string): string {
  const plain = fact.startsWith('function ')
    ? fact
    : fact.replaceAll(
        /('(?:[^']|'')*')|(?:"[^"]+"|\b[a-z_]\w*)\.(?=\w)/g,
        (_, text: string | undefined) => text ?? '',
      );
  return plain.replaceAll(/\s+/g, ' ').trim();
}
