// @module-tag sql
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { second } from '../../../src/core/clock.ts';
import { defaultKeyPolicy, type KeyPolicy } from '../../../src/features/keys/key-policy.ts';
import { type Answer, type Harness, openHarness, type Person, uiOrigin } from '../../harness.ts';
import { contents, manyChanges, setPolicy } from './cast.ts';

/** The typed key policy: how it is read and changed, what it may say, and when it is in force. */
let h: Harness;
let other: Harness;
let root: Person;
beforeAll(async () => {
  h = await openHarness(manyChanges);
  other = await h.another();
  root = await h.person('Root', { admin: true });
  for (let count = 1; count <= 3; count++) await h.repository(`acme/repo-${count}`);
});
beforeEach(() => setPolicy(h, {}));
afterAll(async () => {
  await other.close();
  await h.close();
});

const read = async () => await h.call('GET', '/config/api-keys', { as: root });
const etagOf = async () => (await read()).headers['etag'] ?? '';
const put = async (body: unknown, options: { etag?: string; query?: Record<string, string> } = {}) =>
  await h.call('PUT', '/config/api-keys', {
    as: root,
    body,
    headers: { 'if-match': options.etag ?? (await etagOf()) },
    ...(options.query === undefined ? {} : { query: options.query }),
  });
const minimal = { name: 'a key', scopes: ['repos:read'], repositoryAccess: { mode: 'all' } };
const create = (at: Harness, as: Person, more: object = {}) =>
  at.call('POST', '/me/tokens', { as, body: { ...minimal, ...more } });
const code = (answer: Answer): [number, string | undefined] => [answer.status, answer.error?.code];

/** The default with one field, named by its path, replaced. */
function withField(path: string, value: unknown): Record<string, unknown> {
  // Not structuredClone: both types' lifetimes are one object there, and would change together.
  const document = JSON.parse(JSON.stringify(defaultKeyPolicy)) as Record<string, unknown>;
  const parts = path.split('.');
  const last = parts.pop() ?? '';
  let at = document;
  for (const part of parts) at = at[part] as Record<string, unknown>;
  at[last] = value;
  return document;
}

