import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { second } from '../../src/core/clock.ts';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import { sql } from '../../src/platform/database/sql.ts';
import { excessOf, grantViews, unavailableReasonForViews } from '../../src/platform/database/gateway-role.ts';
import { postgresPool } from '../../src/platform/database/postgres.ts';
import { type Harness, openHarness, type Person } from '../harness.ts';
import { testServer } from '../postgres.ts';
import { upload } from '../api/sites/uploads.ts';
import { change, environmentOf, switchEnvironments } from './environment.ts';
import { browserOf, privateSite } from './private.ts';

// The three workloads, each on its own, over one database and one key-value store.
let web: Harness;
let worker: Harness;
let gateway: Awaited<ReturnType<Harness['gatewayAlone']>>;
let ownDatabase: Database | undefined;
let ada: Person;
let admin: Person;

/** Where there is a server with roles: the gateway's own, which sees its views only. */
async function asGatewayRole(database: Database): Promise<Database | undefined> {
  if (testServer === undefined) return undefined;
  const role = `gateway_${randomBytes(6).toString('hex')}`;
  await sql`create role ${sql.id(role)} login`.run(database.sql);
  expect(await grantViews(database, role)).toBeNull();
  const row = await sql<{ name: string }>`select current_database() as name`.first(database.sql);
  const url = new URL(testServer);
  url.username = role;
  url.pathname = `/${row?.name}`;
  return openDatabase(postgresPool(url.href, { max: 2, readsOnly: 'gateway' }));
}

beforeAll(async () => {
  web = await openHarness({ workload: 'web' });
  worker = await web.another({ workload: 'worker' });
  ownDatabase = await asGatewayRole(web.database);
  gateway = await web.gatewayAlone(ownDatabase);
  ada = await web.person('Ada');
  admin = await web.person('Root', { admin: true });
});
afterAll(async () => {
  await gateway.stop();
  await ownDatabase?.close();
  await worker.close();
  await web.close();
});

async function publicSite(files: Readonly<Record<string, string>>) {
  const { data } = await upload(web, ada, files, { visibility: 'public' });
  return data as { id: string; url: string };
}

/** A person's browser: pages from the web workload, content from the gateway. */
const browser = () => browserOf({ ...web, open: gateway.open }, ada);

test('an Environment opens at a separate gateway, to a person with a grant, until it is torn down', async () => {
  await switchEnvironments(web, admin);
  await gateway.feed.poll();
  const services = { web: { files: { 'index.html': 'built' } } };
  const shown = await environmentOf(web, ada, { services });
  expect((await gateway.open(shown.urlOf('web'))).body).toBe('built');
  const hidden = await environmentOf(web, ada, { access: 'owner', services });
  expect((await gateway.open(hidden.urlOf('web'))).statusCode).toBe(303);
  expect((await browser().open(hidden.urlOf('web'))).text).toBe('built');
  await change(web, shown.id, { status: 'tearing_down' });
  expect((await gateway.open(shown.urlOf('web'))).statusCode).toBe(410);
});

test('a site that is published on web is served by a separate gateway, and changes within a second', async () => {
  const site = await publicSite({ 'index.html': 'first' });
  expect((await gateway.open(site.url)).body).toBe('first');
  await web.call('DELETE', `/sites/${site.id}`, { as: ada });
  expect((await gateway.open(site.url)).statusCode).toBe(404);
});

test('a private site opens through the sign-in flow, until web ends its grants', async () => {
  const site = await privateSite(web, ada, { 'index.html': 'for Ada' });
  const visitor = browser();
  const shown = await visitor.open(site.url);
  expect([shown.status, shown.text]).toEqual([200, 'for Ada']);
  await web.call('DELETE', `/sites/${site.id}/grants`, { as: ada });
  expect((await visitor.asset(site.url)).status).not.toBe(200);
});

test('refusals of a gateway are in the audit log, and only the worker runs the jobs of one process', async () => {
  const site = await privateSite(web, ada);
  await gateway.open(`${site.url}.postern/redeem`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', origin: 'http://localhost:3000' },
    body: 'code=made-up',
  });
  await gateway.jobs.runNow('gateway-news');
  await expect(web.app.jobs.runNow('gateway-news-desk')).rejects.toThrow('There is no job');
  await worker.app.jobs.runNow('gateway-news-desk');
  const events = await web.call('GET', '/audit/events', {
    as: admin,
    query: { event: 'site.grant_refused' },
  });
  expect(events.data.length).toBeGreaterThan(0);
});

