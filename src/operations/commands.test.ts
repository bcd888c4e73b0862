import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { zstdDecompressSync } from 'node:zlib';
import { sql } from 'kysely';
import { extract } from 'tar-stream';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { runBackup, runRestore } from './backup/backup.ts';
import { runMigrations } from './commands.ts';
import { openDatabaseAlone } from '../composition/backends.ts';
import { explainStart } from '../composition/start-errors.ts';
import { existingSecrets } from '../config/generated-secrets.ts';
import { readConfig } from '../config/read.ts';

/** The folder `database` of a DATA_DIR that commit 8c36b1a made, with an administrator, two keys, a repository and a site. */
const archive = join(import.meta.dirname, '../../test/development-database/folder-of-8c36b1a.tar.zst');

const folder = mkdtempSync(join(tmpdir(), 'postern-commands-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let said = '';
beforeEach(() => {
  said = '';
  for (const stream of ['log', 'error'] as const)
    vi.spyOn(console, stream).mockImplementation((text: string) => void (said += `${text}\n`));
  return () => vi.restoreAllMocks();
});

const configOf = (name: string) => readConfig({ DATA_DIR: join(folder, name) }, 'all', existingSecrets);

beforeAll(async () => {
  const reader = extract();
  Readable.from(zstdDecompressSync(readFileSync(archive))).pipe(reader);
  for await (const entry of reader) {
    const path = join(folder, 'developed', entry.header.name);
    if (entry.header.type === 'directory') mkdirSync(path, { recursive: true, mode: 0o700 });
    else writeFileSync(path, await buffer(entry), { mode: 0o600 });
    entry.resume();
  }
});

test('a data folder of an early development version is refused, unchanged, and the version that upgrades it is named', async () => {
  const error = await runMigrations(configOf('developed')).catch((thrown: unknown) => thrown);
  expect(explainStart(error, null)).toEqual({
    setting: 'DATA_DIR',
    problem:
      'the database is of a development version before 0.1.0, at its step 0022_put_back.sql, and this version upgrades it from the step 0031_parts_of_key_names.sql only',
    fix: 'First run npm start -- migrate with the last development version, the commit d5123e2 of 2026-11-24. Then start this version.',
  });
  const { database, close } = await openDatabaseAlone(configOf('developed'));
  const { rows } = await sql`
    select (select count(*)::int from api_keys) as keys, (select max(name) from schema_migrations) as step`.execute(
    database.sql,
  );
  await close();
  expect(rows).toEqual([{ keys: 2, step: '0022_put_back.sql' }]);
});

test('a backup of an early development version is refused, and the version that upgrades it is named', async () => {
  const file = join(folder, 'developed.backup');
  expect(await runBackup(configOf('developed'), file, { withSecrets: false })).toBe(0);
  expect(await runRestore(configOf('restored'), file)).toBe(1);
  expect(said).toMatch(/at its step 0022_put_back\.sql[^]*the commit d5123e2[^]*Nothing was restored\./);
});
