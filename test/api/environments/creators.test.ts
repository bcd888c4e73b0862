import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CallOptions } from '../../harness.ts';
import { openShop, page, type Shop } from './shop.ts';

let shop: Shop;
beforeAll(async () => {
  shop = await openShop();
});
afterAll(() => shop.close());

/** A deployed Environment that follows its branch. */
async function following(as: NonNullable<CallOptions['as']>): Promise<string> {
  const { data } = await shop.create({ autoTrack: true, access: 'members' }, as);
  await shop.settle(data.id);
  return data.id;
}

/** What deployed the Environment, after a new commit was looked for. */
async function triggersAfterRound(id: string): Promise<string[]> {
  await shop.h.app.jobs.runNow('environment-branches');
  await shop.settle(id);
  const { data } = await shop.call('GET', '/builds', { query: { environment: id } });
  return data.map(({ trigger }: { trigger: string }) => trigger);
}

let count = 0;
const push = () => shop.repository.commit({ 'index.html': page(`commit ${(count += 1)}`) }, 'main');

test('while the creator is disabled or lacks the role, new commits wait; afterwards the newest is deployed', async () => {
  const ben = await shop.h.person('Ben');
  const change = async (body: object) =>
    expect((await shop.call('PATCH', `/users/${ben.user.id}`, { body })).status).toBe(200);
  const id = await following(ben);
  push();
  await change({ enabled: false });
  expect(await triggersAfterRound(id)).toEqual(['api']);
  await change({ enabled: true, roles: [] });
  expect(await triggersAfterRound(id)).toEqual(['api']);
  const sha = push();
  await change({ roles: ['user'] });
  expect(await triggersAfterRound(id)).toEqual(['push', 'api']);
  expect((await shop.call('GET', `/environments/${id}`)).data).toMatchObject({ status: 'deployed', sha });
});

test('after its creator is deleted, an Environment is not deployed automatically; other members deploy it until its lease ends', async () => {
  const cleo = await shop.h.person('Cleo');
  const id = await following(cleo);
  push();
  expect((await shop.call('DELETE', `/users/${cleo.user.id}`)).status).toBeLessThan(300);
  expect(await triggersAfterRound(id)).toEqual(['api']);
  await shop.call('POST', `/environments/${id}/deploy`, { body: {} });
  expect(await triggersAfterRound(id)).toEqual(['api', 'api']);
});

test('after its service key is revoked, an Environment is not deployed automatically', async () => {
  const key = await shop.h.serviceKey({ scopes: ['env:read', 'env:write'] });
  const id = await following(key);
  push();
  expect(await triggersAfterRound(id)).toEqual(['push', 'api']);
  expect((await shop.call('DELETE', `/tokens/${key.id}`)).status).toBeLessThan(300);
  push();
  expect(await triggersAfterRound(id)).toEqual(['push', 'api']);
});

test('after its service key was rotated, an Environment is deployed automatically until the successor is revoked', async () => {
  const key = await shop.h.serviceKey({ scopes: ['env:read', 'env:write'] });
  const id = await following(key);
  const rotated = await shop.call('POST', `/tokens/${key.id}/rotate`, { body: { graceSeconds: 0 } });
  const next = `Bearer ${rotated.data.token}`;
  expect((await shop.call('GET', '/environments', { as: next })).status).toBe(200);
  await shop.h.settle();
  expect((await shop.call('GET', '/environments', { as: key })).status).toBe(401);
  push();
  expect(await triggersAfterRound(id)).toEqual(['push', 'api']);
  expect((await shop.call('DELETE', `/tokens/${rotated.data.id}`)).status).toBeLessThan(300);
  push();
  expect(await triggersAfterRound(id)).toEqual(['push', 'api']);
});

test('the successor of a service key owns the Environments of its predecessors', async () => {
  await shop.change({ maxPerOwner: 1, allowedAccess: ['owner', 'members', 'public'] });
  const key = await shop.h.serviceKey({ scopes: ['env:read', 'env:write'] });
  const body = { access: 'members', idempotencyKey: 'once' };
  const { data } = await shop.create(body, key);
  let id = key.id;
  let next = '';
  for (const _ of ['second key', 'third key']) {
    const rotated = await shop.call('POST', `/tokens/${id}/rotate`, { body: { graceSeconds: 0 } });
    ({ id, token: next } = rotated.data);
    await shop.call('GET', '/auth/context', { as: `Bearer ${next}` });
    await shop.h.settle();
  }
  const as = `Bearer ${next}`;
  const mine = async (by: NonNullable<CallOptions['as']>) =>
    (await shop.call('GET', '/environments', { as: by, query: { mine: 'true' } })).data;
  expect(await mine(as)).toMatchObject([{ id: data.id }]);
  expect((await shop.create(body, as)).data).toMatchObject({ id: data.id, replayed: true });
  expect((await shop.create({ access: 'members' }, as)).error?.code).toBe('quota_exceeded');
  const other = await shop.h.serviceKey({ scopes: ['env:read', 'env:write'] });
  expect(await mine(other)).toEqual([]);
  const widen = { body: { access: 'public' } };
  const path = `/environments/${data.id}`;
  expect((await shop.call('PATCH', path, { as: other, ...widen })).status).toBe(422);
  expect((await shop.call('PATCH', path, { as, ...widen })).status).toBe(200);
});
