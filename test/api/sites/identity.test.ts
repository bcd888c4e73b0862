import { Readable } from 'node:stream';
import { afterEach, beforeAll, afterAll, describe, expect, test } from 'vitest';
import { minute, second } from '../../../src/core/clock.ts';
import { digestOf } from '../../../src/features/keys/key-value.ts';
import type { Directory } from '../../../src/features/people/directory/directory.ts';
import type { Route } from '../../../src/platform/http.ts';
import { tarBlocks, tarEnd } from '../../archives/tar.ts';
import { fakeDirectory, type FakeDirectory, type Trouble } from '../../fakes/directory.ts';
import { browserOf, privateSite } from '../../gateway/private.ts';
import {
  type Answer,
  type Harness,
  openHarness,
  type Person,
  type TestKey,
  uiOrigin,
} from '../../harness.ts';
import { siteRoutes, siteTables, type Target, target, use } from './every-route.ts';
import { archiveOf, formOf, page, sha256, start, upload } from './uploads.ts';

/**
 * What is asked of the identity provider before anything is done with a site (contract 5), at a provider that behaves
 * as each test says: never a yes that it did not give, and nothing done while it cannot tell.
 */
let h: Harness;
let fake: FakeDirectory;
/** Holds every answer of the provider back until it is let go. */
let held: Promise<void> | undefined;
const scopes = ['sites:read', 'sites:write', 'repos:read'] as const;

beforeAll(async () => {
  const issuer = `${uiOrigin}/identity`;
  fake = fakeDirectory({ clock: { now: () => h.clock.now() }, issuer });
  const directory: Directory = {
    introspect: (token, hint) => (held ?? Promise.resolve()).then(() => fake.introspect(token, hint)),
    principal: (subject) => (held ?? Promise.resolve()).then(() => fake.principal(subject)),
  };
  h = await openHarness({ changesPerMinute: 100_000, directory: () => directory });
});
afterEach(() => fake.trouble('none'));
afterAll(() => h.close());

type Human = {
  readonly person: Person;
  readonly token: string;
  readonly key: TestKey;
  /** The three ways to be this person. */
  readonly ways: Readonly<Record<'session' | 'token' | 'key', Person | TestKey | string>>;
};

let nth = 0;
async function human(name: string, roles: readonly ('user' | 'admin')[] = ['user']): Promise<Human> {
  nth += 1;
  const person = await h.person(`${name}${nth}`);
  const token = `token-of-${person.subject}`;
  fake.person(person.subject, { name, roles });
  const expiresAt = h.clock.now() + 100 * minute;
  fake.token(person.accessToken, { subject: person.subject, clientId: 'postern-web', expiresAt });
  fake.token(token, { subject: person.subject, scopes: ['openid', ...scopes], expiresAt });
  const key = await h.key(person, { scopes: [...scopes] });
  return { person, token, key, ways: { session: person, token: `Bearer ${token}`, key } };
}

/** Everything that needs to know who someone is: every route of Sites that is not an administrator’s. */
function asking(): Route[] {
  const all = h.app.routes.filter(({ path }) => path === '/sites' || path.startsWith('/sites/{id}'));
  return all.filter(({ policy }) => policy.role === 'user' && policy.identity === 'introspected');
}

const isOpenTo = ({ policy }: Route, way: string) =>
  way === 'session' || (typeof policy.callers !== 'string' && policy.callers.includes('personal_key'));
const outcome = ({ status, error }: Answer) => `${status} ${error?.code ?? ''}`.trim();

/** Calls each route in one of the ways; returns the distinct results. */
async function tryAll({ ways }: Human, way: keyof Human['ways'], at: Target): Promise<Answer[]> {
  const answers = [];
  for (const route of asking().filter((one) => isOpenTo(one, way)))
    answers.push(await use(h, route, at, ways[way]));
  return answers;
}

/** The page of the UI that would let the person’s browser in. */
async function askForGrant({ person }: Human, url: string) {
  const first = await browserOf(h, person).navigate(url);
  const to = new URL(first.headers['location'] ?? '');
  return await h.call('GET', to.pathname + to.search, { as: person, headers: { accept: 'text/html' } });
}

