// @module-tag sql
import { afterAll, beforeAll, expect, test } from 'vitest';
import { day, hour } from '../../src/core/clock.ts';
import { type Harness, openHarness, type Person } from '../harness.ts';
import { upload } from './sites/uploads.ts';

// What administrators look at as a whole: sums that stay true while things come and go.
let h: Harness;
let root: Person;
let ada: Person;
beforeAll(async () => {
  h = await openHarness();
  root = await h.person('Root', { admin: true });
  ada = await h.person('Ada');
});
afterAll(() => h.close());

const read = async (path: string, query?: Record<string, string>) =>
  (await h.call('GET', path, { as: root, ...(query && { query }) })).data;

test('requests of all keys are counted together', async () => {
  const one = await h.key(ada);
  const two = await h.serviceKey();
  for (const key of [one, one, two]) await h.call('GET', '/auth/context', { as: key });
  await h.call('GET', '/users', { as: two });
  await h.app.services.usage.flush();
  for (const per of ['minute', 'hour', 'day']) {
    const { total, points } = await read('/tokens/totals', { per });
    expect([per, total.allowed, total.denied, points.length]).toEqual([per, 3, 1, 1]);
  }
});

test('expiring keys are counted by day and type; revoked ones and those without an expiry are not', async () => {
  await h.key(ada, { ttlHours: 24 });
  await h.key(ada, { ttlHours: 24 });
  await h.serviceKey({ ttlHours: 48 });
  await h.key(ada);
  const revoked = await h.key(ada, { ttlHours: 24 });
  await h.call('DELETE', `/tokens/${revoked.id}`, { as: root });
  const days: { personal: number; service: number }[] = await read('/tokens/ending');
  expect(days).toHaveLength(31);
  expect(days.slice(0, 4).map(({ personal, service }) => [personal, service])).toEqual([
    [0, 0],
    [2, 0],
    [0, 1],
    [0, 0],
  ]);
});

test('the audit log is counted by kind and outcome once it is chained', async () => {
  await h.app.services.chainWriter.run();
  const { counts } = await read('/audit/summary', { per: 'hour' });
  const of = (event: string, outcome: string) =>
    counts
      .filter((one: { event: string; outcome: string }) => one.event === event && one.outcome === outcome)
      .reduce((sum: number, one: { count: number }) => sum + one.count, 0);
  const listed = async (event: string) =>
    (await read('/audit/events', { event, limit: '100' })).length as number;
  expect(of('api_key.created', 'success')).toBe(await listed('api_key.created'));
  expect(of('api_key.revoked', 'success')).toBe(1);
  expect(of('api_key.revoked', 'denied')).toBe(0);
  h.clock.advance(2 * hour);
  const later = await h.key(ada);
  await h.app.services.chainWriter.run();
  const { counts: byDay } = await read('/audit/summary', { per: 'day' });
  expect(byDay.filter((one: { event: string }) => one.event === 'api_key.created')).toHaveLength(1);
  expect(later.id).toHaveLength(12);
});

test.each([
  [{ per: 'hour', from: '2025-01-01T00:00:00Z' }, 'at most 32 days before to'],
  [{ per: 'day', from: '2023-01-01T00:00:00Z' }, 'at most 400 days before to'],
  [{ from: '2026-01-09T00:00:00Z', to: '2026-01-01T00:00:00Z' }, 'must be before to'],
])('a summary over %j is refused', async (query, words) => {
  const { status, error } = await h.call('GET', '/audit/summary', { as: root, query });
  expect([status, error.code]).toEqual([400, 'invalid_query']);
  expect(error.message).toContain(words);
});

test('storage follows publications and removals, and names owners but no site', async () => {
  const first = await upload(h, ada, { 'index.html': 'a'.repeat(1000) });
  await upload(h, ada, { 'index.html': 'a'.repeat(1000), 'b.txt': 'b'.repeat(500) });
  const before = await read('/sites/storage');
  expect(before).toEqual({
    totalBytes: 1500,
    owners: [{ owner: { kind: 'user', id: ada.user.id, name: 'Ada' }, sites: 2, bytes: 1500 }],
  });
  await h.call('DELETE', `/sites/${first.data.id}`, { as: ada });
  expect(await read('/sites/storage')).toMatchObject({ owners: [{ sites: 1, bytes: 1500 }] });
  // Both are over by now: one deleted, one expired, and their days to be restored have passed.
  h.clock.advance(60 * day);
  await h.app.services.sitesServices.siteCleanup.run();
  const { data } = await h.call('GET', '/sites/storage', { as: await h.person('Ruth', { admin: true }) });
  expect(data).toEqual({ totalBytes: 0, owners: [] });
});

