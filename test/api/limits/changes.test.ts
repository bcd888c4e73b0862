// @module-tag sql
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { second } from '../../../src/core/clock.ts';
import { memorySource } from '../../../src/features/rate-limit/rate-limit.ts';
import { isLimitedChange } from '../../../src/platform/http.ts';
import { commandLine, denialsOf, openFrozenHarness } from '../access/cast.ts';
import { FakeClock } from '../../clock.ts';
import {
  type Answer,
  type Harness,
  openHarness,
  type Person,
  type TestKey,
  uiOrigin,
} from '../../harness.ts';
import { fallibleSource } from './outages.ts';

/** What people may change in a minute, whichever way they are signed in. Keys have a limit of their own. */
let h: Harness;
let ada: Person;
let adas: TestKey;
beforeEach(async () => {
  h = await openFrozenHarness();
  ada = await h.person('Ada');
  adas = await h.key(ada);
});
afterEach(async () => {
  await h.close();
  vi.useRealTimers();
});

/** The cheapest request that asks for a change: a body that is refused counts like any other. */
const change = (as: Person | string, on: Harness = h): Promise<Answer> =>
  on.call('POST', '/me/tokens', { as, body: {} });
const changes = async (count: number, as: Person | string, on: Harness = h): Promise<number[]> =>
  await Promise.all(Array.from({ length: count }, async () => (await change(as, on)).status));
const passed = (statuses: readonly number[]) => statuses.filter((status) => status !== 429).length;
const rename = (to: string) => h.call('PATCH', `/me/tokens/${adas.id}`, { as: ada, body: { name: to } });