test.each(['session', 'token', 'key'] as const)(
  'a person whom the provider confirms may do everything with a site by %s',
  async (way) => {
    const ada = await human('Ada');
    expect(asking().length).toBeGreaterThan(17);
    const at = await target(h, ada.person);
    const isLast = ({ operationId }: Route) => Number(operationId === 'deleteSite');
    const routes = asking().filter((one) => isOpenTo(one, way));
    for (const route of routes.toSorted((one, other) => isLast(one) - isLast(other))) {
      const answer = await use(h, route, at, ada.ways[way]);
      expect([route.operationId, answer.status < 300]).toEqual([route.operationId, true]);
    }
  },
);

describe('a person whose account has changed', () => {
  const states: [string, (who: Human) => void, Record<keyof Human['ways'], string>][] = [
    [
      'ID-01 a disabled person',
      ({ person }) => fake.person(person.subject, { isEnabled: false }),
      { session: '401 authentication_required', token: '401 invalid_credential', key: '403 user_disabled' },
    ],
    [
      'ID-12 a person whom the provider does not have',
      ({ person }) => fake.removePerson(person.subject),
      { session: '401 authentication_required', token: '401 invalid_credential', key: '403 user_disabled' },
    ],
    [
      'ID-02 ID-12 a person without any role',
      ({ person }) => fake.person(person.subject, { roles: [] }),
      { session: '403 role_required', token: '403 role_required', key: '403 role_required' },
    ],
    [
      'ID-02 a person with another role only',
      ({ person }) => fake.person(person.subject, { roles: ['admin'] }),
      { session: '403 role_required', token: '403 role_required', key: '403 role_required' },
    ],
  ];

  test.each(states)(
    '%s does nothing with any site by session, token or key, and gets no new grant; an existing grant runs out',
    async (_what, become, expected) => {
      const ada = await human('Ada');
      const at = await target(h, ada.person);
      const site = await privateSite(h, ada.person);
      const inside = browserOf(h, ada.person);
      expect((await inside.open(site.url)).status).toBe(200);
      const before = await siteTables(h);
      become(ada);
      const grant = await askForGrant(ada, site.url);
      expect([[401, 403].includes(grant.status), grant.text.includes('name="code"')]).toEqual([true, false]);
      for (const way of ['key', 'token', 'session'] as const) {
        const outcomes = new Set((await tryAll(ada, way, at)).map(outcome));
        expect([way, ...outcomes]).toEqual([way, expected[way]]);
      }
      expect(await siteTables(h)).toEqual(before);
      h.clock.advance(299 * second);
      expect((await inside.asset(site.url)).status).toBe(200);
      h.clock.advance(second);
      expect((await inside.asset(site.url)).status).toBe(401);
    },
  );

  test('ID-05 when the token behind a session is revoked, the session ends, and the key works', async () => {
    const ada = await human('Ada');
    const at = await target(h, ada.person);
    fake.revoke(ada.person.accessToken);
    const before = await siteTables(h);
    const outcomes = new Set((await tryAll(ada, 'session', at)).map(outcome));
    expect([...outcomes]).toEqual(['401 authentication_required']);
    expect(await siteTables(h)).toEqual(before);
    expect((await h.call('GET', '/me/tokens', { as: ada.person })).status).toBe(401);
    expect((await h.call('GET', '/sites', { as: ada.key })).status).toBe(200);
  });

  test('ID-05 a revoked access token is refused at the next request', async () => {
    const ada = await human('Ada');
    const at = await target(h, ada.person);
    expect((await h.call('GET', `/sites/${at.id}`, { as: ada.ways.token })).status).toBe(200);
    fake.revoke(ada.token);
    const before = await siteTables(h);
    const outcomes = new Set((await tryAll(ada, 'token', at)).map(outcome));
    expect([...outcomes]).toEqual(['401 invalid_credential']);
    expect(await siteTables(h)).toEqual(before);
  });

  test('ID-11 a session whose token belongs to another person does nothing and opens nothing', async () => {
    const ada = await human('Ada');
    const eve = await human('Eve');
    const at = await target(h, ada.person);
    const site = await privateSite(h, ada.person);
    const before = await siteTables(h);
    fake.token(ada.person.accessToken, { subject: eve.person.subject });
    expect((await askForGrant(ada, site.url)).text).not.toContain('name="code"');
    const outcomes = new Set((await tryAll(ada, 'session', at)).map(outcome));
    expect([...outcomes]).toEqual(['401 authentication_required']);
    expect(await siteTables(h)).toEqual(before);
  });

  test('ID-04 roles in a token are ignored: the directory decides, in both directions', async () => {
    const ada = await human('Ada', ['user']);
    const claims = 'token-that-claims-much';
    const { subject } = ada.person;
    fake.token(claims, { subject, scopes: ['openid', 'roles', 'user', 'admin', ...scopes] });
    const config = () => h.call('GET', '/config/sites', { as: `Bearer ${claims}` });
    const list = () => h.call('GET', '/sites', { as: `Bearer ${claims}` });
    expect([outcome(await config()), outcome(await list())]).toEqual(['403 forbidden_role', '200']);
    fake.person(subject, { roles: ['admin'] });
    expect([outcome(await config()), outcome(await list())]).toEqual(['200', '403 role_required']);
    fake.person(subject, { roles: ['user', 'admin'] });
    expect([outcome(await config()), outcome(await list())]).toEqual(['200', '200']);
  });

  test('ID-01 a disabled administrator takes down and reinstates no site', async () => {
    const ada = await human('Ada');
    const root = await human('Root', ['user', 'admin']);
    const { id } = await target(h, ada.person);
    const body = { reason: 'reported' };
    const stop = () => h.call('POST', `/sites/${id}/take-down`, { as: root.person, body });
    fake.trouble('down');
    expect(outcome(await stop())).toBe('503 identity_unavailable');
    fake.trouble('none');
    fake.person(root.person.subject, { roles: ['user'] });
    expect(outcome(await stop())).toBe('403 forbidden_role');
    fake.person(root.person.subject, { isEnabled: false });
    expect(outcome(await stop())).toBe('401 authentication_required');
    expect((await h.call('GET', `/sites/${id}`, { as: ada.key })).data.status).toBe('active');
  });
});

