// @module-tag sql
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { day, hour, minute, second } from '../../src/core/clock.ts';
import { type Harness, openHarness, type Person } from '../harness.ts';

let h: Harness;
let ada: Person;
let bob: Person;
let root: Person;
beforeAll(async () => {
  h = await openHarness();
  ada = await h.person('Ada');
  bob = await h.person('Bob');
  root = await h.person('Root', { admin: true });
  for (const name of ['acme/website', 'acme/api', 'acme/docs']) await h.repository(name);
});
afterAll(() => h.close());

const minimal = { name: 'a key', scopes: ['repos:read'], repositoryAccess: { mode: 'all' } };
const create = (body: object, as: Person = ada) => h.call('POST', '/me/tokens', { as, body });

/** Makes room under the active limit, so that tests do not depend on each other. */
async function clear(person: Person): Promise<void> {
  const { data } = await h.call('GET', '/me/tokens', {
    as: person,
    query: { status: 'active', limit: '100' },
  });
  for (const key of data) await h.call('DELETE', `/me/tokens/${key.id}`, { as: person });
}

describe('creating a key', () => {
  test('KF-04 the full value is only in the create answer, and that answer is not stored', async () => {
    const created = await create({ ...minimal, ttlHours: 24 });
    expect(created.status).toBe(201);
    expect(created.headers['cache-control']).toBe('no-store');
    const { token, id } = created.data;
    expect(token).toMatch(/^app_pat_[0-9A-Za-z]{50}$/);
    expect(id).toBe(token.slice(8, 20));
    const list = await h.call('GET', '/me/tokens', { as: ada });
    const one = await h.call('GET', `/me/tokens/${id}`, { as: ada });
    const context = await h.call('GET', '/auth/context', { as: `Bearer ${token}` });
    for (const answer of [list, one, context]) {
      expect(answer.status).toBe(200);
      expect(answer.text).not.toContain(token.slice(20));
      expect(answer.headers['cache-control']).toBe('no-store');
    }
  });

  test('a key without a lifetime does not expire, whatever default the web app offers', async () => {
    const { data } = await create(minimal);
    expect(data.expiresAt).toBeNull();
  });

  test('PB-01 a body cannot choose owner, type, id or binding', async () => {
    for (const field of ['userId', 'ownerId', 'type', 'createdBy', 'identityBound', 'id', 'ttlhours']) {
      const answer = await create({ ...minimal, [field]: 'x' });
      expect([answer.status, answer.error.code]).toEqual([400, 'invalid_body']);
      expect(answer.error.message).toContain(field);
    }
  });

  test.each([
    [{ ttlHours: 24, expiresAt: '2026-01-05T00:00:00Z' }, 400, 'invalid_expiry'],
    [{ ttlHours: 0 }, 400, 'invalid_expiry'],
    [{ ttlHours: -1 }, 400, 'invalid_expiry'],
    [{ ttlHours: '24' }, 400, 'invalid_expiry'],
    [{ ttlHours: 720.01 }, 422, 'lifetime_too_long'],
    [{ ttlHours: 1e9 }, 400, 'invalid_expiry'],
    [{ expiresAt: '2025-12-31T23:59:59Z' }, 400, 'invalid_expiry'],
    [{ expiresAt: '2026-01-05T00:00:00' }, 400, 'invalid_expiry'],
    [{ expiresAt: '2026-06-30T23:59:60Z' }, 400, 'invalid_expiry'],
    [{ expiresAt: '9999-12-31T23:59:59Z' }, 422, 'lifetime_too_long'],
    [{ scopes: [] }, 400, 'invalid_scopes'],
    [{ scopes: ['repos:read', 'repos:read'] }, 400, 'invalid_scopes'],
    [{ scopes: ['everything'] }, 400, 'invalid_scopes'],
    [{ scopes: ['env:admin'] }, 403, 'forbidden_scope'],
    [{ name: ' \t ' }, 400, 'invalid_name'],
    [{ name: 'x'.repeat(101) }, 400, 'invalid_name'],
    [{ name: 'a\u0000b' }, 400, 'invalid_name'],
    [{ repositoryAccess: undefined }, 400, 'invalid_repository_access'],
    [{ repositoryAccess: { mode: 'selected', repositories: [] } }, 400, 'invalid_repository_access'],
    [{ repositoryAccess: { mode: 'all', repositories: ['acme/api'] } }, 400, 'invalid_repository_access'],
    [{ repositoryAccess: { mode: 'selected', repositories: ['acme/none'] } }, 400, 'repo_not_found'],
  ])('PB-02 PB-03 SC-04 SC-05 %j is refused with %i %s and leaves nothing', async (change, status, code) => {
    const before = await h.call('GET', '/me/tokens', { as: ada });
    const answer = await create({ ...minimal, ...change });
    expect([answer.status, answer.error.code]).toEqual([status, code]);
    const after = await h.call('GET', '/me/tokens', { as: ada });
    expect(after.metadata.pagination.items).toBe(before.metadata.pagination.items);
  });

  test('PB-03 an expiresAt with an offset is the same moment in UTC', async () => {
    await clear(ada);
    const { data } = await create({ ...minimal, expiresAt: '2026-01-05T02:00:00+02:00' });
    expect(data.expiresAt).toBe('2026-01-05T00:00:00.000Z');
  });

  test('SC-06 fifty repositories pass after folding, fifty-one do not', async () => {
    await clear(ada);
    const names = Array.from({ length: 51 }, (_, at) => `many/repo-${at}`);
    for (const name of names) await h.repository(name);
    const fifty = [...names.slice(0, 50), ...names.slice(0, 10).map((name) => name.toUpperCase())];
    const passed = await create({ ...minimal, repositoryAccess: { mode: 'selected', repositories: fifty } });
    expect(passed.status).toBe(201);
    expect(passed.data.repositories.repositories).toHaveLength(50);
    const refused = await create({ ...minimal, repositoryAccess: { mode: 'selected', repositories: names } });
    expect([refused.status, refused.error.code]).toEqual([400, 'invalid_repository_access']);
  });

  test('PB-06 of fifty parallel creates at nine of ten exactly one succeeds', async () => {
    const eve = await h.person('Eve');
    for (let count = 0; count < 9; count++) expect((await create(minimal, eve)).status).toBe(201);
    const answers = await Promise.all(Array.from({ length: 50 }, () => create(minimal, eve)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    const refused = answers.find(({ status }) => status === 409);
    expect(refused?.error).toMatchObject({
      code: 'personal_token_limit',
      details: { active: 10, limit: 10 },
    });
    const policy = await h.call('GET', '/me/tokens/policy', { as: eve });
    expect(policy.data).toMatchObject({ canCreate: false, activeKeys: { count: 10, limit: 10 } });
    expect(policy.data.reasons[0].code).toBe('personal_token_limit');
  });

  test('expired and revoked keys do not count against the limit', async () => {
    const finn = await h.person('Finn');
    for (let count = 0; count < 10; count++)
      expect((await create({ ...minimal, ttlHours: 1 }, finn)).status).toBe(201);
    expect((await create(minimal, finn)).status).toBe(409);
    h.clock.advance(hour);
    expect((await create(minimal, finn)).status).toBe(201);
  });
});

describe('listing and reading', () => {
  test('EX-04 active, revoked and expired keys stay visible with their state', async () => {
    const gina = await h.person('Gina');
    const active = (await create({ ...minimal, name: 'alive' }, gina)).data;
    const ending = (await create({ ...minimal, name: 'ending', ttlHours: 1 }, gina)).data;
    const revoked = (await create({ ...minimal, name: 'revoked' }, gina)).data;
    await h.call('DELETE', `/me/tokens/${revoked.id}`, { as: gina });
    h.clock.advance(hour);
    const { data, metadata } = await h.call('GET', '/me/tokens', { as: gina });
    expect(
      Object.fromEntries(data.map((key: { id: string; status: string }) => [key.id, key.status])),
    ).toEqual({
      [active.id]: 'active',
      [ending.id]: 'expired',
      [revoked.id]: 'revoked',
    });
    expect(metadata.pagination).toEqual({ current: 1, total: 1, items: 3, limit: 25 });
    for (const [status, id] of [
      ['active', active.id],
      ['expired', ending.id],
      ['revoked', revoked.id],
    ]) {
      const only = await h.call('GET', '/me/tokens', { as: gina, query: { status } });
      expect(only.data.map((key: { id: string }) => key.id)).toEqual([id]);
    }
    await h.call('DELETE', `/me/tokens/${ending.id}`, { as: gina });
    const after = await h.call('GET', `/me/tokens/${ending.id}`, { as: gina });
    expect(after.data.status).toBe('revoked');
  });

  test('SO-04 another person’s key does not exist, for every verb; an administrator may read and revoke it', async () => {
    await clear(ada);
    const { id } = (await create(minimal)).data;
    const attempts = [
      ['GET', `/me/tokens/${id}`, undefined],
      ['DELETE', `/me/tokens/${id}`, undefined],
      ['PATCH', `/me/tokens/${id}`, { name: 'mine now' }],
      ['POST', `/me/tokens/${id}/rotate`, {}],
      ['GET', `/me/tokens/${id}/usage`, undefined],
      ['GET', `/me/tokens/${id}/timeline`, undefined],
    ] as const;
    for (const [method, path, body] of attempts) {
      const theirs = await h.call(method, path, { as: bob, body });
      const absent = await h.call(method, path.replace(id, 'nothingthere'), { as: bob, body });
      expect([theirs.status, theirs.error]).toEqual([404, absent.error]);
    }
    expect((await h.call('PATCH', `/tokens/${id}`, { as: root, body: { name: 'x' } })).status).toBe(404);
    expect((await h.call('POST', `/tokens/${id}/rotate`, { as: root, body: {} })).status).toBe(404);
    const listed = await h.call('GET', '/tokens', { as: root, query: { kind: 'personal', search: id } });
    expect(listed.data[0]).toMatchObject({ id, owner: { id: ada.user.id, name: 'Ada' } });
    expect(JSON.stringify(listed.data)).not.toContain('@');
    expect((await h.call('DELETE', `/tokens/${id}`, { as: root })).status).toBe(200);
    const [event] = (
      await h.call('GET', '/audit/events', { as: root, query: { target: id, event: 'api_key.revoked' } })
    ).data;
    expect(event).toMatchObject({
      actor: { id: root.user.id, credential: root.sessionId },
      reason: 'administrator',
    });
  });
});

describe('revoking', () => {
  test('RV-02 is idempotent, final at once, and 404 for a missing key', async () => {
    await clear(ada);
    const { id, token } = (await create(minimal)).data;
    expect((await h.call('GET', '/auth/context', { as: `Bearer ${token}` })).status).toBe(200);
    const first = await h.call('DELETE', `/me/tokens/${id}`, { as: ada });
    const after = await h.call('GET', '/auth/context', { as: `Bearer ${token}` });
    expect([after.status, after.error.code]).toEqual([401, 'invalid_credential']);
    h.clock.advance(minute);
    const second_ = await h.call('DELETE', `/me/tokens/${id}`, { as: ada });
    expect([second_.status, second_.data]).toEqual([200, first.data]);
    expect((await h.call('DELETE', '/me/tokens/nothingthere', { as: ada })).error.code).toBe(
      'token_not_found',
    );
  });

  test('a key can always revoke itself, and every key-shaped value gets the same answer', async () => {
    await clear(ada);
    const { token, id } = (await create(minimal)).data;
    const mine = await h.call('POST', '/auth/revoke-self', { as: `Bearer ${token}` });
    const again = await h.call('POST', '/auth/revoke-self', { as: `Bearer ${token}` });
    const invented = await h.call('POST', '/auth/revoke-self', { as: `Bearer app_pat_${'x'.repeat(50)}` });
    for (const answer of [mine, again, invented])
      expect([answer.status, answer.data]).toEqual([200, mine.data]);
    expect((await h.call('GET', `/me/tokens/${id}`, { as: ada })).data).toMatchObject({
      status: 'revoked',
      revokeReason: 'self',
    });
    expect((await h.call('POST', '/auth/revoke-self')).error.code).toBe('authentication_required');
    expect((await h.call('POST', '/auth/revoke-self', { as: 'Bearer something' })).error.code).toBe(
      'invalid_credential',
    );
  });
});

describe('expiry', () => {
  test('EX-01 a key works before its expiry and not at it', async () => {
    await clear(ada);
    const { token } = (await create({ ...minimal, ttlHours: 1 })).data;
    const status = async () => (await h.call('GET', '/auth/context', { as: `Bearer ${token}` })).status;
    h.clock.advance(hour - second);
    expect(await status()).toBe(200);
    h.clock.advance(second);
    expect(await status()).toBe(401);
    h.clock.advance(second);
    expect(await status()).toBe(401);
  });

  test('answers to a key in its last seven days say when it expires', async () => {
    await clear(ada);
    const { token } = (await create({ ...minimal, ttlHours: 24 * 8 })).data;
    const header = async () =>
      (await h.call('GET', '/auth/context', { as: `Bearer ${token}` })).headers['postern-key-expires-at'];
    expect(await header()).toBeUndefined();
    h.clock.advance(2 * day);
    expect(await header()).toMatch(/^\d{4}-.*Z$/);
  });

  test('the owner gets one notice a week before, a day before and at the expiry', async () => {
    const hana = await h.person('Hana');
    await create({ ...minimal, name: 'short', ttlHours: 24 * 10 }, hana);
    // Read through the service: a session does not live as long as this story.
    const kinds = async () => {
      await h.app.jobs.runNow('key-expiry');
      await h.app.jobs.runNow('key-expiry');
      const { notices } = await h.app.services.notices.list(
        { kind: 'user', userId: hana.user.id },
        { page: 1, limit: 25 },
      );
      return notices.map(({ kind }) => kind).sort();
    };
    expect(await kinds()).toEqual([]);
    h.clock.advance(4 * day);
    expect(await kinds()).toEqual(['key_expires_7d']);
    h.clock.advance(5 * day + hour);
    expect(await kinds()).toEqual(['key_expires_1d', 'key_expires_7d']);
    h.clock.advance(day);
    expect(await kinds()).toEqual(['key_expired', 'key_expires_1d', 'key_expires_7d']);
  });

  test('an intended expiry causes no notice: a key as short as the notice, or one with a successor', async () => {
    const ines = await h.person('Ines');
    await create({ ...minimal, name: 'a week', ttlHours: 168 }, ines);
    await create({ ...minimal, name: 'a day', ttlHours: 24 }, ines);
    const old = await create({ ...minimal, name: 'replaced', ttlHours: 24 * 10 }, ines);
    await h.call('POST', `/me/tokens/${old.data.id}/rotate`, { as: ines, body: {} });
    const told = async () => {
      await h.app.jobs.runNow('key-expiry');
      const { notices } = await h.app.services.notices.list(
        { kind: 'user', userId: ines.user.id },
        { page: 1, limit: 25 },
      );
      return notices.map((one) => `${'keyId' in one ? one.fields.keyName : ''}: ${one.kind}`).sort();
    };
    h.clock.advance(hour);
    expect(await told()).toEqual([]);
    h.clock.advance(6 * day);
    // The day is over, and the week has one day left. Of the pair only the successor speaks.
    expect(await told()).toEqual([
      'a day: key_expired',
      'a week: key_expires_1d',
      'replaced: key_expires_7d',
    ]);
  });
});
