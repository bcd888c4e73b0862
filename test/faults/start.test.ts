import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { findPostgres } from '../../scripts/local-servers.ts';
import { startObjectStore, type TestObjectStore } from '../../scripts/object-store.ts';
import { isRedisMissing, type RedisServer, startRedis } from '../contract/kv-redis-server.ts';
import { isBwrapMissing } from '../engines/local-machine.ts';
import { isObjectStoreMissing, settingOf, startBadWay } from '../objects/object-store.ts';
import { Browser } from './browser.ts';
import { createDatabase, type PostgresServer, startPostgres } from './postgres-server.ts';
import { administrator, freePorts, type Ports, runCommand, startListening, startProgram } from './program.ts';

// What each workload says when it starts, as real processes.
const bin = findPostgres();
const isMissing =
  process.env['CI'] !== 'true' && (bin === undefined || isRedisMissing || isObjectStoreMissing);

test.skipIf(isBwrapMissing)(
  'a start says which isolation is in force, and what it does not stop',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'postern-start-isolated-'));
    const settings = { ENVIRONMENTS_ENGINE: 'local' };
    const program = await startProgram({ dataDir: folder, ports: await freePorts(), settings });
    onTestFinished(async () => {
      await program.end('SIGTERM');
      rmSync(folder, { recursive: true, force: true });
    });
    expect(program.output()).toMatch(
      /^ {2}isolation {5}Environments run in a sandbox.* code (?:can )?reach/m,
    );
  },
);

