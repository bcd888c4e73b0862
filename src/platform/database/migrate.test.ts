// @module-tag sql
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openTestDatabase } from '../../../test/database.ts';
import type { Database } from './database.ts';
import { sql } from './sql.ts';
import { compareMigrations, migrate } from './migrate.ts';

const ours = join(import.meta.dirname, '../../../migrations');

let database: Database;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());
beforeEach(() =>
  run('drop schema if exists gateway cascade; drop schema public cascade; create schema public'),
);

const run = (script: string) => sql.raw(`-- script\n${script}`).run(database.sql);

async function migrationsOf(): Promise<string[]> {
  const rows = await sql<{ name: string }>`select name from schema_migrations order by name`.all(
    database.sql,
  );
  return rows.map(({ name }) => name);
}

test('a migrated database gets the later migrations alone', async () => {
  await migrate(database);
  expect(await compareMigrations(database)).toEqual({ waiting: [], unknown: [], edited: [] });
  const folder = mkdtempSync(join(tmpdir(), 'postern-migrations-'));
  cpSync(ours, folder, { recursive: true });
  writeFileSync(join(folder, '9999_later.sql'), 'create table later (id int primary key)');
  expect(await migrate(database, folder)).toEqual(['9999_later.sql']);
  rmSync(folder, { recursive: true });
});

test('each migration is applied once when several processes start together', async () => {
  const applied = await Promise.all([1, 2, 3].map(() => migrate(database)));
  expect(applied.flat().toSorted()).toEqual(await migrationsOf());
});

test('a database with the migrations of a newer version stays as it is', async () => {
  await migrate(database);
  await run(`insert into schema_migrations (name, checksum) values ('9999_newer.sql', 'x')`);
  expect(await migrate(database)).toEqual([]);
  expect((await compareMigrations(database)).unknown).toEqual(['9999_newer.sql']);
});

test('a database with the migrations of a build before 0.1.0 is refused and stays as it is', async () => {
  await migrate(database);
  await run(`delete from schema_migrations;
    insert into schema_migrations (name, checksum) values ('0022_put_back.sql', 'x')`);
  await expect(migrate(database)).rejects.toMatchObject({
    message: expect.stringContaining('the newest is 0022_put_back.sql'),
    fix: expect.stringContaining('Use an empty database'),
  });
  expect(await migrationsOf()).toEqual(['0022_put_back.sql']);
});

test('a database with the table of migrations of another program is refused and stays as it is', async () => {
  await run(`create table schema_migrations (version text primary key)`);
  await expect(migrate(database)).rejects.toMatchObject({
    message: expect.stringContaining('of another program; the newest is of an unknown form'),
    fix: expect.stringContaining('Use an empty database'),
  });
  const tables = sql`select tablename as name from pg_tables where schemaname = 'public'`;
  expect(await tables.all(database.sql)).toEqual([{ name: 'schema_migrations' }]);
});

test('a migration that was edited after it was applied is refused', async () => {
  await migrate(database);
  await run(`update schema_migrations set checksum = 'x' where name like '0002%'`);
  await expect(migrate(database)).rejects.toThrow('0002_identity.sql was edited');
});