describe('reading and changing', () => {
  test.each([
    ['the whole answer of a read', (data: object) => data, 'policy'],
    ['the answer with its envelope', (data: object) => ({ data, error: null }), 'data.policy'],
  ])('%s is refused with one sentence: send only the document', async (_what, wrap, field) => {
    const answer = await put(wrap((await read()).data as object));
    expect(code(answer)).toEqual([422, 'config_invalid']);
    expect(answer.error.message).toBe(`Send only the ${field} object, without the object around it.`);
    expect(answer.error.details.fields).toEqual([{ field, problem: 'send only this object' }]);
  });

  test('the document starts as the contract’s defaults and carries an ETag', async () => {
    const fresh = await openHarness();
    const admin = await fresh.person('Root', { admin: true });
    const answer = await fresh.call('GET', '/config/api-keys', { as: admin });
    const scopes = ['env:read', 'env:write', 'sites:read', 'sites:write', 'repos:read', 'repos:write'];
    expect(answer.data).toMatchObject({
      version: 0,
      changedAt: null,
      changedBy: null,
      policy: {
        authentication: { personal: true, service: true },
        issuance: { personal: true, service: true },
        scopes: { personal: scopes, service: scopes },
        repositories: { personal: { allowAll: true }, service: { allowAll: true }, maxSelected: 50 },
        lifetime: {
          personal: { defaultTtlHours: 168, maxTtlHours: 720, allowNoExpiry: true },
          service: { maxTtlHours: 720, allowNoExpiry: true },
        },
        maxActivePersonalKeysPerUser: 10,
        rateLimitPerMinute: 600,
        failedAuthenticationsPerMinute: 120,
      },
    });
    expect(answer.headers['etag']).toMatch(/^"[^"]+"$/);
    await fresh.close();
  });

  test('a change without If-Match is 428, from an older reading 412, and neither changes anything', async () => {
    const stale = await etagOf();
    expect((await put({ ...defaultKeyPolicy, rateLimitPerMinute: 500 })).status).toBe(200);
    const before = await contents(h);
    const bare = await h.call('PUT', '/config/api-keys', { as: root, body: defaultKeyPolicy });
    expect(code(bare)).toEqual([428, 'precondition_required']);
    for (const etag of [stale, `W/${await etagOf()}`, '"0"', 'x', ''])
      expect([etag, ...code(await put(defaultKeyPolicy, { etag }))]).toEqual([
        etag,
        412,
        'precondition_failed',
      ]);
    const revert = (headers: Record<string, string>) =>
      h.call('POST', '/config/api-keys/revert', { as: root, body: { version: 0 }, headers });
    expect(code(await revert({}))).toEqual([428, 'precondition_required']);
    expect(code(await revert({ 'if-match': stale }))).toEqual([412, 'precondition_failed']);
    expect(await contents(h)).toEqual(before);
  });

  test('if two administrators change the same version at once, one is refused', async () => {
    const etag = await etagOf();
    const answers = await Promise.all(
      [100, 200, 300, 400].map((limit) =>
        (limit % 200 === 0 ? h : other).call('PUT', '/config/api-keys', {
          as: root,
          body: { ...defaultKeyPolicy, rateLimitPerMinute: limit },
          headers: { 'if-match': etag },
        }),
      ),
    );
    expect(answers.map(({ status }) => String(status)).sort()).toEqual(['200', '412', '412', '412']);
    const won = answers.find(({ status }) => status === 200);
    expect((await read()).data.policy).toEqual(won?.data.policy);
  });

  test('a change is audited once, with the values before and after', async () => {
    const changed = await put({ ...defaultKeyPolicy, rateLimitPerMinute: 77 });
    const { data } = await h.call('GET', '/audit/events', {
      as: root,
      query: { requestId: changed.headers['x-request-id'] ?? '' },
    });
    expect(data).toHaveLength(1);
    expect(data[0]).toMatchObject({
      event: 'policy.changed',
      outcome: 'success',
      actor: { id: root.user.id, credential: root.sessionId },
      details: { before: { rateLimitPerMinute: 600 }, after: { rateLimitPerMinute: 77 } },
    });
  });

  test('earlier documents stay readable and come back by revert, as a new version', async () => {
    const first = await put({ ...defaultKeyPolicy, rateLimitPerMinute: 41 });
    await put({ ...defaultKeyPolicy, rateLimitPerMinute: 42 });
    const history = await h.call('GET', '/config/api-keys/history', { as: root, query: { limit: '2' } });
    expect(history.data.map(({ policy }: { policy: KeyPolicy }) => policy.rateLimitPerMinute)).toEqual([
      42, 41,
    ]);
    expect(history.data[0]).toMatchObject({ changedBy: root.user.id, version: first.data.version + 1 });
    const reverted = await h.call('POST', '/config/api-keys/revert', {
      as: root,
      body: { version: first.data.version },
      headers: { 'if-match': await etagOf() },
    });
    expect(reverted.status).toBe(200);
    expect(reverted.data).toMatchObject({ version: first.data.version + 2, policy: first.data.policy });
    expect(reverted.headers['etag']).toBe(await etagOf());
    expect((await read()).data).toEqual(reverted.data);
    const toDefault = await h.call('POST', '/config/api-keys/revert', {
      as: root,
      body: { version: 0 },
      headers: { 'if-match': await etagOf() },
    });
    expect(toDefault.data.policy).toEqual(defaultKeyPolicy);
    // The last entry is the document before the first change, on a separate page if the other entries fill theirs.
    const { items } = (await h.call('GET', '/config/api-keys/history', { as: root })).metadata.pagination;
    for (const limit of [1, items - 1, items]) {
      const query = { limit: String(limit), page: String(Math.ceil(items / limit)) };
      const last = await h.call('GET', '/config/api-keys/history', { as: root, query });
      expect(last.data.at(-1)).toEqual({
        version: 0,
        changedAt: null,
        changedBy: null,
        policy: defaultKeyPolicy,
      });
    }
    const unknown = await h.call('POST', '/config/api-keys/revert', {
      as: root,
      body: { version: 99_999 },
      headers: { 'if-match': '*' },
    });
    expect(code(unknown)).toEqual([404, 'not_found']);
  });

  test.each([
    ['lifetime.personal.maxTtlHours', 1, 720],
    ['lifetime.service.maxTtlHours', 1, 87_600],
    ['repositories.maxSelected', 1, 50],
    ['maxActivePersonalKeysPerUser', 1, 1_000],
    ['rateLimitPerMinute', 1, 1_000_000],
  ])('%s takes %i to %i and refuses what lies beyond, naming the field', async (path, least, most) => {
    const type = path.split('.')[1];
    const body = (value: unknown) => {
      const document = withField(path, value);
      // A shorter longest lifetime needs shorter choices, or those would be the mistake that is found.
      if (path.endsWith('maxTtlHours')) {
        const lifetime = (document['lifetime'] as Record<string, Record<string, unknown>>)[type ?? ''];
        Object.assign(lifetime ?? {}, { defaultTtlHours: 1, offeredTtlHours: [1] });
      }
      return document;
    };
    for (const value of [least, most]) expect([value, (await put(body(value))).status]).toEqual([value, 200]);
    const before = await contents(h);
    for (const value of [least - 1, most + 1, -1, 1e12, null, String(least), [least], undefined]) {
      const answer = await put(body(value));
      expect([value, ...code(answer)]).toEqual([value, 422, 'config_invalid']);
      expect(answer.error.message).toContain(path);
      expect(answer.error.details.fields[0].field).toBe(path);
    }
    expect(await contents(h)).toEqual(before);
  });

  test.each([
    ['authentication.personal', 'yes'],
    ['issuance', true],
    ['issuance.service', undefined],
    ['scopes.personal', ['env:admin']],
    ['scopes.service', ['repos:read', 'repos:read']],
    ['scopes.service', 'all'],
    ['repositories.personal.allowAll', 1],
    ['lifetime.personal.allowNoExpiry', null],
    ['lifetime.personal.defaultTtlHours', 721],
    ['lifetime.personal.offeredTtlHours', []],
    ['lifetime.personal.offeredTtlHours', [24, 721]],
    ['lifetime.service.defaultTtlHours', 0],
    ['rateLimitPerMinute', 1.5],
    ['failedAuthenticationsPerMinute', 0],
  ])('%s = %j is refused with the field’s name', async (path, value) => {
    const answer = await put(withField(path, value));
    expect(code(answer)).toEqual([422, 'config_invalid']);
    expect(answer.error.details.fields.some(({ field }: { field: string }) => field.startsWith(path))).toBe(
      true,
    );
  });

  test('a field the document does not have is refused and named, at the top and inside', async () => {
    for (const path of ['ratelimit', 'lifetime.personal.maxTtl', 'scopes.everyone', 'repositories.team']) {
      const answer = await put(withField(path, 1));
      expect(code(answer)).toEqual([400, 'invalid_body']);
      expect(answer.error.details.fields[0].field).toBe(path);
    }
    expect(code(await put(defaultKeyPolicy, { query: { dryrun: 'true' } }))).toEqual([400, 'invalid_query']);
    for (const body of [[], null, 'policy', 7]) expect((await put(body)).status).toBe(400);
  });

  test('a lifetime beyond the longest one is refused with both values, beside the field to correct', async () => {
    const { error } = await put(withField('lifetime.personal.maxTtlHours', 168));
    expect(error.details.fields).toEqual([
      {
        field: 'lifetime.personal.offeredTtlHours',
        problem: '14 days and 30 days are longer than the limit of 7 days. Remove them.',
      },
    ]);
  });

  test('every wrong field is named in one answer', async () => {
    const document = { ...defaultKeyPolicy, rateLimitPerMinute: 0, maxActivePersonalKeysPerUser: 0 };
    const { error } = await put(document);
    expect(error.details.fields.map(({ field }: { field: string }) => field).sort()).toEqual([
      'maxActivePersonalKeysPerUser',
      'rateLimitPerMinute',
    ]);
  });
});

