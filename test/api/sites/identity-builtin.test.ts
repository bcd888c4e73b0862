import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { browserOf, privateSite } from '../../gateway/private.ts';
import type { Answer, Harness, Person } from '../../harness.ts';
import { Browser } from '../../identity.ts';
import { commandLine, manyChanges, openFrozenHarness } from '../access/cast.ts';
import { page, upload } from './uploads.ts';

/** The same questions at the built-in provider, with real sign-ins, groups and connected programs. */
let h: Harness;
let root: Person;
beforeAll(async () => {
  h = await openFrozenHarness(manyChanges);
  root = await h.person('Root', { admin: true });
});
afterAll(async () => {
  await h.close();
  vi.useRealTimers();
});

const scopes = ['sites:read', 'sites:write'] as const;
const outcome = ({ status, error }: Answer) => `${status} ${error?.code ?? ''}`.trim();
const asRoot = (method: string, path: string, body?: object) =>
  h.call(method, path, { as: root, ...(body === undefined ? {} : { body }) });
const list = (as: Person | string | { value: string }) =>
  h.call('GET', '/sites', { as: as as Person, query: { mine: 'true' } });

/** Another access token from an offline grant, as a program gets one. */
async function refreshed(refresh: string): Promise<{ status: number; access: string; refresh: string }> {
  const form = { client_id: 'postern-cli', grant_type: 'refresh_token', refresh_token: refresh };
  const headers = { origin: '', accept: 'application/json' };
  const answer = await new Browser(h.app.web).post('/identity/token', form, headers);
  const { access_token: access = '', refresh_token: next = '' } = answer.json() as Record<string, string>;
  return { status: answer.status, access, refresh: next };
}

test('ID-01 ID-09 a disabled account is refused at the next request by session, token and key; enabling restores key and token, not the session', async () => {
  const ada = await h.person('Ada');
  const key = await h.key(ada, { scopes: [...scopes] });
  const tokens = await commandLine(h, 'Ada').connect(scopes);
  const site = await privateSite(h, ada);
  const inside = browserOf(h, ada);
  expect((await inside.open(site.url)).status).toBe(200);
  const ways = [ada, key, `Bearer ${tokens.access}`];
  for (const as of ways) expect(outcome(await list(as))).toBe('200');
  await asRoot('PATCH', `/users/${ada.user.id}`, { enabled: false });
  for (const as of ways) expect([401, 403]).toContain((await list(as)).status);
  expect((await refreshed(tokens.refresh)).status).toBe(400);
  expect((await inside.asset(site.url)).status).toBe(200);
  expect((await browserOf(h, ada).open(site.url)).text).not.toContain('secret');
  await asRoot('PATCH', `/users/${ada.user.id}`, { enabled: true });
  await h.settle();
  expect(outcome(await list(key))).toBe('200');
  const next = await refreshed(tokens.refresh);
  expect([next.status, outcome(await list(`Bearer ${next.access}`))]).toEqual([200, '200']);
  expect(outcome(await list(ada))).toBe('401 authentication_required');
});

test('ID-03 a role from a parent group is sufficient for sites and their grants, and ends with the membership', async () => {
  const bob = await h.person('Bob');
  const key = await h.key(bob, { scopes: [...scopes] });
  const company = await asRoot('POST', '/groups', { name: 'Company', roles: ['user'] });
  const team = await asRoot('POST', '/groups', { name: 'Team', parentId: company.data.id, roles: [] });
  const become = (roles: string[], groups: string[]) =>
    asRoot('PATCH', `/users/${bob.user.id}`, { roles, groups });
  await become([], [team.data.id]);
  const site = await privateSite(h, bob);
  expect(outcome(await list(key))).toBe('200');
  expect((await browserOf(h, bob).open(site.url)).status).toBe(200);
  await become([], []);
  for (const as of [bob, key]) expect(outcome(await list(as))).toBe('403 role_required');
  expect((await browserOf(h, bob).open(site.url)).status).toBe(403);
  await become([], [team.data.id]);
  expect(outcome(await list(key))).toBe('200');
  await asRoot('PATCH', `/groups/${company.data.id}`, { roles: [] });
  for (const as of [bob, key]) expect(outcome(await list(as))).toBe('403 role_required');
});

test('ID-06 a signed-out session can change nothing, and opens no private site', async () => {
  const cleo = await h.person('Cleo');
  const site = await privateSite(h, cleo);
  const browser = new Browser(h.app.web);
  await browser.signIn('cleo@example.com', 'correct horse battery');
  const session: Person = { ...cleo, cookie: browser.cookies.get('__Host-postern_session') ?? '' };
  expect(outcome(await list(session))).toBe('200');
  expect((await browserOf(h, session).open(site.url)).status).toBe(200);
  expect((await browser.post('/auth/logout', {})).status).toBe(303);
  expect(outcome(await list(session))).toBe('401 authentication_required');
  const first = await browserOf(h, session).navigate(site.url);
  const to = new URL(first.headers['location'] ?? '');
  const asked = await h.call('GET', to.pathname + to.search, { as: session });
  expect([asked.status, asked.headers['location']?.startsWith('/auth/login')]).toEqual([303, true]);
});

test('ID-07 signing out of the browser leaves a connected program its sites', async () => {
  await h.person('Dora');
  const tokens = await commandLine(h, 'Dora').connect(scopes);
  const browser = new Browser(h.app.web);
  await browser.signIn('dora@example.com', 'correct horse battery');
  await browser.post('/auth/logout', {});
  const made = await upload(h, `Bearer ${tokens.access}`, { 'index.html': page('x') });
  expect(made.status).toBe(201);
  const next = await refreshed(tokens.refresh);
  expect([next.status, outcome(await list(`Bearer ${next.access}`))]).toEqual([200, '200']);
});

test.each([
  [
    'by the person',
    (who: Person) => h.call('DELETE', '/me/clients/postern-cli', { as: who }).then(({ status }) => status),
  ],
  [
    'by an administrator',
    (who: Person) =>
      asRoot('DELETE', `/users/${who.user.id}/clients/postern-cli`).then(({ status }) => status),
  ],
  [
    'by signing the account out everywhere',
    (who: Person) => asRoot('POST', `/users/${who.user.id}/sign-out`).then(({ status }) => status),
  ],
  [
    'by the program itself (RFC 7009)',
    (_who: Person, refresh: string) =>
      new Browser(h.app.web)
        .post('/identity/token/revocation', { client_id: 'postern-cli', token: refresh }, { origin: '' })
        .then(({ status }) => status),
  ],
])('ID-08 an offline grant that is revoked %s ends all its tokens at once', async (how, revoke) => {
  const name = `Eve${how.length}`;
  const eve = await h.person(name);
  const tokens = await commandLine(h, name).connect(scopes);
  const as = `Bearer ${tokens.access}`;
  const { id } = (await upload(h, as, { 'index.html': page('x') })).data;
  expect(await revoke(eve, tokens.refresh)).toBe(200);
  expect(outcome(await list(as))).toBe('401 invalid_credential');
  expect(outcome(await h.call('DELETE', `/sites/${id}`, { as }))).toBe('401 invalid_credential');
  expect((await refreshed(tokens.refresh)).status).toBe(400);
  const owner = await h.key(eve, { scopes: [...scopes] });
  expect((await h.call('GET', `/sites/${id}`, { as: owner })).data.status).toBe('active');
});
