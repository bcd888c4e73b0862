import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { contents } from '../access/cast.ts';
import { type CallOptions, type TestKey, uiOrigin } from '../../harness.ts';
import { environmentCookie } from '../../gateway/environment.ts';
import { browserOf } from '../../gateway/private.ts';
import { openShop, type Shop } from './shop.ts';

/** One Environment in each of two repositories, and a key with every scope that reaches only the second repository. */
let shop: Shop;
let hidden: { id: string; build: string };
let reached: { id: string; build: string };
let limited: TestKey;
const scopes: ['env:write', 'repos:write'] = ['env:write', 'repos:write'];
beforeAll(async () => {
  shop = await openShop();
  await shop.call('POST', '/repositories', {
    body: { fullName: 'acme/other', cloneUrl: shop.repository.url },
  });
  hidden = await made('acme/shop', 'hidden-name');
  reached = await made('acme/other', 'reached-name');
  const repositoryAccess = { mode: 'selected' as const, repositories: ['acme/other'] };
  limited = await shop.h.serviceKey({ scopes, repositoryAccess });
});
afterAll(() => shop.close());

async function made(repository: string, name: string) {
  const { data } = await shop.create({ repository, name, access: 'members' });
  await shop.settle(data.id);
  const [build] = (await shop.call('GET', '/builds', { query: { environment: data.id } })).data;
  return { id: data.id as string, build: build.id as string };
}

/** What a client can compare: everything but the time, the number of requests left and the id of the request. */
async function bytes(method: string, path: string, options: CallOptions) {
  const answer = await shop.call(method, path, options);
  const { 'x-request-id': requestId = '', ratelimit: _budget, date: _date, ...headers } = answer.headers;
  return { status: answer.status, headers, text: answer.text.replaceAll(requestId, '') };
}

const live = { accept: 'text/event-stream' };
type Asked = readonly [method: string, path: string, options: CallOptions];
const ofEnvironment: readonly Asked[] = [
  ['GET', '', {}],
  ['HEAD', '', {}],
  ['GET', '/why', {}],
  ['GET', '/events', {}],
  ['GET', '/logs', {}],
  ['GET', '/logs', { headers: live }],
  ['PATCH', '', { body: { autoTrack: true } }],
  ['POST', '/deploy', { body: {} }],
  ['POST', '/extend', { body: {} }],
  ['DELETE', '', {}],
];
const ofBuild: readonly Asked[] = [
  ['GET', '', {}],
  ['HEAD', '', {}],
  ['GET', '/logs', {}],
  ['GET', '/logs', { headers: live }],
  ['POST', '/cancel', {}],
  ['POST', '/retry', {}],
];

/** What clients of the older system call with the id or the name of an Environment. */
const ofOlderBuild: readonly Asked[] = [
  ['GET', '', {}],
  ['HEAD', '', {}],
  ['PATCH', '', { body: { commentRuntimeEnv: { LEVEL: 'debug' } } }],
  ['PUT', '/redeploy', {}],
  ['PUT', '/destroy', {}],
  ['PATCH', '/services', { body: { serviceOverrides: [{ name: 'web', active: false }] } }],
  ['GET', '/metadata', {}],
  ['GET', '/services/web/build-jobs', {}],
  ['GET', '/services/web/build-jobs/bld_00000000000000000000', {}],
];

