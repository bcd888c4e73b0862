// @module-tag sql
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { generateKeyPairSync } from 'node:crypto';
import { defaultKeyPolicy } from '../../../src/features/keys/key-policy.ts';
import { digestOf } from '../../../src/features/keys/key-value.ts';
import type { TrustedIssuer } from '../../../src/features/keys/trusted-issuer.ts';
import { type Answer, type Harness, openHarness, type Person, type TestKey } from '../../harness.ts';
import { openPlatform } from '../../id-tokens/platforms.ts';
import { dump, manyChanges, setPolicy } from '../access/cast.ts';
import { githubRule, githubUrl, gitlabRule, kubernetesRule, trustingAll } from './platforms.ts';

/** Service keys without a value, and the rules that say which ID tokens a key accepts. */
let h: Harness;
let root: Person;
beforeAll(async () => {
  h = await openHarness(manyChanges);
  root = await h.person('Root', { admin: true });
});
beforeEach(() => setPolicy(h, trustingAll));
afterAll(() => h.close());

const outcome = ({ status, error }: Answer) => (status < 400 ? String(status) : `${status} ${error.code}`);
const minimal = { name: 'deploys', scopes: ['sites:write'], repositoryAccess: { mode: 'all' } };
const create = (more: object = {}) => h.call('POST', '/tokens', { as: root, body: { ...minimal, ...more } });
const federated = async () =>
  (await create({ credential: 'federated', trust: [githubRule] })).data.id as string;
const read = async (id: string) => (await h.call('GET', `/tokens/${id}`, { as: root })).data;
const trust = (id: string, method = 'GET', body?: object, at = '') =>
  h.call(method, `/tokens/${id}/trust${at}`, { as: root, ...(body === undefined ? {} : { body }) });
const erase = (id: string) =>
  h.call('PATCH', `/tokens/${id}`, { as: root, body: { credential: 'federated' } });
const eventsOf = async (id: string) =>
  (await h.call('GET', `/tokens/${id}/timeline`, { as: root })).data.map(
    ({ event }: { event: string }) => event,
  );

describe('a federated key', () => {
  test('has no value, and its rules are there from the beginning', async () => {
    const answer = await create({ credential: 'federated', trust: [githubRule, gitlabRule] });
    expect(answer.status).toBe(201);
    expect(answer.data).toMatchObject({ credential: 'federated', trustRules: 2, status: 'active' });
    expect(answer.data).not.toHaveProperty('token');
    expect((await trust(answer.data.id)).data).toMatchObject([
      { ...githubRule, maxTtlMinutes: 15, maxAgeMinutes: 10, singleUse: true },
      { ...gitlabRule, maxTtlMinutes: 15, maxAgeMinutes: 60, singleUse: false },
    ]);
  });

  test('is never a personal key', async () => {
    const body = { ...minimal, credential: 'federated' };
    expect(outcome(await h.call('POST', '/me/tokens', { as: root, body }))).toBe('400 invalid_body');
    const { id } = await h.key(root);
    const change = { as: root, body: { credential: 'federated' } };
    expect(outcome(await h.call('PATCH', `/me/tokens/${id}`, change))).toBe('400 invalid_body');
    expect(outcome(await h.call('PATCH', `/tokens/${id}`, change))).toBe('404 token_not_found');
    expect(outcome(await trust(id))).toBe('404 token_not_found');
  });

  test('cannot be rotated, and its missing value cannot be sealed', async () => {
    const rotated = await h.call('POST', `/tokens/${await federated()}/rotate`, { as: root, body: {} });
    expect(outcome(rotated)).toBe('409 state_conflict');
    const { publicKey } = generateKeyPairSync('x25519');
    const sealTo = { kind: 'jwk', key: publicKey.export({ format: 'jwk' }) };
    expect(outcome(await create({ credential: 'federated', sealTo }))).toBe('400 invalid_body');
  });

  test('is in lists, with the number of its rules', async () => {
    const id = await federated();
    const { data } = await h.call('GET', '/tokens', { as: root, query: { search: id } });
    expect(data).toMatchObject([{ id, credential: 'federated', trustRules: 1 }]);
  });
});

