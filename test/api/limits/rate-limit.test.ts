// @module-tag sql
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { minute, second } from '../../../src/core/clock.ts';
import { systemRandom } from '../../../src/core/ids.ts';
import { memorySource } from '../../../src/features/rate-limit/rate-limit.ts';
import { setPolicy } from '../access/cast.ts';
import { FakeClock } from '../../clock.ts';
import { openTestDatabase } from '../../database.ts';
import { type Harness, openHarness, type Person, type TestKey } from '../../harness.ts';
import { fallibleDatabase, fallibleSource, type Switch } from './outages.ts';

let h: Harness;
let ada: Person;
beforeEach(async () => {
  h = await openHarness();
  ada = await h.person('Ada');
});
afterEach(() => h.close());

const ask = (as: TestKey, on: Harness = h) => on.call('GET', '/auth/context', { as });
const statuses = async (count: number, as: TestKey, on: Harness = h) =>
  await Promise.all(Array.from({ length: count }, async () => (await ask(as, on)).status));
const served = (all: readonly number[]) => all.filter((status) => status === 200).length;

describe('the rolling limit', () => {
  test('RL-01 600 requests of a key are served in a minute; the answer to the next has the exact wait', async () => {
    const key = await h.key(ada);
    const first = await ask(key);
    expect(first.headers['ratelimit-policy']).toBe('"default";q=600;w=60');
    expect(first.headers['ratelimit']).toBe('"default";r=599;t=60');
    expect(served(await statuses(599, key))).toBe(599);
    const refused = await ask(key);
    expect([refused.status, refused.error.code]).toEqual([429, 'rate_limited']);
    const wait = Number(refused.headers['retry-after']);
    expect(refused.headers['ratelimit']).toBe(`"default";r=0;t=${wait}`);
    expect(refused.error.details).toEqual({ limit: 600, retryAfterSeconds: wait });
    h.clock.advance((wait - 1) * second);
    expect((await ask(key)).status).toBe(429);
    h.clock.advance(second);
    expect((await ask(key)).status).toBe(200);
  });

  test('RL-01 capacity returns as it was spent: never twice the limit around the edge of a minute', async () => {
    const key = await h.key(ada);
    expect(served(await statuses(300, key))).toBe(300);
    h.clock.advance(30 * second);
    expect(served(await statuses(301, key))).toBe(300);
    const wait = Number((await ask(key)).headers['retry-after']);
    expect(wait).toBe(31);
    h.clock.advance(wait * second);
    expect(served(await statuses(400, key))).toBe(300);
  });

  test('RL-01 refused requests spend nothing, and refusals carry the same headers', async () => {
    const key = await h.key(ada);
    await statuses(600, key);
    h.clock.advance(30 * second);
    for (const answer of await Promise.all(Array.from({ length: 50 }, () => ask(key)))) {
      expect(answer.status).toBe(429);
      expect(answer.headers['ratelimit-policy']).toBe('"default";q=600;w=60');
    }
    h.clock.advance(31 * second);
    expect(served(await statuses(600, key))).toBe(600);
  });

  test('RL-02 three keys of one owner over two processes get 600 together', async () => {
    const other = await h.another();
    const keys = [await h.key(ada), await h.key(ada), await h.key(ada)];
    const all = await Promise.all(
      keys.flatMap((key, at) => [statuses(110, key, at % 2 === 0 ? h : other), statuses(110, key, other)]),
    );
    expect(served(all.flat())).toBe(600);
    await other.close();
  });

  test('RL-03 browser sessions do not count, and every owner has a separate budget', async () => {
    const bob = await h.person('Bob');
    const [mine, his, one, another] = [
      await h.key(ada),
      await h.key(bob),
      await h.serviceKey(),
      await h.serviceKey(),
    ];
    for (let count = 0; count < 20; count += 1) {
      const answer = await h.call('GET', '/me/tokens', { as: ada });
      expect([answer.status, answer.headers['ratelimit']]).toEqual([200, undefined]);
    }
    await statuses(600, mine);
    expect((await ask(mine)).status).toBe(429);
    expect((await h.call('GET', '/me/tokens', { as: ada })).status).toBe(200);
    for (const key of [his, one, another])
      expect((await ask(key)).headers['ratelimit']).toBe('"default";r=599;t=60');
  });

  test('RL-04 a changed limit is in force at once where it was changed, within a second elsewhere', async () => {
    const other = await h.another();
    const key = await h.serviceKey();
    expect((await ask(key, other)).headers['ratelimit-policy']).toContain('q=600');
    const root = await h.person('Root', { admin: true });
    const read = await h.call('GET', '/config/api-keys', { as: root });
    const changed = await h.call('PUT', '/config/api-keys', {
      as: root,
      headers: { 'if-match': String(read.headers['etag']) },
      body: { ...read.data.policy, rateLimitPerMinute: 5 },
    });
    expect(changed.status).toBe(200);
    expect((await ask(key)).headers['ratelimit-policy']).toContain('q=5;');
    h.clock.advance(250);
    await other.app.jobs.tick();
    expect((await ask(key, other)).headers['ratelimit-policy']).toContain('q=5;');
    expect(served(await statuses(10, key, other))).toBe(2);
    await other.close();
  });

  test('RL-04 a process without the change feed reads the database after a second', async () => {
    const other = await h.another();
    const key = await h.serviceKey();
    await ask(key, other);
    await setPolicy(h, { rateLimitPerMinute: 7 });
    h.clock.advance(second + 1);
    expect((await ask(key, other)).headers['ratelimit-policy']).toContain('q=7;');
    await other.close();
  });

  test('a key over its limit can still revoke itself', async () => {
    await setPolicy(h, { rateLimitPerMinute: 1 });
    const key = await h.key(ada);
    await ask(key);
    expect((await ask(key)).status).toBe(429);
    expect((await h.call('POST', '/auth/revoke-self', { as: key })).status).toBe(200);
    expect((await ask(key)).status).toBe(401);
  });
});