describe('SC-07 an object out of a key’s reach gets the same bytes as a missing one', () => {
  const absent = '0'.repeat(20);
  test.each(ofEnvironment)('%s /environments/{id}%s, by id and by name', async (method, path, options) => {
    const before = await contents(shop.h, 'environment%');
    const missing = await bytes(method, `/environments/env_${absent}${path}`, { ...options, as: limited });
    expect(missing.status).toBe(404);
    for (const name of [hidden.id, 'hidden-name'])
      expect(await bytes(method, `/environments/${name}${path}`, { ...options, as: limited })).toEqual(
        missing,
      );
    expect(await contents(shop.h, 'environment%')).toEqual(before);
  });

  test.each(ofBuild)('%s /builds/{id}%s', async (method, path, options) => {
    const missing = await bytes(method, `/builds/bld_${absent}${path}`, { ...options, as: limited });
    expect(missing.status).toBe(404);
    expect(await bytes(method, `/builds/${hidden.build}${path}`, { ...options, as: limited })).toEqual(
      missing,
    );
  });

  test.each(ofOlderBuild)('%s /builds/{id of an Environment}%s', async (method, path, options) => {
    const before = await contents(shop.h, 'environment%');
    const missing = await bytes(method, `/builds/env_${absent}${path}`, { ...options, as: limited });
    expect(missing.status).toBe(404);
    for (const name of [hidden.id, 'hidden-name'])
      expect(await bytes(method, `/builds/${name}${path}`, { ...options, as: limited })).toEqual(missing);
    expect(await contents(shop.h, 'environment%')).toEqual(before);
  });

  test('the log of a build out of reach, requested through an Environment within reach', async () => {
    const asked = (job: string) =>
      bytes('GET', `/builds/${reached.id}/services/web/build-jobs/${job}`, { as: limited });
    const missing = await asked(`bld_${absent}`);
    expect(missing.status).toBe(404);
    expect(await asked(hidden.build)).toEqual(missing);
    expect((await asked(reached.build)).status).toBe(200);
  });

  test.each([
    ['GET', '/environments', 'repository'],
    ['GET', '/environments/branches', 'repository'],
    ['GET', '/environments/config-preview', 'repository'],
    ['GET', '/schema/validate', 'repository'],
    ['GET', '/builds', 'environment'],
  ] as const)('%s %s?%s=', async (method, path, name) => {
    const needsBranch = path.endsWith('preview') || path.endsWith('validate');
    const more = needsBranch ? { branch: 'main' } : {};
    const asked = (value: string) => bytes(method, path, { as: limited, query: { ...more, [name]: value } });
    const isRepository = name === 'repository';
    const missing = await asked(isRepository ? 'acme/none' : `env_${absent}`);
    expect(missing.status).toBe(404);
    expect(await asked(isRepository ? 'acme/shop' : hidden.id)).toEqual(missing);
    expect((await asked(isRepository ? 'acme/other' : reached.id)).status).toBe(200);
  });

  test('POST /environments', async () => {
    const asked = (repository: string) =>
      bytes('POST', '/environments', { as: limited, body: { repository, branch: 'main' } });
    const missing = await asked('acme/none');
    expect(missing.status).toBe(404);
    expect(await asked('acme/shop')).toEqual(missing);
  });
});

test('SC-07 lists and their counts hold only what the key reaches, with any filter', async () => {
  const seen = async (path: string, query: Record<string, string> = {}) => {
    const { data, metadata } = await shop.call('GET', path, { as: limited, query });
    return [data.map(({ id }: { id: string }) => id), metadata.pagination.items];
  };
  for (const query of [{}, { hasReadyActiveService: 'true' }, { exclude: '' }, { trigger: 'api' }])
    expect(await seen('/environments', query)).toEqual([[reached.id], 1]);
  expect(await seen('/environments', { search: 'hidden' })).toEqual([[], 0]);
  expect(await seen('/environments', { page: '2' })).toEqual([[], 1]);
  expect(await seen('/builds')).toEqual([[reached.build], 1]);
  expect(await seen('/builds', { status: 'deployed', page: '2' })).toEqual([[], 1]);
});