describe('while the provider gives no answer', () => {
  test.each<Trouble>(['down', 'slow', 'garbled'])(
    'ID-10 %s: 503 with Retry-After for everything, nothing changed, no grant; who is in stays; then all is well',
    async (trouble) => {
      const ada = await human('Ada');
      const at = await target(h, ada.person);
      const site = await privateSite(h, ada.person);
      const inside = browserOf(h, ada.person);
      expect((await inside.open(site.url)).status).toBe(200);
      const before = await siteTables(h);
      fake.trouble(trouble);
      for (const way of ['session', 'token', 'key'] as const) {
        const answers = await tryAll(ada, way, at);
        const outcomes = new Set(answers.map((one) => `${outcome(one)} ${one.headers['retry-after']}`));
        expect([way, ...outcomes]).toEqual([way, '503 identity_unavailable 5']);
      }
      const grant = await askForGrant(ada, site.url);
      expect([grant.status, grant.headers['retry-after']]).toEqual([503, '5']);
      expect(grant.text).not.toContain('name="code"');
      expect(await siteTables(h)).toEqual(before);
      const service = await h.serviceKey({ scopes: ['sites:write'] });
      expect((await upload(h, service, { 'index.html': page('of a key') })).status).toBe(201);
      expect((await h.call('GET', '/sites', { as: service, query: { mine: 'true' } })).data).toHaveLength(1);
      for (const as of [ada.person, ada.key])
        expect((await h.call('GET', '/sites/capabilities', { as })).status).toBe(200);

      const asked = fake.asked();
      for (let at = 0; at < 20; at += 1) expect((await inside.asset(`${site.url}a.css`)).status).toBe(200);
      expect(fake.asked()).toBe(asked);

      fake.trouble('none');
      for (const as of Object.values(ada.ways)) {
        const read = await h.call('GET', `/sites/${at.id}`, { as });
        expect([read.status, read.data.status]).toEqual([200, 'active']);
      }
      const mine = await h.call('GET', '/sites', { as: ada.key, query: { mine: 'true' } });
      expect(mine.metadata.pagination.items).toBe(2);
      h.clock.advance(minute);
      expect((await askForGrant(ada, site.url)).text).toContain('name="code"');
    },
  );

  test('ID-11 an answer about another issuer is not trusted, and changes nothing', async () => {
    const ada = await human('Ada');
    const at = await target(h, ada.person);
    const site = await privateSite(h, ada.person);
    const before = await siteTables(h);
    fake.trouble('wrong');
    expect((await askForGrant(ada, site.url)).text).not.toContain('name="code"');
    for (const way of ['session', 'token', 'key'] as const) {
      const statuses = (await tryAll(ada, way, at)).map(({ status }) => status);
      expect([way, statuses.filter((status) => status !== 401 && status !== 503)]).toEqual([way, []]);
    }
    expect(await siteTables(h)).toEqual(before);
  });

  test('ID-13 while a hundred requests wait for it, requests that need no identity are answered', async () => {
    const ada = await human('Ada');
    const at = await target(h, ada.person);
    const site = await privateSite(h, ada.person);
    const inside = browserOf(h, ada.person);
    await inside.open(site.url);
    const service = await h.serviceKey({ scopes: ['sites:write'] });
    let letGo = () => {};
    held = new Promise((resolve) => (letGo = resolve));
    let answered = 0;
    const ways = Object.values(ada.ways);
    const waiting = Array.from({ length: 100 }, async (_, nth) => {
      const answer = await h.call('GET', `/sites/${at.id}`, { as: ways[nth % ways.length] ?? ada.key });
      answered += 1;
      return answer;
    });
    expect((await inside.asset(site.url)).status).toBe(200);
    expect((await upload(h, service, { 'index.html': page('meanwhile') })).status).toBe(201);
    expect((await h.call('GET', '/sites/capabilities', { as: ada.key })).status).toBe(200);
    expect(answered).toBe(0);
    fake.trouble('slow');
    held = undefined;
    letGo();
    const answers = await Promise.all(waiting);
    expect([...new Set(answers.map(outcome))]).toEqual(['503 identity_unavailable']);
  });
});

