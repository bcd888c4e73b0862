import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { systemAuditContext } from '../../../src/core/caller.ts';
import { type Harness, openHarness, type Person, type TestKey } from '../../harness.ts';
import { siteTables, type Target, target, use } from './every-route.ts';
import { page, sha256, upload } from './uploads.ts';

/** Sites is switched off: every route of it says so, and nothing of any site changes. */
let h: Harness;
let root: Person;
let ada: Person;
let key: TestKey;
let mine: Target;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 100_000 });
  root = await h.person('Root', { admin: true });
  ada = await h.person('Ada');
  key = await h.key(ada, { scopes: ['sites:read', 'sites:write'] });
  mine = await target(h, ada);
});
afterEach(() => switchSites(true));
afterAll(() => h.close());

async function switchSites(enabled: boolean): Promise<void> {
  const { sitesConfig } = h.app.services.sitesServices;
  const { etag, value } = await sitesConfig.read();
  await sitesConfig.put(systemAuditContext, etag, { ...value, enabled });
}

const routesOf = (role: 'user' | 'admin') =>
  h.app.routes.filter(
    ({ path, policy }) => policy.role === role && (path === '/sites' || path.startsWith('/sites/{id}')),
  );

test.each([
  ['session', () => ada],
  ['key', () => key],
] as const)('GW-06 by %s every route of Sites is closed, and nothing is changed', async (way, who) => {
  const routes = routesOf('user').filter(
    ({ policy }) =>
      way === 'session' || (typeof policy.callers !== 'string' && policy.callers.includes('personal_key')),
  );
  expect(routes.length).toBeGreaterThan(17);
  await switchSites(false);
  const before = await siteTables(h);
  for (const route of routes) {
    const answer = await use(h, route, mine, who());
    expect([route.operationId, answer.status, answer.error?.code]).toEqual([
      route.operationId,
      403,
      'sites_disabled',
    ]);
  }
  expect(await siteTables(h)).toEqual(before);
});

test('GW-06 no site is created without content, and uploads are not kept', async () => {
  await switchSites(false);
  const empty = await h.call('POST', '/sites', { as: ada, body: { name: 'late' } });
  const late = page('sent while Sites is off');
  const sent = await upload(h, ada, { 'index.html': late });
  expect([empty.error?.code, sent.error?.code]).toEqual(['sites_disabled', 'sites_disabled']);
  for await (const { digest } of h.blobs.list()) expect(digest).not.toBe(sha256(late));
});

test('GW-06 an earlier upload resumes when Sites is on again', async () => {
  await switchSites(false);
  await switchSites(true);
  const reopened = routesOf('user').filter(({ operationId }) => operationId !== 'deleteSite');
  for (const route of reopened) {
    const answer = await use(h, route, mine, ada);
    expect([route.operationId, answer.status < 300]).toEqual([route.operationId, true]);
  }
});

test('GW-06 an administrator takes down and reinstates a site even while Sites is off', async () => {
  await switchSites(false);
  for (const route of routesOf('admin')) {
    const answer = await use(h, route, mine, root);
    expect([route.operationId, answer.status]).toEqual([route.operationId, 200]);
  }
});
