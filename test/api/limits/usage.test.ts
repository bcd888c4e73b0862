// @module-tag sql
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { day, hour, minute, second } from '../../../src/core/clock.ts';
import { type Harness, openHarness, type Person, type TestKey } from '../../harness.ts';

let h: Harness;
let ada: Person;
let isOpen: boolean;
beforeEach(async () => {
  h = await openHarness();
  isOpen = true;
  ada = await h.person('Ada');
  await h.repository('acme/website');
});
afterEach(async () => {
  if (isOpen) await h.close();
});

const use = (as: TestKey, path = '/repositories') => h.call('GET', path, { as });
const usage = async (id: string, query: Record<string, string> = {}, on: Harness = h) =>
  (await on.call('GET', `/me/tokens/${id}/usage`, { as: ada, query })).data;
const none = { allowed: 0, denied: 0, limited: 0, failed: 0, dead: 0 };

describe('usage', () => {
  test('is counted by outcome and readable per minute, hour and day once it is written', async () => {
    const key = await h.key(ada, { scopes: ['repos:read'] });
    for (let count = 0; count < 3; count += 1) await use(key);
    await h.call('POST', '/repositories', { as: key, body: {} });
    await use(key, '/repositories/acme/none');
    h.clock.advance(minute);
    await use(key);
    expect((await usage(key.id)).total).toEqual(none);
    await h.app.jobs.runNow('usage');
    const total = { ...none, allowed: 4, denied: 2 };
    for (const per of ['minute', 'hour', 'day']) expect((await usage(key.id, { per })).total).toEqual(total);
    const minutes = await usage(key.id, { per: 'minute' });
    expect(minutes.points.map((point: { counts: { allowed: number } }) => point.counts.allowed)).toEqual([
      3, 1,
    ]);
  });

  test('is written at most 60 seconds late while the jobs run, with the last use', async () => {
    const key = await h.key(ada);
    const lastUsed = async () => (await h.call('GET', `/me/tokens/${key.id}`, { as: ada })).data.lastUsedAt;
    await h.app.jobs.tick();
    await use(key);
    const usedAt = new Date(h.clock.now()).toISOString();
    expect(await lastUsed()).toBeNull();
    for (let passed = 0; passed < 60; passed += 5) {
      h.clock.advance(5 * second);
      await h.app.jobs.tick();
    }
    expect((await usage(key.id)).total.allowed).toBe(1);
    expect(await lastUsed()).toBe(usedAt);
  });

  test('the last use of a key has its network and program, never the address', async () => {
    const key = await h.key(ada, { scopes: ['repos:read'] });
    const from = async () => (await h.call('GET', `/me/tokens/${key.id}`, { as: ada })).data.lastUsedFrom;
    const useFrom = async (address: string, agent: string) => {
      h.clock.advance(second);
      await h.call('GET', '/repositories', { as: key, from: address, headers: { 'user-agent': agent } });
      await h.app.jobs.runNow('usage');
    };
    expect(await from()).toBeNull();
    await useFrom('192.0.2.77', 'curl/8.5.0');
    expect(await from()).toEqual({ network: '192.0.2.0/24', program: 'curl/8.5.0' });
    await useFrom('2001:db8:12:34::1', 'x'.repeat(300));
    expect(await from()).toEqual({ network: '2001:db8:12::/48', program: 'x'.repeat(200) });
    await useFrom('::ffff:198.51.100.9', '');
    expect(await from()).toEqual({ network: '198.51.100.0/24', program: null });
  });

  test('an earlier use that is written later does not change the last use', async () => {
    const key = await h.key(ada, { scopes: ['repos:read'] });
    const other = await h.another();
    const useOn = async (on: Harness, agent: string) =>
      await on.call('GET', '/repositories', { as: key, headers: { 'user-agent': agent } });
    await useOn(other, 'earlier');
    h.clock.advance(minute);
    await useOn(h, 'later');
    await h.app.jobs.runNow('usage');
    await other.close();
    const { data } = await h.call('GET', `/me/tokens/${key.id}`, { as: ada });
    expect([data.lastUsedAt, data.lastUsedFrom.program]).toEqual([
      new Date(h.clock.now()).toISOString(),
      'later',
    ]);
  });

  test('an orderly stop loses no usage', async () => {
    const other = await h.another();
    const key = await h.key(ada);
    for (let count = 0; count < 5; count += 1) await other.call('GET', '/repositories', { as: key });
    await other.close();
    expect((await usage(key.id)).total.allowed).toBe(5);
  });

  test('of two processes adds up, and writing twice counts once', async () => {
    const other = await h.another();
    const key = await h.key(ada);
    await Promise.all([use(key), other.call('GET', '/repositories', { as: key }), use(key)]);
    for (const on of [h, other, h, other]) await on.app.jobs.runNow('usage');
    expect((await usage(key.id)).total.allowed).toBe(3);
    await other.close();
  });

  test('limited, failed and denied requests are counted separately', async () => {
    const key = await h.serviceKey();
    const root = await h.person('Root', { admin: true });
    const { headers, data } = await h.call('GET', '/config/api-keys', { as: root });
    const body = { ...data.policy, rateLimitPerMinute: 2 };
    await h.call('PUT', '/config/api-keys', {
      as: root,
      body,
      headers: { 'if-match': String(headers['etag']) },
    });
    for (let count = 0; count < 5; count += 1) await use(key);
    await h.app.jobs.runNow('usage');
    const { data: counted } = await h.call('GET', `/tokens/${key.id}/usage`, { as: root });
    expect(counted.total).toEqual({ ...none, allowed: 2, limited: 3 });
  });

  test('a range that is too long or backwards is refused', async () => {
    const key = await h.key(ada);
    const ask = async (query: Record<string, string>) =>
      (await h.call('GET', `/me/tokens/${key.id}/usage`, { as: ada, query })).error?.code;
    const at = (ms: number) => new Date(h.clock.now() + ms).toISOString();
    expect(await ask({ per: 'minute', from: at(-3 * day), to: at(0) })).toBe('invalid_query');
    expect(await ask({ per: 'hour', from: at(0), to: at(-hour) })).toBe('invalid_query');
    expect(await ask({ per: 'minute', from: at(-2 * day), to: at(0) })).toBeUndefined();
  });
});

