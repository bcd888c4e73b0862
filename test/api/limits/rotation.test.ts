// @module-tag sql
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { hour, minute, second } from '../../../src/core/clock.ts';
import { defaultKeyPolicy } from '../../../src/features/keys/key-policy.ts';
import { type Harness, type KeyOptions, openHarness, type Person, type TestKey } from '../../harness.ts';
import { noLimits, setPolicy } from '../access/cast.ts';

let h: Harness;
let ada: Person;
let people = 0;
beforeAll(async () => {
  h = await openHarness();
  for (const name of ['acme/website', 'acme/api', 'acme/docs']) await h.repository(name);
});
afterAll(() => h.close());
beforeEach(async () => {
  await setPolicy(h, {});
  people += 1;
  ada = await h.person(`Ada${people}`);
});

const rotate = (id: string, body: object = {}) =>
  h.call('POST', `/me/tokens/${id}/rotate`, { as: ada, body });
const read = async (id: string) => (await h.call('GET', `/me/tokens/${id}`, { as: ada })).data;
const iso = (ms: number) => new Date(ms).toISOString();

async function works(value: string): Promise<boolean> {
  const { status } = await h.call('GET', '/auth/context', { as: `Bearer ${value}` });
  await h.settle();
  return status === 200;
}

/** Whether a route's query takes a field of this name. */
function hasField(query: unknown, name: string): boolean {
  return query instanceof z.ZodObject && name in query.shape;
}

/** A key and its successor. */
async function pair(options: KeyOptions = {}, body: object = {}) {
  const old = await h.key(ada, options);
  const answer = await rotate(old.id, body);
  expect(answer.status).toBe(201);
  return { old, next: answer.data as { id: string; token: string; expiresAt: string | null }, answer };
}

describe('when the predecessor expires', () => {
  test('both keys work until the successor is used; then the predecessor works exactly for its grace', async () => {
    const { old, next } = await pair({}, { graceSeconds: 60 });
    h.clock.advance(5 * hour);
    expect(await works(old.value)).toBe(true);
    expect(await works(next.token)).toBe(true);
    h.clock.advance(59 * second);
    expect(await works(old.value)).toBe(true);
    h.clock.advance(second);
    expect(await works(old.value)).toBe(false);
    expect(await works(next.token)).toBe(true);
    expect((await read(old.id)).status).toBe('expired');
  });

  test('a grace of zero ends the predecessor at the first use', async () => {
    const { old, next } = await pair({}, { graceSeconds: 0 });
    expect(await works(old.value)).toBe(true);
    expect(await works(next.token)).toBe(true);
    expect(await works(old.value)).toBe(false);
  });

  test('only a successful use counts: a refused one starts nothing', async () => {
    const { old, next } = await pair({ scopes: ['sites:read'] }, { graceSeconds: 0 });
    const refused = await h.call('GET', '/repositories', { as: `Bearer ${next.token}` });
    expect(refused.status).toBe(403);
    await h.settle();
    expect(await works(old.value)).toBe(true);
  });

  test('a check of the successor is not a use: the predecessor keeps working, and the usage shows the request', async () => {
    const { old, next } = await pair({}, { graceSeconds: 0 });
    const query = { check: 'true' };
    for (const more of [{}, { can: 'repos:read' }]) {
      const as = `Bearer ${next.token}`;
      const answer = await h.call('GET', '/auth/context', { as, query: { ...query, ...more } });
      expect([answer.status, answer.data.keyId]).toEqual([200, next.id]);
      await h.settle();
    }
    await h.app.services.usage.flush();
    expect(await works(old.value)).toBe(true);
    expect((await read(next.id)).lastUsedAt).toBeNull();
    const usage = await h.call('GET', `/me/tokens/${next.id}/usage`, { as: ada });
    expect(usage.data.total.allowed).toBe(2);
    expect(await works(next.token)).toBe(true);
    expect(await works(old.value)).toBe(false);
  });

  test('no other route accepts a check, so every other request is a use', async () => {
    const { old, next } = await pair({}, { graceSeconds: 0 });
    const query = { check: 'true' };
    const refused = await h.call('GET', '/repositories', { as: `Bearer ${next.token}`, query });
    expect(refused.error.code).toBe('invalid_query');
    expect(h.app.routes.filter(({ query }) => hasField(query, 'check')).map(({ path }) => path)).toEqual([
      '/auth/context',
    ]);
    expect(await works(old.value)).toBe(true);
  });

  test('only the first use counts: later ones do not move the expiry', async () => {
    const { old, next } = await pair({}, { graceSeconds: 60 });
    await works(next.token);
    const { expiresAt } = await read(old.id);
    h.clock.advance(30 * second);
    await works(next.token);
    expect((await read(old.id)).expiresAt).toBe(expiresAt);
  });

  test('the predecessor of an unused successor still expires at the deadline', async () => {
    const { old, next, answer } = await pair({}, { deadlineHours: 2 });
    expect(answer.data.predecessorEndsAt).toBe(iso(h.clock.now() + 2 * hour));
    h.clock.advance(2 * hour - second);
    expect(await works(old.value)).toBe(true);
    h.clock.advance(second);
    expect(await works(old.value)).toBe(false);
    expect(await works(next.token)).toBe(true);
  });

  test('the deadline is 24 hours and the grace 300 seconds unless the request says otherwise', async () => {
    const { old, next, answer } = await pair();
    expect(answer.data.predecessorEndsAt).toBe(iso(h.clock.now() + 24 * hour));
    await works(next.token);
    expect((await read(old.id)).expiresAt).toBe(iso(h.clock.now() + 300 * second));
  });

  test('a grace that starts just before the deadline ends at the deadline', async () => {
    const { old, next } = await pair({}, { deadlineHours: 1, graceSeconds: 3_600 });
    h.clock.advance(hour - minute);
    await works(next.token);
    h.clock.advance(minute - second);
    expect(await works(old.value)).toBe(true);
    h.clock.advance(second);
    expect(await works(old.value)).toBe(false);
  });

  test('the predecessor never outlives its own expiry, by deadline or by grace', async () => {
    const { old, next, answer } = await pair({ ttlHours: 1 }, { deadlineHours: 168, graceSeconds: 3_600 });
    expect(answer.data.predecessorEndsAt).toBe(iso(h.clock.now() + hour));
    h.clock.advance(30 * minute);
    await works(next.token);
    h.clock.advance(30 * minute);
    expect(await works(old.value)).toBe(false);
  });

  test.each([{ deadlineHours: 0.5 }, { deadlineHours: 169 }, { graceSeconds: -1 }, { graceSeconds: 3_601 }])(
    '%j is refused, and no key is created',
    async (body) => {
      const old = await h.key(ada);
      expect((await rotate(old.id, body)).error.code).toBe('invalid_body');
      expect((await read(old.id)).replacedBy).toBeNull();
    },
  );
});

