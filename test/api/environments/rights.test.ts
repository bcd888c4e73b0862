// @module-tag sql
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openHarness, type Person, type TestKey } from '../../harness.ts';
import { openShop, type Shop } from './shop.ts';

let shop: Shop;
let ben: Person;
beforeAll(async () => {
  shop = await openShop();
  ben = await shop.h.person('Ben');
});
afterAll(() => shop.close());

describe('a refused creation names its reason', () => {
  test.each([
    ['a repository that is not registered', { repository: 'acme/other' }, 404, 'repo_not_onboarded'],
    ['a branch that does not exist', { branch: 'nothing' }, 400, 'invalid_branch'],
    ['a name that is no DNS label', { name: 'My Shop' }, 400, 'invalid_name'],
    ['a name that is a word of the API', { name: 'policy' }, 400, 'invalid_name'],
    ['a lease beyond the maximum', { ttlHours: 337 }, 422, 'lifetime_too_long'],
    ['an access that the policy does not allow', { access: 'public' }, 422, 'override_not_allowed'],
    [
      'a commit that it cannot follow',
      { sha: '0123456789abcdef0123456789abcdef01234567', autoTrack: true },
      422,
      'auto_track_pinned_source',
    ],
    [
      'a branch for one service',
      { services: [{ name: 'docs', branchOrExternalUrl: 'main' }] },
      400,
      'invalid_body',
    ],
    [
      'a URL with a password',
      { services: [{ name: 'docs', branchOrExternalUrl: 'https://a:b@docs.example' }] },
      400,
      'invalid_body',
    ],
    ['a commit that is abbreviated', { sha: '0123456' }, 400, 'invalid_body'],
    ['a variable with an equals sign', { env: { 'A=B': 'x' } }, 400, 'invalid_body'],
    ['a field that does not exist', { brnach: 'main' }, 400, 'invalid_body'],
  ])('%s', async (_, body, status, code) => {
    const answer = await shop.create(body);
    expect([answer.status, answer.error.code]).toEqual([status, code]);
  });

  test('Environments are switched off by the policy', async () => {
    await shop.change({ enabled: false });
    const refused = await shop.create();
    expect(refused.error).toMatchObject({
      code: 'environments_disabled',
      message: expect.stringContaining('policy'),
    });
    await shop.change({});
  });

  test('the installation has no engine', async () => {
    const h = await openHarness();
    onTestFinished(() => h.close());
    await h.repository('acme/shop');
    const body = { repository: 'acme/shop', branch: 'main' };
    const refused = await h.call('POST', '/environments', { as: await h.person('Ada'), body });
    expect([refused.status, refused.error]).toMatchObject([
      403,
      { code: 'environments_disabled', message: expect.stringContaining('no engine') },
    ]);
  });

  test('the name is taken', async () => {
    expect((await shop.create({ name: 'taken' })).status).toBe(202);
    expect((await shop.create({ name: 'taken' })).error.code).toBe('name_conflict');
  });

  test('the quota of the owner, or of everyone, is used up', async () => {
    await shop.change({ maxPerOwner: 1 });
    expect((await shop.create({}, ben)).status).toBe(202);
    expect((await shop.create({}, ben)).error).toMatchObject({
      code: 'quota_exceeded',
      message: 'You have 1 Environments, which is the maximum for one owner.',
    });
    await shop.change({ maxPerOwner: 1, maxTotal: 1 });
    const cleo = await shop.h.person('Cleo');
    expect((await shop.create({}, cleo)).error.code).toBe('quota_exceeded');
    await shop.change({});
  });
});

