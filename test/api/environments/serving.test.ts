import { afterAll, beforeAll, expect, test } from 'vitest';
import { openShop, page, type Shop } from './shop.ts';

let shop: Shop;
beforeAll(async () => {
  shop = await openShop();
  await shop.change({ allowedAccess: ['owner', 'members', 'public'] });
});
afterAll(() => shop.close());

test('a deployed version is served at its address until the teardown, and at a new address after a change of access', async () => {
  const { data } = await shop.create({ access: 'public' });
  const { services } = await shop.settle(data.id);
  const [{ url }] = services;
  const opened = await shop.h.open(`${url}/`);
  expect([opened.statusCode, opened.body]).toEqual([200, page('first')]);
  expect(opened.headers['x-robots-tag']).toBe('noindex');

  shop.repository.commit({ 'index.html': page('second') }, 'main');
  await shop.call('POST', `/environments/${data.id}/deploy`, { body: {} });
  await shop.settle(data.id);
  expect((await shop.h.open(`${url}/`)).body).toBe(page('second'));

  await shop.call('PATCH', `/environments/${data.id}`, { body: { access: 'members' } });
  const after = await shop.settle(data.id);
  // A person without a grant is sent to the web app, both from the new address and from the old one, which no longer works.
  const navigation = { headers: { 'sec-fetch-mode': 'navigate' } };
  expect((await shop.h.open(`${url}/`, navigation)).statusCode).toBe(303);
  const closed = await shop.h.open(`${after.services[0].url}/`, navigation);
  expect([closed.statusCode, closed.headers['location']]).toEqual([
    303,
    expect.stringMatching(/^http:\/\/localhost:3000\/environments\/open\?label=web-e/),
  ]);

  await shop.call('PATCH', `/environments/${data.id}`, { body: { access: 'public' } });
  const again = await shop.settle(data.id);
  expect((await shop.h.open(`${again.services[0].url}/`)).statusCode).toBe(200);
  await shop.call('DELETE', `/environments/${data.id}`);
  expect((await shop.h.open(`${again.services[0].url}/`)).statusCode).toBe(410);
});

test('the policy stops serving all Environments at once', async () => {
  const { data } = await shop.create({ access: 'public' });
  const { services } = await shop.settle(data.id);
  const [{ url }] = services;
  expect((await shop.h.open(`${url}/`)).statusCode).toBe(200);
  await shop.change({ enabled: false, allowedAccess: ['owner', 'members', 'public'] });
  expect((await shop.h.open(`${url}/`)).statusCode).toBe(404);
  await shop.change({ allowedAccess: ['owner', 'members', 'public'] });
  expect((await shop.h.open(`${url}/`)).statusCode).toBe(200);
});