describe('guessing', () => {
  const guess = (value: string, remoteAddress = '192.0.2.1') =>
    h.app.web.inject({
      method: 'GET',
      url: '/api/v2/auth/context',
      remoteAddress,
      headers: { host: 'localhost:3000', authorization: `Bearer ${value}` },
    });
  const broken = (at: number) => `app_pat_${String(at).padStart(50, '0')}`;

  test('RL-05 self-revocation answers the same for a key and for another value, after any number of requests', async () => {
    const key = await h.key(ada);
    const revoke = (value: string) =>
      h.app.web.inject({
        method: 'POST',
        url: '/api/v2/auth/revoke-self',
        remoteAddress: '192.0.2.30',
        headers: { host: 'localhost:3000', authorization: `Bearer ${value}` },
      });
    const told = async (value: string) => {
      const { statusCode, body } = await revoke(value);
      const { data } = JSON.parse(body) as { data: object };
      return [statusCode, data];
    };
    const answer = [200, { revokedAt: new Date(h.clock.now()).toISOString() }];
    for (let at = 0; at < 150; at += 1)
      expect(await told(h.app.services.format.generate('personal', systemRandom).value)).toEqual(answer);
    expect(await told(key.value)).toEqual(answer);
    expect((await guess(key.value, '192.0.2.31')).statusCode).toBe(401);
  });

  test('RL-05 bad credentials are throttled per address, and a valid key from the same address is not affected', async () => {
    const key = await h.key(ada);
    for (let at = 0; at < 120; at += 1) expect((await guess(broken(at))).statusCode).toBe(401);
    const refused = await guess(broken(121));
    expect(refused.statusCode).toBe(429);
    const wait = Number(refused.headers['retry-after']);
    expect(wait).toBeGreaterThanOrEqual(1);
    expect((await guess(key.value)).statusCode).toBe(200);
    expect((await guess(broken(1), '192.0.2.2')).statusCode).toBe(401);
    h.clock.advance(wait * second);
    expect((await guess(broken(122))).statusCode).toBe(401);
    const root = await h.person('Root', { admin: true });
    await h.app.services.denials.flush({ all: true });
    const auditLog = await h.call('GET', '/audit/events', { as: root, query: { event: 'auth.throttled' } });
    expect(auditLog.data).toHaveLength(1);
    expect(auditLog.data[0].target).toEqual({ kind: 'address', id: '192.0.2.1' });
  });

  const guesses = process.env['CI'] === 'true' ? 100_000 : 10_000;
  test(`RL-05 ${guesses} different bad keys from many addresses do not change the counters of owners`, {
    tags: 'flood',
  }, async () => {
    const key = await h.key(ada);
    await statuses(600, key);
    for (let at = 0; at < guesses; at += 100) {
      await Promise.all(
        Array.from({ length: 100 }, (_, more) =>
          guess(broken(at + more), `10.${at % 256}.${more}.${(at >> 8) % 256}`),
        ),
      );
    }
    expect((await ask(key)).status).toBe(429);
    // What a flood can make us hold: the refusals waiting for the audit log, at most 11,000 (denials.ts).
    expect(h.app.services.denials.held()).toBeLessThanOrEqual(11_000);
    h.clock.advance(61 * second);
    expect((await ask(key)).status).toBe(200);
  });
});

