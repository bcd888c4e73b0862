import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { openDatabase } from './database.ts';
import { initializeEmbedded } from './embedded-initdb.ts';
import { embeddedDatabase } from './embedded.ts';

test('a database made by a process of its own opens here', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postern-initdb-'));
  await initializeEmbedded(folder);
  const database = openDatabase(embeddedDatabase({ dataDir: folder }).dialect);
  const { rows } = await sql<{ one: number }>`select 1 as one`.execute(database.sql);
  expect(rows).toEqual([{ one: 1 }]);
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

test('why a database cannot be made reaches the caller', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postern-initdb-'));
  const file = join(folder, 'file');
  await writeFile(file, '');
  await expect(initializeEmbedded(join(file, 'below'))).rejects.toMatchObject({ code: 'ENOTDIR' });
  await rm(folder, { recursive: true, force: true });
});