describe('a dead key that is still used', () => {
  const story = async (id: string) => {
    const { data } = await h.call('GET', `/me/tokens/${id}/timeline`, { as: ada });
    return data.filter(({ event }: { event: string }) => event === 'api_key.dead_use');
  };
  const notices = async () =>
    (await h.call('GET', '/me/notices', { as: ada })).data.filter(
      ({ kind }: { kind: string }) => kind === 'key_dead_use',
    );

  test.each(['revoked', 'expired'] as const)(
    'appears in the usage, in one event a minute with a count, and in one notice, when it was %s',
    async (end) => {
      const key = await h.key(ada, { ttlHours: 1 });
      if (end === 'revoked') await h.call('DELETE', `/me/tokens/${key.id}`, { as: ada });
      else h.clock.advance(hour);
      for (let count = 0; count < 7; count += 1) expect((await use(key)).status).toBe(401);
      h.clock.advance(minute);
      for (const job of ['denials', 'usage', 'alarms']) await h.app.jobs.runNow(job);
      for (let count = 0; count < 2; count += 1) await use(key);
      h.clock.advance(minute);
      for (const job of ['denials', 'usage', 'alarms']) await h.app.jobs.runNow(job);
      const events = await story(key.id);
      expect(events.map((one: { details: { count: number } }) => one.details.count)).toEqual([2, 7]);
      expect(events[0]).toMatchObject({ reason: end, target: { kind: 'api_key', id: key.id } });
      expect((await usage(key.id)).total.dead).toBe(9);
      const told = await notices();
      expect(told).toHaveLength(1);
      expect(told[0]).toMatchObject({ keyId: key.id });
      expect((await h.call('GET', `/me/tokens/${key.id}`, { as: ada })).data.lastUsedAt).toBeNull();
    },
  );

  test('is recorded by the jobs at most a minute after its first use', async () => {
    const key = await h.key(ada);
    await h.call('DELETE', `/me/tokens/${key.id}`, { as: ada });
    await h.app.jobs.tick();
    await use(key);
    for (let passed = 0; passed < 60; passed += 5) {
      h.clock.advance(5 * second);
      await h.app.jobs.tick();
    }
    expect(await story(key.id)).toHaveLength(1);
  });
});

