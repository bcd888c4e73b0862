import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemAuditContext } from '../../../src/core/caller.ts';
import { day, hour, minute, second } from '../../../src/core/clock.ts';
import type { SitesConfig } from '../../../src/features/sites/sites.ts';
import { type Harness, openHarness, type Person, type TestKey } from '../../harness.ts';
import { page, replace, upload } from './uploads.ts';

/** How long what a site no longer shows stays within reach: hashed files, previews, addresses. */
let h: Harness;
let root: Person;
let key: TestKey;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 100_000 });
  root = await h.person('Root', { admin: true });
  key = await h.key(await h.person('Ada'), { scopes: ['sites:write'] });
});
afterAll(() => h.close());

const script = 'app.3f9c2a71.js';
const made = async () =>
  (await upload(h, key, { 'index.html': page('old'), [script]: 'old' }, { visibility: 'public' })).data;
const statusOf = async (url: string) => (await h.open(url)).statusCode;

async function withVersions(versions: Partial<SitesConfig['versions']>, work: () => Promise<void>) {
  const { sitesConfig } = h.app.services.sitesServices;
  const { etag, value } = await sitesConfig.read();
  const changed = { ...value, versions: { ...value.versions, ...versions } };
  const after = await sitesConfig.put(systemAuditContext, etag, changed);
  try {
    await h.settle();
    await work();
  } finally {
    await sitesConfig.put(systemAuditContext, after.etag, value);
    await h.settle();
  }
}

test('a changed skew grace applies at once, even to served versions', async () => {
  const { id, url } = await made();
  await replace(h, key, id, { 'index.html': page('new') });
  expect(await statusOf(`${url}${script}`)).toBe(200);
  await withVersions({ skewGraceMinutes: 0 }, async () => {
    expect(await statusOf(`${url}${script}`)).toBe(404);
  });
  expect(await statusOf(`${url}${script}`)).toBe(200);
});

test('hashed files of the last hundred versions are within reach', { tags: 'flood' }, async () => {
  const { id, url } = await made();
  const next = async (text: string) => {
    h.clock.advance(second);
    expect((await replace(h, key, id, { 'index.html': page(text) })).status).toBe(200);
  };
  for (let nth = 0; nth < 100; nth++) await next(`v${nth}`);
  expect(await statusOf(`${url}${script}`)).toBe(200);
  await next('one more');
  expect(await statusOf(`${url}${script}`)).toBe(404);
});

test('files that were replaced while the site was down are not served after it is reinstated', async () => {
  const { id, url } = await made();
  const reason = { reason: 'phishing' };
  await h.call('POST', `/sites/${id}/take-down`, { as: root, body: reason });
  await replace(h, key, id, { 'index.html': page('clean'), 'app.3f9c2a72.js': 'clean' });
  h.clock.advance(second);
  await h.call('POST', `/sites/${id}/put-back`, { as: root, body: reason });
  await h.settle();
  expect(await statusOf(url)).toBe(200);
  expect(await statusOf(`${url}${script}`)).toBe(404);
  h.clock.advance(second);
  await replace(h, key, id, { 'index.html': page('next') });
  expect(await statusOf(`${url}app.3f9c2a72.js`)).toBe(200);
});

test('a preview shows its version for its 24 hours, whatever is published meanwhile', async () => {
  const { id } = await made();
  await replace(h, key, id, { 'index.html': page('v2') });
  const preview = (await h.call('POST', `/sites/${id}/versions/1/preview`, { as: key })).data;
  const publishMany = async () => {
    for (let nth = 0; nth < 12; nth++) await replace(h, key, id, { 'index.html': page(`v${nth}`) });
    await h.app.services.sitesServices.siteCleanup.run();
  };
  h.clock.advance(hour + minute);
  await publishMany();
  h.clock.advance(hour + minute);
  await publishMany();
  expect(await statusOf(preview.url)).toBe(200);
  expect((await h.call('GET', `/sites/${id}/versions/2`, { as: key })).status).toBe(404);
  h.clock.advance(day - 2 * (hour + minute));
  expect(await statusOf(preview.url)).toBe(404);
  await publishMany();
  expect((await h.call('GET', `/sites/${id}/versions/1`, { as: key })).status).toBe(404);
});

test('contract 10.6 a site may change its visibility 20 times in a day, also on its first day, and the next change must wait', async () => {
  const { id } = (await upload(h, key, { 'index.html': 'x' }, { visibility: 'public' })).data;
  const change = (nth: number) =>
    h.call('PATCH', `/sites/${id}`, { as: key, body: { visibility: nth % 2 === 0 ? 'private' : 'public' } });
  for (let nth = 0; nth < 20; nth++) {
    h.clock.advance(minute);
    expect((await change(nth)).status).toBe(200);
  }
  const refused = await change(20);
  expect([refused.status, refused.error.code]).toEqual([429, 'rate_limited']);
  const seconds = Number(refused.headers['retry-after']);
  expect(seconds).toBe((day - 19 * minute) / second);
  h.clock.advance((seconds - 1) * second);
  expect((await change(20)).status).toBe(429);
  h.clock.advance(second);
  expect((await change(20)).status).toBe(200);
});
