import { describe, expect, test } from 'vitest';
import { AppError } from '../../core/errors.ts';
import { failedClaims, textOf, toTrustRule, type TrustRequest } from './trust-rule.ts';
import type { Preset } from './trusted-issuer.ts';

const url = 'https://issuer.example.com';
const rule = (preset: Preset, claims: Record<string, string>, more: Partial<TrustRequest> = {}) =>
  toTrustRule([{ url, preset }], { issuer: url, claims, maxTtlMinutes: 15, ...more });

function problemsOf(preset: Preset, claims: Record<string, string>): string[] {
  try {
    rule(preset, claims);
    return [];
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'invalid_trust_rule') throw error;
    const { fields } = error.details as { fields: { field: string; problem: string }[] };
    return fields.map(({ field }) => field);
  }
}

const github = { repository_id: '1', repository_owner_id: '2', ref: 'refs/heads/main' };
const gitlab = { project_id: '22', ref: 'main', ref_type: 'branch', ref_protected: 'true' };
const pods = { '/kubernetes.io/namespace': 'a', '/kubernetes.io/serviceaccount/name': 'b' };

describe('what a rule must name', () => {
  test.each([
    ['github', github],
    ['gitlab', gitlab],
    ['kubernetes', pods],
    ['other', { project: 'a', branch: 'b' }],
  ] as const)('the preset %s requires each of its claims', (preset, claims) => {
    expect(problemsOf(preset, claims)).toEqual([]);
    for (const name of Object.keys(claims)) {
      const { [name as keyof typeof claims]: _, ...rest } = claims as Record<string, string>;
      expect([name, problemsOf(preset, rest)]).toEqual([name, ['claims']]);
    }
  });

  test('an environment of GitHub can stand in for a ref', () => {
    const { ref: _, ...rest } = github;
    expect(problemsOf('github', { ...rest, environment: 'production' })).toEqual([]);
  });

  test.each([
    'sub',
    'iss',
    'aud',
    'exp',
    'nbf',
    'iat',
    'jti',
    '/aud/0',
    '/sub',
    '/ref',
    '/a/~2',
    '/a/b~',
    '/',
  ])('the claim %s is refused', (name) =>
    expect(problemsOf('github', { ...github, [name]: 'x' })).toEqual([`claims.${name}`]),
  );

  test.each([
    ['ref', 'refs/tags/v*', true],
    ['ref', '*', false],
    ['ref', 'refs/*/main', false],
    ['ref', 'refs/tags/**', false],
    ['environment', 'prod-*', true],
    ['workflow_ref', 'acme/app/.github/workflows/deploy.yml@*', true],
    ['repository', 'acme/*', false],
    ['/nested/ref', 'main*', false],
  ])('%s = %s is allowed: %s', (name, text, isAllowed) => {
    expect(problemsOf('github', { ...github, [name]: text })).toEqual(isAllowed ? [] : [`claims.${name}`]);
  });

  test('the issuer must be in the key policy, equal in every character', () => {
    for (const issuer of [`${url}/`, 'https://ISSUER.example.com', 'https://evil.example.com'])
      expect(() =>
        toTrustRule([{ url, preset: 'other' }], { issuer, claims: { a: '1', b: '2' }, maxTtlMinutes: 15 }),
      ).toThrow('is not in the key policy; it has https://issuer.example.com');
  });

  test('the presets of platforms that give one ID token for a job accept it for an hour, more than once', () => {
    expect(rule('github', github)).toMatchObject({ maxAgeMinutes: 10, singleUse: true });
    expect(rule('gitlab', gitlab)).toMatchObject({ maxAgeMinutes: 60, singleUse: false });
    expect(rule('kubernetes', pods)).toMatchObject({ maxAgeMinutes: 60, singleUse: false });
    expect(rule('gitlab', gitlab, { maxAgeMinutes: 5, singleUse: true })).toMatchObject({
      maxAgeMinutes: 5,
      singleUse: true,
    });
  });
});

describe('how claims are compared', () => {
  const push = { ...github, event_name: 'push' };
  const failing = (claims: object, found: object, preset: Preset = 'github') =>
    failedClaims(preset, { claims: claims as Record<string, string> }, found).map(({ claim }) => claim);

  test('the text of a string, a whole number and a boolean is equal', () => {
    const found = { a: 'x', b: 7, c: true, d: { e: ['y', { 'f/~': false }] } };
    expect(['a', 'b', 'c', '/d/e/0', '/d/e/1/f~1~0'].map((name) => textOf(found, name))).toEqual([
      'x',
      '7',
      'true',
      'y',
      'false',
    ]);
  });

  test.each([
    ['an object', { a: { b: 1 } }, 'a'],
    ['a list', { a: ['x'] }, 'a'],
    ['null', { a: null }, 'a'],
    ['a number that may have lost digits', { a: 2 ** 53 }, 'a'],
    ['a fraction', { a: 0.1 }, 'a'],
    ['a member of every object', {}, 'constructor'],
    ['the length of a list', { a: ['x'] }, '/a/length'],
    ['an index with a zero before it', { a: ['x'] }, '/a/00'],
    ['the end of a list', { a: ['x'] }, '/a/-'],
    ['what is below a text', { a: 'x' }, '/a/0'],
    ['a name with a slash, as a path', { 'a/b': 'x' }, '/a/b'],
  ])('%s has no text', (_what, claims, name) => expect(textOf(claims, name)).toBeNull());

  test('every claim must be equal; a prefix counts only where a * is allowed', () => {
    expect(failing(github, push)).toEqual([]);
    expect(failing(github, { ...push, repository_id: '11' })).toEqual(['repository_id']);
    expect(failing(github, { ...push, ref: 'refs/heads/main2' })).toEqual(['ref']);
    expect(failing({ ...github, ref: 'refs/tags/v*' }, { ...push, ref: 'refs/tags/v1' })).toEqual([]);
    expect(failing({ ...github, ref: 'refs/tags/v*' }, { ...push, ref: 'refs/tags/w1' })).toEqual(['ref']);
    // Stored by a release with other rules: then it is one character.
    expect(failing({ repository: 'acme/*' }, { ...push, repository: 'acme/app' })).toEqual(['repository']);
  });

  test('a pull request of GitHub is refused unless the rule names the event', () => {
    for (const event_name of ['pull_request', 'pull_request_target', undefined])
      expect(failing(github, { ...push, event_name })).toEqual(['event_name']);
    const named = { ...github, event_name: 'pull_request' };
    expect(failing(named, { ...push, event_name: 'pull_request' })).toEqual([]);
    expect(failing(named, push)).toEqual(['event_name']);
    expect(failing(gitlab, { ...gitlab, event_name: 'pull_request' }, 'gitlab')).toEqual([]);
  });
});