describe('while the shared counter is unavailable', () => {
  let counter: Switch;
  let store: Switch;
  beforeEach(async () => {
    await h.close();
    counter = { isCut: false };
    store = { isCut: false };
    h = await openHarness({
      limitSource: fallibleSource(memorySource({ clock: new FakeClock() }), counter),
      database: fallibleDatabase(await openTestDatabase(), store),
    });
    ada = await h.person('Ada');
  });

  const metric = () => h.app.services.metrics.registry.getSingleMetricAsString('postern_limiter_local_total');

  test('RL-06 requests continue under the same limit in this process, and the metric says so', async () => {
    const key = await h.key(ada);
    expect(served(await statuses(100, key))).toBe(100);
    expect(await metric()).toMatch(/postern_limiter_local_total 0$/m);
    counter.isCut = true;
    // What this process let through before the outage counts, too.
    expect(served(await statuses(650, key))).toBe(500);
    expect(await metric()).toMatch(/postern_limiter_local_total 650$/m);
    counter.isCut = false;
    h.clock.advance(2 * second);
    expect((await ask(key)).status).toBe(200);
    expect(await metric()).toMatch(/postern_limiter_local_total 650$/m);
  });

  test('RL-06 a revocation is still seen within a second, through the feed or the database', async () => {
    const other = await h.another();
    const [heard, unheard] = [await h.key(ada), await h.key(ada)];
    for (const key of [heard, unheard]) expect((await ask(key)).status).toBe(200);
    counter.isCut = true;
    expect((await ask(heard)).status).toBe(200);
    expect((await other.call('DELETE', `/me/tokens/${heard.id}`, { as: ada })).status).toBe(200);
    h.clock.advance(250);
    await h.app.jobs.runNow('change-feed');
    expect((await ask(heard)).status).toBe(401);
    expect((await other.call('DELETE', `/me/tokens/${unheard.id}`, { as: ada })).status).toBe(200);
    h.clock.advance(second + 1);
    expect((await ask(unheard)).status).toBe(401);
    await other.close();
  });

  test('RL-06 without the database, too, the answer is 503 and never an unverified yes', async () => {
    const key = await h.key(ada);
    expect((await ask(key)).status).toBe(200);
    counter.isCut = true;
    store.isCut = true;
    h.clock.advance(second + 1);
    const answer = await ask(key);
    expect([answer.status, answer.error.code]).toEqual([503, 'store_unavailable']);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    store.isCut = false;
    expect((await ask(key)).status).toBe(200);
  });

  test('RL-06 without the database only, a known key works for at most a minute', async () => {
    const key = await h.key(ada);
    const unknown = await h.key(ada);
    expect((await ask(key)).status).toBe(200);
    expect((await ask(key)).status).toBe(200);
    store.isCut = true;
    expect((await ask(key)).status).toBe(200);
    expect((await ask(unknown)).status).toBe(503);
    h.clock.advance(minute);
    expect((await ask(key)).status).toBe(503);
    store.isCut = false;
    expect((await ask(key)).status).toBe(200);
  });
});