describe('an erased value', () => {
  let other: Harness;
  let key: TestKey;
  beforeAll(async () => void (other = await h.another()));
  beforeEach(async () => void (key = await h.serviceKey()));
  afterAll(() => other.close());
  const use = async (on: Harness) => outcome(await on.call('GET', '/auth/context', { as: key }));

  test('FE-06 is refused by every process within a second, and nothing of it is left', async () => {
    expect([await use(h), await use(other)]).toEqual(['200', '200']);
    const { data } = await erase(key.id);
    expect(data).toMatchObject({ id: key.id, status: 'active', credential: 'federated' });
    expect([await use(h), await use(other)]).toEqual(['401 invalid_credential', '401 invalid_credential']);
    await other.app.services.feed.poll();
    expect(await use(other)).toBe('401 invalid_credential');
    expect((await dump(h)).includes(digestOf(key.value))).toBe(false);
    expect(await eventsOf(key.id)).toEqual(['api_key.value_erased', 'api_key.created']);
  });

  test('does not come back, and a second erasure changes nothing', async () => {
    await erase(key.id);
    expect(outcome(await erase(key.id))).toBe('200');
    expect(await eventsOf(key.id)).toEqual(['api_key.value_erased', 'api_key.created']);
    const back = await h.call('PATCH', `/tokens/${key.id}`, { as: root, body: { credential: 'value' } });
    expect(outcome(back)).toBe('400 invalid_body');
    const rotated = await h.call('POST', `/tokens/${key.id}/rotate`, { as: root, body: {} });
    expect(outcome(rotated)).toBe('409 state_conflict');
  });

  test('leaves the other fields of the same change in a separate event', async () => {
    const body = { credential: 'federated', name: 'from now on' };
    await h.call('PATCH', `/tokens/${key.id}`, { as: root, body });
    expect((await eventsOf(key.id)).toSorted()).toEqual([
      'api_key.created',
      'api_key.narrowed',
      'api_key.value_erased',
    ]);
    expect(await read(key.id)).toMatchObject({ name: 'from now on', credential: 'federated' });
  });

  test('of a dead key is not erased any more', async () => {
    await h.call('DELETE', `/tokens/${key.id}`, { as: root });
    expect(outcome(await erase(key.id))).toBe('409 state_conflict');
  });
});