test('the storage of one owner can be read alone, even with empty sites', async () => {
  const [ruby, eli] = [await h.person('Ruby', { admin: true }), await h.person('Eli')];
  const key = await h.serviceKey({ name: 'publisher', scopes: ['sites:write'] });
  const asked = async (owner: string) =>
    (await h.call('GET', '/sites/storage', { as: ruby, query: { owner } })).data;
  expect(await asked(key.id)).toEqual({ totalBytes: 0, owners: [] });
  const empty = await h.call('POST', '/sites', { as: key, body: {} });
  expect(empty.status).toBe(201);
  const owner = { kind: 'service_key', id: key.id, name: 'publisher' };
  expect(await asked(key.id)).toEqual({ totalBytes: 0, owners: [{ owner, sites: 1, bytes: 0 }] });
  await upload(h, key, { 'index.html': 'a'.repeat(1000) });
  await upload(h, eli, { 'index.html': 'b'.repeat(5000) });
  expect(await asked(key.id)).toEqual({ totalBytes: 1000, owners: [{ owner, sites: 2, bytes: 1000 }] });
  await h.call('DELETE', `/sites/${empty.data.id}`, { as: key });
  expect(await asked(key.id)).toMatchObject({ owners: [{ sites: 1 }] });
  expect(await asked('nobody')).toEqual({ totalBytes: 0, owners: [] });
});

test('a site that was taken down is listed without its name, and leaves the list when it is reinstated', async () => {
  const root2 = await h.person('Rita', { admin: true });
  const eve = await h.person('Eve');
  const { data: site } = await upload(h, eve, { 'index.html': 'hello' }, { name: 'Secret plans' });
  await h.call('POST', `/sites/${site.id}/take-down`, { as: root2, body: { reason: 'Phishing' } });
  const answer = await h.call('GET', '/sites/taken-down', { as: root2 });
  expect(answer.data).toMatchObject([{ id: site.id, owner: { name: 'Eve' }, reason: 'Phishing' }]);
  expect(answer.text).not.toContain('Secret plans');
  await h.call('POST', `/sites/${site.id}/put-back`, { as: root2, body: { reason: 'Fixed' } });
  expect((await h.call('GET', '/sites/taken-down', { as: root2 })).data).toEqual([]);
});

test('the reason why an administrator revoked a key is in the key’s timeline', async () => {
  const rita = await h.person('Rosa', { admin: true });
  const zoe = await h.person('Zoe');
  const key = await h.key(zoe);
  const revoke = (ids: string[]) =>
    h.call('POST', '/tokens/revoke', { as: rita, body: { ids, note: 'Found in a public log' } });
  expect((await revoke([key.id, '000000000000'])).error.code).toBe('token_not_found');
  expect((await h.call('GET', '/auth/context', { as: key })).status).toBe(200);
  const answer = await revoke([key.id, key.id]);
  expect(answer.data).toHaveLength(1);
  expect((await h.call('GET', '/auth/context', { as: key })).status).toBe(401);
  expect((await revoke([key.id])).data).toEqual(answer.data);
  const { data } = await h.call('GET', `/me/tokens/${key.id}/timeline`, { as: zoe });
  expect(data[0]).toMatchObject({
    event: 'api_key.revoked',
    reason: 'administrator',
    details: { note: 'Found in a public log' },
  });
});

test('an administrator finds the keys of one person, keys without an expiry, and broad ones', async () => {
  const ria = await h.person('Ria', { admin: true });
  const kim = await h.person('Kim');
  await h.repository('acme/website');
  const access = { mode: 'selected', repositories: ['acme/website'] } as const;
  await h.key(kim, { name: 'endless and broad' });
  await h.key(kim, { name: 'endless', repositoryAccess: access });
  await h.key(kim, { name: 'broad', ttlHours: 24 });
  const named = async (query: Record<string, string>) => {
    const asked = { kind: 'personal', owner: kim.user.id, sort: 'name', ...query };
    const { data } = await h.call('GET', '/tokens', { as: ria, query: asked });
    return data.map(({ name }: { name: string }) => name);
  };
  expect(await named({})).toEqual(['broad', 'endless', 'endless and broad']);
  expect(await named({ expiry: 'never' })).toEqual(['endless', 'endless and broad']);
  expect(await named({ reach: 'all' })).toEqual(['broad', 'endless and broad']);
  expect(await named({ owner: ria.user.id })).toEqual([]);
});
