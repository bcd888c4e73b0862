// @module-tag sql
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { hour } from '../../../src/core/clock.ts';
import { type Harness, openHarness, type Person } from '../../harness.ts';

let h: Harness;
let root: Person;
let ada: Person;
beforeEach(async () => {
  h = await openHarness();
  root = await h.person('Root', { admin: true });
  ada = await h.person('Ada');
  await h.repository('acme/website');
});
afterEach(() => h.close());

/** A key of an older deployment: 40 hexadecimal characters, no checksum. */
const olderValue = (type: 'pat' | 'svc', seed: string) =>
  `app_${type}_${createHash('sha256').update(seed).digest('hex').slice(0, 40)}`;

const record = (value: string, more: object = {}) => ({
  digest: createHash('sha256').update(value).digest('hex'),
  prefix: value.slice(0, 8),
  name: 'older key',
  scopes: ['repos:read'],
  createdAt: '2025-06-01T00:00:00Z',
  expiresAt: null,
  ...more,
});
const lines = (...records: readonly unknown[]) => records.map((one) => JSON.stringify(one));
const ask = (value: string) => h.call('GET', '/auth/context', { as: `Bearer ${value}` });
const imported = async () =>
  (await h.call('GET', '/audit/events', { as: root, query: { event: 'api_key.imported' } })).data;

test('imported keys work with their older values, under ids of ours, and are audited', async () => {
  const [bound, unbound, service] = [
    olderValue('pat', 'bound'),
    olderValue('pat', 'unbound'),
    olderValue('svc', 'robot'),
  ];
  const result = await h.app.services.importKeys(
    lines(
      record(bound, { owner: ada.subject, repositories: ['acme/website'] }),
      record(unbound, { name: 'nobody’s' }),
      record(service, { name: 'robot', scopes: ['env:admin', 'repos:read'] }),
    ),
  );
  expect(result).toEqual({
    kind: 'imported',
    count: 3,
    alreadyThere: 0,
    owners: [{ line: 1, subject: ada.subject }],
  });
  const one = await ask(bound);
  expect(one.data).toMatchObject({
    principal: { kind: 'user', id: ada.user.id },
    identityBinding: 'present',
    repositories: { mode: 'selected', repositories: ['acme/website'] },
  });
  expect(one.data.keyId).toMatch(/^[0-9A-Za-z]{12}$/);
  expect((await ask(unbound)).data).toMatchObject({ identityBinding: 'absent', principal: { id: null } });
  expect((await ask(service)).data).toMatchObject({
    keyType: 'service',
    scopes: ['env:admin', 'repos:read'],
  });
  expect(await imported()).toHaveLength(3);
  expect(JSON.stringify(await imported())).not.toContain(bound.slice(20));
});

test('a record that expired before its creation is refused', async () => {
  const wrong = record(olderValue('pat', 'one'), { expiresAt: '2025-05-31T23:59:59Z' });
  expect(await h.app.services.importKeys(lines(wrong))).toEqual({
    kind: 'refused',
    problems: [{ line: 1, problem: 'expiresAt: must be later than createdAt' }],
  });
});

test('a record of another product word is refused with its line: it could never be used here', async () => {
  const foreign = `old_pat_${'0'.repeat(40)}`;
  const result = await h.app.services.importKeys(lines(record(olderValue('pat', 'one')), record(foreign)));
  expect(result).toEqual({
    kind: 'refused',
    problems: [{ line: 2, problem: expect.stringMatching(/^prefix: .*app_.*KEY_PREFIX/) }],
  });
  expect(await imported()).toEqual([]);
});

test('SC-04 a legacy env:admin satisfies no other scope, and a successor drops it', async () => {
  const value = olderValue('svc', 'legacy');
  await h.app.services.importKeys(lines(record(value, { scopes: ['env:admin', 'sites:read'] })));
  expect((await h.call('GET', '/repositories', { as: `Bearer ${value}` })).error.code).toBe(
    'forbidden_scope',
  );
  const { data } = await ask(value);
  expect(data.effectiveScopes).toEqual(['sites:read', 'env:admin']);
  const rotated = await h.call('POST', `/tokens/${data.keyId}/rotate`, { as: root, body: {} });
  expect(rotated.data.scopes).toEqual(['sites:read']);
});

test('an expiry and a revocation of the older deployment hold', async () => {
  const [ending, revoked] = [olderValue('pat', 'ending'), olderValue('pat', 'revoked')];
  await h.app.services.importKeys(
    lines(
      record(ending, { owner: ada.subject, expiresAt: '2026-01-01T01:00:00Z' }),
      record(revoked, { owner: ada.subject, revokedAt: '2025-12-01T00:00:00Z' }),
    ),
  );
  expect((await ask(ending)).status).toBe(200);
  expect((await ask(revoked)).status).toBe(401);
  h.clock.advance(hour);
  expect((await ask(ending)).status).toBe(401);
});

test('running it again changes nothing', async () => {
  const file = lines(record(olderValue('pat', 'one')), record(olderValue('pat', 'two')));
  await h.app.services.importKeys(file);
  expect(await h.app.services.importKeys([...file, ''])).toEqual({
    kind: 'imported',
    count: 0,
    alreadyThere: 2,
    owners: [],
  });
  expect(await imported()).toHaveLength(2);
});

