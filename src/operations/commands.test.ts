import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { runBackup, runRestore } from './backup/backup.ts';
import { runMigrations } from './commands.ts';
import { openDatabaseAlone } from '../composition/backends/backends.ts';
import { explainStart } from '../composition/backends/start-errors.ts';
import { existingSecrets } from '../config/generated-secrets.ts';
import { readConfig } from '../config/read.ts';
import { sql } from '../platform/database/sql.ts';

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
  await runMigrations(configOf('older'));
  const { database, close } = await openDatabaseAlone(configOf('older'));
  await sql`delete from schema_migrations`.run(database.sql);
  await sql`insert into schema_migrations (name, checksum) values ('0022_put_back.sql', 'x')`.run(
    database.sql,
  );
  await close();
});

test('a data folder of a build before 0.1.0 is refused, and the newest of its migrations is named', async () => {
  const error = await runMigrations(configOf('older')).catch((thrown: unknown) => thrown);
  expect(explainStart(error, null)).toEqual({
    setting: 'DATA_DIR',
    problem:
      'the database has the migrations of a build before 0.1.0 or of another program; the newest is 0022_put_back.sql',
    fix: 'Use an empty database, or restore a backup that 0.1.0 or a newer version wrote.',
  });
});

test('a backup of a build before 0.1.0 is refused, and nothing is restored', async () => {
  const file = join(folder, 'older.backup');
  expect(await runBackup(configOf('older'), file, { withSecrets: false })).toBe(0);
  expect(await runRestore(configOf('restored'), file)).toBe(1);
  expect(said).toMatch(/the newest is 0022_put_back\.sql[^]*Nothing was restored\./);
});
