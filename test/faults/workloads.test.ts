import { once } from 'node:events';
import { request } from 'node:http';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { findPostgres } from '../../scripts/local-servers.ts';
import { isRedisMissing } from '../contract/kv-redis-server.ts';
import type { Weather } from './fault-proxy.ts';
import { tellRecovery } from './figures.ts';
import { type Member, timeUntil, untilHeard, watch } from './fleet.ts';
import { type LivedInFleet, startLivedInFleet } from './lived-in-fleet.ts';
import { runCommand } from './program.ts';

/** SQLSTATE. */
const tooManyConnections = '53300';

// Real processes of each workload, on real servers, with a network between them that goes bad (matrix FT, R4).
const bin = findPostgres();
const isMissing = process.env['CI'] !== 'true' && (bin === undefined || isRedisMissing);

describe.skipIf(isMissing)('two web, two gateways and a worker', () => {
  let fleet: LivedInFleet;
  beforeAll(async () => {
    if (bin === undefined) throw new Error('There is no PostgreSQL here: apt-get install postgresql');
    fleet = await startLivedInFleet(bin);
  });
  afterAll(() => fleet.stop());

  test('all processes know the changes of one: sessions, keys, sites, limits and revocations', async () => {
    const [first, second] = fleet.webs;
    const elsewhere = await fleet.ask(`${fleet.uiUrl}/api/v2/auth/context`, second.ports.web, {
      cookie: `__Host-postern_session=${fleet.ada.session}`,
    });
    expect(elsewhere.status).toBe(200);
    expect(await Promise.all([first, second].map((web) => fleet.withKey(web)()))).toEqual([200, 200]);
    expect(await Promise.all(fleet.gateways.map((gateway) => fleet.publicPage(gateway)()))).toEqual([
      200, 200,
    ]);
    const grant = await fleet.freshGrant();
    expect(await Promise.all(fleet.gateways.map((gateway) => fleet.privatePage(gateway, grant)()))).toEqual([
      200, 200,
    ]);
    expect(await Promise.all(fleet.gateways.map((gateway) => fleet.privatePage(gateway, '')()))).toEqual([
      401, 401,
    ]);

    const brief = await fleet.makeKey('brief');
    expect(await fleet.withKey(second, brief.value)()).toBe(200);
    await fleet.ada.api('DELETE', `/me/tokens/${brief.id}`);
    expect(await fleet.withKey(second, brief.value)()).toBe(401);
    expect(await fleet.withKey(first, brief.value)()).toBe(401);

    const site = await fleet.publish('public', 'not for long');
    const pages = fleet.gateways.map(
      (gateway) => async () => (await fleet.ask(site.url, gateway.ports.gateway)).status,
    );
    expect(await Promise.all(pages.map((page) => page()))).toEqual([200, 200]);
    await fleet.ada.api('DELETE', `/sites/${site.id}`);
    for (const page of pages) await expect.poll(page).toBe(404);
  });

  const storms: [string, 'database' | 'kv', Weather][] = [
    ['the database resets', 'database', { kind: 'reset' }],
    ['the database goes silent', 'database', { kind: 'half-open' }],
    ['the database is 500 ms late', 'database', { kind: 'late', ms: 500 }],
    ['answers of the database are cut off', 'database', { kind: 'cut', afterBytes: 2_000 }],
    ['the key-value store resets', 'kv', { kind: 'reset' }],
    ['the key-value store goes silent', 'kv', { kind: 'half-open' }],
    ['the key-value store is 500 ms late', 'kv', { kind: 'late', ms: 500 }],
  ];
  test.each(storms)(
    'FT-08 R4 while %s no request is wrongly accepted or permanently refused, and the system recovers',
    async (_, part, weather) => {
      const [web, otherWeb] = fleet.webs;
      const [gateway, otherGateway] = fleet.gateways;
      // Into the gateways' memory: what a gateway reads while it hears of a change to the same site is not kept.
      const grant = await fleet.freshGrant();
      expect(await fleet.publicPage(gateway)()).toBe(200);
      const answers = await watch(
        {
          key: fleet.withKey(web),
          otherKey: fleet.withKey(otherWeb),
          wrongKey: fleet.withKey(
            web,
            `${fleet.key.value.slice(0, -1)}${fleet.key.value.endsWith('a') ? 'b' : 'a'}`,
          ),
          public: fleet.publicPage(gateway),
          private: fleet.privatePage(otherGateway, grant),
          stranger: fleet.privatePage(gateway, ''),
        },
        async (heard) => {
          fleet[part].set(weather);
          // A gateway asks the store alone for a private page, and serves for half a minute without news of the database.
          // Where some answers get through, it may hear that a site changed and not be able to read it: then it says so.
          const served = weather.kind === 'cut' ? undefined : 200;
          const survivors = part === 'database' ? ['private', 'public'] : ['public'];
          await Promise.all([
            ...survivors.map((name) => untilHeard(heard[name], 100, served)),
            // The second is the first that was asked now: nothing hangs.
            ...Object.values(heard).map((answers) => untilHeard(answers, 2)),
          ]);
          fleet[part].set({ kind: 'clear' });
          await expectBack({
            'requests with a key': fleet.withKey(web),
            'public sites': fleet.publicPage(gateway),
            'private sites': fleet.privatePage(otherGateway, grant),
            'someone new is let in': newcomer,
            changes: fleet.change(web),
          });
        },
      );
      const heard = (name: string) => new Set(answers[name]);
      // Never a false 401 for a live key; never a yes without a check. The wrong keys come from the same address, so one that has
      // to be looked up again meanwhile may be told to wait.
      expect(
        [...heard('key'), ...heard('otherKey')].filter((status) => ![200, 429, 503].includes(status)),
      ).toEqual([]);
      // So many wrong keys are answered with 429.
      expect([...heard('wrongKey')].filter((status) => ![401, 429].includes(status))).toEqual([]);
      expect([...heard('public')].filter((status) => ![200, 503].includes(status))).toEqual([]);
      expect([...heard('private')].filter((status) => ![200, 503].includes(status))).toEqual([]);
      expect([...heard('stranger')].filter((status) => ![401, 503].includes(status))).toEqual([]);
    },
  );

  const newcomer = async () => ((await fleet.freshGrant()) === '' ? 0 : 200);

  /** Each is answered again, and how long it took goes into the table. */
  async function expectBack(questions: Readonly<Record<string, () => Promise<number>>>): Promise<void> {
    await Promise.all(
      Object.entries(questions).map(async ([who, question]) =>
        tellRecovery(who, await timeUntil(question, 200)),
      ),
    );
  }

  test('FT-03 a PostgreSQL that ends all connections is used again at once, without a 401', async () => {
    const answers = await watch(
      { key: fleet.withKey(fleet.webs[0]), public: fleet.publicPage(fleet.gateways[0]) },
      async () => {
        for (let times = 0; times < 5; times++) {
          const before = fleet.database.accepted();
          fleet.database.set({ kind: 'reset' });
          fleet.database.set({ kind: 'clear' });
          await expect.poll(fleet.database.accepted).toBeGreaterThan(before);
        }
        await expectBack({
          'requests with a key': fleet.withKey(fleet.webs[0]),
          changes: fleet.change(fleet.webs[0]),
        });
      },
    );
    expect(answers['key']?.filter((status) => status !== 200 && status !== 503)).toEqual([]);
    expect(new Set(answers['public'])).toEqual(new Set([200]));
  });

  test('FT-03 a PostgreSQL that is stopped and started again is used again, and refuses no good key meanwhile', async () => {
    const [web] = fleet.webs;
    const answers = await watch(
      { key: fleet.withKey(web), public: fleet.publicPage(fleet.gateways[0]) },
      async (heard) => {
        await fleet.postgres.halt();
        await timeUntil(fleet.change(web), 503);
        for (const answers of Object.values(heard)) await untilHeard(answers, 100);
        await fleet.postgres.resume();
        await expectBack({
          'requests with a key': fleet.withKey(web),
          'public sites': fleet.publicPage(fleet.gateways[0]),
          'someone new is let in': newcomer,
          changes: fleet.change(web),
        });
      },
    );
    expect(answers['key']?.filter((status) => status !== 200 && status !== 503)).toEqual([]);
    expect(answers['public']?.filter((status) => status !== 200 && status !== 503)).toEqual([]);
  });

  test('FT-03 a PostgreSQL without free connections is 503 for changes, and used again when some are free', async () => {
    const [web] = fleet.webs;
    const crowd: pg.Client[] = [];
    async function takeAll(): Promise<void> {
      for (;;) {
        const client = new pg.Client({ connectionString: fleet.databaseUrl });
        client.on('error', () => undefined);
        try {
          await client.connect();
        } catch (error) {
          if ((error as { code?: string }).code === tooManyConnections) return;
          throw error;
        }
        crowd.push(client);
      }
    }
    const answers = await watch(
      { key: fleet.withKey(web), public: fleet.publicPage(fleet.gateways[0]) },
      async () => {
        await takeAll();
        await crowd[0]?.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'postern'`,
        );
        await takeAll();
        await timeUntil(fleet.change(web), 503);
        await Promise.all(crowd.map((client) => client.end()));
        await expectBack({ 'requests with a key': fleet.withKey(web), changes: fleet.change(web) });
      },
    );
    expect(answers['key']?.filter((status) => status !== 200 && status !== 503)).toEqual([]);
    expect(new Set(answers['public'])).toEqual(new Set([200]));
  });

  test('FT-04 while PostgreSQL is read-only, keys and sites are served, changes and sign-ins are 503, and the system recovers', async () => {
    const [web] = fleet.webs;
    const [gateway] = fleet.gateways;
    const grant = await fleet.freshGrant();
    const mine = async () =>
      (
        await fleet.ask(`${fleet.uiUrl}/api/v2/me/tokens`, web.ports.web, {
          cookie: `__Host-postern_session=${fleet.ada.session}`,
        })
      ).status;
    const signIn = async () => (await fleet.ask(`${fleet.uiUrl}/auth/login`, web.ports.web)).status;
    // A client that tries so often must wait.
    const oneOf = (...may: number[]) =>
      expect.toSatisfy((all: number[]) => all.every((status) => may.includes(status)));
    await setReadOnly(true);
    onTestFinished(() => setReadOnly(false));
    const answers = await watch(
      {
        key: fleet.withKey(web),
        wrongKey: fleet.withKey(
          web,
          `${fleet.key.value.slice(0, -1)}${fleet.key.value.endsWith('a') ? 'b' : 'a'}`,
        ),
        session: mine,
        public: fleet.publicPage(gateway),
        private: fleet.privatePage(gateway, grant),
        stranger: fleet.privatePage(gateway, ''),
        change: fleet.change(web),
        signIn,
      },
      async (heard) => {
        await timeUntil(fleet.change(web), 503);
        for (const answers of Object.values(heard)) await untilHeard(answers, 20);
        // On a busy machine the key-value store can be late for a gateway (contract 10.3), but not each time.
        await Promise.all([untilHeard(heard['private'], 20, 200), untilHeard(heard['stranger'], 20, 401)]);
      },
    );
    const heard = Object.fromEntries(
      Object.entries(answers).map(([name, all]) => [name, [...new Set(all)].toSorted((a, b) => a - b)]),
    );
    expect(heard).toEqual({
      key: [200],
      wrongKey: oneOf(401, 429),
      session: [200],
      public: [200],
      private: oneOf(200, 503),
      stranger: oneOf(401, 503),
      change: [503],
      signIn: oneOf(429, 503),
    });
    await setReadOnly(false);
    await expectBack({ changes: fleet.change(web), 'someone new is let in': newcomer });
  });

  /** Switches the primary like an operator or a cluster manager: open connections follow with their next statement. */
  async function setReadOnly(isReadOnly: boolean): Promise<void> {
    const client = new pg.Client({ connectionString: fleet.databaseUrl });
    await client.connect();
    await client.query(`alter system set default_transaction_read_only = ${isReadOnly ? 'on' : 'off'}`);
    await client.query('select pg_reload_conf()');
    await client.end();
  }

  test('FT-05 a key-value store that comes back empty ends grants, and their links open again', async () => {
    const grant = await fleet.freshGrant();
    await fleet.redis.stop();
    await fleet.redis.start();
    const [gateway] = fleet.gateways;
    await expectBack({
      'requests with a key': fleet.withKey(fleet.webs[0]),
      'someone new is let in': newcomer,
      changes: fleet.change(fleet.webs[0]),
    });
    await expect.poll(fleet.privatePage(gateway, grant)).toBe(401);
  });

  test('FT-09 a web that is stopped under load first says that it is not ready, answers accepted requests, and ends cleanly', async () => {
    const leaving = await fleet.start('web');
    const load = loadOf(20, fleet.withKey(leaving));
    const { value } = await fleet.makeKey('uploads', ['sites:write']);
    const taken = await Promise.all(Array.from({ length: 5 }, () => halfSent(fleet.uiUrl, leaving, value)));
    await untilHeard(load.answers, 200);
    load.stopping();
    const ending = leaving.end('SIGTERM');
    await load.firstRefusal;
    await expect(fetch(`http://127.0.0.1:${leaving.ports.operations}/readyz`)).rejects.toThrow(
      'fetch failed',
    );
    expect(await Promise.all(taken.map(({ finish }) => finish()))).toEqual([201, 201, 201, 201, 201]);
    expect((await ending).code).toBe(0);
    expect(await load.seen()).toEqual({ statuses: [200], unavailable: 0, cutOff: [] });
  });

  test('FT-09 a gateway that is stopped under load answers accepted requests and ends cleanly, however busy its connections are', async () => {
    const leaving = await fleet.start('gateway');
    const grant = await fleet.freshGrant();
    const load = loadOf(24, fleet.privatePage(leaving, grant));
    // So that every connection is in use at any moment.
    fleet.kv.set({ kind: 'late', ms: 20 });
    await untilHeard(load.answers, 240);
    load.stopping();
    const exit = await leaving.end('SIGTERM');
    fleet.kv.set({ kind: 'clear' });
    expect(exit.code).toBe(0);
    const { statuses, cutOff } = await load.seen();
    expect({ others: statuses.filter((status) => status !== 503), cutOff }).toEqual({
      others: [200],
      cutOff: [],
    });
    // A busy machine may miss the store's limit (contract 10.3). A store that is closed too early refuses its commands.
    expect(leaving.output()).not.toMatch(/The client is (?:closed|offline)|Disconnects client/);
  });

  test('FT-09 a client that never ends its upload delays a stopping web by seconds, and loses none of the data in its memory', async () => {
    const leaving = await fleet.start('web');
    const { value } = await fleet.makeKey('never ends', ['sites:write']);
    await halfSent(fleet.uiUrl, leaving, value);
    const wrong = await fleet.ask(`${fleet.uiUrl}/api/v2/auth/context`, leaving.ports.web, {
      authorization: `Bearer ${value.slice(0, -1)}`,
      'user-agent': 'the last one before the end',
    });
    expect(wrong.status).toBe(401);
    const exit = await leaving.end('SIGTERM');
    expect(exit.code).toBe(0);
    const { data } = await fleet.ada.api('GET', '/audit/events?event=auth.denied&limit=20');
    expect(JSON.stringify(data)).toContain('the last one before the end');
  });

  test('a killed web and a killed worker interrupt nothing, and the audit log is complete in the end', async () => {
    const doomed = [await fleet.start('web'), await fleet.start('worker')];
    const answers = await watch({ key: fleet.withKey(fleet.webs[1]) }, async ({ key }) => {
      for (const member of doomed) await member.end('SIGKILL');
      await untilHeard(key, 20);
    });
    expect(new Set(answers['key'])).toEqual(new Set([200]));
    const installation = {
      dataDir: fleet.dataDir,
      databaseUrl: fleet.databaseUrl,
      ports: fleet.webs[0].ports,
    };
    await expect
      .poll(async () => (await runCommand(installation, ['audit', 'verify'])).code, {
        interval: 1_000,
      })
      .toBe(0);
  });
});

/** This many clients, each of which sends requests until no server answers. */
function loadOf(count: number, ask: () => Promise<number>) {
  let isStopping = false;
  const cutOff: string[] = [];
  const answers: number[] = [];
  const last: number[] = [];
  const asking = Array.from({ length: count }, async (_, nth) => {
    for (;;) {
      try {
        answers.push((last[nth] = await ask()));
      } catch (error) {
        const { code = '', wasBetween } = error as NodeJS.ErrnoException & { wasBetween?: boolean };
        // No server listens any more, or the connection was closed between two requests, which every client asks again
        // (RFC 9112 section 9.3.1): another process is asked. What was taken is answered.
        const isOver = code === 'ECONNREFUSED' || (code === 'ECONNRESET' && wasBetween === true);
        if (!isStopping || !isOver) cutOff.push(code);
        return;
      }
    }
  });
  return {
    answers,
    /** Resolves when the process takes no further request from one of them. */
    firstRefusal: Promise.race(asking),
    stopping() {
      isStopping = true;
    },
    async seen() {
      await Promise.all(asking);
      return {
        statuses: [...new Set(answers)],
        /** How many clients got 503 as their last answer. */
        unavailable: last.filter((status) => status === 503).length,
        cutOff,
      };
    },
  };
}

/** An upload of which a web has taken the head, and gets half of the body. */
async function halfSent(uiUrl: string, web: Member, key: string): Promise<{ finish(): Promise<number> }> {
  const body = Buffer.from(`<p>${'slow '.repeat(1_000)}</p>`);
  const { host } = new URL(uiUrl);
  const upload = request({
    host: '127.0.0.1',
    port: web.ports.web,
    agent: false,
    method: 'POST',
    path: '/api/v2/sites',
    headers: {
      host,
      authorization: `Bearer ${key}`,
      'content-type': 'text/html',
      'content-length': String(body.length),
      expect: '100-continue',
    },
  });
  const answered = new Promise<number>((resolve, reject) => {
    upload.on('error', reject);
    upload.on('response', (response) => resolve(response.resume().statusCode ?? 0));
  });
  // Sent when it has taken the head (RFC 9110 section 10.1.1).
  await Promise.race([once(upload, 'continue'), answered]);
  upload.write(body.subarray(0, 1_000));
  // Who never finishes does not wait for it.
  answered.catch(() => undefined);
  return {
    finish() {
      upload.end(body.subarray(1_000));
      return answered;
    },
  };
}