test('ID-15 a person is issuer and subject: the same subject of another issuer owns nothing and may do nothing', async () => {
  const ada = await human('Ada');
  const at = await target(h, ada.person);
  const { identity } = h.app.services;
  const double = await identity.learnUser({ issuer: 'https://other.example', subject: ada.person.subject });
  expect(double.id).not.toBe(ada.person.user.id);
  const key = await h.key({ ...ada.person, user: double }, { scopes: [...scopes] });
  const before = await siteTables(h);
  for (const route of siteRoutes(h).filter((one) => isOpenTo(one, 'key'))) {
    const answer = await use(h, route, at, key);
    expect([route.operationId, outcome(answer)]).toEqual([route.operationId, '403 user_disabled']);
  }
  expect((await upload(h, key, { 'index.html': page('x') })).status).toBe(403);
  expect(await siteTables(h)).toEqual(before);
});

test('ID-16 an imported personal key without its person is refused on every route of Sites, and works elsewhere', async () => {
  const value = `app_pat_${'0123456789abcdef'.repeat(3).slice(0, 40)}`;
  const line = { digest: digestOf(value), prefix: 'app_pat_', name: 'older', scopes, expiresAt: null };
  const imported = await h.app.services.importKeys([
    JSON.stringify({ ...line, createdAt: '2025-01-01T00:00:00Z' }),
  ]);
  expect(imported).toMatchObject({ kind: 'imported', count: 1 });
  const ada = await human('Ada');
  const at = await target(h, ada.person, 'public');
  const as = `Bearer ${value}`;
  const routes = h.app.routes.filter(({ path }) => path.startsWith('/sites'));
  for (const route of routes.filter((one) => isOpenTo(one, 'key'))) {
    const answer = await use(h, route, at, as);
    expect([route.operationId, outcome(answer)]).toEqual([
      route.operationId,
      '403 identity_binding_required',
    ]);
    expect(answer.error.hint).toMatch(/key/);
  }
  expect((await h.call('GET', '/repositories', { as })).status).toBe(200);
});

