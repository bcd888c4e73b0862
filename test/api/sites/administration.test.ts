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

test('T47 deleting a site is no way round taking it down: restored, it is still down', async () => {
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

test('what has expired takes no new content, also when it was taken down', async () => {
  const made = await upload(h, key, { 'index.html': page('x') }, { ttlHours: '1' });
  await h.call('POST', `/sites/${made.data.id}/take-down`, { as: boss, body: { reason: 'phishing' } });
  h.clock.advance(3_600_000);
  const late = await replace(h, key, made.data.id, { 'index.html': page('y') });
  expect([late.status, late.error.code]).toEqual([410, 'site_expired']);
});
