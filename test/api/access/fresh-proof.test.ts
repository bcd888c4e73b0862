// @module-tag sql
import { afterAll, beforeAll, expect, test } from 'vitest';
import { minute } from '../../../src/core/clock.ts';
import type { Route } from '../../../src/platform/http.ts';
import { defaultKeyPolicy } from '../../../src/features/keys/key-policy.ts';
import { type Answer, type Harness, openHarness, type Person } from '../../harness.ts';
import { absentPath } from './cast.ts';

/** What creates or widens access needs a sign-in of a short time ago (`freshProofMinutes` of `/config/access`). */
let h: Harness;
let fresh: Person;
let stale: Person;
let unknown: Person;
beforeAll(async () => {
  h = await openHarness();
  const signedInAt = h.clock.now();
  fresh = await h.person('Fresh', { admin: true });
  stale = await h.person('Stale', { admin: true, signedInAt });
  unknown = await h.person('Unknown', { admin: true, signedInAt: null });
  h.clock.advance(120 * minute);
});
afterAll(() => h.close());

const nameOf = ({ method, path }: Route) => `${method} ${path}`;
const outcome = ({ status, error }: Answer) => (status < 400 ? String(status) : `${status} ${error.code}`);
const refused = '403 fresh_authentication_required';

async function put(document: string, as: Person, body: object, query = {}) {
  const read = await h.call('GET', `/config/${document}`, { as });
  return await h.call('PUT', `/config/${document}`, {
    as,
    body,
    query,
    headers: { 'if-match': read.headers['etag'] ?? '' },
  });
}

test('these routes always need it', async () => {
  const routes = h.app.routes.filter(({ policy }) => policy.freshProof === 'always');
  expect(routes.map(nameOf).toSorted()).toEqual([
    'DELETE /me/passkeys/{id}',
    'PATCH /groups/{id}',
    'PATCH /me/passkeys/{id}',
    'POST /config/mcp/servers',
    'POST /groups',
    'POST /me/passkeys',
    'POST /me/passkeys/options',
    'POST /me/recovery-codes',
    'POST /me/tokens',
    'POST /me/tokens/{id}/rotate',
    'POST /sites/{id}/put-back',
    'POST /tokens',
    'POST /tokens/{id}/rotate',
    'POST /tokens/{id}/trust',
    'POST /users',
    'POST /users/{id}/reset-passkeys',
    'POST /users/{id}/reset-password',
    'PUT /repositories/{owner}/{name}/credential',
  ]);
  for (const route of routes) {
    const call = (as: Person) => h.call(route.method, absentPath(route.path), { as, body: {} });
    expect([nameOf(route), outcome(await call(stale))]).toEqual([nameOf(route), refused]);
    expect([nameOf(route), outcome(await call(unknown))]).toEqual([nameOf(route), refused]);
    expect([nameOf(route), outcome(await call(fresh))]).not.toEqual([nameOf(route), refused]);
  }
});

test('a proof ends at its minute, and the refusal names the address of the new one', async () => {
  const ada = await h.person('Ada', { signedInAt: h.clock.now() });
  const create = (name: string) =>
    h.call('POST', '/me/tokens', {
      as: ada,
      body: { name, scopes: ['repos:read'], repositoryAccess: { mode: 'all' } },
    });
  const context = async () => (await h.call('GET', '/auth/context', { as: ada })).data.freshUntil;
  expect(await context()).toBe(new Date(h.clock.now() + 120 * minute).toISOString());
  h.clock.advance(120 * minute - 1);
  expect(outcome(await create('in time'))).toBe('201');
  h.clock.advance(1);
  expect(await context()).toBeNull();
  const { error } = await create('too late');
  expect(error).toMatchObject({
    code: 'fresh_authentication_required',
    details: { url: 'http://localhost:3000/auth/login?fresh=true' },
  });
});

test('a policy is narrowed without it, and widened only with it', async () => {
  const narrow = { ...defaultKeyPolicy, rateLimitPerMinute: 10 };
  expect(outcome(await put('api-keys', stale, narrow))).toBe('200');
  const wide = { ...narrow, rateLimitPerMinute: 11 };
  expect(outcome(await put('api-keys', stale, wide))).toBe(refused);
  expect(outcome(await put('api-keys', stale, wide, { dryRun: 'true' }))).toBe('200');
  expect(outcome(await put('api-keys', fresh, wide))).toBe('200');
  const revert = (as: Person, version: number) =>
    h.call('POST', '/config/api-keys/revert', { as, body: { version }, headers: { 'if-match': '*' } });
  expect(outcome(await revert(stale, 0))).toBe(refused);
  expect(outcome(await revert(stale, 1))).toBe('200');
  expect(outcome(await revert(fresh, 0))).toBe('200');
});

test('the requirement itself: shorter without it, longer or off only with it; an omitted one stays', async () => {
  const minutes = async () => (await h.call('GET', '/config/access', { as: fresh })).data.config;
  const change = (as: Person, freshProofMinutes: number) =>
    put('access', as, { signInsPerAddressPerMinute: 60, freshProofMinutes });
  expect(outcome(await change(stale, 121))).toBe(refused);
  expect(outcome(await change(stale, 0))).toBe(refused);
  expect(outcome(await change(stale, 60))).toBe('200');
  expect(outcome(await put('access', stale, { signInsPerAddressPerMinute: 59 }))).toBe('200');
  expect(await minutes()).toEqual({
    signInsPerAddressPerMinute: 59,
    freshProofMinutes: 60,
    secondFactor: 'optional',
  });
  expect(outcome(await change(fresh, 0))).toBe('200');
  // Off: every sign-in counts, also one whose age nobody knows.
  const created = await h.call('POST', '/groups', { as: unknown, body: { name: 'Team', roles: [] } });
  expect(outcome(created)).toBe('201');
  expect((await h.call('GET', '/auth/context', { as: unknown })).data.freshUntil).not.toBeNull();
  expect(outcome(await change(stale, 120))).toBe('200');
});

test('an account is disabled without it; other changes need it', async () => {
  const eve = await h.person('Eve');
  const change = (as: Person, body: object) => h.call('PATCH', `/users/${eve.user.id}`, { as, body });
  expect(outcome(await change(stale, { enabled: false }))).toBe('200');
  expect(outcome(await change(stale, { enabled: true }))).toBe(refused);
  expect(outcome(await change(stale, { enabled: false, roles: ['admin'] }))).toBe(refused);
  expect(outcome(await change(fresh, { enabled: true }))).toBe('200');
});

test('a server gets another address only with it', async () => {
  const server = { slug: 'tracker', name: 'Tracker', url: 'https://tracker.example.com/', auth: 'none' };
  expect(outcome(await h.call('POST', '/config/mcp/servers', { as: fresh, body: server }))).toBe('201');
  const change = (as: Person, body: object) => h.call('PATCH', '/config/mcp/servers/tracker', { as, body });
  expect(outcome(await change(stale, { enabled: false, url: server.url }))).toBe('200');
  expect(outcome(await change(stale, { url: 'https://evil.example.com/' }))).toBe(refused);
  expect(outcome(await change(fresh, { url: 'https://other.example.com/' }))).toBe('200');
});