describe('rules', () => {
  test('are added to a key with a value, and removed; each change is an event', async () => {
    const { id } = await h.serviceKey();
    const added = await trust(id, 'POST', { ...githubRule, maxTtlMinutes: 5 });
    expect(added.status).toBe(201);
    expect(added.data).toMatchObject({ ...githubRule, maxTtlMinutes: 5, maxAgeMinutes: 10 });
    expect(await read(id)).toMatchObject({ credential: 'value', trustRules: 1 });
    const removed = await trust(id, 'DELETE', undefined, `/${added.data.id}`);
    expect([removed.status, removed.data]).toEqual([200, { id: added.data.id }]);
    expect(outcome(await trust(id, 'DELETE', undefined, `/${added.data.id}`))).toBe('404 not_found');
    expect((await trust(id)).data).toEqual([]);
    expect(await eventsOf(id)).toEqual(['api_key.trust_changed', 'api_key.trust_changed', 'api_key.created']);
  });

  test('are at most ten, also when many are added at once', async () => {
    const { id } = await h.serviceKey();
    const answers = await Promise.all(Array.from({ length: 12 }, () => trust(id, 'POST', githubRule)));
    const outcomes = answers.map(outcome).toSorted();
    expect(outcomes).toEqual([...Array(10).fill('201'), '409 state_conflict', '409 state_conflict']);
    expect(outcome(await create({ trust: Array(11).fill(githubRule) }))).toBe('400 invalid_trust_rule');
  });

  test('of a key are not removed through another key', async () => {
    const [mine, other] = [await federated(), await federated()];
    const [rule] = (await trust(mine)).data;
    expect(outcome(await trust(other, 'DELETE', undefined, `/${rule.id}`))).toBe('404 not_found');
    expect((await trust(mine)).data).toHaveLength(1);
  });

  test('are not added to a key that has ended, but are removed from it', async () => {
    const id = await federated();
    const [rule] = (await trust(id)).data;
    await h.call('DELETE', `/tokens/${id}`, { as: root });
    expect(outcome(await trust(id, 'POST', githubRule))).toBe('409 state_conflict');
    expect(outcome(await trust(id, 'DELETE', undefined, `/${rule.id}`))).toBe('200');
  });

  test('stay with the predecessor: a successor has a value and no rule', async () => {
    const { data } = await create({ trust: [githubRule] });
    const rotated = await h.call('POST', `/tokens/${data.id}/rotate`, { as: root, body: {} });
    expect(rotated.data).toMatchObject({ credential: 'value', trustRules: 0 });
    expect(rotated.data.token).toMatch(/^app_svc_/);
    expect(await read(data.id)).toMatchObject({ trustRules: 1 });
  });

  test.each([
    ['an unknown issuer', { ...githubRule, issuer: 'https://evil.example.com' }, 'issuer'],
    ['too few claims', { ...githubRule, claims: { ref: 'refs/heads/main' } }, 'claims'],
    ['sub', { ...githubRule, claims: { ...githubRule.claims, sub: 'x' } }, 'claims.sub'],
    ['a long text', { ...githubRule, claims: { ...githubRule.claims, ref: 'x'.repeat(501) } }, 'claims.ref'],
    ['a number', { ...githubRule, claims: { ...githubRule.claims, ref: 7 } }, 'claims.ref'],
    [
      'an invisible character',
      { ...githubRule, claims: { ...githubRule.claims, ref: 'a\u202eb' } },
      'claims.ref',
    ],
    ['16 minutes', { ...githubRule, maxTtlMinutes: 16 }, 'maxTtlMinutes'],
    ['61 minutes', { ...githubRule, maxAgeMinutes: 61 }, 'maxAgeMinutes'],
    ['no issuer', { claims: githubRule.claims }, 'issuer'],
  ])('with %s are refused, and the answer names the field', async (_what, rule, field) => {
    const { id } = await h.serviceKey();
    const { status, error } = await trust(id, 'POST', rule);
    expect([status, error.code]).toEqual([400, 'invalid_trust_rule']);
    expect(error.details.fields[0].field).toBe(field);
  });

  test('are tried with the claims of a token; the answer says what differs', async () => {
    const id = await federated();
    const claims = {
      ...githubRule.claims,
      iss: githubUrl,
      aud: 'http://localhost:3000',
      event_name: 'push',
      jti: 'one-of-its-own',
    };
    const attempt = async (body: object) => (await trust(id, 'POST', body, '/try')).data;
    expect(await attempt({ claims })).toEqual({ accepted: true, failed: [] });
    expect(await attempt({ claims: { ...claims, aud: ['http://localhost:3000'] } })).toMatchObject({
      accepted: true,
    });
    const wrong = { ...claims, aud: ['http://localhost:3000', 'x'], ref: 'refs/heads/dev' };
    expect(await attempt({ claims: wrong })).toEqual({
      accepted: false,
      failed: [
        { claim: 'aud', expected: 'http://localhost:3000', found: null },
        { claim: 'ref', expected: 'refs/heads/main', found: 'refs/heads/dev' },
      ],
    });
    const other = { ...githubRule, claims: { ...githubRule.claims, ref: 'refs/heads/dev' } };
    expect(await attempt({ rule: other, claims: { ...claims, ref: 'refs/heads/dev' } })).toMatchObject({
      accepted: true,
    });
    const { jti: _, ...unnamed } = claims;
    expect((await attempt({ claims: unnamed })).failed).toMatchObject([{ claim: 'jti', found: null }]);
    expect(await attempt({ rule: { ...githubRule, singleUse: false }, claims: unnamed })).toMatchObject({
      accepted: true,
    });
    // A rule of another issuer with fewer claims would differ in fewer.
    await trust(id, 'POST', kubernetesRule);
    const almostEmpty = { iss: githubUrl, aud: 'http://localhost:3000', jti: 'x' };
    const named = (await attempt({ claims: almostEmpty })).failed.map(
      ({ claim }: { claim: string }) => claim,
    );
    expect(named.toSorted()).toEqual(['event_name', 'ref', 'repository_id', 'repository_owner_id']);
    const { id: bare } = await h.serviceKey();
    expect(outcome(await trust(bare, 'POST', { claims }, '/try'))).toBe('409 state_conflict');
  });
});

test('a body that is nested too deeply is refused, and none is too deep for the server', async () => {
  const id = await federated();
  const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
  const { headers } = await h.call('GET', '/config/api-keys', { as: root });
  const bodies = {
    claims: (levels: number) => `{"claims":{"deep":${deep(levels)}}}`,
    keys: (levels: number) =>
      `{"federation":{"issuers":[{"url":"x","jwks":{"keys":[{"x5c":${deep(levels)}}]}}]}}`,
  };
  const send = (body: keyof typeof bodies, levels: number) =>
    h.call(
      body === 'claims' ? 'POST' : 'PUT',
      body === 'claims' ? `/tokens/${id}/trust/try` : '/config/api-keys',
      {
        as: root,
        raw: { type: 'application/json', bytes: bodies[body](levels) },
        headers: { 'if-match': headers['etag'] ?? '' },
      },
    );
  expect(outcome(await send('claims', 30))).toBe('200');
  for (const [body, levels] of [
    ['claims', 31],
    ['claims', 30_000],
    ['keys', 30_000],
  ] as const) {
    const { status, error } = await send(body, levels);
    expect([status, error.code, error.message]).toEqual([
      400,
      'invalid_body',
      'The request body is nested more than 32 levels deep.',
    ]);
  }
});

