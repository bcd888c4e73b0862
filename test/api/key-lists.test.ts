// @module-tag sql
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { day, hour, second } from '../../src/core/clock.ts';
import { sql } from '../../src/platform/database/sql.ts';
import { type Harness, openHarness, type Person, type TestKey } from '../harness.ts';
import { noLimits, setPolicy } from './access/cast.ts';

/** Lists of keys as people narrow and sort them, and what is asked or done about many keys at once. */
let h: Harness;
let ada: Person;
let bob: Person;
let root: Person;
let robot: TestKey;
const made: Record<string, TestKey> = {};

beforeAll(async () => {
  h = await openHarness();
  await setPolicy(h, noLimits);
  [ada, bob] = [await h.person('Ada'), await h.person('Bob')];
  root = await h.person('Root', { admin: true });
  for (const name of ['acme/website', 'acme/api']) await h.repository(name);
  const only = (repository: string) => ({
    repositoryAccess: { mode: 'selected' as const, repositories: [repository] },
  });
  made['old'] = await h.key(ada, { name: 'old', scopes: ['sites:write'], ...only('acme/website') });
  made['idle'] = await h.key(ada, { name: 'Idle', scopes: ['env:read'], ...only('acme/api') });
  // Sessions do not live that long, so the keys are made older instead of the people.
  await sql`update api_keys set created_at = created_at - interval '40 days'`.run(h.database.sql);
  made['young'] = await h.key(ada, { name: 'young', scopes: ['sites:read'], ttlHours: 24 });
  made['bobs'] = await h.key(bob, { name: 'bobs', scopes: ['sites:write'], ttlHours: 48 });
  robot = await h.serviceKey({ name: 'robot', scopes: ['sites:read'] });
  await use('old');
});
afterAll(() => h.close());

async function use(name: string): Promise<void> {
  const key = made[name];
  if (key === undefined) throw new Error(`There is no key ${name}.`);
  await h.call('GET', '/auth/context', { as: key });
  await h.app.services.usage.flush();
}

async function names(path: string, query: Record<string, string>, as: Person = ada): Promise<string[]> {
  const { data, metadata } = await h.call('GET', path, { as, query });
  expect(metadata.pagination.items).toBe(data.length);
  return data.map((key: { name: string }) => key.name);
}

describe('a list of keys', () => {
  test.each([
    [{ scope: 'sites:read' }, ['young', 'old']],
    [{ scope: 'sites:write' }, ['old']],
    [{ scope: 'repos:read' }, []],
    [{ repository: 'Acme/Website' }, ['young', 'old']],
    [{ repository: 'acme/none' }, []],
    [{ unusedDays: '30' }, ['Idle']],
    [{ unusedDays: '30', scope: 'sites:read' }, []],
  ])('of %j holds exactly those keys', async (query, expected) => {
    expect(await names('/me/tokens', query)).toEqual(expected);
  });

  test.each([
    [{}, ['young']],
    [{ sort: 'name' }, ['Idle', 'old', 'young']],
    [{ sort: 'name', order: 'desc' }, ['young', 'old', 'Idle']],
    [{ sort: 'expiresAt' }, ['young']],
    [{ sort: 'lastUsedAt' }, ['old']],
  ])('sorted by %j begins as it should', async (query, first) => {
    expect((await names('/me/tokens', query)).slice(0, first.length)).toEqual(first);
  });

  test('begins with keys that were never used when sorted by longest unused', async () => {
    const order = await names('/me/tokens', { sort: 'lastUsedAt', order: 'asc' });
    expect(order.at(-1)).toBe('old');
  });

  test('of an administrator takes the same filters, over everyone’s keys', async () => {
    const query = { kind: 'all', scope: 'sites:read', sort: 'name' };
    expect(await names('/tokens', query, root)).toEqual(['bobs', 'old', 'robot', 'young']);
    expect(await names('/tokens', { unusedDays: '30', kind: 'personal' }, root)).toEqual(['Idle']);
    expect(await names('/tokens', { scope: 'sites:read' }, root)).toEqual(['robot']);
  });

  test.each([
    { scope: 'everything' },
    { repository: 'website' },
    { unusedDays: '0' },
    { unusedDays: '1000' },
    { sort: 'digest' },
    { order: 'up' },
  ])('%j is refused', async (query) => {
    const answer = await h.call('GET', '/me/tokens', { as: ada, query });
    expect([answer.status, answer.error.code]).toEqual([400, 'invalid_query']);
  });
});

describe('the usage of many keys', () => {
  const ask = (path: string, ids: string[], as: Person) =>
    h.call('GET', path, { as, query: { ids: ids.join(','), days: '7' } });

  test('comes in one answer, without keys of other people', async () => {
    const [old, bobs] = [made['old']?.id ?? '', made['bobs']?.id ?? ''];
    const { data } = await ask('/me/tokens/usage', [old, bobs, robot.id, 'x'.repeat(12)], ada);
    expect(data.keys).toHaveLength(1);
    expect(data.keys[0]).toMatchObject({ id: old, points: [{ counts: { allowed: 1, denied: 0 } }] });
    expect(Date.parse(data.to) - Date.parse(data.from)).toBe(7 * day);
    const all = await ask('/tokens/usage', [old, bobs, robot.id], root);
    expect(all.data.keys.map(({ id }: { id: string }) => id).sort()).toEqual([old, bobs, robot.id].sort());
    expect((await ask('/tokens/usage', [old], ada)).status).toBe(403);
  });
});