describe('what a caller may not see does not exist', () => {
  test('an Environment for its owner only', async () => {
    const { data } = await shop.create({ access: 'owner', name: 'mine-alone' });
    const missing = await shop.call('GET', '/environments/env_0000000000000000000', { as: ben });
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['GET', '/why', undefined],
      ['GET', '/events', undefined],
      ['GET', '/logs', undefined],
      ['PATCH', '', { autoTrack: true }],
      ['POST', '/deploy', {}],
      ['POST', '/extend', {}],
      ['DELETE', '', undefined],
    ] as const) {
      const answer = await shop.call(method, `/environments/${data.id}${path}`, { as: ben, body });
      expect([answer.status, answer.error]).toEqual([404, missing.error]);
    }
    const [build] = (await shop.call('GET', '/builds', { query: { environment: data.id } })).data;
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/logs'],
      ['POST', '/cancel'],
      ['POST', '/retry'],
    ] as const) {
      const answer = await shop.call(method, `/builds/${build.id}${path}`, { as: ben });
      expect(answer.error.code).toBe('build_not_found');
    }
    const list = await shop.call('GET', '/environments', { as: ben, query: { limit: '100' } });
    expect(list.data.map(({ id }: { id: string }) => id)).not.toContain(data.id);
    const builds = await shop.call('GET', '/builds', { as: ben, query: { limit: '100' } });
    expect(builds.data.map(({ id }: { id: string }) => id)).not.toContain(build.id);
  });

  test('an administrator only sees the row of such an Environment and tears it down', async () => {
    const { data } = await shop.create({ access: 'owner', name: 'of-ben-alone' }, ben);
    const [build] = (await shop.call('GET', '/builds', { as: ben, query: { environment: data.id } })).data;
    const path = `/environments/${data.id}`;
    const idsFor = async (as: Person | TestKey) => {
      const list = await shop.call('GET', '/environments', { as, query: { search: 'of-ben-alone' } });
      return list.data.map(({ id }: { id: string }) => id);
    };
    expect((await shop.call('GET', path)).data).toMatchObject({ id: data.id, access: 'owner' });
    expect((await shop.call('GET', '/environments/of-ben-alone')).status).toBe(200);
    expect(await idsFor(shop.ada)).toEqual([data.id]);
    // No condition at all.
    expect((await shop.call('GET', '/environments', { query: { exclude: '' } })).status).toBe(200);
    for (const [method, of, body] of [
      ['GET', '/why', undefined],
      ['GET', '/events', undefined],
      ['GET', '/logs', undefined],
      ['PATCH', '', { access: 'members' }],
      ['POST', '/deploy', {}],
      ['POST', '/extend', {}],
    ] as const)
      expect((await shop.call(method, `${path}${of}`, { body })).error.code).toBe('env_not_found');
    expect((await shop.call('GET', `/builds/${build.id}`)).error.code).toBe('build_not_found');
    expect((await shop.call('GET', `/builds/${build.id}/logs`)).error.code).toBe('build_not_found');

    // A key of the administrator is not an administrator in the web app.
    const key = await shop.h.key(shop.ada, { scopes: ['env:write'] });
    expect((await shop.call('DELETE', path, { as: key })).error.code).toBe('env_not_found');
    expect(await idsFor(key)).toEqual([]);

    expect((await shop.call('DELETE', path)).status).toBe(202);
    expect((await shop.call('GET', path, { as: ben })).data.status).toBe('tearing_down');
  });

  test('an Environment of a repository that a key does not reach', async () => {
    const { data } = await shop.create({ name: 'out-of-reach', access: 'members' });
    await shop.h.repository('acme/other');
    const scopes = ['env:read' as const, 'env:write' as const];
    const key = await shop.h.key(shop.ada, {
      scopes,
      repositoryAccess: { mode: 'selected', repositories: ['acme/other'] },
    });
    expect((await shop.call('GET', `/environments/${data.id}`, { as: key })).error.code).toBe(
      'env_not_found',
    );
    expect((await shop.call('DELETE', `/environments/${data.id}`, { as: key })).error.code).toBe(
      'env_not_found',
    );
    expect((await shop.call('GET', '/environments', { as: key })).data).toEqual([]);
    expect((await shop.call('GET', '/builds', { as: key })).data).toEqual([]);
    expect((await shop.create({}, key)).error.code).toBe('repo_not_onboarded');
    const all = await shop.h.key(shop.ada, { scopes });
    expect((await shop.call('GET', `/environments/${data.id}`, { as: all })).status).toBe(200);
  });
});

describe('who may open an Environment', () => {
  test('only its creator may widen the access; anyone who may change it may narrow it', async () => {
    const { data } = await shop.create({ access: 'members' });
    await shop.change({ allowedAccess: ['owner', 'members', 'public'] });
    const path = `/environments/${data.id}`;
    const wider = await shop.call('PATCH', path, { as: ben, body: { access: 'public' } });
    expect(wider.error.code).toBe('override_not_allowed');
    const opened = await shop.call('PATCH', path, { body: { access: 'public' } });
    expect(opened.data.access).toBe('public');
    const narrowed = await shop.call('PATCH', path, { as: ben, body: { access: 'members' } });
    expect(narrowed.data.access).toBe('members');
    await shop.change({});
  });

  test('a change gives every service a new address', async () => {
    const { data } = await shop.create({ access: 'members' });
    const before = await shop.settle(data.id);
    await shop.call('PATCH', `/environments/${data.id}`, { body: { access: 'owner' } });
    const after = await shop.settle(data.id);
    expect(after.services[0].url).not.toBe(before.services[0].url);
    expect(after.status).toBe('deployed');
  });

  test('a service key cannot keep an Environment for itself', async () => {
    const key = await shop.h.serviceKey({ scopes: ['env:read', 'env:write'] });
    expect((await shop.create({ access: 'owner' }, key)).error.code).toBe('override_not_allowed');
    const { data } = await shop.create({}, key);
    const { data: environment } = await shop.call('GET', `/environments/${data.id}`, { as: key });
    expect(environment).toMatchObject({ access: 'members', createdBy: { kind: 'service_key' } });
  });
});