describe('a key in an address', () => {
  test.each([
    ['a query', (value: string) => `/auth/context?token=${value}`],
    ['a path', (value: string) => `/tokens/${value}`],
    ['a disguise', (value: string) => `/auth/context?x=${value.replaceAll('_', '%5F')}`],
  ])(
    'KF-05 in %s is refused, kept out of the log, reported to its owner and audited',
    async (_where, urlOf) => {
      const key = await h.key(ada);
      const answer = await h.call('GET', urlOf(key.value), { as: ada });
      expect([answer.status, answer.error.code]).toEqual([400, 'credential_in_url']);
      expect(answer.text).not.toContain(key.value.slice(20));
      await h.app.jobs.runNow('alarms');
      await h.app.services.denials.flush({ all: true });
      expect(h.logged.join('\n')).not.toContain(key.value.slice(20));
      const [notice] = (await h.call('GET', '/me/notices', { as: ada })).data;
      expect(notice).toMatchObject({ kind: 'key_exposed', keyId: key.id });
      expect(notice.digest).toMatch(/^[0-9a-f]{64}$/);
      const timeline = await h.call('GET', `/me/tokens/${key.id}/timeline`, { as: ada });
      expect(timeline.data.map(({ event }: { event: string }) => event)).toContain('api_key.exposed');
      expect(timeline.text).not.toContain(key.value.slice(20));
      // It is not honoured, and not destroyed either: that is its owner's choice.
      expect((await use(key)).status).toBe(200);
    },
  );

  test('KF-05 a revoked key is also refused there, and no one is asked to revoke it', async () => {
    const key = await h.key(ada);
    await h.call('DELETE', `/me/tokens/${key.id}`, { as: ada });
    expect((await h.call('GET', `/auth/context?token=${key.value}`)).error.code).toBe('credential_in_url');
    await h.app.jobs.runNow('alarms');
    expect((await h.call('GET', '/me/notices', { as: ada })).data).toEqual([]);
  });

  test('KF-05 a value that is no key of Postern is refused without a notice', async () => {
    const { value } = h.app.services.format.generate('personal', h.app.services.random);
    expect((await h.call('GET', `/auth/context?token=${value}`)).error.code).toBe('credential_in_url');
    await h.app.jobs.runNow('alarms');
    expect((await h.call('GET', '/me/notices', { as: ada })).data).toEqual([]);
  });
});

test('the timeline of a key has all its events, newest first', async () => {
  const key = await h.call('POST', '/me/tokens', {
    as: ada,
    body: { name: 'a', scopes: ['repos:write'], repositoryAccess: { mode: 'all' } },
  });
  const { id } = key.data;
  h.clock.advance(second);
  await h.call('PATCH', `/me/tokens/${id}`, { as: ada, body: { scopes: ['repos:read'] } });
  h.clock.advance(second);
  await h.call('POST', `/me/tokens/${id}/rotate`, { as: ada, body: {} });
  h.clock.advance(second);
  await h.call('DELETE', `/me/tokens/${id}`, { as: ada });
  const { data } = await h.call('GET', `/me/tokens/${id}/timeline`, { as: ada });
  expect(data.map(({ event }: { event: string }) => event)).toEqual([
    'api_key.revoked',
    'api_key.rotated',
    'api_key.narrowed',
    'api_key.created',
  ]);
  expect(data[2].details).toMatchObject({
    before: { scopes: ['repos:write'] },
    after: { scopes: ['repos:read'] },
  });
});