test('KF-05 a key in an address of a site causes a notice to its owner, although the gateway knows no keys', async () => {
  const key = await web.key(ada);
  const site = await publicSite({ 'index.html': 'hello' });
  const answer = await gateway.open(`${site.url}?token=${key.value}`);
  expect(answer.statusCode).toBe(400);
  await gateway.jobs.runNow('gateway-news');
  await worker.app.jobs.runNow('gateway-news-desk');
  await worker.app.jobs.runNow('alarms');
  await worker.app.services.denials.flush({ all: true });
  const notices = await web.call('GET', '/me/notices', { as: ada });
  expect(notices.data).toMatchObject([{ kind: 'key_exposed', keyId: key.id }]);
  const timeline = await web.call('GET', `/me/tokens/${key.id}/timeline`, { as: ada });
  expect(timeline.data.map(({ event }: { event: string }) => event)).toContain('api_key.exposed');
  for (const { logged } of [web, worker]) expect(logged.join('\n')).not.toContain(key.value.slice(20));
});

test('Sites switched off on web is off at the gateway', async () => {
  const site = await publicSite({ 'index.html': 'on' });
  const status = async () => (await gateway.open(site.url)).statusCode;
  expect(await status()).toBe(200);
  const { data, headers } = await web.call('GET', '/config/sites', { as: admin });
  const put = async (enabled: boolean, etag: string | undefined) =>
    await web.call('PUT', '/config/sites', {
      as: admin,
      headers: { 'if-match': etag ?? '' },
      body: { ...data.config, enabled },
    });
  const off = await put(false, headers['etag']);
  // The news is heard at once; the document is read after it.
  await expect.poll(status).toBe(404);
  await put(true, off.headers['etag']);
  await expect.poll(status).toBe(200);
});

test('a gateway without the change feed for half a minute says that it is not ready, until the feed is back', async () => {
  await gateway.feed.poll();
  web.clock.advance(30 * second);
  await expect(gateway.hasNews()).resolves.toBeUndefined();
  web.clock.advance(1);
  await expect(gateway.hasNews()).rejects.toThrow('has not read the database');
  await gateway.feed.poll();
  await expect(gateway.hasNews()).resolves.toBeUndefined();
});

test('without a gateway no grant is issued, and web says why', async () => {
  const site = await privateSite(web, ada);
  await gateway.stop();
  const access = await web.call('GET', `/sites/${site.id}/access`, { as: ada });
  expect(access.text).toContain('No gateway is running.');
  gateway = await web.gatewayAlone(ownDatabase);
  web.clock.advance(second);
  expect((await browser().open(site.url)).status).toBe(200);
});

test.skipIf(testServer === undefined)(
  'the gateway’s role reads its views and nothing else, and writes nothing',
  async () => {
    const role = ownDatabase;
    if (role === undefined) throw new Error('There is no role without a server.');
    expect(await unavailableReasonForViews(role)).toBeNull();
    expect(await excessOf(role)).toBeNull();
    const rows = await sql<{ name: string }>`
      select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where n.nspname = 'public' and c.relkind = 'r'`.all(web.database.sql);
    expect(rows.length).toBeGreaterThan(20);
    for (const { name } of rows) {
      const reading = sql`select 1 from public.${sql.id(name)} limit 1`.run(role.sql);
      await expect(reading).rejects.toMatchObject({ code: '42501' });
    }
    for (const change of [sql`delete from sites`, sql`update changes set subject = ''`])
      await expect(change.run(role.sql)).rejects.toMatchObject({ code: '42501' });
    expect(await excessOf(web.database)).toContain('api_keys');
  },
);

test('a gateway cannot read the owner of a site, its name, or why it was taken down', async () => {
  const site = await publicSite({ 'index.html': 'mine' });
  await web.call('POST', `/sites/${site.id}/take-down`, { as: admin, body: { reason: 'a reason for Ada' } });
  const rows = await sql`select * from gateway.sites where id = ${site.id}`.all(web.database.sql);
  expect(rows).toMatchObject([{ name: '', ownerKind: '', ownerId: '', takeDownReason: null }]);
  for (const word of ['a reason for Ada', ada.user.id]) expect(JSON.stringify(rows)).not.toContain(word);
});

