// @module-tag sql
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openTestDatabase } from '../../../test/database.ts';
import { lastReplacement, readSchema } from './adoption-check.ts';
import type { Database } from './database.ts';
import { compareMigrations, migrate } from './migrate.ts';

const ours = join(import.meta.dirname, '../../../migrations');
const developed = readFileSync(
  join(import.meta.dirname, '../../../test/development-database/at-the-last-step.sql'),
  'utf8',
);

/** The steps that replace those of the development, alone: later ones are no part of an adoption. */
const replacements = mkdtempSync(join(tmpdir(), 'postern-migrations-'));
for (const name of readdirSync(ours))
  if (!name.endsWith('.sql') || name <= lastReplacement) cpSync(join(ours, name), join(replacements, name));
afterAll(() => rmSync(replacements, { recursive: true, force: true }));

let database: Database;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());
const empty = () =>
  run('drop schema if exists gateway cascade; drop schema public cascade; create schema public');
beforeEach(empty);

const run = (script: string) => sql.raw(`-- script\n${script}`).execute(database.sql);

async function stepsOf(): Promise<{ name: string; checksum: string }[]> {
  const { rows } = await sql<{ name: string; checksum: string }>`
    select name, checksum from schema_migrations order by name`.execute(database.sql);
  return rows;
}

/** Every row of every table, except the steps. */
async function dataOf(): Promise<unknown> {
  const { rows: tables } = await sql<{ name: string }>`
    select tablename as name from pg_tables
     where schemaname = 'public' and tablename <> 'schema_migrations' order by 1`.execute(database.sql);
  const data: Record<string, unknown> = {};
  for (const { name } of tables) {
    const { rows } =
      await sql`select to_jsonb(t) as row from ${sql.table(name)} t order by to_jsonb(t)`.execute(
        database.sql,
      );
    data[name] = rows;
  }
  return data;
}

test('the schema that an adopted database must have is the one that the migrations create', async () => {
  await migrate(database, replacements);
  const schema = `${(await readSchema(database.sql)).join('\n')}\n`;
  await expect(schema).toMatchFileSnapshot(join(ours, '0011_schema.txt'));
});

describe('a database of the last development version', () => {
  beforeEach(() => run(developed));

  test('is adopted with its data, and then counts as migrated', async () => {
    const before = await dataOf();
    expect(await migrate(database, replacements)).toEqual({ applied: [], isAdopted: true });
    expect(await dataOf()).toEqual(before);
    const adopted = await stepsOf();
    expect(await migrate(database, replacements)).toEqual({ applied: [], isAdopted: false });
    expect(await compareMigrations(database, replacements)).toEqual({ waiting: [], unknown: [], edited: [] });

    await empty();
    await migrate(database, replacements);
    expect(adopted).toEqual(await stepsOf());
  });

  test('gets the later migrations like any other', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'postern-migrations-'));
    cpSync(replacements, folder, { recursive: true });
    writeFileSync(join(folder, '9999_later.sql'), 'create table later (id int primary key)');
    expect(await migrate(database, folder)).toEqual({ applied: ['9999_later.sql'], isAdopted: true });
    rmSync(folder, { recursive: true });
  });

  test('is adopted once when several processes start together', async () => {
    const all = await Promise.all([1, 2, 3].map(() => migrate(database, replacements)));
    expect(all.filter(({ isAdopted }) => isAdopted)).toHaveLength(1);
  });

  test('is adopted without pg_trgm, and beside tables and functions of the operator', async () => {
    await run(`drop extension pg_trgm cascade;
      create table reports (id int primary key);
      create function report() returns int language sql as 'select 1'`);
    expect(await migrate(database, replacements)).toEqual({ applied: [], isAdopted: true });
  });

  test.each([
    ['columns', 'alter table sites add column note text', 'it has "sites: column note text"'],
    [
      'indexes and triggers',
      'drop index users_by_name; alter table audit_events disable trigger append_only',
      /it lacks "audit_events: trigger .* enabled A"; it lacks "users: index .*"; it has "audit_events: trigger .* enabled D"$/,
    ],
    [
      'functions and views',
      `create or replace function count_api_key() returns trigger language plpgsql as 'begin return null; end';
       alter view gateway.changes reset (security_barrier)`,
      /it lacks "count_api_key\(\): function .*"; it lacks "gateway\.changes: view security_barrier=true .*"; it has/,
    ],
    ['tables', 'drop table site_grants', /it lacks "site_grants: .*"; and \d+ more$/],
  ])('with %s of its own is refused, and what differs is named', async (_, change, message) => {
    await run(change);
    const before = await stepsOf();
    await expect(migrate(database, replacements)).rejects.toThrow(message);
    expect(await stepsOf()).toEqual(before);
  });

  test('is refused at an earlier step, and the version that upgrades it is named', async () => {
    await run(`delete from schema_migrations where name = '0031_parts_of_key_names.sql'`);
    const before = await stepsOf();
    await expect(migrate(database, replacements)).rejects.toMatchObject({
      message: expect.stringContaining('at its step 0030_parts_of_site_names.sql'),
      fix: expect.stringContaining('the commit d5123e2 of 2026-11-24'),
    });
    expect(await stepsOf()).toEqual(before);
  });
});
