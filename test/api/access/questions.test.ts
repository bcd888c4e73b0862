// @module-tag sql
import { afterAll, beforeAll, expect, test } from 'vitest';
import { minute } from '../../../src/core/clock.ts';
import { fakeDirectory, type FakeDirectory } from '../../fakes/directory.ts';
import { type Harness, openHarness, type Person, type TestKey, uiOrigin } from '../../harness.ts';

/** How many questions a request costs the identity provider, whose answers people wait for. */
let h: Harness;
let fake: FakeDirectory;
let ada: Person;
let key: TestKey;

beforeAll(async () => {
  fake = fakeDirectory({ clock: { now: () => h.clock.now() }, issuer: `${uiOrigin}/identity` });
  // Without the jobs of a worker, whose sweep of owners asks too.
  h = await openHarness({ directory: () => fake, workload: 'web' });
  ada = await h.person('Ada');
  fake.person(ada.subject);
  const expiresAt = h.clock.now() + 100 * minute;
  fake.token(ada.accessToken, { subject: ada.subject, clientId: 'postern-web', expiresAt });
  key = await h.key(ada, { scopes: ['sites:write', 'repos:read'] });
  // The feed tells of Ada's new account, and the holders of grants ask about her: before the requests are counted.
  await h.app.services.feed.poll();
  await h.settle();
});
afterAll(() => h.close());

test.each([
  ['a key is verified', () => key, '/auth/context', {}, 1],
  ['a key is verified with a scope to try', () => key, '/auth/context', { can: 'sites:write' }, 1],
  ['a key lists sites', () => key, '/sites', {}, 1],
  ['a key lists repositories', () => key, '/repositories', {}, 0],
  ['a session lists sites: its token and its person', () => ada, '/sites', {}, 2],
])(
  'when %s, Postern queries the provider as rarely as possible',
  async (_what, as, path, query, questions) => {
    const before = fake.asked();
    expect((await h.call('GET', path, { as: as(), query })).status).toBe(200);
    expect(fake.asked() - before).toBe(questions);
  },
);