test('SC-05 a key whose only repository was removed reaches no Environment and no build', async () => {
  await shop.h.repository('gone/soon');
  const repositoryAccess = { mode: 'selected' as const, repositories: ['gone/soon'] };
  const emptied = await shop.h.serviceKey({ scopes, repositoryAccess });
  expect((await shop.call('DELETE', '/repositories/gone/soon')).status).toBe(200);
  for (const path of ['/environments', '/builds']) {
    const { data, metadata } = await shop.call('GET', path, { as: emptied });
    expect([path, data, metadata.pagination.items]).toEqual([path, [], 0]);
  }
  const answer = await shop.call('GET', `/environments/${reached.id}`, { as: emptied });
  expect(answer.error.code).toBe('env_not_found');
});

test('SC-07 a key of the creator does not reach more than its selection, and the same request as before creates nothing', async () => {
  const body = { repository: 'acme/shop', branch: 'main', idempotencyKey: 'once' };
  expect((await shop.create(body)).status).toBe(202);
  const repositoryAccess = { mode: 'selected' as const, repositories: ['acme/other'] };
  const mine = await shop.h.key(shop.ada, { scopes, repositoryAccess });
  const answer = await shop.create(body, mine);
  expect([answer.status, answer.error.code]).toEqual([404, 'env_not_found']);
  expect((await shop.call('GET', '/environments', { as: mine, query: { mine: 'true' } })).data).toMatchObject(
    [{ id: reached.id }],
  );
});

describe('who may read logs, by cursor and live', () => {
  const forms = [
    ['the log of a build', () => `/builds/${reached.build}/logs`],
    ['the log of processes', () => `/environments/${reached.id}/logs`],
  ] as const;

  test.each(forms)('SC-01 SC-02 SC-03 %s needs env:read or env:write', async (_, path) => {
    for (const scope of ['env:read', 'env:write', 'repos:write', 'sites:read', 'sites:write'] as const) {
      const key = await shop.h.serviceKey({ scopes: [scope] });
      const isAllowed = scope.startsWith('env:');
      const answers = [await shop.call('GET', path(), { as: key })];
      // The stream of an Environment that lives does not end by itself.
      if (!isAllowed || path().startsWith('/builds'))
        answers.push(await shop.call('GET', path(), { as: key, headers: live }));
      for (const { status, headers } of answers)
        expect([scope, status, headers['www-authenticate']]).toEqual([
          scope,
          isAllowed ? 200 : 403,
          isAllowed ? undefined : 'Bearer realm="postern", error="insufficient_scope", scope="env:read"',
        ]);
    }
  });

  test.each(forms)('SO-01 SO-02 %s opens with exactly one credential', async (_, path) => {
    const session = `__Host-postern_session=${shop.ada.cookie}`;
    for (const headers of [{}, live]) {
      const both = { ...headers, cookie: session, origin: uiOrigin };
      const asked = await shop.call('GET', path(), { as: limited, headers: both });
      expect([asked.status, asked.error.code]).toEqual([400, 'ambiguous_credential']);
      const without = await shop.h.call('GET', path(), { headers });
      expect([without.status, without.error.code]).toEqual([401, 'authentication_required']);
    }
  });
});

test('SO-01 the grant of an Environment opens that Environment and no route of the API', async () => {
  const { data } = await shop.call('GET', `/environments/${reached.id}`);
  const browser = browserOf(shop.h, shop.ada);
  const url = `${data.services[0].url}/`;
  expect((await browser.open(url)).status).toBe(200);
  const cookie = browser.cookies(url);
  expect(cookie).toContain(`${environmentCookie}=`);
  const headers = { cookie, origin: uiOrigin };
  for (const [method, path, options] of [
    ...ofEnvironment.map(([verb, to, more]) => [verb, `/environments/${reached.id}${to}`, more] as const),
    ...ofOlderBuild.map(([verb, to, more]) => [verb, `/builds/${reached.id}${to}`, more] as const),
    ...ofBuild.map(([verb, to, more]) => [verb, `/builds/${reached.build}${to}`, more] as const),
  ]) {
    const sent = { ...options, headers: { ...options.headers, ...headers } };
    const answer = await shop.h.call(method, path, sent);
    expect([method, path, answer.status]).toEqual([method, path, 401]);
  }
});
