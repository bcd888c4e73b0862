import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { databasesOfEngine } from '../../src/features/environments/databases/engine-databases.ts';
import type { LocalEngine } from '../../src/features/engine/local/local-engine.ts';
import { openShop, type Shop } from '../api/environments/shop.ts';
import { createMachine, isBwrapMissing, processesWithText } from './local-machine.ts';

const colors = `create table colors (name text);
insert into colors values ('blue');
create function color() returns text language sql as 'select name from colors limit 1';
create extension pgcrypto;
`;
const memoryBytes = 2 ** 30;

describe('databases of the local engine, plain processes', () => {
  const { folder, local, clock } = createMachine();
  const root = join(folder, 'process');
  let engine: LocalEngine;

  async function begin(): Promise<void> {
    engine = local('process');
    await engine.prepare();
  }

  const wanted = (text: string | null, service = 'db') => ({
    environmentId: 'env_one',
    service,
    seed: text === null ? null : { path: 'db/seed.sql', text },
    memoryBytes,
  });

  async function run({ isAsleep = false, password = 'right' } = {}): Promise<void> {
    const revision = password;
    const database = { service: 'db', revision, memoryBytes, logBytes: 100_000, isAsleep, password };
    await engine.apply({ environmentId: 'env_one', processes: [], databases: [database] });
  }

  async function becomes(expected: object): Promise<void> {
    const find = async () => (await engine.observe('env_one'))[0];
    await expect.poll(find).toMatchObject(expected);
  }

  async function ask(text: string, password = 'right'): Promise<unknown[]> {
    const address = await engine.address('env_one', 'db');
    const client = new pg.Client({ ...address, user: 'postgres', database: 'postgres', password });
    try {
      await client.connect();
      const { rows } = await client.query<Record<string, unknown>>(text);
      return rows.flatMap((row) => Object.values(row));
    } finally {
      await client.end();
    }
  }

  beforeEach(begin);
  afterEach(async () => {
    await engine.remove('env_one');
    await engine.stop();
    const left = [...readdirSync(join(root, 'environments')), ...processesWithText(`=${root}`)];
    if (left.length > 0) throw new Error(`A teardown left ${JSON.stringify(left)}.`);
  });

  test('the data survives a restart of the server, sleep, a kill and a deploy without the service', async () => {
    await engine.databases?.make(wanted(colors));
    await run();
    await becomes({ state: 'ready', lastLines: ['The database is ready.'] });
    await ask(`insert into colors values ('red')`);
    await engine.stop();
    await begin();
    await run();
    await becomes({ state: 'ready', restarts: 0 });
    await run({ isAsleep: true });
    await becomes({ state: 'stopped' });
    expect(processesWithText(`POSTERN_SERVICE=${root}`)).toEqual([]);
    await run();
    await becomes({ state: 'ready' });
    for (const { pid } of processesWithText(`POSTERN_SERVICE=${root}`)) process.kill(pid, 'SIGKILL');
    await becomes({ state: 'failed' });
    clock.now += 1_000;
    // The wake was a start too.
    await becomes({ state: 'ready', restarts: 2 });
    await engine.apply({ environmentId: 'env_one', processes: [] });
    await expect.poll(() => engine.observe('env_one')).toEqual([]);
    // A changed seed is for new Environments.
    await engine.databases?.make(wanted(colors.replace('blue', 'green')));
    await run();
    await becomes({ state: 'ready' });
    expect(await ask('select name from colors')).toEqual(['blue', 'red']);
  });

  test('another password replaces the previous one, and the data stays', async () => {
    await engine.databases?.make(wanted(colors));
    await run();
    await becomes({ state: 'ready' });
    await run({ password: 'new' });
    await becomes({ state: 'ready', revision: 'new' });
    await expect(ask('select color()')).rejects.toMatchObject({ code: '28P01' });
    expect(await ask('select color()', 'new')).toEqual(['blue']);
  });

  test('a database listens only on loopback', async () => {
    await engine.databases?.make(wanted(null));
    await run();
    await becomes({ state: 'ready' });
    const { port = 0 } = (await engine.address('env_one', 'db')) ?? {};
    const socket = connect(port, '127.0.0.2');
    const refused = await new Promise((resolve) => {
      socket.on('connect', () => resolve('connected')).on('error', ({ message }) => resolve(message));
    });
    socket.destroy();
    expect(refused).toContain('ECONNREFUSED');
  });

  test.each([
    [
      'is wrong',
      'select 1;\n\nselect nothing from nowhere',
      /^The seed cannot be used: db\/seed\.sql, line 3: relation "nowhere" does not exist$/,
    ],
    ['connects elsewhere', 'select 1;\n\\connect postgres', /line 2: syntax error/],
    [
      'reads from the driver',
      'create table t (a text);\ncopy t from stdin',
      /^The seed cannot be used: db\/seed\.sql/,
    ],
    [
      'runs a program',
      `create table t (a text);\ncopy t from program 'id'`,
      /^The seed cannot be used: db\/seed\.sql/,
    ],
  ])('a seed that %s is refused with a message, and leaves nothing', async (_title, seed, words) => {
    await expect(engine.databases?.make(wanted(seed))).rejects.toMatchObject({
      code: 'config_invalid',
      message: expect.stringMatching(words) as string,
    });
    expect(await engine.databases?.isMade('env_one', 'db')).toBe(false);
    await engine.databases?.make(wanted(colors));
    await run();
    await becomes({ state: 'ready' });
    expect(await ask('select color()')).toEqual(['blue']);
  });

  test('a database that a kill interrupted is created again', async () => {
    const endless = engine.databases?.make(wanted(`${colors}do $$ begin loop end loop; end $$`));
    await expect.poll(() => processesWithText(`POSTERN_DATABASE=${root}`)).not.toEqual([]);
    for (const { pid } of processesWithText(`POSTERN_DATABASE=${root}`)) process.kill(pid, 'SIGKILL');
    await expect(endless).rejects.toMatchObject({
      message: expect.stringContaining('exited with 137') as string,
    });
    expect(await engine.databases?.isMade('env_one', 'db')).toBe(false);
    await engine.databases?.make(wanted(colors));
    expect(await engine.databases?.isMade('env_one', 'db')).toBe(true);
  });

  test('a teardown ends a seed that does not end', async () => {
    const ended = engine.databases?.make(wanted('do $$ begin loop end loop; end $$')).catch(String);
    await expect.poll(() => processesWithText(`POSTERN_DATABASE=${root}`)).not.toEqual([]);
    await engine.remove('env_one');
    expect(await ended).toContain('abort');
    expect(processesWithText(`=${root}`)).toEqual([]);
  });

  test('the failure of one commit is reported once, and does not stop the next commit', async () => {
    let settled = 0;
    const own = engine.databases;
    if (own === undefined) throw new Error('The engine of this machine has databases.');
    const databases = databasesOfEngine({
      engine: own,
      encryptionKey: 'key of the tests',
      onSettled: () => void (settled += 1),
    });
    const at = (sha: string, text: string) => ({
      environmentId: 'env_one',
      service: 'db',
      repositoryId: 'repo_one',
      memoryBytes,
      seed: { path: 'db/seed.sql', sha, read: async () => text },
    });
    expect(await databases.ensure(at('1', 'wrong'))).toBe(false);
    await expect.poll(() => settled).toBe(1);
    await expect(databases.ensure(at('1', 'wrong'))).rejects.toMatchObject({ code: 'config_invalid' });
    expect(await databases.ensure(at('1', 'wrong'))).toBe(false);
    await expect.poll(() => settled).toBe(2);
    expect(await databases.ensure(at('2', colors))).toBe(false);
    await expect.poll(() => settled).toBe(3);
    expect(await databases.ensure(at('3', 'wrong'))).toBe(true);
  });
});