describe('why a request was refused', () => {
  const explain = (id: string, as: Person) => h.call('GET', `/me/refusals/${id}`, { as });
  const refused = async (as: TestKey) =>
    (await h.call('POST', '/sites', { as, body: { name: 'x', visibility: 'public' } })).headers[
      'x-request-id'
    ] ?? '';

  test('is shown only to the owner of the key, by the id of any of the counted requests', async () => {
    const young = made['young'];
    if (young === undefined) throw new Error('There is no young key.');
    const ids = [await refused(young), await refused(young), await refused(young)];
    await h.app.services.denials.flush({ all: true });
    for (const id of ids) {
      const { data } = await explain(id, ada);
      expect(data).toMatchObject({
        requestId: id,
        keyId: young.id,
        route: 'POST /api/v2/sites',
        code: 'forbidden_scope',
        status: 403,
        requiredScope: 'sites:write',
        keyStatus: null,
        count: 3,
      });
    }
    for (const person of [bob, root]) expect((await explain(ids[0] ?? '', person)).status).toBe(404);
  });

  test('names why the key was dead when it was used', async () => {
    const key = await h.key(ada, { name: 'short', ttlHours: 1 });
    h.clock.advance(hour);
    const id = await refused(key);
    await h.app.services.denials.flush({ all: true });
    expect((await explain(id, ada)).data).toMatchObject({
      keyId: key.id,
      code: 'invalid_credential',
      status: 401,
      keyStatus: 'expired',
      requiredScope: null,
    });
    expect((await explain(id, bob)).status).toBe(404);
  });

  test('is listed only for the owner of the key, newest first and at most ten', async () => {
    const zoe = await h.person('Zoe');
    const list = async (as: Person) => (await h.call('GET', '/me/refusals', { as })).data;
    expect(await list(zoe)).toEqual([]);
    const [key, over] = [
      await h.key(zoe, { name: 'named', scopes: ['repos:read'] }),
      await h.key(zoe, { ttlHours: 1 }),
    ];
    await refused(key);
    await refused(key);
    await h.call('GET', '/users', { as: zoe });
    await h.app.services.denials.flush({ all: true });
    h.clock.advance(hour);
    const last = await refused(over);
    await h.app.services.denials.flush({ all: true });
    expect(await list(zoe)).toMatchObject([
      { requestId: last, keyId: over.id, code: 'invalid_credential', keyStatus: 'expired', count: 1 },
      { keyId: key.id, keyName: 'named', code: 'forbidden_scope', requiredScope: 'sites:write', count: 2 },
    ]);
    expect(await list(root)).toEqual([]);
    for (let at = 0; at < 11; at++) {
      h.clock.advance(second);
      await refused(key);
      await h.app.services.denials.flush({ all: true });
    }
    const full = await list(zoe);
    expect([full.length, new Set(full.map(({ keyId }: { keyId: string }) => keyId))]).toEqual([
      10,
      new Set([key.id]),
    ]);
  });

  test('is listed for administrators where a service key asked', async () => {
    const id = await refused(robot);
    await h.app.services.denials.flush({ all: true });
    const { data } = await h.call('GET', '/tokens/refusals', { as: root });
    expect(data).toMatchObject([{ requestId: id, keyId: robot.id, keyName: 'robot', status: 403 }]);
    expect((await h.call('GET', '/tokens/refusals', { as: ada })).status).toBe(403);
  });

  test('is not told of what a browser session was refused, nor of an id that nobody had', async () => {
    const { headers } = await h.call('GET', '/users', { as: ada });
    await h.app.services.denials.flush({ all: true });
    expect((await explain(headers['x-request-id'] ?? '', ada)).status).toBe(404);
    expect((await explain('no-such-request', ada)).status).toBe(404);
  });
});

test('revoking all revokes every active key of the caller, with one event each, and no other key', async () => {
  const eve = await h.person('Eve');
  const live = [await h.key(eve, { name: 'one' }), await h.key(eve, { name: 'two' })];
  const ended = await h.key(eve, { name: 'over', ttlHours: 1 });
  h.clock.advance(hour);
  const body = { confirm: 'revoke all' };
  expect((await h.call('POST', '/me/tokens/revoke-all', { as: eve, body: {} })).status).toBe(400);
  const { status, data } = await h.call('POST', '/me/tokens/revoke-all', { as: eve, body });
  expect(status).toBe(200);
  expect(data.map(({ id }: { id: string }) => id).sort()).toEqual(live.map(({ id }) => id).sort());
  for (const key of live) {
    expect((await h.call('GET', '/auth/context', { as: key })).status).toBe(401);
    const story = await h.call('GET', `/me/tokens/${key.id}/timeline`, { as: eve });
    const events = story.data.filter(({ event }: { event: string }) => event === 'api_key.revoked');
    expect(events).toMatchObject([{ reason: 'owner_request', target: { id: key.id } }]);
  }
  expect((await h.call('GET', `/me/tokens/${ended.id}`, { as: eve })).data.status).toBe('expired');
  expect((await h.call('GET', '/auth/context', { as: made['bobs'] ?? '' })).status).toBe(200);
  expect((await h.call('POST', '/me/tokens/revoke-all', { as: eve, body })).data).toEqual([]);
});
