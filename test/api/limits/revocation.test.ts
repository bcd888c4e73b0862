// @module-tag sql
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hour, minute, second } from '../../../src/core/clock.ts';
import { type Harness, openHarness, type Person, type TestKey } from '../../harness.ts';
import { noLimits, setPolicy } from '../access/cast.ts';

let h: Harness;
let other: Harness;
let ada: Person;
beforeEach(async () => {
  h = await openHarness();
  other = await h.another();
  ada = await h.person('Ada');
});
afterEach(async () => {
  await other.close();
  await h.close();
});

const status = async (as: TestKey | string, on: Harness = h) =>
  (await on.call('GET', '/auth/context', { as })).status;

describe('revocation', () => {
  test('RV-01 of 200 requests around a revocation on the other process none that started after its answer succeeds', async () => {
    await setPolicy(h, noLimits);
    h.clock.advance(second);
    await h.app.jobs.runNow('change-feed');
    const key = await h.key(ada);
    expect(await status(key)).toBe(200);
    let answered: number | undefined;
    const requests: Promise<{ startedAfter: boolean; status: number }>[] = [];
    let revoking: Promise<void> | undefined;
    for (let count = 0; count < 200; count += 1) {
      const startedAfter = answered !== undefined;
      requests.push(status(key).then((one) => ({ startedAfter, status: one })));
      if (count === 50)
        revoking = other.call('DELETE', `/me/tokens/${key.id}`, { as: ada }).then((answer) => {
          answered = answer.status;
        });
      // Waits for the answer near the end, so that requests start on both sides of it.
      if (count === 150) await revoking;
      await turn();
    }
    expect(answered).toBe(200);
    const answers = await Promise.all(requests);
    expect(answers.filter(({ startedAfter }) => startedAfter).length).toBeGreaterThanOrEqual(49);
    expect(answers.filter((one) => one.startedAfter && one.status !== 401)).toEqual([]);
    expect(answers.some((one) => one.status === 200)).toBe(true);
  });

  test('RV-01 the same holds for narrowing: a dropped scope is refused on every process at the next request', async () => {
    await h.repository('acme/website');
    const key = await h.key(ada, { scopes: ['repos:read', 'sites:read'] });
    for (const on of [h, other])
      expect((await on.call('GET', '/repositories', { as: key })).status).toBe(200);
    await other.call('PATCH', `/me/tokens/${key.id}`, { as: ada, body: { scopes: ['sites:read'] } });
    for (const on of [h, other])
      expect((await on.call('GET', '/repositories', { as: key })).error.code).toBe('forbidden_scope');
  });

  test('RV-04 a leaked key is replaced step by step, and its timeline names both keys', async () => {
    const leaked = await h.key(ada, { name: 'deploy' });
    expect(await status(leaked)).toBe(200);
    // 1 the leak is noticed: the value stands in an address
    await h.call('GET', `/auth/context?token=${leaked.value}`);
    await h.app.jobs.runNow('alarms');
    const notices = await h.call('GET', '/me/notices', { as: ada });
    expect(notices.data.map(({ kind }: { kind: string }) => kind)).toContain('key_exposed');
    // 2 a successor takes over, with the old key working meanwhile
    const rotated = await h.call('POST', `/me/tokens/${leaked.id}/rotate`, { as: ada, body: {} });
    expect(rotated.status).toBe(201);
    expect(await status(leaked)).toBe(200);
    expect(await status(`Bearer ${rotated.data.token}`)).toBe(200);
    await h.settle();
    // 3 the old key goes now and not after its grace
    expect((await h.call('DELETE', `/me/tokens/${leaked.id}`, { as: ada })).status).toBe(200);
    for (const on of [h, other]) expect(await status(leaked, on)).toBe(401);
    // 4 remaining uses are visible
    h.clock.advance(minute);
    await h.app.jobs.runNow('denials');
    const story = await h.call('GET', `/me/tokens/${leaked.id}/timeline`, {
      as: ada,
      query: { limit: '100' },
    });
    const events = story.data.map(({ event }: { event: string }) => event);
    for (const event of [
      'api_key.created',
      'api_key.exposed',
      'api_key.rotated',
      'api_key.revoked',
      'api_key.dead_use',
    ])
      expect(events).toContain(event);
    const rotation = story.data.find(({ event }: { event: string }) => event === 'api_key.rotated');
    expect(new Set(rotation.keyIds)).toEqual(new Set([leaked.id, rotated.data.id]));
    expect(story.text).not.toContain(leaked.value.slice(20));
  });
});

describe('clocks', () => {
  test('EX-03 two processes whose clocks differ by two minutes agree on the second at which a key expires', async () => {
    const early = await h.another({ clockOffBy: -120 * second });
    const late = await h.another({ clockOffBy: 120 * second });
    const key = await h.key(ada, { ttlHours: 1 });
    const made = await h.call('GET', `/me/tokens/${key.id}`, { as: ada });
    for (const on of [early, late]) {
      const { data } = await on.call('POST', '/me/tokens', {
        as: ada,
        body: { name: 'same', scopes: ['repos:read'], repositoryAccess: { mode: 'all' }, ttlHours: 1 },
      });
      expect(data.expiresAt).toBe(made.data.expiresAt);
    }
    h.clock.advance(hour - second);
    for (const on of [h, early, late]) expect(await status(key, on)).toBe(200);
    h.clock.advance(second);
    for (const on of [h, early, late]) expect(await status(key, on)).toBe(401);
    await early.close();
    await late.close();
  });

  test('EX-02 a key that was refused as expired stays expired when the clock is set back, in every process', async () => {
    const key = await h.key(ada, { ttlHours: 0.5 });
    for (const on of [h, other]) expect(await status(key, on)).toBe(200);
    h.clock.advance(1_801 * second);
    expect(await status(key)).toBe(401);
    h.clock.advance(-900 * second);
    expect(await status(key)).toBe(401);
    // It still holds the key for live, until it hears of the change.
    await other.app.jobs.runNow('change-feed');
    const restarted = await h.another();
    for (const on of [other, restarted]) {
      expect(await status(key, on)).toBe(401);
      expect((await on.call('GET', `/me/tokens/${key.id}`, { as: ada })).data.status).toBe('expired');
    }
    const listed = async (state: string) =>
      (await h.call('GET', '/me/tokens', { as: ada, query: { status: state } })).data.length;
    expect([await listed('expired'), await listed('active')]).toEqual([1, 0]);
    await h.app.jobs.runNow('key-expiry');
    const story = await h.call('GET', `/me/tokens/${key.id}/timeline`, { as: ada });
    const expired = story.data.filter(({ event }: { event: string }) => event === 'api_key.expired');
    expect(expired).toHaveLength(1);
    await restarted.close();
  });

  test('EX-02 a key whose expiry the job recorded also stays expired', async () => {
    const key = await h.key(ada, { ttlHours: 0.5 });
    h.clock.advance(1_801 * second);
    await h.app.jobs.runNow('key-expiry');
    h.clock.advance(-900 * second);
    expect(await status(key)).toBe(401);
  });
});