describe('issuers of the key policy', () => {
  const put = async (federation: unknown, as = root) => {
    const { headers } = await h.call('GET', '/config/api-keys', { as });
    const body = { ...defaultKeyPolicy, federation };
    return await h.call('PUT', '/config/api-keys', {
      as,
      body,
      headers: { 'if-match': headers['etag'] ?? '' },
    });
  };
  const issuers = async () =>
    (await h.call('GET', '/config/api-keys', { as: root })).data.policy.federation.issuers;
  const { publicKey: rsa, privateKey } = openPlatform('github', githubUrl);
  const { publicKey: ed } = openPlatform('other', githubUrl, 'EdDSA');
  const secret = privateKey.export({ format: 'jwk' });

  test('are kept when a change omits them', async () => {
    const { federation: _, ...older } = defaultKeyPolicy;
    const { headers } = await h.call('GET', '/config/api-keys', { as: root });
    const answer = await h.call('PUT', '/config/api-keys', {
      as: root,
      body: { ...older, rateLimitPerMinute: 77 },
      headers: { 'if-match': headers['etag'] ?? '' },
    });
    expect(answer.status).toBe(200);
    expect(await issuers()).toEqual(trustingAll.federation?.issuers);
  });

  test('can have their keys pasted', async () => {
    const issuer = { url: githubUrl, preset: 'github', jwks: { keys: [rsa, ed] } };
    expect(outcome(await put({ issuers: [issuer] }))).toBe('200');
    expect(await issuers()).toEqual([issuer]);
  });

  test.each([
    ['plain http', [{ url: 'http://issuer.example.com', preset: 'other' }]],
    ['a query', [{ url: 'https://issuer.example.com/?a', preset: 'other' }]],
    ['an empty query', [{ url: 'https://issuer.example.com/?', preset: 'other' }]],
    ['a fragment', [{ url: 'https://issuer.example.com/#', preset: 'other' }]],
    ['a user', [{ url: 'https://a@issuer.example.com', preset: 'other' }]],
    ['another spelling', [{ url: 'https://Issuer.example.com', preset: 'other' }]],
    ['a path that leads up', [{ url: 'https://issuer.example.com/a/../b', preset: 'other' }]],
    ['an unknown preset', [{ url: githubUrl, preset: 'jenkins' }]],
    ['the same issuer twice', Array(2).fill({ url: githubUrl, preset: 'github' })],
    [
      '21 issuers',
      Array.from({ length: 21 }, (_, at) => ({ url: `https://i${at}.example.com`, preset: 'other' })),
    ],
    ['a private key', [{ url: githubUrl, preset: 'github', jwks: { keys: [{ ...rsa, ...secret }] } }]],
    [
      'a symmetric key',
      [{ url: githubUrl, preset: 'github', jwks: { keys: [{ kty: 'oct', k: 'AA', kid: 'a' }] } }],
    ],
    [
      'a key without kid',
      [{ url: githubUrl, preset: 'github', jwks: { keys: [{ ...rsa, kid: undefined }] } }],
    ],
    [
      'a short RSA key',
      [{ url: githubUrl, preset: 'github', jwks: { keys: [{ ...rsa, n: rsa.n?.slice(0, 171) }] } }],
    ],
    ['a kid twice', [{ url: githubUrl, preset: 'github', jwks: { keys: [rsa, rsa] } }]],
    [
      'a huge key set',
      [{ url: githubUrl, preset: 'github', jwks: { keys: [{ ...rsa, x5c: ['A'.repeat(20_000)] }] } }],
    ],
    ['no key', [{ url: githubUrl, preset: 'github', jwks: { keys: [] } }]],
  ])('with %s are refused', async (_what, list) => {
    expect(outcome(await put({ issuers: list }))).toBe('422 config_invalid');
  });

  test('are removed without a fresh sign-in, and added or changed only with one', async () => {
    const stale = await h.person('Stale', { admin: true, signedInAt: null });
    const refused = '403 fresh_authentication_required';
    const [first] = trustingAll.federation?.issuers ?? [];
    const with_ = (more: Partial<TrustedIssuer>) => put({ issuers: [{ ...first, ...more }] }, stale);
    expect(outcome(await with_({}))).toBe('200');
    expect(outcome(await with_({ preset: 'other' }))).toBe(refused);
    expect(outcome(await with_({ jwks: { keys: [ed] } }))).toBe(refused);
    expect(
      outcome(await put({ issuers: [first, { url: 'https://b.example.com', preset: 'other' }] }, stale)),
    ).toBe(refused);
    expect(outcome(await put({ issuers: [] }, stale))).toBe('200');
  });
});
