import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { findPostgres } from '../../scripts/local-servers.ts';
import { isRedisMissing } from '../contract/kv-redis-server.ts';
import { type Build, makeNextBuild, nextStep } from './builds.ts';
import { tellRecovery } from './figures.ts';
import { type Member, watch } from './fleet.ts';
import { createDice } from './ledger.ts';
import { type LivedInFleet, startLivedInFleet } from './lived-in-fleet.ts';
import { createDatabase, type PostgresServer, startPostgres } from './postgres-server.ts';
import { freePorts, type Installation, runCommand, startAndKill, startProgram } from './program.ts';

const bin = findPostgres();
const isCi = process.env['CI'] === 'true';

async function rowsOf(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(text);
  await client.end();
  return rows;
}

const stepsOf = (url: string) => rowsOf(url, 'select name, checksum from schema_migrations order by name');
const columnsOf = (url: string) =>
  rowsOf(
    url,
    `select table_schema, table_name, column_name, data_type, is_nullable, column_default
       from information_schema.columns where table_schema in ('public', 'gateway') order by 1, 2, 3`,
  );

describe.skipIf(!isCi && bin === undefined)('migrations that are killed, on PostgreSQL', () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-update-'));
  let postgres: PostgresServer;
  let next: Build;
  beforeAll(async () => {
    if (bin === undefined) throw new Error('There is no PostgreSQL here: apt-get install postgresql');
    postgres = await startPostgres(bin);
    next = makeNextBuild(1);
  });
  afterAll(async () => {
    await postgres?.stop();
    next?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  async function installationOn(name: string): Promise<Installation & { databaseUrl: string }> {
    const url = new URL(postgres.url);
    await createDatabase(url.href, name);
    url.pathname = `/${name}`;
    return { dataDir: join(folder, name), ports: await freePorts(), databaseUrl: url.href };
  }

  test('FT-13 the next start completes a migration that was killed at any moment, even inside a step', async () => {
    const untouched = await installationOn('untouched');
    expect((await runCommand({ ...untouched, main: next.main }, ['migrate'])).code).toBe(0);
    const killed = await installationOn('killed');
    const dice = createDice(Number(process.env['FAULT_SEED'] ?? Date.now() % 1_000_000));
    for (let times = 0; times < (isCi ? 10 : 3); times += 1)
      await startAndKill({ ...killed, main: next.main }, wait(300 + dice.below(4_000)), ['migrate']);
    const again = await runCommand({ ...killed, main: next.main }, ['migrate']);
    expect([again.code, again.output]).toEqual([0, expect.any(String)]);
    expect(await stepsOf(killed.databaseUrl)).toEqual(await stepsOf(untouched.databaseUrl));
    expect(await columnsOf(killed.databaseUrl)).toEqual(await columnsOf(untouched.databaseUrl));
    const program = await startProgram({ ...killed, main: next.main });
    expect((await program.end('SIGTERM')).code).toBe(0);
  });

  test('FT-13 a step that is killed leaves no change, the previous version keeps serving, and the next start repeats the step', async () => {
    const installation = await installationOn('middle');
    const url = installation.databaseUrl;
    expect((await runCommand(installation, ['migrate'])).code).toBe(0);
    const before = await columnsOf(url);
    const inTheMiddle = async () => {
      const asked = `select 1 from pg_stat_activity where query like '%pg_sleep(1)%' and pid <> pg_backend_pid()`;
      while ((await rowsOf(url, asked)).length === 0) await wait(20);
    };
    await startAndKill({ ...installation, main: next.main }, inTheMiddle(), ['migrate']);
    const old = await startProgram(installation);
    expect(await columnsOf(url)).toEqual(before);
    expect(await stepsOf(url)).not.toContainEqual(expect.objectContaining({ name: nextStep }));
    await old.end('SIGTERM');
    const again = await runCommand({ ...installation, main: next.main }, ['migrate']);
    expect([again.code, again.output]).toEqual([0, expect.stringContaining(nextStep)]);
    expect(await rowsOf(url, 'select count(*)::int as count from next_things')).toEqual([{ count: 1_000 }]);
  });
});

describe.skipIf(!isCi && (bin === undefined || isRedisMissing))('an update that rolls', () => {
  let fleet: LivedInFleet;
  let next: Build;
  beforeAll(async () => {
    if (bin === undefined) throw new Error('There is no PostgreSQL here: apt-get install postgresql');
    fleet = await startLivedInFleet(bin);
    next = makeNextBuild(2);
  });
  afterAll(async () => {
    await fleet?.stop();
    next?.remove();
  });

  /** Joins the fleet until the test ends. */
  async function startMember(...[workload, options]: Parameters<LivedInFleet['start']>): Promise<Member> {
    const member = await fleet.start(workload, options);
    onTestFinished(async () => void (await member.end('SIGTERM')));
    return member;
  }

  /** Sends a configuration document back at `web` with one number changed, and whatever else that build reads of it. */
  async function changeConfig(web: Member, name: 'api-keys' | 'sites', changed: object): Promise<void> {
    const address = `${fleet.uiUrl}/api/v2/config/${name}`;
    const cookie = `__Host-postern_session=${fleet.ada.session}`;
    const read = JSON.parse((await fleet.ask(address, web.ports.web, { cookie })).text) as {
      data: { policy?: object; config?: object };
    };
    const body = JSON.stringify({ ...(read.data.policy ?? read.data.config), ...changed });
    const headers = { cookie, origin: fleet.uiUrl, 'if-match': '*' };
    const sent = { method: 'PUT', type: 'application/json', bytes: Buffer.from(body) };
    const answer = await fleet.ask(address, web.ports.web, headers, sent);
    if (answer.status !== 200) throw new Error(`Answered ${answer.status}: ${answer.text}`);
  }

  const storedDocument = async (name: string) => {
    const newest = `select value from config_documents where name = '${name}' order by version desc limit 1`;
    const [row] = (await rowsOf(fleet.databaseUrl, newest)) as { value: object }[];
    return row?.value;
  };

  test('FT-13 while a newer version migrates and joins, both serve one database, and so does a restarted older one', async () => {
    const [web, otherWeb] = fleet.webs;
    const [gateway] = fleet.gateways;
    const grant = await fleet.freshGrant();
    const begun = performance.now();
    const answers = await watch(
      {
        key: fleet.withKey(web),
        public: fleet.publicPage(gateway),
        private: fleet.privatePage(gateway, grant),
        change: fleet.change(otherWeb),
      },
      async () => {
        const newer = await startMember('web', { main: next.main });
        tellRecovery('the newer version serves, with its step', performance.now() - begun);
        await startMember('worker', { main: next.main });
        const newGateway = await startMember('gateway', { main: next.main });
        // What either changes the other sees.
        const ofOld = await fleet.makeKey('of the old one');
        expect(await fleet.withKey(newer, ofOld.value)()).toBe(200);
        expect(await fleet.change(newer)()).toBe(200);
        expect(await fleet.publicPage(newGateway)()).toBe(200);
        await fleet.ada.api('DELETE', `/me/tokens/${ofOld.id}`);
        expect(await fleet.withKey(newer, ofOld.value)()).toBe(401);
        // An old one that is started again: a node went away in the middle of the update.
        const again = await startMember('web');
        expect(await fleet.withKey(again)()).toBe(200);
        expect(await fleet.change(again)()).toBe(200);
        await startMember('worker');
      },
    );
    const heard = Object.fromEntries(
      Object.entries(answers).map(([name, all]) => [name, [...new Set(all)].toSorted((a, b) => a - b)]),
    );
    // Five more processes start beside the gateway: the store may be a quarter of a second late for it, which is no "no".
    const servedOrNotNow = expect.toSatisfy((all: number[]) =>
      all.every((status) => [200, 503].includes(status)),
    );
    expect(heard).toEqual({ key: [200], public: [200], private: servedOrNotNow, change: servedOrNotNow });
    expect(await stepsOf(fleet.databaseUrl)).toContainEqual(expect.objectContaining({ name: nextStep }));
  });

  test('FT-13 an older version starts with and serves configuration of a newer one, with additional fields and a scope', async () => {
    const [web] = fleet.webs;
    const [gateway] = fleet.gateways;
    const newer = await startMember('web', { main: next.main });
    const answers = await watch({ key: fleet.withKey(web), public: fleet.publicPage(gateway) }, async () => {
      await changeConfig(newer, 'api-keys', { maxActivePersonalKeysPerUser: 999 });
      await changeConfig(newer, 'sites', { deletion: { restoreDays: 9 } });
      expect(await storedDocument('api-keys')).toMatchObject({ nextRule: true });
      expect(await storedDocument('sites')).toMatchObject({
        next: { isOn: true },
        cleanup: { nextMinutes: 1 },
      });
      // As after a rollback, and as a node that went away makes them.
      const again = await startMember('web');
      const gatewayAgain = await startMember('gateway');
      await startMember('worker');
      expect(await fleet.withKey(again)()).toBe(200);
      expect(await fleet.change(again)()).toBe(200);
      expect(await fleet.publicPage(gatewayAgain)()).toBe(200);
      const { data } = await fleet.ada.api('GET', '/config/api-keys');
      expect(data.policy).toMatchObject({ maxActivePersonalKeysPerUser: 999 });
      expect(data.policy).not.toHaveProperty('nextRule');
      // What an older one stores in its turn is whole for the newer one.
      await changeConfig(web, 'api-keys', { maxActivePersonalKeysPerUser: 998 });
      expect(await storedDocument('api-keys')).not.toHaveProperty('nextRule');
      await changeConfig(newer, 'api-keys', { maxActivePersonalKeysPerUser: 1_000 });
      expect(await storedDocument('api-keys')).toMatchObject({ nextRule: true });
    });
    expect([new Set(answers['key']), new Set(answers['public'])]).toEqual([new Set([200]), new Set([200])]);
  });
});
