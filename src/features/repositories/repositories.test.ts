// @module-tag sql
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Harness, openHarness } from '../../../test/harness.ts';

let h: Harness;
beforeAll(async () => {
  h = await openHarness();
});
afterAll(() => h.close());

const selected = async (name: string) => {
  await h.repository(name);
  const repositoryAccess = { mode: 'selected', repositories: [name] } as const;
  const key = await h.serviceKey({ scopes: ['repos:read', 'repos:write'], repositoryAccess });
  return `Bearer ${key.value}`;
};
const writer = async () => `Bearer ${(await h.serviceKey({ scopes: ['repos:read', 'repos:write'] })).value}`;

test('changes made at the same moment are both kept', async () => {
  await h.repository('acme/busy');
  const as = await h.person('Root', { admin: true });
  const other = await h.another();
  for (let round = 0; round < 5; round += 1) {
    const cloneUrl = `https://git.example.com/acme/busy-${round}.git`;
    const change = { defaultBranch: `branch-${round}` };
    const answers = await Promise.all([
      h.call('PATCH', '/repositories/acme/busy', { as, body: { cloneUrl } }),
      other.call('PATCH', '/repositories/acme/busy', { as, body: change }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    const { data } = await h.call('GET', '/repositories/acme/busy', { as });
    expect(data).toMatchObject({ cloneUrl, ...change });
  }
});

test('of a change and a removal at the same moment, neither claims what did not happen', async () => {
  await h.repository('acme/going');
  const as = await writer();
  const other = await h.another();
  const [changed, removed] = await Promise.all([
    h.call('PATCH', '/repositories/acme/going', { as, body: { environmentDefaults: { team: 'next' } } }),
    other.call('DELETE', '/repositories/acme/going', { as }),
  ]);
  expect(removed.status).toBe(200);
  expect([200, 404]).toContain(changed.status);
  expect((await h.call('GET', '/repositories/acme/going', { as })).status).toBe(404);
});

test('a key with a repository selection cannot learn by renaming which other names are taken', async () => {
  const as = await selected('acme/mine');
  await h.repository('acme/hidden');
  const rename = (fullName: string) =>
    h.call('PATCH', '/repositories/acme/mine', {
      as,
      body: { fullName, environmentDefaults: { team: 'next' } },
    });
  for (const name of ['acme/hidden', 'acme/free']) {
    const { status, error } = await rename(name);
    expect([status, error.code]).toEqual([403, 'forbidden_repository']);
  }
  expect((await h.call('GET', '/repositories/acme/mine', { as })).data.environmentDefaults).toBeNull();
  expect((await rename('acme/mine')).status).toBe(200);
});

test('a key cannot decide which code gets the secrets of a repository; an administrator in the web app can', async () => {
  await h.repository('acme/secrets');
  const root = await h.person('Keeper', { admin: true });
  const path = '/repositories/acme/secrets';
  const set = { environmentDefaults: { secretBranches: 'main', team: 'one' } };
  expect((await h.call('PATCH', path, { as: root, body: set })).status).toBe(200);
  const changes = [
    ['secretBranches', { environmentDefaults: { secretBranches: 'main,evil' } }],
    ['secretBranches', { environmentDefaults: { team: 'one' } }],
    ['secretBranches', { environmentDefaults: null }],
    ['defaultBranch', { defaultBranch: 'evil' }],
    ['cloneUrl', { cloneUrl: 'https://git.example.com/evil/repo.git' }],
  ] as const;
  for (const as of [await writer(), await h.key(root, { scopes: ['repos:write'] })]) {
    for (const [field, body] of changes) {
      const { status, error } = await h.call('PATCH', path, { as, body });
      expect([status, error.code]).toEqual([403, 'interactive_auth_required']);
      expect(error.message).toContain(`A key or token cannot change ${field}`);
    }
    const body = { fullName: 'acme/new', cloneUrl: 'https://git.example.com/acme/new.git', ...set };
    expect((await h.call('POST', '/repositories', { as, body })).error.code).toBe(
      'interactive_auth_required',
    );
  }
  const as = await writer();
  const harmless = { environmentDefaults: { secretBranches: 'main', team: 'two' }, defaultBranch: 'main' };
  expect((await h.call('PATCH', path, { as, body: harmless })).data).toMatchObject(harmless);
});
