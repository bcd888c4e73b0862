import { expect, test } from 'vitest';
import { artifactKeyOf } from './artifact-key.ts';

const inputs = {
  planDigest: 'a'.repeat(64),
  tree: 'b'.repeat(40),
  variables: { API_URL: '/api', LOG_LEVEL: 'debug' },
};
const place = { repositoryId: 'repo_1', engine: 'local', platform: 'linux-x64' } as const;
const digestOf = (of: Parameters<typeof artifactKeyOf>[0], hmacKey = 'key of the test') =>
  artifactKeyOf(of, place, hmacKey).digest;
const digest = digestOf(inputs);

test('the key of known inputs is known: a change of its form builds everything again', () => {
  expect(artifactKeyOf(inputs, place, 'key of the test')).toEqual({
    ...place,
    digest: '15fa2be0d8b63c571bef0e0525204ab6bf0e36906eb6c505792004fc450e318b',
  });
});

test('the order of variables does not matter', () => {
  const reordered = { LOG_LEVEL: 'debug', API_URL: '/api' };
  expect(digestOf({ ...inputs, variables: reordered })).toBe(digest);
});

test.each([
  ['plan', { ...inputs, planDigest: 'c'.repeat(64) }],
  ['files', { ...inputs, tree: 'c'.repeat(40) }],
  ['value', { ...inputs, variables: { ...inputs.variables, API_URL: '/' } }],
  ['exchange of values', { ...inputs, variables: { API_URL: 'debug', LOG_LEVEL: '/api' } }],
  ['missing variable', { ...inputs, variables: { API_URL: '/api' } }],
])('another %s is another digest', (_, other) => {
  expect(digestOf(other)).not.toBe(digest);
});

test('without the key, a guessed value cannot be confirmed', () => {
  expect(digestOf(inputs, 'another key')).not.toBe(digest);
});
