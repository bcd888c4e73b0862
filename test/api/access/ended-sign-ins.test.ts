// @module-tag sql
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { minute } from '../../../src/core/clock.ts';
import type { Route } from '../../../src/platform/http.ts';
import { fakeDirectory, type FakeDirectory } from '../../fakes/directory.ts';
import { type Answer, type Harness, openHarness, type Person, uiOrigin } from '../../harness.ts';
import { absentPath, contents, manyChanges } from './cast.ts';

/**
 * A sign-in that the identity provider ended grants nothing more with the cookie it left behind (decision 0008): held
 * against every route of the program, so that a new route cannot forget it.
 */
let h: Harness;
let fake: FakeDirectory;

beforeAll(async () => {
  fake = fakeDirectory({
    clock: { now: () => h.clock.now() },
    issuer: `${uiOrigin}/identity`,
  });
  h = await openHarness({ ...manyChanges, directory: () => fake });
});
afterEach(() => fake.trouble('none'));
afterAll(() => h.close());

/** Changes that only take rights away, or grant none: possible with less (decision 0008). */
const takesAway = [
  'DELETE /me/tokens/{id}',
  'POST /me/tokens/revoke-all',
  'DELETE /tokens/{id}',
  'POST /tokens/revoke',
  'POST /users/{id}/sign-out',
  'DELETE /users/{id}/clients/{clientId}',
  'DELETE /me/clients/{id}',
  'DELETE /me/sessions',
  'DELETE /me/sessions/{id}',
  'DELETE /users/{id}/sessions',
  'DELETE /users/{id}/sessions/{session}',
  'DELETE /me/connections/{slug}',
  'POST /me/agents/sessions/{id}/end',
  'POST /agents/sessions/{id}/end',
  'POST /me/notices/{id}/read',
  'POST /schema/validate',
];

const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>) => `${method} ${path}`;
const ofSessions = () =>
  h.app.routes.filter(
    ({ policy }) => typeof policy.callers !== 'string' && policy.callers.includes('session'),
  );
const grants = (route: Route) =>
  (route.method !== 'GET' || route.policy.role === 'admin') && !takesAway.includes(nameOf(route));

let nth = 0;
async function administrator(): Promise<Person> {
  nth += 1;
  const person = await h.person(`Root${nth}`, { admin: true });
  fake.person(person.subject, { roles: ['user', 'admin'] });
  const expiresAt = h.clock.now() + 100 * minute;
  fake.token(person.accessToken, { subject: person.subject, clientId: 'postern-web', expiresAt });
  return person;
}

const key = { name: 'k', scopes: ['repos:read'], repositoryAccess: { mode: 'all' } };
/** Bodies that would change something. */
const bodies: Readonly<Record<string, object>> = {
  'POST /me/tokens': key,
  'POST /tokens': key,
  'POST /groups': { name: 'Team', roles: ['admin'] },
  'POST /repositories': { fullName: 'acme/new', cloneUrl: 'https://git.example.com/new.git' },
  'PUT /repositories/{owner}/{name}/credential': { token: 'of-a-git-server' },
  'POST /users': { email: 'eve@example.com', name: 'Eve', roles: ['admin'] },
};

const use = (as: Person, route: Route): Promise<Answer> =>
  h.call(route.method, absentPath(route.path), {
    as,
    ...(route.method === 'GET' ? {} : { body: bodies[nameOf(route)] ?? {}, headers: { 'if-match': '*' } }),
  });

/** Everything but who is signed in and what is written about it. */
async function changeable(): Promise<Record<string, string>> {
  const tables = Object.entries(await contents(h));
  return Object.fromEntries(tables.filter(([name]) => !/^(?:browser_sessions|changes|audit_)/.test(name)));
}

const outcome = ({ status, error }: Answer) => `${status} ${error?.code ?? ''}`.trim();

describe('routes that grant or change rights verify the session’s token', () => {
  test('the policy of every route that changes something, and of every route for administrators, requires it', () => {
    const names = ofSessions().map(nameOf);
    expect(takesAway.filter((name) => !names.includes(name))).toEqual([]);
    const forgetful = ofSessions().filter(
      (route) => grants(route) && route.policy.identity !== 'introspected',
    );
    expect(forgetful.map(nameOf)).toEqual([]);
  });

  test('after the provider ended the sign-in, each route refuses the old cookie and changes nothing', async () => {
    const routes = ofSessions().filter(grants);
    expect(routes.length).toBeGreaterThan(60);
    const roots: Person[] = [];
    while (roots.length < routes.length) roots.push(await administrator());
    const before = await changeable();
    for (const [at, root] of roots.entries()) {
      fake.revoke(root.accessToken);
      const route = routes[at] as Route;
      expect([nameOf(route), outcome(await use(root, route))]).toEqual([
        nameOf(route),
        '401 authentication_required',
      ]);
    }
    expect(await changeable()).toEqual(before);
  }, 120_000);

  test('while the provider is unavailable, each route answers 503 and changes nothing', async () => {
    const root = await administrator();
    const before = await changeable();
    fake.trouble('down');
    for (const route of ofSessions().filter(grants)) {
      expect([nameOf(route), outcome(await use(root, route))]).toEqual([
        nameOf(route),
        '503 identity_unavailable',
      ]);
    }
    expect(await changeable()).toEqual(before);
  });

  test('a sign-in that ended because the person was disabled takes the person’s keys along at once', async () => {
    const root = await administrator();
    const key = await h.key(root);
    fake.person(root.subject, { isEnabled: false });
    expect((await h.call('GET', '/repositories', { as: key })).status).toBe(200);
    expect(outcome(await h.call('GET', '/tokens', { as: root }))).toBe('401 authentication_required');
    expect(outcome(await h.call('GET', '/repositories', { as: key }))).toBe('403 user_disabled');
  });

  test('a key is revoked as before: by its owner without the provider, by an administrator without the token', async () => {
    const root = await administrator();
    const [own, service] = [await h.key(root), await h.serviceKey()];
    fake.trouble('down');
    expect((await h.call('DELETE', `/me/tokens/${own.id}`, { as: root })).status).toBe(200);
    fake.trouble('none');
    fake.revoke(root.accessToken);
    expect((await h.call('DELETE', `/tokens/${service.id}`, { as: root })).status).toBe(200);
  });
});