const file = (seed: string) => `version: 1
services:
  api:
    build: { image: 'node:24', directory: api }
    run: { command: node server.js, port: 8080 }
    env: { DB_URL: "\${services.db.url}", DB: "\${services.db.host}:\${services.db.port}" }
    requires: [db]
  db:
    postgres: { seed: ${seed} }
`;

/** Without a driver, which the sandbox of a service does not have. */
const program = `
const { connect } = require('node:net');
console.log('uses ' + process.env.DB_URL + ' at ' + process.env.DB);
function message(type, text) {
  const body = Buffer.from(text);
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
}
function ask(url, text) {
  const { hostname, port, username, password, pathname } = new URL(url);
  const socket = connect(Number(port), hostname);
  let said = '';
  socket.write(message('', '\\0\\x03\\0\\0user\\0' + username + '\\0database\\0' + pathname.slice(1) + '\\0\\0'));
  socket.write(message('p', password + '\\0'));
  socket.write(message('Q', text + '\\0'));
  socket.write(message('X', ''));
  return new Promise((resolve) => {
    socket.on('data', (chunk) => { said += chunk.toString('latin1'); });
    socket.on('error', ({ code }) => resolve(code)).on('close', () => resolve(/<(.*)>/.exec(said)?.[1] ?? said));
  });
}
const all = "select '<' || string_agg(name, ' ') || '>' from colors";
const pages = {
  '/': () => ask(process.env.DB_URL, all),
  '/paint': () => ask(process.env.DB_URL, "insert into colors values ('red') returning '<painted>'"),
  '/url': async () => process.env.DB_URL,
  '/other': () => ask(process.env.OTHER, all),
};
require('node:http')
  .createServer(async ({ url }, response) => response.end(String(await pages[url]?.())))
  .listen(process.env.PORT);
`;