test('FE-06 running it again does not bring back a value that was erased', async () => {
  const value = olderValue('svc', 'erased');
  const file = lines(record(value));
  await h.app.services.importKeys(file);
  const { keyId } = (await ask(value)).data;
  await h.call('PATCH', `/tokens/${keyId}`, { as: root, body: { credential: 'federated' } });
  expect(await h.app.services.importKeys(file)).toMatchObject({ count: 0, alreadyThere: 1 });
  expect((await ask(value)).status).toBe(401);
  expect(await imported()).toHaveLength(1);
});

test.each([
  ['no JSON', 'not json', /^line: must be one JSON object$/],
  ['a list', '[]', /^line: must be a JSON object$/],
  [
    'an owner by e-mail address',
    record('app_pat_x', { owner: 'ada@example.com' }),
    /^owner: must be the subject at the identity provider, not an e-mail address$/,
  ],
  ['an unknown field', { ...record('app_pat_x'), secret: 'x' }, /secret/],
  ['a digest that is none', record('x', { prefix: 'app_pat_', digest: 'abc' }), /^digest: /],
  ['a prefix that is none', record('x', { prefix: 'sk_live_' }), /^prefix: /],
  ['no scope', record('app_pat_x', { scopes: [] }), /^scopes/],
  ['an unknown scope', record('app_pat_x', { scopes: ['root'] }), /^scopes/],
  ['env:admin on a personal key', record('app_pat_x', { scopes: ['env:admin'] }), /^scopes: /],
  ['an owner of a service key', record('app_svc_x', { owner: 'someone' }), /^owner: /],
  ['a time without a zone', record('app_pat_x', { createdAt: '2025-06-01T00:00:00' }), /^createdAt: /],
  ['an unknown repository', record('app_pat_x', { repositories: ['acme/none'] }), /^repositories: /],
  ['an empty selection', record('app_pat_x', { repositories: [] }), /^repositories: /],
])('a file with %s is refused as a whole, and the line is named', async (_what, bad, problem) => {
  const good = record(olderValue('pat', 'good'));
  const file = [
    ...lines(good),
    typeof bad === 'string' ? bad : JSON.stringify(bad),
    ...lines(record('app_pat_y')),
  ];
  const result = await h.app.services.importKeys(file);
  expect(result).toMatchObject({ kind: 'refused', problems: [{ line: 2 }] });
  expect(result.kind === 'refused' ? result.problems[0]?.problem : '').toMatch(problem);
  expect((await ask(olderValue('pat', 'good'))).status).toBe(401);
  expect(await imported()).toEqual([]);
});

test('a digest that is twice in a file is imported once, or the whole file is refused', async () => {
  const twice = record(olderValue('pat', 'twice'));
  const result = await h.app.services.importKeys(lines(twice, { ...twice, name: 'again' }));
  expect(result).toEqual({ kind: 'imported', count: 1, alreadyThere: 1, owners: [] });
  expect(await imported()).toHaveLength(1);
});

test('every invalid line is named, not only the first', async () => {
  const result = await h.app.services.importKeys(['{', '', ...lines(record('app_pat_x')), '[]']);
  expect(result).toMatchObject({ kind: 'refused', problems: [{ line: 1 }, { line: 4 }] });
});

test('every problem of a line is named, in a message of Postern', async () => {
  const { name: _name, ...nameless } = record('app_pat_x');
  const bad = { ...nameless, digest: 'abc', prefix: 'old_pat_', scopes: ['root'], ttl: 1, secret: 'x' };
  expect(await h.app.services.importKeys(lines(bad))).toEqual({
    kind: 'refused',
    problems: [
      'digest: must be a SHA-256 in lower-case hexadecimal',
      'prefix: keys of this installation begin with app_ (KEY_PREFIX)',
      'name: is required',
      expect.stringMatching(/^scopes\.0: must be one of: env:read, /),
      'ttl: is not a field of a record',
      'secret: is not a field of a record',
    ].map((problem): unknown => ({ line: 1, problem })),
  });
});

test('an owner is named once, with the first line that names it', async () => {
  const elsewhere = 'subject-of-another-provider';
  const file = lines(
    record(olderValue('pat', 'a'), { owner: ada.subject }),
    record(olderValue('pat', 'b'), { owner: elsewhere }),
    record(olderValue('pat', 'c'), { owner: elsewhere }),
  );
  expect(await h.app.services.importKeys(file)).toMatchObject({
    owners: [
      { line: 1, subject: ada.subject },
      { line: 2, subject: elsewhere },
    ],
  });
});

test('the sweep skips an imported key whose owner has no account', async () => {
  const value = olderValue('pat', 'someone elsewhere');
  expect(
    await h.app.services.importKeys(lines(record(value, { owner: 'subject-of-another-provider' }))),
  ).toMatchObject({
    kind: 'imported',
    count: 1,
  });
  await h.app.jobs.runNow('owner-sweep');
  expect((await ask(value)).status).toBe(200);
});