describe('while an upload arrives', () => {
  const late = page('late');
  const form = formOf([{ name: 'file', fileName: 'index.html', type: 'text/html', value: late }]);
  const tar = Buffer.concat([tarBlocks([{ name: sha256(late), content: late }]), tarEnd]);
  const archive = archiveOf({ 'index.html': late });
  const html = { type: 'text/html', bytes: Buffer.from(late) };
  const json = { type: 'application/json', bytes: Buffer.from('{"name":"late"}') };
  const blob = { type: 'application/octet-stream', bytes: Buffer.from(late) };

  type Upload = readonly [
    what: string,
    method: 'POST' | 'PUT',
    path: string,
    body: { type: string; bytes: Buffer },
  ];
  const uploads: readonly Upload[] = [
    ['a site without content', 'POST', '/sites', json],
    ['a site from an archive', 'POST', '/sites', archive],
    ['a site from a form', 'POST', '/sites', form],
    ['a site from a page', 'POST', '/sites', html],
    ['content as an archive', 'PUT', '/sites/{id}/content', archive],
    ['content as a form', 'PUT', '/sites/{id}/content', form],
    ['content as a page', 'PUT', '/sites/{id}/content', html],
    ['one blob', 'PUT', `/sites/{id}/uploads/{upload}/blobs/${sha256(late)}`, blob],
    [
      'a tar of blobs',
      'PUT',
      '/sites/{id}/uploads/{upload}/blobs',
      { type: 'application/x-tar', bytes: tar },
    ],
  ];

  /** A site of this person, and an upload under way that waits for the late page. */
  async function waiting({ person }: Human): Promise<Target> {
    const { id } = await target(h, person);
    const begun = await start(h, person, id, { 'index.html': late });
    return { id, upload: begun.data.id };
  }

  /** The second half waits until the server reads the first and `meanwhile` has happened. */
  async function sendInHalves(
    [, method, path, { type, bytes }]: Upload,
    at: Target,
    as: Person | TestKey | string,
    meanwhile: () => void | Promise<void>,
  ): Promise<string> {
    async function* halves() {
      yield bytes.subarray(0, bytes.length / 2);
      await meanwhile();
      yield bytes.subarray(bytes.length / 2);
    }
    const raw = { type, bytes: Readable.from(halves()) };
    const headers = { 'content-length': String(bytes.length) };
    const to = path.replace('{id}', at.id).replace('{upload}', at.upload);
    return outcome(await h.call(method, to, { as, raw, headers }));
  }

  test('a person whose account is unchanged may send and publish it', async () => {
    const ada = await human('Ada');
    for (const one of uploads) {
      const came = await sendInHalves(one, await waiting(ada), ada.person, () => undefined);
      expect([one[0], came]).toEqual([one[0], expect.stringMatching(/^20\d$/)]);
    }
  });

  const ends: [string, (who: Human) => void | Promise<void>, Record<keyof Human['ways'], string>][] = [
    [
      'ID-01 a person who is disabled',
      ({ person }) => fake.person(person.subject, { isEnabled: false }),
      { session: '401 authentication_required', token: '401 invalid_credential', key: '403 user_disabled' },
    ],
    [
      'ID-02 a person who loses the role',
      ({ person }) => fake.person(person.subject, { roles: ['admin'] }),
      { session: '403 role_required', token: '403 role_required', key: '403 role_required' },
    ],
    [
      'ID-05 RV-02 a person whose tokens and key are revoked',
      async ({ person, token, key }) => {
        await h.call('DELETE', `/me/tokens/${key.id}`, { as: person });
        fake.revoke(token);
        fake.revoke(person.accessToken);
      },
      {
        session: '401 authentication_required',
        token: '401 invalid_credential',
        key: '401 invalid_credential',
      },
    ],
    [
      'ID-10 a provider that stops',
      () => fake.trouble('down'),
      {
        session: '503 identity_unavailable',
        token: '503 identity_unavailable',
        key: '503 identity_unavailable',
      },
    ],
  ];

  test.each(ends)(
    '%s: nothing is published or accepted, by session, token or key',
    { tags: 'flood' },
    async (_what, end, expected) => {
      for (const way of ['session', 'token', 'key'] as const) {
        for (const one of uploads) {
          const ada = await human('Ada');
          const at = await waiting(ada);
          const before = await siteTables(h);
          const came = await sendInHalves(one, at, ada.ways[way], () => end(ada));
          fake.trouble('none');
          expect([way, one[0], came]).toEqual([way, one[0], expected[way]]);
          expect(await siteTables(h)).toEqual(before);
        }
      }
    },
  );
});