describe.skipIf(isMissing)('a start', () => {
  let database: PostgresServer;
  let redis: RedisServer;
  let dataDir: string;
  beforeAll(async () => {
    if (bin === undefined) throw new Error('There is no PostgreSQL here: apt-get install postgresql');
    [database, redis] = await Promise.all([
      startPostgres(bin),
      startRedis('--maxmemory-policy', 'noeviction'),
    ]);
    dataDir = mkdtempSync(join(tmpdir(), 'postern-start-'));
  });
  afterAll(async () => {
    await Promise.all([database.stop(), redis.stop()]);
    rmSync(dataDir, { recursive: true, force: true });
  });

  // In this order: web makes the tables that a gateway reads.
  test.each([
    ['web', 1],
    ['gateway', 1],
    ['worker', 0],
  ] as const)(
    'GW-05 the start of %s warns of a content domain shared with the web app: %i times',
    async (workload, times) => {
      const settings = {
        SERVICE_UI_URL: 'https://postern.example.com',
        SITES_CONTENT_URL: 'https://sites.example.com',
        KV_URL: redis.url,
      };
      const installation = { dataDir, databaseUrl: database.url, ports: await freePorts(), settings };
      const program = await startProgram(installation, workload);
      onTestFinished(async () => void (await program.end('SIGTERM')));
      const warnings = program.output().match(/"msg":"[^"]*share a registrable domain/g) ?? [];
      expect(warnings).toHaveLength(times);
    },
  );

  test('each workload starts while all stores are unavailable, says what it waits for, and serves when they are back', async () => {
    const [gone, emptyKv, store] = await Promise.all([
      startPostgres(bin ?? ''),
      startRedis(),
      startObjectStore(),
    ]);
    onTestFinished(() => Promise.all([gone.stop(), emptyKv.stop(), store.close()]).then(() => undefined));
    await Promise.all([gone.halt(), emptyKv.kill(), store.stop()]);
    const settings = {
      ...storeSettings(store),
      KV_URL: emptyKv.url,
      SITES_CONTENT_URL: 'http://sites.localhost:1',
      LOG_LEVEL: 'info',
    };
    const start = async (workload: 'web' | 'gateway' | 'worker') => {
      const installation = {
        dataDir: join(dataDir, `without-${workload}`),
        databaseUrl: gone.url,
        ports: await freePorts(),
        settings,
      };
      const program = await startListening(installation, workload);
      onTestFinished(async () => void (await program.end('SIGTERM')));
      const ask = (path: string, init?: RequestInit) =>
        fetch(`http://127.0.0.1:${installation.ports.operations}${path}`, init);
      return { ...program, ports: installation.ports, ask };
    };
    const [web, gateway, worker] = await Promise.all([start('web'), start('gateway'), start('worker')]);
    for (const { ask, output } of [web, gateway, worker]) {
      expect((await ask('/livez')).status).toBe(200);
      const readiness = await ask('/readyz');
      expect([readiness.status, await readiness.json()]).toEqual([
        503,
        expect.objectContaining({
          waitingFor: {
            database: expect.stringContaining('DATABASE_URL: no server listens at this address'),
            kv: expect.stringContaining('KV_URL: no server listens at this address'),
            blobs: expect.stringContaining('OBJECT_STORE_URL: no server listens at this address'),
          },
        }),
      ]);
      expect(output()).not.toContain('is ready');
    }
    // What needs no store is answered; what cannot be checked is refused, and is never a 401.
    const api = `${web.origin}/api/v2`;
    // Polled: a web that is short of processor time answers 503 `overloaded`.
    await expect.poll(async () => (await fetch(`${api}/docs`)).status, oftenEnough).toBe(200);
    const key = { headers: { authorization: `Bearer app_usr_${'0'.repeat(40)}` } };
    const refused = await fetch(`${api}/auth/context`, key);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
    const page = await statusOf(gateway.ports.gateway, 'abcdefghijklmnopq.sites.localhost:1');
    expect(page).toBe(503);

    await gone.resume();
    // A web needs no more than its database to check keys.
    const webProbe = async () => (await web.ask('/readyz?exclude=kv&exclude=blobs')).status;
    await expect.poll(webProbe, oftenEnough).toBe(200);
    expect((await fetch(`${api}/auth/context`, key)).status).toBe(401);
    expect((await web.ask('/readyz')).status).toBe(503);

    await Promise.all([emptyKv.start(), store.start()]);
    for (const { output } of [web, gateway, worker])
      await expect.poll(output, oftenEnough).toContain('is ready');
    expect(web.output()).toMatch(
      /"msg":"the database is available"[^]*"msg":"the (?:key-value|object) store is available"/,
    );
  });

  test('a gateway that starts before the migration waits for its views, and for the right to read them', async () => {
    await createDatabase(database.url, 'unmigrated');
    const databaseUrl = Object.assign(new URL(database.url), { pathname: '/unmigrated' }).href;
    await runSql(database.url, 'create role early_gateway login');
    const gatewayUrl = Object.assign(new URL(databaseUrl), { username: 'early_gateway' }).href;
    const settings = { KV_URL: redis.url, SITES_CONTENT_URL: 'http://sites.localhost:1' };
    const ports = await freePorts();
    const gateway = await startListening(
      { dataDir: join(dataDir, 'early'), databaseUrl: gatewayUrl, ports, settings },
      'gateway',
    );
    onTestFinished(async () => void (await gateway.end('SIGTERM')));
    const waitingFor = async () =>
      ((await (await fetch(`http://127.0.0.1:${ports.operations}/readyz`)).json()) as Waiting).waitingFor
        ?.database;
    await expect.poll(waitingFor, oftenEnough).toContain('its database has no gateway.');

    const migration = { dataDir: join(dataDir, 'migration'), databaseUrl, ports: await freePorts() };
    expect((await runCommand(migration, ['migrate'])).code).toBe(0);
    await expect.poll(waitingFor, oftenEnough).toContain('its role may not read gateway.');
    await runSql(
      databaseUrl,
      'grant usage on schema gateway to early_gateway; grant select on all tables in schema gateway to early_gateway',
    );
    await expect.poll(gateway.output, oftenEnough).toContain('is ready');
  });

  test('a web and a worker whose role cannot create tables wait for the migration', async () => {
    await createDatabase(database.url, 'narrow');
    const databaseUrl = Object.assign(new URL(database.url), { pathname: '/narrow' }).href;
    await runSql(databaseUrl, 'create role narrow login; revoke create on schema public from public');
    const narrowUrl = Object.assign(new URL(databaseUrl), { username: 'narrow' }).href;
    const settings = { KV_URL: redis.url };
    const waiting = await Promise.all(
      (['web', 'worker'] as const).map(async (workload) => {
        const ports = await freePorts();
        const dataDirOfOne = join(dataDir, `narrow-${workload}`);
        const program = await startListening(
          { dataDir: dataDirOfOne, databaseUrl: narrowUrl, ports, settings },
          workload,
        );
        onTestFinished(async () => void (await program.end('SIGTERM')));
        await expect
          .poll(program.output, oftenEnough)
          .toContain('its role lacks a privilege that this version needs');
        return program;
      }),
    );
    const migration = { dataDir: join(dataDir, 'migration'), databaseUrl, ports: await freePorts() };
    expect((await runCommand(migration, ['migrate'])).code).toBe(0);
    await runSql(
      databaseUrl,
      'grant all on all tables in schema public to narrow; grant all on all sequences in schema public to narrow',
    );
    for (const { output } of waiting) await expect.poll(output, oftenEnough).toContain('is ready');
  });

  test.each([
    [
      'a database that its server does not have',
      (url: URL) => (url.pathname = '/nowhere'),
      /the database does not exist/,
    ],
    [
      'a user that it does not know',
      (url: URL) => (url.username = 'stranger'),
      /the server refuses this user/,
    ],
  ])('%s ends the start at once', async (_, change, told) => {
    const url = new URL(database.url);
    change(url);
    const installation = {
      dataDir: join(dataDir, 'refused'),
      databaseUrl: url.href,
      ports: await freePorts(),
      settings: { KV_URL: redis.url },
    };
    for (const workload of ['web', 'gateway', 'worker']) {
      const { code, output } = await runCommand(installation, [workload]);
      expect([workload, code, output]).toEqual([workload, 1, expect.stringMatching(told)]);
    }
  });

  test('a web that starts removes the upload of a killed one, and keeps that of a running one', async () => {
    const store = await startObjectStore();
    const way = await startBadWay(store);
    onTestFinished(async () => void (await Promise.all([way.close(), store.close()])));
    await createDatabase(database.url, 'uploads');
    const databaseUrl = Object.assign(new URL(database.url), { pathname: '/uploads' }).href;
    const ports = await freePorts();
    const uiUrl = `http://localhost:${ports.web}`;
    const settings = {
      ...storeSettings(store),
      OBJECT_STORE_URL: settingOf(way.url),
      KV_URL: redis.url,
      SERVICE_UI_URL: uiUrl,
    };
    const folder = join(dataDir, 'sharing');
    const start = async (own: Ports) => {
      const web = await startListening({ dataDir: folder, databaseUrl, ports: own, settings }, 'web');
      onTestFinished(async () => void (await web.end('SIGKILL')));
      return { ...web, port: own.web };
    };
    const [killed, living] = [await start(ports), await start(await freePorts())];
    for (const { output } of [killed, living]) await expect.poll(output, oftenEnough).toContain('is ready');
    const browser = new Browser(killed.origin);
    onTestFinished(() => browser.disconnect());
    await browser.signIn(administrator.email, administrator.password);
    const { data } = await browser.api('POST', '/me/tokens', {
      name: 'uploads',
      scopes: ['sites:write'],
      repositoryAccess: { mode: 'all' },
    });

    const waiting = () =>
      ['uploads', 'object-store/outgoing']
        .flatMap((name) => readdirSync(join(folder, name), { recursive: true, withFileTypes: true }))
        .filter((one) => one.isFile())
        .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'utf8').slice(3, 6))
        .toSorted();
    const upload = ({ port }: { port: number }, text: string) => {
      const headers = {
        host: new URL(uiUrl).host,
        authorization: `Bearer ${data.token}`,
        'content-type': 'text/html',
      };
      const target = { host: '127.0.0.1', port, path: '/api/v2/sites?visibility=public', agent: false };
      const sent = request({ ...target, method: 'POST', headers });
      sent.write(`<p>${text}</p>`.repeat(50_000));
      return sent;
    };
    // Nothing reaches the store now: what one web received whole waits beside what the other still receives.
    way.set('hangs');
    const lost = upload(killed, 'one').end();
    const cutOff = once(lost, 'error');
    const finished = upload(living, 'two');
    await expect.poll(waiting, oftenEnough).toEqual(['one', 'two']);
    await killed.end('SIGKILL');
    await cutOff;
    expect(waiting()).toEqual(['one', 'two']);

    await start(await freePorts());
    expect(waiting()).toEqual(['two']);
    way.set('none');
    const answered = once(finished.end(), 'response') as Promise<[IncomingMessage]>;
    expect((await answered)[0].resume().statusCode).toBe(201);
    expect(waiting()).toEqual([]);
  });

  test('a second installation with other secrets on one database says in one sentence why it does not start', async () => {
    await createDatabase(database.url, 'twice');
    const databaseUrl = Object.assign(new URL(database.url), { pathname: '/twice' }).href;
    const settings = { KV_URL: redis.url };
    const installation = { dataDir: join(dataDir, 'first'), databaseUrl, ports: await freePorts(), settings };
    const first = await startProgram(installation, 'web');
    onTestFinished(async () => void (await first.end('SIGTERM')));
    const others = { ...settings, ENCRYPTION_KEY: 'the encryption key of another installation' };
    const second = {
      dataDir: join(dataDir, 'second'),
      databaseUrl,
      ports: await freePorts(),
      settings: others,
    };
    for (const workload of ['web', 'worker']) {
      const { code, output } = await runCommand(second, [workload]);
      expect([code, output]).toEqual([
        1,
        expect.stringMatching(
          /ENCRYPTION_KEY: does not decrypt this database: another installation uses the database, or the key was replaced/,
        ),
      ]);
      expect(output).not.toMatch(/^\s+at /m);
    }
  });

  test('a process that is stopped while it waits ends cleanly', async () => {
    const gone = await startPostgres(bin ?? '');
    onTestFinished(gone.stop);
    await gone.halt();
    const settings = { KV_URL: redis.url };
    const installation = {
      dataDir: join(dataDir, 'stopped'),
      databaseUrl: gone.url,
      ports: await freePorts(),
      settings,
    };
    for (const workload of ['web', 'gateway', 'worker'] as const) {
      const program = await startListening(installation, workload);
      expect(await program.end('SIGTERM')).toEqual({ code: 0, signal: null });
    }
  });
});

type Waiting = { readonly waitingFor?: { readonly database?: string } };

/** For a process that tries once a second. */
const oftenEnough = { interval: 100 };

/** What a gateway answers to a browser that asks for this host. */
async function statusOf(port: number, host: string): Promise<number | undefined> {
  const asked = request({ host: '127.0.0.1', port, headers: { host }, agent: false }).end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  return response.resume().statusCode;
}

async function runSql(url: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(text);
  await client.end();
}

function storeSettings({ url, accessKey, secretKey }: TestObjectStore) {
  return {
    OBJECT_STORE_URL: settingOf(url),
    OBJECT_STORE_ACCESS_KEY: accessKey,
    OBJECT_STORE_SECRET_KEY: secretKey,
  };
}
