// @module-tag sql
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Route } from '../../../src/platform/http.ts';
import { type Answer, type Harness, openHarness, type Person, type TestKey } from '../../harness.ts';
import { browserOf } from '../../gateway/private.ts';
import { siteRoutes, siteTables, target, use } from './every-route.ts';
import { page, replace, upload } from './uploads.ts';

/** Whose site it is decides, and nothing else: no role, no scope and no other key of the same name (matrix OW). */
let h: Harness;
let root: Person;
let ada: Person;
let bob: Person;
let adas: TestKey;
let bobs: TestKey;
let service: TestKey;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 100_000 });
  root = await h.person('Root', { admin: true });
  ada = await h.person('Ada');
  bob = await h.person('Bob');
  const scopes = ['sites:read', 'sites:write', 'env:write', 'repos:write'] as const;
  adas = await h.key(ada, { scopes: [...scopes] });
  bobs = await h.key(bob, { scopes: [...scopes] });
  service = await h.serviceKey({ scopes: [...scopes] });
});
afterAll(() => h.close());

const files = { 'index.html': page('secret') };
/** All that a caller sees, without what differs in every answer. */
function seen({ status, headers, text }: Answer): unknown {
  const { 'x-request-id': id = '', ...rest } = headers;
  const kept = Object.entries(rest).filter(([name]) => name !== 'date' && !name.startsWith('ratelimit'));
  return { status, headers: kept, text: text.replaceAll(id, '…') };
}

/** What the route's policy says before any site is looked for. */
function refusalOf({ policy }: Route, as: Person | TestKey): string | null {
  const isSession = 'user' in as;
  if (!isSession && !policy.callers.includes('personal_key')) return 'interactive_auth_required';
  return policy.role === 'admin' && as !== root ? 'forbidden_role' : null;
}

describe.each([
  ['OW-01 an administrator', () => root],
  ['OW-02 an unrelated person', () => bob],
  ['OW-02 the key of an unrelated person, with every scope', () => bobs],
  ['OW-02 a service key, with every scope', () => service],
])('%s', (_who, who) => {
  test('finds another person’s private site on no route: 404, the same bytes as for a site that never existed', async () => {
    const hers = await target(h, ada, 'private');
    const absent = { ...hers, id: 'aaaaaaaaaa' };
    const before = await siteTables(h);
    for (const route of siteRoutes(h)) {
      const isStopper = ['takeSiteDown', 'putSiteBack'].includes(route.operationId) && who() === root;
      if (isStopper) continue;
      const [theirs, none] = [await use(h, route, hers, who()), await use(h, route, absent, who())];
      const code = refusalOf(route, who());
      expect([route.operationId, theirs.status, theirs.error.code]).toEqual([
        route.operationId,
        code === null ? 404 : 403,
        code ?? 'site_not_found',
      ]);
      expect([route.operationId, seen(theirs)]).toEqual([route.operationId, seen(none)]);
    }
    expect(await siteTables(h)).toEqual(before);
    const found = await h.call('GET', '/sites', { as: who(), query: { search: hers.id } });
    expect([found.data, found.metadata.pagination.items]).toEqual([[], 0]);
  });

  test('changes nothing of another person’s public site: 403 not_owner; served content can be read', async () => {
    const hers = await target(h, ada, 'public');
    const before = await siteTables(h);
    const open = ['getSite', 'listSiteFiles', 'downloadSiteFile', 'readSiteActions'];
    for (const route of siteRoutes(h).filter(({ policy }) => policy.role !== 'admin')) {
      const answer = await use(h, route, hers, who());
      const code = refusalOf(route, who()) ?? 'not_owner';
      const isOpen = open.includes(route.operationId);
      expect([route.operationId, answer.status, answer.error?.code]).toEqual(
        isOpen ? [route.operationId, 200, undefined] : [route.operationId, 403, code],
      );
    }
    expect(siteRoutes(h).length).toBeGreaterThan(18);
    expect(await siteTables(h)).toEqual(before);
    const read = await h.call('GET', `/sites/${hers.id}`, { as: who() });
    expect(read.data.owner).toEqual({ kind: 'user', id: ada.user.id, name: 'Ada' });
    expect(read.text).not.toContain('@example.com');
  });
});

test('OW-01 taking down a private site shows an administrator no content, and opens it to no one', async () => {
  const hers = await target(h, ada, 'private');
  const site = await h.call('GET', `/sites/${hers.id}`, { as: ada });
  const label = new URL(site.data.url).host.split('.', 1)[0] ?? '';
  for (const [path, body] of [
    ['take-down', { reason: 'reported' }],
    ['put-back', { reason: 'cleaned' }],
  ] as const) {
    const done = await h.call('POST', `/sites/${hers.id}/${path}`, { as: root, body });
    expect([done.status, Object.keys(done.data)]).toEqual([200, ['id', 'takenDownAt']]);
    for (const word of [label, 'plans', ada.user.id]) expect(done.text).not.toContain(word);
    expect((await h.call('GET', `/sites/${hers.id}`, { as: root })).status).toBe(404);
  }
  const shown = await browserOf(h, root).open(site.data.url);
  expect([shown.status, shown.text.includes('secret')]).toEqual([403, false]);
});

test('OW-01 the audit log tells an administrator who changed a private site, not what is in it', async () => {
  const { id } = (await upload(h, ada, files)).data;
  await replace(h, ada, id, { 'salaries.html': page('salaries'), ...files });
  const auditLog = await h.call('GET', '/audit/events', { as: root, query: { target: id } });
  expect(auditLog.data.map(({ event }: { event: string }) => event)).toEqual([
    'site.published',
    'site.created',
  ]);
  expect(auditLog.text).not.toContain('salaries');
});