describe('a dry run', () => {
  test('changes nothing, and names the keys and owners that could not be created again', async () => {
    const ada = await h.person('Ada');
    const bob = await h.person('Bob');
    const access = { mode: 'selected', repositories: ['acme/repo-1', 'acme/repo-2'] } as const;
    const eternal = await create(h, ada);
    const long = await create(h, ada, { ttlHours: 700 });
    const wide = await create(h, bob, { scopes: ['repos:write'], ttlHours: 1, repositoryAccess: access });
    const small = await create(h, bob, {
      ttlHours: 1,
      repositoryAccess: { mode: 'selected', repositories: ['acme/repo-1'] },
    });
    const tighter: KeyPolicy = {
      ...defaultKeyPolicy,
      scopes: { ...defaultKeyPolicy.scopes, personal: ['repos:read'] },
      repositories: { ...defaultKeyPolicy.repositories, personal: { allowAll: false }, maxSelected: 1 },
      lifetime: {
        ...defaultKeyPolicy.lifetime,
        personal: { defaultTtlHours: 24, maxTtlHours: 48, offeredTtlHours: [24], allowNoExpiry: false },
      },
    };
    const before = await contents(h);
    const tried = await put(tighter, { query: { dryRun: 'true' } });
    expect(tried.status).toBe(200);
    expect(await contents(h)).toEqual(before);
    expect((await read()).data.policy).toEqual(defaultKeyPolicy);
    const { dryRun } = tried.data;
    expect([dryRun.keys, dryRun.owners]).toEqual([3, 2]);
    const reasonsOf = (id: string) =>
      dryRun.refused.find(({ keyId }: { keyId: string }) => keyId === id)?.reasons?.toSorted();
    expect(reasonsOf(eternal.data.id)).toEqual(['expiry_required', 'repository_policy']);
    expect(reasonsOf(long.data.id)).toEqual(['lifetime_too_long', 'repository_policy']);
    expect(reasonsOf(wide.data.id)).toEqual(['repository_policy', 'scope_not_allowed']);
    expect(reasonsOf(small.data.id)).toBeUndefined();
    expect(tried.text).not.toContain('@');

    expect((await put(tighter)).status).toBe(200);
    // What the policy in force refuses already is no effect of the next change.
    const more = await put({ ...tighter, rateLimitPerMinute: 700 }, { query: { dryRun: 'true' } });
    expect(more.data.dryRun).toEqual({ keys: 0, owners: 0, refused: [] });
    // Creating each of them again is refused for one of the reasons it was listed with; the small one is not.
    const again = [
      [eternal, {}],
      [long, { ttlHours: 700 }],
      [wide, { scopes: ['repos:write'], ttlHours: 1, repositoryAccess: access }],
    ] as const;
    for (const [listed, more] of again) {
      const answer = await create(h, ada, more);
      expect(answer.status).toBe(422);
      expect(reasonsOf(listed.data.id)).toContain(answer.error.code);
    }
    const allowed = { ttlHours: 1, repositoryAccess: { mode: 'selected', repositories: ['acme/repo-1'] } };
    expect((await create(h, bob, allowed)).status).toBe(201);
    // What exists keeps its rights.
    expect((await h.call('GET', '/repositories', { as: `Bearer ${eternal.data.token}` })).status).toBe(200);
  });

  test('needs the ETag like the change itself, and finds the same mistakes', async () => {
    const query = { dryRun: 'true' };
    expect(code(await put(defaultKeyPolicy, { etag: '"x"', query }))).toEqual([412, 'precondition_failed']);
    const bare = await h.call('PUT', '/config/api-keys', { as: root, body: defaultKeyPolicy, query });
    expect(code(bare)).toEqual([428, 'precondition_required']);
    expect(code(await put(withField('rateLimitPerMinute', 0), { query }))).toEqual([422, 'config_invalid']);
  });
});

