import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { ConfigError } from '../../src/config/config-error.ts';
import type { EnvironmentSettings } from '../../src/config/read.ts';
import { openDatabaseServer } from '../../src/composition/environments/environment-databases.ts';
import {
  createDatabases,
  type DatabaseAddress,
} from '../../src/features/environments/databases/databases.ts';
import type { SeedLimits } from '../../src/features/engine/seed.ts';
import { databaseServer } from '../../src/features/environments/databases/server.ts';
import { openDatabase } from '../../src/platform/database/database.ts';
import { postgresPool } from '../../src/platform/database/postgres.ts';
import { createLog } from '../../src/platform/log.ts';
import { openShop, type Shop } from '../api/environments/shop.ts';
import { isPostgresMissing, startPostgres } from './postgres-server.ts';

const commit = '1'.repeat(40);
const colors = `create table colors (name text);
insert into colors values ('blue');
create function color() returns text security definer language sql as 'select name from colors';
create extension pgcrypto;
`;

describe.skipIf(isPostgresMissing)('databases of Environments on a PostgreSQL', () => {
  let server: Awaited<ReturnType<typeof startPostgres>>;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.stop());

  function open(options: { limits?: Partial<SeedLimits>; encryptionKey?: string; uiUrl?: string } = {}) {
    return createDatabases({
      server: databaseServer(server.url, async () => null),
      uiUrl: 'https://postern.example.com',
      encryptionKey: 'key of the tests',
      onSettled: () => undefined,
      ...options,
    });
  }
  type Databases = ReturnType<typeof open>;

  function wanted(environmentId: string, seed: string | null = null, repositoryId = 'repo_one') {
    return {
      environmentId,
      service: 'db',
      repositoryId,
      seed: seed === null ? null : { path: 'db/seed.sql', sha: commit, read: async () => seed },
    };
  }

  async function made(databases: Databases, one: ReturnType<typeof wanted>): Promise<DatabaseAddress> {
    for (;;) {
      const address = await databases.ensure(one);
      if (address !== null) return address;
      await setImmediate();
    }
  }

  afterEach(async () => {
    await open().sweep(async () => new Set());
    const left = await server.left();
    if (left.length > 0) throw new Error(`A sweep left ${left.join(', ')}.`);
  });

  test('a seeded database belongs to its Environment, whose role may do nothing else', async () => {
    const databases = open();
    const { url, host, port } = await made(databases, wanted('env_one', colors));
    expect(new URL(url)).toMatchObject({ hostname: host, port: String(port) });
    expect(await server.run('select color()', url)).toEqual([{ color: 'blue' }]);
    await server.run('drop function color(); alter table colors add id int; create schema more', url);
    const owners = await server.run(
      `select distinct relowner::regrole::text as owner, current_user::text as me from pg_class where relname = 'colors'
       union select extowner::regrole::text, current_user from pg_extension where extname = 'pgcrypto'`,
      url,
    );
    expect(owners).toEqual([{ owner: owners[0]?.['me'], me: owners[0]?.['me'] }]);
    expect(
      await server.run(
        `select rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls as may, rolconnlimit as most
           from pg_roles where rolname = current_user`,
        url,
      ),
    ).toEqual([{ may: false, most: 20 }]);
  });

  test('two Environments with one seed have separate data, and cannot reach each other', async () => {
    const databases = open();
    const [one, two] = [
      await made(databases, wanted('env_one', colors)),
      await made(databases, wanted('env_two', colors)),
    ];
    await server.run(`insert into colors values ('red')`, one.url);
    expect(await server.run('select name from colors', two.url)).toEqual([{ name: 'blue' }]);
    const crossed = new URL(one.url);
    crossed.pathname = new URL(two.url).pathname;
    await expect(server.run('select 1', crossed.href)).rejects.toThrow(/permission denied for database/);
    crossed.username = new URL(two.url).username;
    await expect(server.run('select 1', crossed.href)).rejects.toThrow(/password authentication failed/);
    const template = (await server.left()).find((name) => String(name).startsWith('postern_t_'));
    crossed.pathname = `/${String(template)}`;
    crossed.username = new URL(one.url).username;
    await expect(server.run('select 1', crossed.href)).rejects.toThrow(/not currently accepting connections/);
    await expect(server.run(`set role ${new URL(two.url).username}`, one.url)).rejects.toThrow(
      /permission denied to set role/,
    );
  });

  test('the data stays when the seed changes, and a new Environment gets the new one', async () => {
    const databases = open();
    const { url } = await made(databases, wanted('env_one', colors));
    await server.run(`insert into colors values ('red')`, url);
    const changed = colors.replace('blue', 'green');
    expect((await made(databases, wanted('env_one', changed))).url).toBe(url);
    expect(await server.run('select count(*)::int as rows from colors', url)).toEqual([{ rows: 2 }]);
    const { url: other } = await made(databases, wanted('env_two', changed));
    expect(await server.run('select color()', other)).toEqual([{ color: 'green' }]);
  });

  test('a new ENCRYPTION_KEY, or a password that the service changed itself, is corrected by the next deploy', async () => {
    const before = await made(open(), wanted('env_one', colors));
    const rotated = await made(open({ encryptionKey: 'new key' }), wanted('env_one', colors));
    expect(await server.run('select color()', rotated.url)).toEqual([{ color: 'blue' }]);
    await expect(server.run('select 1', before.url)).rejects.toThrow(/password authentication failed/);
    await server.run(`alter role current_user password 'mine'`, rotated.url);
    const again = await made(open({ encryptionKey: 'new key' }), wanted('env_one', colors));
    expect(await server.run('select color()', again.url)).toEqual([{ color: 'blue' }]);
  });

  test.each<[title: string, seed: string, words: RegExp, limits?: Partial<SeedLimits>]>([
    [
      'runs a program',
      `create table t (a text);\ncopy t from program 'id'`,
      /permission denied|must be superuser/,
    ],
    [
      'changes the server',
      `commit; alter system set log_statement = 'all'`,
      /permission denied|must be superuser|transaction block/,
    ],
    ['connects elsewhere', 'select 1;\n\\connect postgres', /line 2: syntax error/],
    ['creates a role', 'create role intruder superuser', /permission denied|must be superuser/],
    ['reads a file', `select pg_read_file('/etc/passwd')`, /permission denied/],
    ['becomes another role', 'set role maker', /permission denied to set role/],
    ['reads from the driver', 'create table t (a text);\ncopy t from stdin', /COPY from stdin failed/],
    [
      'is wrong',
      'select 1;\n\nselect nothing from nowhere',
      /db\/seed\.sql, line 3: relation "nowhere" does not exist/,
    ],
    [
      'uses up the memory',
      `do $$ begin raise exception 'out of memory' using errcode = '53200'; end $$`,
      /out of memory/,
    ],
    ['never ends', 'do $$ begin loop end loop; end $$', /takes more than 1 s/, { timeMs: 1_000 }],
    [
      'answers without end',
      `select repeat('x', 1000000) from generate_series(1, 100)`,
      /sends more than 4 MiB back/,
    ],
    [
      'fills the disk',
      `create table t (a text);
       do $$ begin loop insert into t select repeat(md5(i::text), 30) from generate_series(1, 1000) i; end loop; end $$`,
      /makes more than 16 MiB of data/,
      { databaseBytes: 16 * 2 ** 20 },
    ],
  ])(
    'a seed that %s is refused with a message, and leaves nothing',
    async (_title, seed, words, limits = {}) => {
      const databases = open({ limits });
      await expect(made(databases, wanted('env_one', seed))).rejects.toMatchObject({
        code: 'config_invalid',
        message: expect.stringMatching(words) as string,
      });
      expect(await server.run(`select 1 from pg_roles where rolname = 'intruder'`)).toEqual([]);
      expect((await server.left()).filter((name) => String(name).startsWith('postern_t_'))).toEqual([]);
      // With the limits of the product.
      const { url } = await made(open(), wanted('env_one', colors));
      expect(await server.run('select color()', url)).toEqual([{ color: 'blue' }]);
    },
  );

  test('a worker that was killed during a seed leaves no partial database', async () => {
    const [first, next] = [open(), open()];
    const slow = `${colors}select pg_sleep(600);`;
    expect(await first.ensure(wanted('env_one', slow))).toBeNull();
    const sessions = `select pid from pg_stat_activity where query like '%pg_sleep(600)%' and pid <> pg_backend_pid()`;
    await expect.poll(() => server.run(sessions)).toHaveLength(1);
    // The lock and the work of a killed process end with its connection.
    await server.run(`select pg_terminate_backend(pid) from pg_stat_activity where usename = 'maker'`);
    const { url } = await made(next, wanted('env_one', colors));
    expect(await server.run('select color()', url)).toEqual([{ color: 'blue' }]);
    await next.sweep(async () => new Set(['env_one']));
    expect(await server.run(sessions)).toEqual([]);
    expect((await server.left()).filter((name) => String(name).startsWith('postern_t_'))).toHaveLength(2);
  });

  test('a copy that was interrupted is made again', async () => {
    const databases = open();
    const { url } = await made(databases, wanted('env_one', colors));
    const name = new URL(url).username;
    await server.run(`alter role ${name} nologin`);
    await made(databases, wanted('env_one', colors));
    expect(await server.run('select color()', url)).toEqual([{ color: 'blue' }]);
  });

  test('two workers that create the same database at once create one', async () => {
    const workers = [open(), open(), open()];
    const found = await Promise.all(workers.map((one) => made(one, wanted('env_one', colors))));
    expect(new Set(found.map(({ url }) => url)).size).toBe(1);
    expect(await server.run('select color()', found[0]?.url)).toEqual([{ color: 'blue' }]);
  });

  test('a teardown during the seed ends it', async () => {
    const databases = open();
    expect(await databases.ensure(wanted('env_one', 'select pg_sleep(600)'))).toBeNull();
    await expect.poll(() => server.left()).toContainEqual(expect.stringMatching(/^postern_t_/));
    await databases.remove('env_one');
    expect(await server.left()).toEqual([]);
  });

  test('a teardown removes objects of the role in other databases, a database that cannot be dropped, and open sessions', async () => {
    const databases = open();
    const { url } = await made(databases, wanted('env_one', colors));
    await made(databases, wanted('env_two', colors));
    const elsewhere = new URL(url);
    elsewhere.pathname = '/shared';
    await server.run('select lo_create(0)', elsewhere.href);
    await server.run(`alter database ${new URL(url).username} is_template true`, url);
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => undefined);
    await client.connect();
    await databases.remove('env_one');
    await expect(client.query('select 1')).rejects.toThrow(/terminat|connection error/);
    const left = await server.left();
    expect(left.filter((name) => String(name).startsWith('postern_t_'))).not.toEqual([]);
    await databases.remove('env_two');
    expect(await server.left()).toEqual([]);
  });

  test('a teardown does not wait for the seed of another Environment', async () => {
    const databases = open();
    expect(await databases.ensure(wanted('env_one', 'select pg_sleep(600)'))).toBeNull();
    await expect.poll(() => server.left()).toContainEqual(expect.stringMatching(/^postern_t_/));
    expect(await databases.ensure(wanted('env_two', colors))).toBeNull();
    await databases.remove('env_two');
    expect(await server.left()).toContainEqual(expect.stringMatching(/^postern_t_/));
    await databases.remove('env_one');
    expect(await server.left()).toEqual([]);
  });

  test('a session that holds its database, and one that holds its role elsewhere, do not stop a teardown', async () => {
    const databases = open();
    const { url } = await made(databases, wanted('env_one', colors));
    const name = new URL(url).username;
    await made(databases, wanted('env_two', colors));
    const elsewhere = new URL(url);
    elsewhere.pathname = '/shared';
    const holders = [
      { at: url, statement: `alter database ${name} connection limit 5` },
      { at: elsewhere.href, statement: `alter role ${name} password 'mine'` },
    ];
    for (const { at, statement } of holders) {
      const client = new pg.Client({ connectionString: at });
      client.on('error', () => undefined);
      await client.connect();
      await client.query(`begin; ${statement}`);
    }
    await databases.remove('env_one');
    expect(await server.left()).not.toContain(name);
  });

  test('the owner of another database, which is read-only, does not stop a teardown', async () => {
    const databases = open();
    const one = await made(databases, wanted('env_one', colors));
    const { url } = await made(databases, wanted('env_two', colors));
    const [name, host] = [one.url, url].map((each) => new URL(each).username);
    await server.run(`grant connect on database ${host} to public`, url);
    await server.run('select lo_create(0)', one.url.replace(/[^/]+$/, host ?? ''));
    await server.run(`alter database ${host} set default_transaction_read_only = on`, url);
    await databases.remove('env_one');
    expect(await server.left()).not.toContain(name);
  });

  test('a sweep removes databases without an Environment, and nothing of another installation', async () => {
    const other = open({ uiUrl: 'https://other.example.com' });
    await made(open(), wanted('env_one', colors));
    const kept = await made(open(), wanted('env_two', colors));
    const foreign = await made(other, wanted('env_three', colors, 'repo_two'));
    const removed = await open().sweep(async () => new Set(['env_two']));
    expect(removed).toEqual([expect.stringMatching(/^postern_e_/)]);
    for (const { url } of [kept, foreign])
      expect(await server.run('select color()', url)).toEqual([{ color: 'blue' }]);
    await other.sweep(async () => new Set());
  });

  test('a sweep that cannot remove one database removes the others', async () => {
    const both = [
      await made(open(), wanted('env_one', colors)),
      await made(open(), wanted('env_two', colors)),
    ];
    const [first = '', second = ''] = both.map(({ url }) => new URL(url).username).toSorted();
    // An object that PostgreSQL keeps for its role, where Postern cannot connect.
    await server.run('create database closed');
    await server.run(
      `create table kept (a int); alter table kept owner to ${first}`,
      server.superuser.replace(/[^/]+$/, 'closed'),
    );
    await server.run('alter database closed allow_connections false');
    await expect(open().sweep(async () => new Set())).rejects.toThrow(/depend on it/);
    expect(await server.left()).not.toContain(second);
    await server.run('drop database closed');
  });

  test('a sweep that cannot remove one template removes the others', async () => {
    for (const [id, seed] of Object.entries({ env_one: colors, env_two: `${colors}select 1;` }))
      await made(open(), wanted(id, seed));
    // Each is a role and a database.
    const templates = new Set(
      (await server.left()).map(String).filter((name) => name.startsWith('postern_t_')),
    );
    const [first = '', second = ''] = [...templates].toSorted();
    await server.run('create database closed');
    await server.run(
      `create table kept (a int); alter table kept owner to ${first}`,
      server.superuser.replace(/[^/]+$/, 'closed'),
    );
    await server.run('alter database closed allow_connections false');
    await expect(open().sweep(async () => new Set())).rejects.toThrow(/depend on it/);
    const left = await server.left();
    expect([left.includes(first), left.includes(second)]).toEqual([true, false]);
    await server.run('drop database closed');
  });

  test('the server gets a verifier in place of each password', async () => {
    const { password } = await made(open(), wanted('env_one', colors));
    const seen = await server.run(`select rolpassword from pg_authid where starts_with(rolname, 'postern_')`);
    expect(seen).toHaveLength(2);
    for (const { rolpassword } of seen) expect(rolpassword).toMatch(/^SCRAM-SHA-256\$4096:/);
    expect(JSON.stringify(seen)).not.toContain(password);
  });

  describe('in an Environment', () => {
    const file = `version: 1
services:
  api:
    build: { image: 'node:24', directory: api }
    run: { command: node server.js, port: 8080 }
    env: { DB_URL: "\${services.db.url}", DB: "\${services.db.host}:\${services.db.port}" }
    requires: [db]
  db:
    postgres: { seed: db/seed.sql }
`;
    const program = `
const { Client } = require(${JSON.stringify(join(import.meta.dirname, '../../node_modules/pg'))});
console.log('uses ' + process.env.DB_URL + ' at ' + process.env.DB);
require('node:http').createServer(async (request, response) => {
  const client = new Client({ connectionString: process.env.DB_URL });
  await client.connect();
  const { rows } = await client.query('select color()');
  await client.end();
  response.end(rows[0].color);
}).listen(process.env.PORT, '127.0.0.1');
`;
    let shop: Shop;
    beforeAll(async () => {
      shop = await openShop('process', { databaseServer: databaseServer(server.url, async () => null) });
      await shop.change({ allowedAccess: ['owner', 'members', 'public'] });
      const files = { 'postern.yaml': file, 'api/server.js': program };
      shop.repository.commit({ ...files, 'db/seed.sql': colors }, 'main');
      shop.repository.commit({ ...files, 'db/seed.sql': 'select 1;\nselect nothing from nowhere;' }, 'wrong');
    });
    afterAll(() => shop.close());

    test('a service reads a seeded row, and only it sees the password', async () => {
      const { data } = await shop.create({ access: 'public' });
      const environment = await shop.settle(data.id);
      expect(environment).toMatchObject({
        status: 'deployed',
        services: [
          { name: 'api', status: 'ready' },
          { name: 'db', kind: 'postgres', status: 'ready', url: null },
        ],
      });
      expect((await shop.fetch(`${environment.services[0].url}/`)).body).toBe('blue');
      const builds = await shop.call('GET', '/builds', { query: { environment: data.id } });
      expect(builds.data[0].steps).toContainEqual(
        expect.objectContaining({ service: 'db', step: 'health', status: 'done' }),
      );
      const logs = await shop.call('GET', `/environments/${data.id}/logs`, { query: { service: 'api' } });
      expect(logs.text).toMatch(
        /uses postgresql:\/\/postern_e_\w+:\[redacted\]@127\.0\.0\.1:\d+\/\w+ at 127/,
      );

      await shop.call('DELETE', `/environments/${data.id}`);
      await shop.settle(data.id);
      expect(await server.left()).toEqual([]);
    });

    test('a seed that fails is a config_error with its line', async () => {
      const { data } = await shop.create({ branch: 'wrong' });
      const environment = await shop.settle(data.id);
      expect(environment).toMatchObject({
        status: 'config_error',
        statusMessage: 'The seed cannot be used: db/seed.sql, line 2: relation "nowhere" does not exist',
      });
      const why = await shop.call('GET', `/environments/${data.id}/why`);
      expect(why.data[0]).toMatchObject({ step: 'configuration', ok: false });
      await shop.call('DELETE', `/environments/${data.id}`);
      await shop.settle(data.id);
    });

    test('an unavailable server keeps the deploy waiting, and says so', async () => {
      const away = databaseServer('postgresql://maker@127.0.0.1:1/postgres', async () => null);
      const other = await openShop('process', { databaseServer: away });
      other.repository.commit({ 'postern.yaml': file, 'api/server.js': program, 'db/seed.sql': colors });
      const { data } = await other.create();
      const words = 'The PostgreSQL of Environments cannot be used right now. Postern tries again.';
      const environment = await other.settle(data.id, ({ statusMessage }) => statusMessage === words);
      expect(environment.status).toBe('deploying');
      await other.close();
    });
  });

  describe('at the start', () => {
    const log = createLog({ level: 'silent' });
    const settings = (databaseUrl: string | null) =>
      ({
        engine: 'local',
        isolation: 'process',
        kubernetes: null,
        databaseUrl,
        secretsDir: null,
        home: null,
      }) satisfies EnvironmentSettings;

    async function refusal(databaseUrl: string, environmentsUrl: string): Promise<string> {
      const own = openDatabase(postgresPool(databaseUrl, { max: 1 }));
      try {
        await openDatabaseServer({ databaseUrl, environments: settings(environmentsUrl) }, own, log);
        return '';
      } catch (error) {
        if (error instanceof ConfigError) return error.message;
        throw error;
      } finally {
        await own.close();
      }
    }

    test('the server of DATABASE_URL is refused, under any name', async () => {
      const named = server.url.replace('127.0.0.1', 'localhost');
      expect(await refusal(server.superuser, named)).toContain('names the server of DATABASE_URL');
    });

    test('a role that may create nothing is refused, and so is a wrong password', async () => {
      await server.run(
        `create role plain login password 'right'; grant connect on database postgres to plain`,
      );
      const plain = server.url.replace('maker@', 'plain:right@');
      const own = async () => null;
      expect(await databaseServer(plain, own).mistake()).toMatchObject({
        problem: 'its role cannot create databases and roles',
      });
      expect(await refusal(server.superuser, plain.replace('right', 'wrong'))).toContain(
        'password authentication failed',
      );
      await server.run('drop owned by plain; drop role plain');
    });

    test('a database that every role may connect to is refused', async () => {
      const shared = server.url.replace(/[^/]+$/, 'shared');
      expect(await refusal(server.superuser, shared)).toContain('names the server of DATABASE_URL');
      expect(await databaseServer(shared, async () => null).mistake()).toMatchObject({
        fix: expect.stringContaining('REVOKE CONNECT ON DATABASE shared FROM PUBLIC') as string,
      });
    });

    test('a server whose identifier no role may read is refused, because it could be that of DATABASE_URL', async () => {
      await server.run('revoke execute on function pg_control_system() from public');
      expect(await refusal(server.superuser, server.url)).toContain(
        'GRANT EXECUTE ON FUNCTION pg_control_system()',
      );
      await server.run('grant execute on function pg_control_system() to public');
    });

    test('an unavailable server does not stop the start, and its use says so', async () => {
      const away = databaseServer('postgresql://maker@127.0.0.1:1/postgres', async () => null);
      const databases = createDatabases({
        server: away,
        uiUrl: 'https://postern.example.com',
        encryptionKey: 'key of the tests',
        onSettled: () => undefined,
      });
      await expect(databases.ensure(wanted('env_one'))).rejects.toMatchObject({
        code: 'engine_unavailable',
        message: 'The PostgreSQL of Environments cannot be used right now.',
      });
    });
  });
});