describe('a pair', () => {
  test('holds one slot of the active limit until both are dead', async () => {
    await setPolicy(h, { maxActivePersonalKeysPerUser: 2 });
    const { old, next } = await pair();
    const body = { name: 'x', scopes: ['repos:read'], repositoryAccess: { mode: 'all' } };
    const create = async () => (await h.call('POST', '/me/tokens', { as: ada, body })).status;
    expect(await create()).toBe(201);
    expect(await create()).toBe(409);
    await h.call('DELETE', `/me/tokens/${old.id}`, { as: ada });
    expect(await create()).toBe(409);
    await h.call('DELETE', `/me/tokens/${next.id}`, { as: ada });
    expect(await create()).toBe(201);
  });

  test('can be made at the limit: a rotation needs no free slot', async () => {
    await setPolicy(h, { maxActivePersonalKeysPerUser: 1 });
    await pair();
    const policy = await h.call('GET', '/me/tokens/policy', { as: ada });
    expect(policy.data.activeKeys).toEqual({ count: 1, limit: 1 });
  });

  test('cannot be rotated again while both work; then the remaining one can', async () => {
    const { old, next } = await pair();
    for (const id of [old.id, next.id])
      expect((await rotate(id)).error).toMatchObject({ code: 'state_conflict' });
    await h.call('DELETE', `/me/tokens/${old.id}`, { as: ada });
    expect((await rotate(next.id)).status).toBe(201);
  });

  test('of twenty parallel rotations exactly one succeeds', async () => {
    const old = await h.key(ada);
    const answers = await Promise.all(Array.from({ length: 20 }, () => rotate(old.id)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(19);
  });

  test('whose answer was lost can be repeated: the old key still works, and rotates again once the successor is revoked', async () => {
    const { old, next } = await pair();
    // `next.token` was lost; the owner finds the successor in the list.
    expect(await works(old.value)).toBe(true);
    const listed = await read(old.id);
    expect(listed.replacedBy).toBe(next.id);
    await h.call('DELETE', `/me/tokens/${next.id}`, { as: ada });
    expect(await works(old.value)).toBe(true);
    expect((await rotate(old.id)).status).toBe(201);
  });

  test('is refused for a revoked or an expired key', async () => {
    const [revoked, expired] = [await h.key(ada), await h.key(ada, { ttlHours: 1 })];
    await h.call('DELETE', `/me/tokens/${revoked.id}`, { as: ada });
    h.clock.advance(hour);
    for (const key of [revoked, expired]) expect((await rotate(key.id)).error.code).toBe('state_conflict');
  });
});

describe('what the successor gets', () => {
  test('the same name, rights and original duration, with a new value', async () => {
    const { old, next } = await pair({
      name: 'deploy',
      scopes: ['repos:read', 'sites:write'],
      ttlHours: 100,
      repositoryAccess: { mode: 'selected', repositories: ['acme/api'] },
    });
    expect(next).toMatchObject({
      name: 'deploy',
      scopes: ['sites:write', 'repos:read'],
      expiresAt: iso(h.clock.now() + 100 * hour),
      repositories: { mode: 'selected', repositories: ['acme/api'] },
      replaces: old.id,
    });
    expect(next.token).not.toBe(old.value);
  });

  test('the original duration, not the remaining or the edited one', async () => {
    const old = await h.key(ada, { ttlHours: 100 });
    await h.call('PATCH', `/me/tokens/${old.id}`, { as: ada, body: { ttlHours: 10 } });
    h.clock.advance(5 * hour);
    expect((await rotate(old.id)).data.expiresAt).toBe(iso(h.clock.now() + 100 * hour));
  });

  test('narrower rights when asked, never wider ones', async () => {
    const options = {
      scopes: ['repos:write'],
      repositoryAccess: { mode: 'selected', repositories: ['acme/api', 'acme/docs'] },
    } as const;
    const key: TestKey = await h.key(ada, { ...options, scopes: [...options.scopes] });
    const wider = [
      [{ scopes: ['repos:write', 'sites:read'] }, 'scope_not_allowed'],
      [{ repositoryAccess: { mode: 'all' } }, 'repository_policy'],
      [{ repositoryAccess: { mode: 'selected', repositories: ['acme/website'] } }, 'repository_policy'],
    ] as const;
    for (const [body, code] of wider) expect((await rotate(key.id, body)).error.code).toBe(code);
    const narrower = await rotate(key.id, {
      scopes: ['repos:read'],
      repositoryAccess: { mode: 'selected', repositories: ['acme/docs'] },
      ttlHours: 1,
    });
    expect(narrower.data).toMatchObject({
      scopes: ['repos:read'],
      repositories: { mode: 'selected', repositories: ['acme/docs'] },
      expiresAt: iso(h.clock.now() + hour),
    });
  });

  test('only what the current policy allows', async () => {
    const eternal = await h.key(ada, { scopes: ['repos:write'] });
    const long = await h.key(ada, { ttlHours: 700 });
    const { lifetime, repositories, scopes } = defaultKeyPolicy;
    const strict = { ...lifetime.personal, defaultTtlHours: 24, maxTtlHours: 24, offeredTtlHours: [24] };
    const refusal = async (id: string, body: object = {}) => (await rotate(id, body)).error?.code;

    await setPolicy(h, { issuance: { personal: false, service: true } });
    expect(await refusal(eternal.id)).toBe('issuance_disabled');
    await setPolicy(h, { lifetime: { ...lifetime, personal: { ...strict, allowNoExpiry: false } } });
    expect(await refusal(eternal.id)).toBe('expiry_required');
    expect(await refusal(long.id)).toBe('lifetime_too_long');
    await setPolicy(h, { scopes: { ...scopes, personal: ['repos:read'] } });
    expect(await refusal(eternal.id)).toBe('scope_not_allowed');
    await setPolicy(h, { repositories: { ...repositories, personal: { allowAll: false } } });
    expect(await refusal(eternal.id)).toBe('repository_policy');
    await setPolicy(h, { lifetime: { ...lifetime, personal: { ...strict, allowNoExpiry: false } } });
    expect(await refusal(eternal.id, { ttlHours: 24 })).toBeUndefined();
    expect(await works(eternal.value)).toBe(true);
  });

  test('a rotated service key is a new key, and both timelines have the rotation', async () => {
    await setPolicy(h, noLimits);
    const root = await h.person(`Root${people}`, { admin: true });
    const old = await h.serviceKey({ name: 'robot' });
    const answer = await h.call('POST', `/tokens/${old.id}/rotate`, { as: root, body: {} });
    expect(answer.data).toMatchObject({ type: 'service', replaces: old.id, sitesLeftBehind: [] });
    for (const id of [old.id, answer.data.id]) {
      const { data } = await h.call('GET', `/tokens/${id}/timeline`, { as: root });
      expect(data[0]).toMatchObject({ event: 'api_key.rotated', actor: { id: root.user.id } });
    }
  });
});
