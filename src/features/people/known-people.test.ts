// @module-tag sql
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { fakeDirectory, type FakeDirectory } from '../../../test/fakes/directory.ts';
import { createKnownPeople } from './known-people.ts';
import { type Harness, openHarness, type Person, uiOrigin } from '../../../test/harness.ts';

/** Whom this service knows, and what the provider says of them now. */
let h: Harness;
let fake: FakeDirectory;
let root: Person;
const issuer = `${uiOrigin}/identity`;
const elsewhere = 'https://id.example.com/realms/acme';

beforeAll(async () => {
  fake = fakeDirectory({ clock: { now: () => h.clock.now() }, issuer });
  h = await openHarness({ directory: () => fake });
  root = await h.person('Root');
});
beforeEach(() => {
  fake.trouble('none');
  fake.person(root.subject, { name: 'Root', roles: ['user', 'admin'] });
  fake.token(root.accessToken, {
    subject: root.subject,
    clientId: 'postern-web',
    expiresAt: h.clock.now() + 3_600_000,
  });
});
afterAll(() => h.close());

const known = async (subject: string, of = issuer) =>
  (await h.app.services.identity.learnUser({ issuer: of, subject })).id;
const ask = (path: string) => h.call('GET', path, { as: root });

test('the list has everyone, those too who never signed in, by name and in pages', async () => {
  fake.person('s-zed', { name: 'zed' });
  fake.person('s-ada', { name: 'Ada 100%' });
  const [zed, ada, old] = [await known('s-zed'), await known('s-ada'), await known('s-old', elsewhere)];
  const all = await ask('/people');
  expect(all.data.map(({ id }: { id: string }) => id)).toEqual([ada, root.user.id, old, zed]);
  expect(all.data[0]).toEqual({
    id: ada,
    issuer,
    subject: 's-ada',
    name: 'Ada 100%',
    email: null,
    firstSeenAt: new Date(h.clock.now()).toISOString(),
    lastLoginAt: null,
  });
  const next = await ask('/people?limit=3&page=2');
  expect(next.data.map(({ id }: { id: string }) => id)).toEqual([zed]);
  expect(next.metadata.pagination).toMatchObject({ current: 2, total: 2, items: 4 });
  // A sign of a pattern is a sign like any other.
  expect((await ask('/people?search=0%25')).data).toHaveLength(1);
  expect((await ask('/people?search=%25%25')).data).toHaveLength(0);
  expect((await ask(`/people/${zed}`)).data).toMatchObject({ id: zed, name: 'zed', subject: 's-zed' });
});

test('ID-15 what is said of an account is what the provider says at this moment', async () => {
  fake.person('s-eve', { name: 'Eve', roles: ['user', 'admin'] });
  const eve = await known('s-eve');
  const account = async () => (await ask(`/people/${eve}/account`)).data;
  expect(await account()).toEqual({ state: 'active', roles: ['user', 'admin'] });
  fake.person('s-eve', { name: 'Eve', roles: [] });
  expect(await account()).toEqual({ state: 'active', roles: [] });
  fake.person('s-eve', { name: 'Eve', roles: ['admin'], isEnabled: false });
  expect(await account()).toEqual({ state: 'disabled', roles: [] });
  const gone = await known('s-nobody');
  expect((await ask(`/people/${gone}/account`)).data).toEqual({ state: 'missing', roles: [] });
});

test('a subject of another provider is nobody here, though someone here has the same', async () => {
  fake.person('s-same', { name: 'Same', roles: ['admin'] });
  const other = await known('s-same', elsewhere);
  expect((await ask(`/people/${other}/account`)).data).toEqual({ state: 'missing', roles: [] });
});

test('a provider that cannot be asked is an outage, never an account that is missing or has no roles', async () => {
  const someone = {
    id: 'usr_1',
    issuer,
    subject: 's',
    name: 'S',
    email: null,
    createdAt: 0,
    lastLoginAt: null,
  };
  const directory = { principal: () => ({ kind: 'unavailable', reason: 'slow' }) as const };
  const users = {
    findPerson: async () => someone,
    listPeople: async () => ({ people: [someone], total: 1 }),
  };
  const people = createKnownPeople({ issuer, users, directory });
  await expect(people.accountOf('usr_1')).rejects.toMatchObject({ code: 'identity_unavailable' });
  expect(await people.get('usr_1')).toEqual(someone);
});