describe('in force', () => {
  test('PB-05 a lowered active limit keeps existing keys and stops new ones; a raised one applies at once, on the other process within a second', async () => {
    const lim = await h.person('Lim');
    const made = [];
    for (let count = 0; count < 5; count++) made.push((await create(h, lim)).data);
    await put({ ...defaultKeyPolicy, maxActivePersonalKeysPerUser: 3 });
    for (const { token } of made)
      expect((await h.call('GET', '/repositories', { as: `Bearer ${token}` })).status).toBe(200);
    const refused = await create(h, lim);
    expect(code(refused)).toEqual([409, 'personal_token_limit']);
    expect(refused.error.details).toEqual({ active: 5, limit: 3 });
    for (const { id } of made.slice(0, 2)) {
      await h.call('DELETE', `/me/tokens/${id}`, { as: lim });
      expect((await create(h, lim)).status).toBe(409);
    }
    await h.call('DELETE', `/me/tokens/${made[2].id}`, { as: lim });
    expect((await create(h, lim)).status).toBe(201);
    expect((await create(h, lim)).status).toBe(409);
    await put({ ...defaultKeyPolicy, maxActivePersonalKeysPerUser: 5 });
    expect((await create(h, lim)).status).toBe(201);
    h.clock.advance(second + 1);
    expect((await create(other, lim)).status).toBe(201);
    expect((await create(other, lim)).status).toBe(409);
  });

  test('PB-06 of forty parallel creates over two processes, never more than the limit succeed', async () => {
    const par = await h.person('Par');
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, at) => create(at % 2 === 0 ? h : other, par)),
    );
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(10);
    expect(statuses.filter((status) => status === 409)).toHaveLength(30);
    const query = { status: 'active', limit: '100' };
    const { metadata } = await other.call('GET', '/me/tokens', { as: par, query });
    expect(metadata.pagination.items).toBe(10);
  });

  test('PB-06 creates, revocations and rotations at once over two processes never leave more than the limit', async () => {
    const mix = await h.person('Mix');
    const ids: string[] = [];
    for (let count = 0; count < 10; count++) ids.push((await create(h, mix)).data.id);
    const at = (index: number) => (index % 2 === 0 ? h : other);
    await Promise.all([
      ...ids.slice(0, 4).map((id, index) => at(index).call('DELETE', `/me/tokens/${id}`, { as: mix })),
      ...ids
        .slice(4)
        .map((id, index) => at(index).call('POST', `/me/tokens/${id}/rotate`, { as: mix, body: {} })),
      ...Array.from({ length: 20 }, (_, index) => create(at(index), mix)),
    ]);
    const { activeKeys } = (await h.call('GET', '/me/tokens/policy', { as: mix })).data;
    expect(activeKeys).toEqual({ count: expect.any(Number), limit: 10 });
    expect(activeKeys.count).toBeLessThanOrEqual(10);
  });

  test('RL-04 a changed rate limit is in force here at once and on the other process within a second', async () => {
    const key = await h.serviceKey();
    const limitAt = async (where: Harness) =>
      /q=(\d+)/.exec(
        (await where.call('GET', '/repositories', { as: key })).headers['ratelimit-policy'] ?? '',
      )?.[1];
    expect([await limitAt(h), await limitAt(other)]).toEqual(['600', '600']);
    await put({ ...defaultKeyPolicy, rateLimitPerMinute: 700 });
    expect(await limitAt(h)).toBe('700');
    h.clock.advance(second + 1);
    expect(await limitAt(other)).toBe('700');
  });

  test.each(['personal', 'service'] as const)(
    'switching %s keys off refuses them at the next request, on the other process within a second, and not the other type',
    async (type) => {
      const owner = await h.person(`Switch-${type}`);
      const keys = { personal: await h.key(owner), service: await h.serviceKey() };
      const use = (where: Harness, of: 'personal' | 'service') =>
        where.call('GET', '/repositories', { as: keys[of] });
      expect([(await use(h, type)).status, (await use(other, type)).status]).toEqual([200, 200]);
      const authentication = { ...defaultKeyPolicy.authentication, [type]: false };
      await put({ ...defaultKeyPolicy, authentication });
      expect(code(await use(h, type))).toEqual([403, 'api_keys_disabled']);
      h.clock.advance(second + 1);
      expect(code(await use(other, type))).toEqual([403, 'api_keys_disabled']);
      expect((await use(h, type === 'personal' ? 'service' : 'personal')).status).toBe(200);
      await put(defaultKeyPolicy);
      expect((await use(h, type)).status).toBe(200);
    },
  );

  test('switching issuance off stops creating and rotating, and the user’s own policy says so; existing keys work', async () => {
    const iss = await h.person('Iss');
    const { data } = await create(h, iss);
    await put({ ...defaultKeyPolicy, issuance: { personal: false, service: false } });
    expect(code(await create(h, iss))).toEqual([403, 'issuance_disabled']);
    const rotate = await h.call('POST', `/me/tokens/${data.id}/rotate`, { as: iss, body: {} });
    expect(code(rotate)).toEqual([403, 'issuance_disabled']);
    expect(code(await h.call('POST', '/tokens', { as: root, body: minimal }))).toEqual([
      403,
      'issuance_disabled',
    ]);
    const mine = await h.call('GET', '/me/tokens/policy', { as: iss });
    expect(mine.data).toMatchObject({ canCreate: false, reasons: [{ code: 'issuance_disabled' }] });
    expect((await h.call('GET', '/repositories', { as: `Bearer ${data.token}` })).status).toBe(200);
  });
});