test.skipIf(testServer === undefined)(
  'all other rights of the role are named: views, sequences, columns, foreign functions, other schemas, other roles, its own privileges',
  async () => {
    const role = ownDatabase;
    if (role === undefined) throw new Error('There is no role without a server.');
    const row = await sql<{ name: string }>`select current_user as name`.first(role.sql);
    const name = sql.id(row?.name ?? '');
    const found = await sql<{ name: string }>`select current_database() as name`.first(role.sql);
    const database = found?.name ?? '';
    const run = (statement: ReturnType<typeof sql>) => statement.run(web.database.sql);
    const cases = [
      [
        'open_view',
        sql`create view open_view as select 1 as one`,
        sql`grant select on open_view to ${name}`,
        sql`drop view open_view`,
      ],
      [
        'a_sequence',
        sql`create sequence a_sequence`,
        sql`grant usage on sequence a_sequence to ${name}`,
        sql`drop sequence a_sequence`,
      ],
      [
        'api_keys',
        sql`select 1`,
        sql`grant select (id) on api_keys to ${name}`,
        sql`revoke select (id) on api_keys from ${name}`,
      ],
      [
        'gateway.sites',
        sql`select 1`,
        sql`grant update on gateway.sites to ${name}`,
        sql`revoke update on gateway.sites from ${name}`,
      ],
      [
        'as_owner()',
        sql`select 1`,
        sql`create function as_owner() returns int language sql security definer as 'select 1'`,
        sql`drop function as_owner()`,
      ],
      [
        'elsewhere.things',
        sql`create schema elsewhere create table things (id int)`,
        sql`do $$ begin grant usage on schema elsewhere to ${name}; grant select on elsewhere.things to ${name}; end $$`,
        sql`drop schema elsewhere cascade`,
      ],
      [
        'making things in public',
        sql`select 1`,
        sql`grant create on schema public to ${name}`,
        sql`revoke create on schema public from ${name}`,
      ],
      [
        'making things in unused',
        sql`create schema unused`,
        sql`grant create on schema unused to ${name}`,
        sql`drop schema unused`,
      ],
      [
        `making schemas in the database ${database}`,
        sql`select 1`,
        sql`grant create on database ${sql.id(database)} to ${name}`,
        sql`revoke create on database ${sql.id(database)} from ${name}`,
      ],
      ...(
        [
          ['every row, by replication', 'replication'],
          ['rows past row security', 'bypassrls'],
          ['making roles', 'createrole'],
          ['making databases', 'createdb'],
        ] as const
      ).map(
        ([named, attribute]) =>
          [
            named,
            sql`select 1`,
            sql`alter role ${name} ${sql.raw(attribute)}`,
            sql`alter role ${name} ${sql.raw(`no${attribute}`)}`,
          ] as const,
      ),
      [
        'the role pg_monitor',
        sql`select 1`,
        sql`grant pg_monitor to ${name}`,
        sql`revoke pg_monitor from ${name}`,
      ],
    ] as const;
    for (const [named, make, give, undo] of cases) {
      await run(make);
      await run(give);
      expect(await excessOf(role)).toContain(named);
      await run(undo);
      expect(await excessOf(role)).toBeNull();
    }
  },
);

test.skipIf(testServer === undefined)(
  'a role without the views is told which statements give them',
  async () => {
    if (testServer === undefined) return;
    const role = `nobody_${randomBytes(6).toString('hex')}`;
    await sql`create role ${sql.id(role)} login`.run(web.database.sql);
    const row = await sql<{ name: string }>`select current_database() as name`.first(web.database.sql);
    const url = new URL(testServer);
    url.username = role;
    url.pathname = `/${row?.name}`;
    const database = openDatabase(postgresPool(url.href, { max: 1, readsOnly: 'gateway' }));
    expect((await unavailableReasonForViews(database))?.fix).toContain(
      'grant usage on schema gateway to ROLE',
    );
    await database.close();
  },
);

test.skipIf(testServer === undefined)(
  'a migration grants the named role the views, those of later migrations too, and nothing else',
  async () => {
    const role = ownDatabase;
    if (role === undefined) throw new Error('There is no role without a server.');
    const row = await sql<{ name: string }>`select current_user as name`.first(role.sql);
    await sql`create view gateway.later as select 1 as one`.run(web.database.sql);
    expect(await sql`select one from gateway.later`.all(role.sql)).toEqual([{ one: 1 }]);
    await sql`drop view gateway.later`.run(web.database.sql);
    expect([await unavailableReasonForViews(role), await excessOf(role)]).toEqual([null, null]);
    const temporary = sql<{
      may: boolean;
    }>`select has_database_privilege(current_database(), 'temporary') as may`;
    expect(await temporary.all(role.sql)).toEqual([{ may: false }]);
    // Again, where nothing may be written, such as on a standby: nothing is left to do.
    const found = await sql<{ name: string }>`select current_database() as name`.first(role.sql);
    const url = new URL(testServer ?? '');
    url.pathname = `/${found?.name}`;
    const readOnly = openDatabase(postgresPool(url.href, { max: 1, readsOnly: 'public' }));
    expect(await grantViews(readOnly, row?.name ?? '')).toBeNull();
    await readOnly.close();
  },
);

test.skipIf(testServer === undefined)(
  'a role that PostgreSQL does not have is named, and how to make it',
  async () => {
    expect(await grantViews(web.database, 'nobody"s')).toEqual({
      problem: 'PostgreSQL has no role nobody"s',
      fix: expect.stringContaining('create role nobody"s login'),
    });
  },
);
