import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Harness, openHarness, type Person, type TestKey } from '../../harness.ts';
import { page, replace, upload } from './uploads.ts';

let h: Harness;
let boss: Person;
let key: TestKey;
beforeAll(async () => {
  h = await openHarness();
  boss = await h.person('Boss', { admin: true });
  key = await h.serviceKey({ scopes: ['sites:write'] });
});
afterAll(() => h.close());

test('T47 deletion does not undo a take-down: the restored site is still down', async () => {
  const made = await upload(h, key, { 'index.html': page('phish') });
  const { id, url } = made.data;
  await h.call('DELETE', `/sites/${id}`, { as: key });
  const down = await h.call('POST', `/sites/${id}/take-down`, { as: boss, body: { reason: 'phishing' } });
  expect([down.status, Object.keys(down.data)]).toEqual([200, ['id', 'takenDownAt']]);
  const back = await h.call('POST', `/sites/${id}/restore`, { as: key });
  expect(back.data).toMatchObject({ status: 'taken_down', takeDownReason: 'phishing' });
  expect((await h.open(url)).statusCode).toBe(404);
});

test('T47 a site is found by the first part of its address', async () => {
  const made = await upload(h, key, { 'index.html': page('x') });
  const [label = ''] = new URL(made.data.url).host.split('.');
  const found = await h.call('GET', '/sites', { as: boss, query: { search: label } });
  expect(found.data.map((site: { id: string }) => site.id)).toEqual([made.data.id]);
});

test('the owner is notified when a site is taken down and when it is reinstated, with the reason', async () => {
  const ada = await h.person('Ada');
  const made = await upload(h, ada, { 'index.html': page('private plans') }, { name: 'Plans' });
  const { id } = made.data;
  const stop = { as: boss, body: { reason: 'reported by the bank' } };
  for (let times = 0; times < 2; times++) {
    await h.call('POST', `/sites/${id}/take-down`, stop);
    // Nothing changed, so there is nothing to notify of.
    await h.call('POST', `/sites/${id}/take-down`, stop);
    await h.call('POST', `/sites/${id}/put-back`, { as: boss, body: { reason: 'the page was removed' } });
  }
  const { data } = await h.call('GET', '/me/notices', { as: ada });
  expect(data.map(({ kind }: { kind: string }) => kind).toSorted()).toEqual([
    'site_put_back',
    'site_put_back',
    'site_taken_down',
    'site_taken_down',
  ]);
  const told = data.find(({ kind }: { kind: string }) => kind === 'site_taken_down');
  expect(told).toMatchObject({ siteId: id, siteName: 'Plans', siteExpiresAt: null, keyId: null });
  expect(told.message).toContain('reported by the bank');
  expect((await h.call('GET', '/notices', { as: boss })).text).not.toContain('Plans');
});

test('administrators are notified of a take-down of a service key’s site', async () => {
  const made = await upload(h, key, { 'index.html': page('x') }, { name: 'robot page' });
  await h.call('POST', `/sites/${made.data.id}/take-down`, { as: boss, body: { reason: 'phishing' } });
  const { data } = await h.call('GET', '/notices', { as: boss });
  expect(data).toContainEqual(expect.objectContaining({ kind: 'site_taken_down', siteId: made.data.id }));
});

test('an expired site accepts no new content, even if it was taken down', async () => {
  const made = await upload(h, key, { 'index.html': page('x') }, { ttlHours: '1' });
  await h.call('POST', `/sites/${made.data.id}/take-down`, { as: boss, body: { reason: 'phishing' } });
  h.clock.advance(3_600_000);
  const late = await replace(h, key, made.data.id, { 'index.html': page('y') });
  expect([late.status, late.error.code]).toEqual([410, 'site_expired']);
});