describe('the content type of a body', () => {
  test.each([
    ['application/json', 201],
    ['application/json; charset=utf-8', 201],
    ['application/json;charset=UTF-8', 201],
    ['APPLICATION/JSON', 201],
    ['application/json ; charset="utf-8"', 201],
    ['application/json\t', 415],
    ['application/json garbage', 415],
    ['application/json;', 415],
    ['application/json; charset=utf-16', 415],
    ['application/json; charset=utf-8; x=y', 415],
    ['application/jsonx', 415],
    ['application/ json', 415],
    ['application/vnd.api+json', 415],
    ['application/json, text/plain', 415],
    ['text/json', 415],
    ['text/plain', 415],
    ['text/plain; application/json', 415],
    ['multipart/form-data; boundary=application/json', 415],
    ['application/x-www-form-urlencoded', 415],
    ['', 415],
  ])('PB-07 %j is taken and validated, or refused: %i', async (type, status) => {
    const person = await h.person(`Type${Math.abs(hash(type))}`);
    const send = (body: object) =>
      h.call('POST', '/me/tokens', { as: person, body, headers: { 'content-type': type } });
    // Whatever passes is validated in full: the type is no way round the schema.
    const smuggled = await send({ ...minimal, userId: root.user.id });
    expect(smuggled.status).toBe(status === 201 ? 400 : 415);
    const answer = await send(minimal);
    expect(answer.status).toBe(status);
    expect(answer.error?.code).toBe(status === 201 ? undefined : 'unsupported_media_type');
  });

  test('PB-07 a body that is not UTF-8 is 400 and says so, and nothing is stored in its place', async () => {
    const person = await h.person('Latin');
    const [start = '', end = ''] = JSON.stringify({ ...minimal, name: '|' }).split('|');
    const response = await h.app.web.inject({
      method: 'POST',
      url: '/api/v2/me/tokens',
      headers: {
        host: 'localhost:3000',
        origin: uiOrigin,
        cookie: `__Host-postern_session=${person.cookie}`,
        'content-type': 'application/json',
      },
      payload: Buffer.concat([Buffer.from(start), Buffer.from([0xe9, 0x74, 0xe9]), Buffer.from(end)]),
    });
    expect([response.statusCode, response.json().error.code]).toEqual([400, 'invalid_body']);
    expect(response.json().error.message).toContain('UTF-8');
    expect((await h.call('GET', '/me/tokens', { as: person })).data).toEqual([]);
  });

  test.each([
    ['not JSON', '{"name": '],
    ['a trailing comma', '{"name":"x",}'],
    ['two documents', '{}{}'],
    ['__proto__', '{"__proto__":{"admin":true},"name":"x"}'],
    ['constructor.prototype', '{"constructor":{"prototype":{"admin":true}}}'],
    ['a byte order mark', '\uFEFF{"name":'],
    ['NaN', '{"ttlHours":NaN}'],
    ['an array', '[]'],
    ['a string', '"name"'],
    ['null', 'null'],
    ['nothing', ''],
  ])('PB-07 a body that is %s is 400 and says so', async (_what, payload) => {
    const response = await h.app.web.inject({
      method: 'POST',
      url: '/api/v2/me/tokens',
      headers: {
        host: 'localhost:3000',
        origin: uiOrigin,
        cookie: `__Host-postern_session=${root.cookie}`,
        'content-type': 'application/json',
      },
      payload,
    });
    expect([response.statusCode, response.json().error.code]).toEqual([400, 'invalid_body']);
  });

  test('PB-07 a body over the limit is 413, whatever its content', async () => {
    const answer = await h.call('POST', '/me/tokens', {
      as: root,
      body: { ...minimal, name: 'x'.repeat(70_000) },
    });
    expect(code(answer)).toEqual([413, 'body_too_large']);
  });
});

/** A small number from a text, so that each line of a table has its own person. */
function hash(text: string): number {
  let sum = 7;
  for (const character of text) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 1_000_003;
  return sum;
}