describe('changes by people', () => {
  test('RL-03 the 121st change of a minute is refused with the limit and the wait, and succeeds after it', async () => {
    for (let count = 1; count <= 120; count += 1) {
      expect((await rename(`name ${count}`)).status).toBe(200);
      if (count % 10 === 0) h.clock.advance(second);
    }
    const refused = await rename('one too many');
    expect([refused.status, refused.error.code]).toEqual([429, 'rate_limited']);
    const wait = Number(refused.headers['retry-after']);
    expect(wait).toBeGreaterThanOrEqual(1);
    expect(refused.error.details).toEqual({ limit: 120, retryAfterSeconds: wait });
    expect(refused.error.hint).toContain('120 changes in any 60 seconds');
    expect((await h.call('GET', `/me/tokens/${adas.id}`, { as: ada })).data.name).toBe('name 120');
    h.clock.advance((wait - 1) * second);
    expect((await rename('still too early')).status).toBe(429);
    h.clock.advance(second);
    expect((await rename('now')).status).toBe(200);
  });

  test('RL-03 capacity returns as it was used: never twice the limit around the edge of a minute', async () => {
    expect(passed(await changes(60, ada))).toBe(60);
    h.clock.advance(30 * second);
    expect(passed(await changes(70, ada))).toBe(60);
    h.clock.advance(31 * second);
    expect(passed(await changes(120, ada))).toBe(60);
  });

  test('RL-03 a person’s sessions, access tokens and processes share one limit', async () => {
    const other = await h.another();
    const root = await h.person('Root', { admin: true });
    const token = `Bearer ${await commandLine(h, 'Root').token(['repos:write'])}`;
    const register = () => h.call('POST', '/repositories', { as: token, body: {} });
    expect(passed(await changes(50, root))).toBe(50);
    expect(passed(await changes(50, await h.otherBrowser(root), other))).toBe(50);
    for (let count = 1; count <= 20; count += 1) expect((await register()).status).toBe(400);
    expect((await register()).status).toBe(429);
    expect((await change(root, other)).status).toBe(429);
    await other.close();
  });

  test('RL-03 one person at the limit does not affect another', async () => {
    const bob = await h.person('Bob');
    expect(passed(await changes(130, ada))).toBe(120);
    expect(passed(await changes(120, bob))).toBe(120);
  });

  test('RL-03 at the limit a person still reads, revokes keys and signs out', async () => {
    const root = await h.person('Root', { admin: true });
    const mine = await Promise.all(Array.from({ length: 5 }, () => h.key(root)));
    const service = await h.serviceKey();
    await changes(120, root);
    expect((await change(root)).status).toBe(429);
    for (const path of ['/me/tokens', '/tokens', '/users', '/audit/events', '/auth/context'])
      expect([path, (await h.call('GET', path, { as: root })).status]).toEqual([path, 200]);
    for (const key of mine) {
      expect((await h.call('DELETE', `/me/tokens/${key.id}`, { as: root })).status).toBe(200);
      expect((await h.call('GET', '/auth/context', { as: key })).status).toBe(401);
    }
    for (const key of [service, adas])
      expect((await h.call('DELETE', `/tokens/${key.id}`, { as: root })).status).toBe(200);
    const left = await h.app.web.inject({
      method: 'POST',
      url: '/auth/logout',
      headers: { host: 'localhost:3000', cookie: `__Host-postern_session=${root.cookie}`, origin: uiOrigin },
    });
    expect(left.statusCode).toBe(204);
    expect((await change(root)).status).toBe(401);
  });

  test('RL-03 revocations do not count: after 200 of them every change is still available', async () => {
    for (let count = 1; count <= 200; count += 1)
      expect((await h.call('DELETE', `/me/tokens/${adas.id}`, { as: ada })).status).toBe(200);
    expect(passed(await changes(120, ada))).toBe(120);
  });

  test('RL-03 keys and people have separate limits', async () => {
    const root = await h.person('Root', { admin: true });
    const key = await h.key(root, { scopes: ['repos:write'] });
    const register = (as: TestKey | Person) => h.call('POST', '/repositories', { as, body: {} });
    for (let count = 1; count <= 130; count += 1) expect((await register(key)).status).toBe(400);
    for (let count = 1; count <= 120; count += 1) expect((await register(root)).status).toBe(400);
    expect((await register(root)).status).toBe(429);
    const answer = await register(key);
    expect([answer.status, answer.headers['ratelimit']]).toEqual([400, '"default";r=469;t=60']);
  });

  test('RL-03 another site’s page cannot use up a person’s changes', async () => {
    const forged = () =>
      h.call('POST', '/me/tokens', { as: ada, body: {}, headers: { origin: 'https://evil.example' } });
    for (let count = 1; count <= 150; count += 1) expect((await forged()).status).toBe(403);
    expect(passed(await changes(120, ada))).toBe(120);
  });

  test('AU-02 refused changes are one event of the audit log with their number', async () => {
    const root = await h.person('Root', { admin: true });
    await changes(125, ada);
    const denials = await denialsOf(h, root, 'POST /api/v2/me/tokens');
    expect(denials).toMatchObject([
      {
        reason: 'rate_limited',
        actor: { id: ada.user.id, credential: ada.sessionId },
        details: { count: 5 },
      },
    ]);
  });

  test('of all changes of people, only revoking a key, removing a trust rule and ending a session do not count', () => {
    const leftOut = h.app.routes
      .filter((route) => route.method !== 'GET' && typeof route.policy.callers !== 'string')
      .filter((route) => !isLimitedChange(route))
      .map(({ method, path }) => `${method} ${path}`);
    expect(leftOut).toEqual([
      'POST /me/tokens/revoke-all',
      'DELETE /me/tokens/{id}',
      'DELETE /tokens/{id}',
      'POST /tokens/revoke',
      'DELETE /tokens/{id}/trust/{rule}',
      'DELETE /me/sessions',
      'DELETE /me/sessions/{id}',
      'DELETE /users/{id}/sessions',
      'DELETE /users/{id}/sessions/{session}',
    ]);
  });
});

test('RL-06 while the shared counter is unavailable, each process counts a person’s changes itself', async () => {
  const counter = { isCut: false };
  const cut = await openHarness({
    limitSource: fallibleSource(memorySource({ clock: new FakeClock() }), counter),
  });
  const eve = await cut.person('Eve');
  expect(passed(await changes(50, eve, cut))).toBe(50);
  counter.isCut = true;
  // What this process let through before the outage counts, too.
  expect(passed(await changes(90, eve, cut))).toBe(70);
  const metric = await cut.app.services.metrics.registry.getSingleMetricAsString(
    'postern_limiter_local_total',
  );
  expect(metric).toMatch(/postern_limiter_local_total 90$/m);
  await cut.close();
});
