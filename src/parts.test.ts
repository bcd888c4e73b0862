import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestDatabase } from '../test/database.ts';
import { testServer } from '../test/postgres.ts';
import { readConfig } from './config.ts';
import { openForMigration, openParts } from './parts.ts';
import { explainStart } from './start-errors.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-parts-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const secret = 'a secret of more than thirty-two characters';

const configOf = (env: Record<string, string>) =>
  readConfig({
    DATA_DIR: join(folder, 'data'),
    SESSION_SECRET: secret,
    ENCRYPTION_KEY: secret,
    GRANT_SECRET: secret,
    ...env,
  });

/** What an operator is told when the parts do not open. */
async function toldOf(env: Record<string, string>, { isServer = false } = {}) {
  const error: unknown = await openParts(configOf(env), { isServer }).then(
    () => 'it opened',
    (refusal: unknown) => refusal,
  );
  return explainStart(error, null);
}

/** An address on which nobody listens. */
async function deadAddress(): Promise<string> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  if (address === null || typeof address === 'string') throw new Error('The probe has no port.');
  return `127.0.0.1:${address.port}`;
}

test('a key-value store that does not run is told with its reason, not as silence', async () => {
  const address = await deadAddress();
  expect(await toldOf({ KV_URL: `redis://:geheim@${address}` })).toEqual({
    setting: 'KV_URL',
    problem: `nobody listens at its address (connect ECONNREFUSED ${address})`,
    fix: 'Start the server, or mend host and port.',
  });
});

test('an object store that does not run is told with its reason, and the data folder is free again', async () => {
  const address = await deadAddress();
  const env = {
    OBJECT_STORE_URL: `s3://bucket?endpoint=http://${address}`,
    OBJECT_STORE_ACCESS_KEY: 'ours',
    OBJECT_STORE_SECRET_KEY: 'geheim',
  };
  for (const _ of ['first', 'second'])
    expect(await toldOf(env, { isServer: true })).toMatchObject({
      setting: 'OBJECT_STORE_URL',
      problem: expect.stringContaining('nobody listens at its address'),
    });
});

test('a PostgreSQL that does not run is told with its reason', async () => {
  const address = await deadAddress();
  expect(await toldOf({ DATABASE_URL: `postgres://ada:geheim@${address}/postern` })).toMatchObject({
    setting: 'DATABASE_URL',
    problem: `nobody listens at its address (connect ECONNREFUSED ${address})`,
  });
});

test('a data folder that is a file is told as such', async () => {
  const path = join(folder, 'file');
  writeFileSync(path, '');
  expect(await toldOf({ DATA_DIR: path })).toMatchObject({
    setting: 'DATA_DIR',
    problem: expect.stringContaining('is a file, and should be a folder'),
  });
});

test('a step of the schema has the open embedded database', async () => {
  const database = await openTestDatabase();
  expect((await openForMigration(configOf({}), database)).database).toBe(database);
  await database.close();
});

// With TEST_DATABASE_URL, as in npm run test:postgres.
test.skipIf(testServer === undefined)(
  'a step of the schema may take an hour on PostgreSQL, any other statement ten seconds',
  async () => {
    const pool = await openTestDatabase();
    const config = configOf({ DATABASE_URL: testServer ?? '' });
    const { database, close } = await openForMigration(config, pool);
    const limitOf = async ({ sql: db }: typeof database) =>
      (await sql<{ limit: string }>`select current_setting('statement_timeout') as limit`.execute(db)).rows[0]
        ?.limit;
    expect([await limitOf(database), await limitOf(pool)]).toEqual(['1h', '10s']);
    await close();
    await pool.close();
  },
);