test('OW-03 T48 a successor of a service key inherits no site: the answer names those that stay behind, and they are served', async () => {
  const old = await h.serviceKey({ scopes: ['sites:write'], name: 'deployer' });
  const made = await upload(h, old, files, { name: 'status page' });
  const answer = await h.call('POST', `/tokens/${old.id}/rotate`, { as: root, body: {} });
  expect(answer.data.sitesLeftBehind).toEqual([{ id: made.data.id, name: 'status page' }]);
  const successor: TestKey = { id: answer.data.id, value: answer.data.token, type: 'service' };
  const refused = await replace(h, successor, made.data.id, { 'index.html': page('taken over') });
  expect([refused.status, refused.error.code]).toEqual([403, 'not_owner']);
  const mine = await h.call('GET', '/sites', { as: successor, query: { mine: 'true' } });
  expect(mine.data).toEqual([]);
  expect((await h.open(made.data.url)).body).toContain('secret');
  expect((await replace(h, old, made.data.id, { 'index.html': page('still mine') })).status).toBe(200);
});

test('T48 a site stays with the person: a new name changes nothing, and a reused e-mail address gives no access', async () => {
  const eve = await h.person('Eve');
  const made = await upload(h, eve, files);
  await h.call('PATCH', `/users/${eve.user.id}`, {
    as: root,
    body: { name: 'Evelyn', email: 'evelyn@example.com' },
  });
  const heir = await h.person('Eve');
  expect((await h.call('GET', `/sites/${made.data.id}`, { as: heir })).status).toBe(404);
  expect((await h.call('GET', '/sites', { as: heir, query: { mine: 'true' } })).data).toEqual([]);
  expect((await h.call('GET', `/sites/${made.data.id}`, { as: eve })).data.owner.name).toBe('Evelyn');
  await h.call('DELETE', `/users/${eve.user.id}`, { as: root });
  expect((await h.call('GET', `/sites/${made.data.id}`, { as: heir })).status).toBe(404);
});

test('OW-04 a service key neither creates a private site nor makes one private, and can know so beforehand', async () => {
  const refused = await upload(h, service, files, { visibility: 'private' });
  expect([refused.status, refused.error.code]).toEqual([403, 'service_key_public_only']);
  const empty = await h.call('POST', '/sites', { as: service, body: { visibility: 'private' } });
  expect([empty.status, empty.error.code]).toEqual([403, 'service_key_public_only']);
  const made = await upload(h, service, files);
  expect(made.data).toMatchObject({ visibility: 'public', owner: { kind: 'service_key', id: service.id } });
  const hidden = await h.call('PATCH', `/sites/${made.data.id}`, {
    as: service,
    body: { visibility: 'private' },
  });
  expect([hidden.status, hidden.error.code]).toEqual([403, 'service_key_public_only']);
  expect((await h.open(made.data.url)).statusCode).toBe(200);
  const may = await h.call('GET', '/sites/capabilities', { as: service });
  expect(may.data).toMatchObject({
    allowedVisibility: ['public'],
    defaultVisibility: 'public',
    visibilityReasons: { private: expect.stringContaining('public') },
  });
});

test('OW-05 a site without a requested visibility is private and belongs to the person', async () => {
  for (const as of [ada, adas]) {
    const made = await upload(h, as, files);
    expect(made.data).toMatchObject({ visibility: 'private', owner: { kind: 'user', id: ada.user.id } });
    const empty = await h.call('POST', '/sites', { as, body: {} });
    expect(empty.data.visibility).toBe('private');
  }
  const current = await h.call('GET', '/config/sites', { as: root });
  const put = (config: object, etag: string | undefined) =>
    h.call('PUT', '/config/sites', { as: root, headers: { 'if-match': etag ?? '' }, body: config });
  const { config } = current.data;
  const without = await put(
    { ...config, visibility: { allowPublic: true, allowPrivate: false } },
    current.headers['etag'],
  );
  const refused = await upload(h, ada, files);
  expect([refused.status, refused.error.code]).toEqual([422, 'visibility_not_allowed']);
  await put(config, without.headers['etag']);
});

test('OW-06 an upload or a version of another person does not exist, even under one’s own site', async () => {
  const theirs = await target(h, ada, 'private');
  for (const nth of [2, 3]) await replace(h, ada, theirs.id, { 'index.html': page(`version ${nth}`) });
  const own = await target(h, bob, 'private');
  const never = { id: own.id, upload: 'upl_00000000000000000000', number: '9' };
  const borrowed = { id: own.id, upload: theirs.upload, number: '3' };
  const before = await siteTables(h);
  const about = siteRoutes(h).filter(({ path }) => path.includes('{upload}') || path.includes('{number}'));
  expect(about).toHaveLength(8);
  const words = (answer: Answer) => JSON.stringify(seen(answer)).replaceAll(/version \d/g, 'version n');
  for (const route of about) {
    const answer = await use(h, route, borrowed, bob);
    expect([route.operationId, answer.status, answer.error.code]).toEqual([
      route.operationId,
      404,
      'not_found',
    ]);
    expect(words(answer)).toBe(words(await use(h, route, never, bob)));
  }
  const file = await h.call('GET', `/sites/${own.id}/files/index.html`, { as: bob, query: { version: '3' } });
  expect(file.status).toBe(404);
  expect(await siteTables(h)).toEqual(before);
  expect((await h.call('GET', `/sites/${theirs.id}/uploads/${theirs.upload}`, { as: ada })).status).toBe(200);
});