describe.each<[isolation: 'process' | 'bwrap', isMissing: boolean]>([
  ['process', false],
  ['bwrap', isBwrapMissing],
])('a database in an Environment: %s', (isolation, isMissing) => {
  describe.skipIf(isMissing)('with a seed', () => {
    let shop: Shop;
    beforeAll(async () => {
      shop = await openShop(isolation);
      await shop.change({ allowedAccess: ['owner', 'members', 'public'] });
      const files = {
        'api/server.js': program,
        'db/seed.sql': colors,
        'db/wrong.sql': 'select 1;\nselect wrong;',
      };
      shop.repository.commit({ ...files, 'postern.yaml': file('db/seed.sql') }, 'main');
      shop.repository.commit({ 'postern.yaml': file('db/wrong.sql') }, 'wrong');
      shop.repository.commit({ 'postern.yaml': file('db/missing.sql') }, 'missing');
    });
    afterAll(() => shop.close());

    async function deployed(body: Record<string, unknown> = {}) {
      const { data } = await shop.create({ access: 'public', ...body });
      const environment = await shop.settle(data.id);
      const open = async (path: string) => (await shop.fetch(`${environment.services[0].url}${path}`)).body;
      return { environment, open };
    }

    async function tearDown(id: string): Promise<void> {
      await shop.call('DELETE', `/environments/${id}`);
      expect(await shop.settle(id)).toMatchObject({ status: 'torn_down' });
      expect(readdirSync(join(shop.folder, 'builds/environments'))).not.toContain(id);
    }

    test('is seeded once, keeps its data over a deploy, and is removed with the Environment', async () => {
      const { environment, open } = await deployed();
      const { id } = environment;
      expect(environment).toMatchObject({
        status: 'deployed',
        services: [
          { name: 'api', status: 'ready' },
          { name: 'db', kind: 'postgres', status: 'ready', url: null },
        ],
      });
      expect(await open('/')).toBe('blue');
      expect(await open('/paint')).toBe('painted');
      const builds = await shop.call('GET', '/builds', { query: { environment: id } });
      expect(builds.data[0].steps).toContainEqual(
        expect.objectContaining({ service: 'db', step: 'health', status: 'done' }),
      );
      const logs = await shop.call('GET', `/environments/${id}/logs`, { query: { service: 'api' } });
      expect(logs.text).toMatch(
        /uses postgresql:\/\/postgres:\[redacted\]@127\.0\.0\.1:\d+\/postgres at 127/,
      );

      shop.repository.commit({ 'db/seed.sql': colors.replace('blue', 'green') }, 'main');
      await shop.call('POST', `/environments/${id}/deploy`);
      expect(await shop.settle(id)).toMatchObject({ status: 'deployed' });
      expect(await open('/')).toBe('blue red');
      await tearDown(id);
      shop.repository.commit({ 'db/seed.sql': colors }, 'main');
    });

    test('a seed that is wrong, or missing, is a config_error that says so', async () => {
      const { environment: wrong } = await deployed({ branch: 'wrong' });
      expect(wrong).toMatchObject({
        status: 'config_error',
        statusMessage: 'The seed cannot be used: db/wrong.sql, line 2: column "wrong" does not exist',
      });
      const { environment: missing } = await deployed({ branch: 'missing' });
      expect(missing).toMatchObject({
        status: 'config_error',
        statusMessage: 'The commit has no file db/missing.sql.',
      });
      for (const { id } of [wrong, missing]) await tearDown(id);
    });

    test('two Environments have separate data', async () => {
      const [one, two] = [await deployed(), await deployed()];
      expect(await one.open('/paint')).toBe('painted');
      expect([await one.open('/'), await two.open('/')]).toEqual(['blue red', 'blue']);
      const url = await one.open('/url');
      expect(await two.open('/url')).not.toBe(url);
      for (const { environment } of [one, two]) await tearDown(environment.id);
    });

    test.runIf(isolation === 'bwrap')(
      'another Environment and this machine cannot reach it, even with its password',
      async () => {
        const one = await deployed();
        const url = await one.open('/url');
        const two = await deployed({ env: { OTHER: url } });
        expect(await one.open('/')).toBe('blue');
        expect(await two.open('/other')).toBe('ECONNREFUSED');
        const client = new pg.Client({ connectionString: url });
        await expect(client.connect()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
        for (const { environment } of [one, two]) await tearDown(environment.id);
      },
    );
  });
});
