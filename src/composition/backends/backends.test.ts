import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../../scripts/local-servers.ts';
import { openTestDatabase } from '../../../test/database.ts';
import { testServer } from '../../../test/postgres.ts';
import { readConfig } from '../../config/read.ts';
import { sql } from '../../platform/database/sql.ts';
import { openForMigration, openBackends } from './backends.ts';
import { explainStart } from './start-errors.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-backends-'));
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

/** What an operator is told when the backends do not open. */
async function toldOf(env: Record<string, string>, { isServer = false } = {}) {
  const error: unknown = await openBackends(configOf(env), { isServer }).then(
    () => 'it opened',
    (refusal: unknown) => refusal,
  );
  return explainStart(error, null);
}

/** An address on which no server listens. */
const deadAddress = async () => `127.0.0.1:${await freePort()}`;

test('a key-value store that does not run is told with its reason, not as silence', async () => {
  const address = await deadAddress();
  expect(await toldOf({ KV_URL: `redis://:geheim@${address}` })).toEqual({
    setting: 'KV_URL',
    problem: `no server listens at this address (connect ECONNREFUSED ${address})`,
    fix: 'Start the server, or fix the host and port in the address.',
  });
});

test('a server starts without the stores that are not there, and opens each when it is', async () => {
  const [kv, store] = [await deadAddress(), await deadAddress()];
  const env = {
    KV_URL: `redis://:geheim@${kv}`,
    OBJECT_STORE_URL: `s3://bucket?endpoint=http://${store}`,
    OBJECT_STORE_ACCESS_KEY: 'ours',
    OBJECT_STORE_SECRET_KEY: 'geheim',
    LOG_LEVEL: 'silent',
  };
  const backends = await openBackends(configOf(env), { isServer: true });
  onTestFinished(backends.close);
  expect(backends.missing.map(({ name, found }) => [name, found])).toEqual([
    ['kv', { setting: 'KV_URL', problem: expect.stringContaining(kv), fix: expect.any(String) }],
    [
      'blobs',
      { setting: 'OBJECT_STORE_URL', problem: expect.stringContaining(store), fix: expect.any(String) },
    ],
  ]);

  const answering = createHttpServer((_, answer) => answer.writeHead(200).end()).listen(
    Number(store.split(':')[1]),
  );
  await once(answering, 'listening');
  onTestFinished(() => {
    answering.close();
    answering.closeAllConnections();
  });
  await backends.missing.find(({ name }) => name === 'blobs')?.open();
  await backends.pingBlobs();
});

test('an object store that refuses the key ends the start with its reason, and the data folder is free again', async () => {
  const refusing = createHttpServer((_, answer) =>
    answer
      .writeHead(403, { 'content-type': 'application/xml' })
      .end('<Error><Code>InvalidAccessKeyId</Code><Message>No such key.</Message></Error>'),
  ).listen(0, '127.0.0.1');
  await once(refusing, 'listening');
  onTestFinished(() => void refusing.close());
  const { port } = refusing.address() as AddressInfo;
  const env = {
    OBJECT_STORE_URL: `s3://bucket?endpoint=http://127.0.0.1:${port}`,
    OBJECT_STORE_ACCESS_KEY: 'ours',
    OBJECT_STORE_SECRET_KEY: 'geheim',
  };
  for (const _ of ['first', 'second'])
    expect(await toldOf(env, { isServer: true })).toMatchObject({
      setting: 'OBJECT_STORE_URL',
      problem: expect.stringContaining('does not know this access key'),
    });
});

test('a PostgreSQL that does not run is told with its reason', async () => {
  const address = await deadAddress();
  expect(await toldOf({ DATABASE_URL: `postgres://ada:geheim@${address}/postern` })).toMatchObject({
    setting: 'DATABASE_URL',
    problem: `no server listens at this address (connect ECONNREFUSED ${address})`,
  });
});

test('a data folder that is a file is told as such', async () => {
  const path = join(folder, 'file');
  writeFileSync(path, '');
  expect(await toldOf({ DATA_DIR: path })).toMatchObject({
    setting: 'DATA_DIR',
    problem: expect.stringContaining('is a file; it must be a folder'),
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
      (await sql<{ limit: string }>`select current_setting('statement_timeout') as limit`.first(db))?.limit;
    expect([await limitOf(database), await limitOf(pool)]).toEqual(['1h', '10s']);
    await close();
    await pool.close();
  },
);