test('lists are filtered', async () => {
  const ids = async (query: Record<string, string>, as: Person = ben) => {
    const { data } = await shop.call('GET', '/environments', { as, query: { limit: '100', ...query } });
    return data.map(({ uuid }: { uuid: string }) => uuid);
  };
  await shop.create({ name: 'listed-one', access: 'members', deployEnabled: false }, ben);
  shop.h.clock.advance(1);
  const gone = await shop.create({ name: 'listed-two', access: 'members' }, ben);
  await shop.call('DELETE', `/environments/${gone.data.id}`, { as: ben });
  await shop.settle(gone.data.id);
  expect(await ids({ search: 'listed' })).toEqual(['listed-one']);
  expect(await ids({ search: 'listed', exclude: '' })).toEqual(['listed-two', 'listed-one']);
  expect(await ids({ search: 'listed', exclude: 'paused,torn_down' })).toEqual([]);
  expect(await ids({ search: 'listed', mine: 'true' })).toEqual(['listed-one']);
  expect(await ids({ search: 'listed', mine: 'true' }, shop.ada)).toEqual([]);
  expect(await ids({ search: 'listed', trigger: 'push' })).toEqual([]);
  expect(await ids({ search: 'listed', repository: 'acme/shop' })).toEqual(['listed-one']);
  expect(await ids({ search: 'listed', hasReadyActiveService: 'true' })).toEqual([]);
  const wrong = await shop.call('GET', '/environments', { query: { exclude: 'gone' } });
  expect(wrong.error.code).toBe('invalid_query');
});

test('lists filter by readiness and by creator', async () => {
  const names = async (query: Record<string, string>) => {
    const { data } = await shop.call('GET', '/environments', { query: { search: 'apart-', ...query } });
    return data.map(({ uuid }: { uuid: string }) => uuid);
  };
  const { data } = await shop.create({ name: 'apart-ready' });
  await shop.settle(data.id);
  shop.h.clock.advance(1);
  await shop.create({ name: 'apart-paused', deployEnabled: false });
  expect(await names({ hasReadyActiveService: 'true' })).toEqual(['apart-ready']);
  expect(await names({ hasReadyActiveService: 'false' })).toEqual(['apart-paused']);
  expect(await names({ trigger: 'api' })).toEqual(['apart-paused', 'apart-ready']);
  expect(await names({ sort: 'expiresAt' })).toEqual(['apart-ready', 'apart-paused']);
  expect(await names({ trigger: 'push' })).toEqual([]);
});

test('an older key without a user owns no Environments, and works with those of members', async () => {
  const value = `app_pat_${'0123456789abcdef'.repeat(3).slice(0, 40)}`;
  await shop.h.app.services.importKeys([
    JSON.stringify({
      digest: createHash('sha256').update(value).digest('hex'),
      prefix: 'app_pat_',
      name: 'older',
      scopes: ['env:read', 'env:write'],
      createdAt: '2025-01-01T00:00:00Z',
      expiresAt: null,
    }),
  ]);
  const as = `Bearer ${value}`;
  const mine = await shop.call('GET', '/environments', { as, query: { mine: 'true' } });
  expect([mine.status, mine.error.code]).toEqual([400, 'mine_requires_identity']);
  const created = await shop.create({ access: 'members' }, as);
  expect([created.status, created.error.code]).toEqual([403, 'identity_binding_required']);

  const { data } = await shop.create({ access: 'members' });
  const path = `/environments/${data.id}`;
  const statuses = [];
  for (const [method, of, body] of [
    ['PATCH', '', { env: { A: '1' } }],
    ['POST', '/deploy', {}],
    ['POST', '/extend', {}],
    ['DELETE', '', undefined],
  ] as const)
    statuses.push((await shop.call(method, `${path}${of}`, { as, body })).status);
  expect(statuses).toEqual([200, 202, 200, 202]);
});
