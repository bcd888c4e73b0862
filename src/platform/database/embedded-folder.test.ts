import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createEmbeddedFolder } from './embedded-folder.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-folder-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** What initdb decides: the system catalogues, and the settings that it writes. */
const facts = {
  databases: 'select datname, encoding, datlocprovider, datcollate, datctype from pg_database order by 1',
  roles: 'select rolname, rolsuper, rolcanlogin from pg_authid order by 1',
  relations: 'select oid, relname, relkind, relnatts from pg_class order by 1',
  columns: 'select attrelid, attnum, attname, atttypid from pg_attribute order by 1, 2',
  functions: 'select oid, proname, prosrc, proargtypes::text from pg_proc order by 1',
  types: 'select oid, typname, typlen from pg_type order by 1',
  operators: 'select oid, oprname, oprcode::text from pg_operator order by 1',
  extensions: 'select extname, extversion from pg_extension order by 1',
  // initdb takes the time zones from the machine; each connection sets its own.
  settings:
    "select name, setting from pg_settings where source = 'configuration file' and name not in ('TimeZone', 'log_timezone') order by 1",
};

async function factsOf(database: PGlite): Promise<Record<string, unknown[]>> {
  const found: Record<string, unknown[]> = {};
  for (const [name, query] of Object.entries(facts)) found[name] = (await database.query(query)).rows;
  await database.close();
  return found;
}

test('the folder is what initdb of this PGlite makes', async () => {
  await createEmbeddedFolder(folder);
  const ours = await factsOf(await PGlite.create({ dataDir: folder }));
  const initdb = await factsOf(await PGlite.create());
  expect(Object.values(ours).every((rows) => rows.length > 0)).toBe(true);
  expect(ours).toEqual(initdb);
});

test('only its owner may read the folder', async () => {
  await createEmbeddedFolder(folder);
  expect((await stat(join(folder, 'base'))).mode & 0o777).toBe(0o700);
  expect((await stat(join(folder, 'global/pg_control'))).mode & 0o777).toBe(0o600);
});

test('why a folder cannot be made reaches the caller', async () => {
  const file = join(folder, 'file');
  await writeFile(file, '');
  await expect(createEmbeddedFolder(join(file, 'below'))).rejects.toMatchObject({ code: 'ENOTDIR' });
});
