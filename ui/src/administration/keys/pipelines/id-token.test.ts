import { expect, test } from 'vitest';
import { claimsIn } from './id-token.ts';

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const tokenOf = (claims: unknown) => `${encoded({ alg: 'RS256', kid: 'a' })}.${encoded(claims)}.c2lnbmF0dXJl`;
const claims = {
  iss: 'https://token.actions.githubusercontent.com',
  aud: ['https://postern.example.com'],
  environment: 'Produktion – 生産 🚀',
  'kubernetes.io': { namespace: 'deploys' },
  run_attempt: 2,
};

test('the claims of a pasted ID token are read, whatever characters they have', () => {
  expect(claimsIn(tokenOf(claims))).toEqual({ claims });
});

test('claims that a job has decoded are read as they are', () => {
  expect(claimsIn(` ${JSON.stringify(claims, null, 2)}\n`)).toEqual({ claims });
});

test('a token inside JSON is not sent as a claim', () => {
  const response = JSON.stringify({ count: 1_234, value: tokenOf(claims) });
  expect(claimsIn(response)).toEqual({ mistake: expect.stringContaining('Paste the token alone') });
});

test('spaces and line breaks around and inside a pasted ID token do not matter', () => {
  const wrapped = tokenOf(claims).replaceAll(/(.{40})/g, '$1\n  ');
  expect(claimsIn(`\n${wrapped} \n`)).toEqual({ claims });
});

test('a claim with the name of a member of all objects is a claim', () => {
  const token = `a.${Buffer.from('{"__proto__":"x","constructor":"y"}').toString('base64url')}.c`;
  const read = claimsIn(token);
  expect(JSON.stringify(read)).toBe('{"claims":{"__proto__":"x","constructor":"y"}}');
});

test.each([
  ['', /^Paste/],
  ['app_svc_2hB7mQ0xTz4LcW9sVd1K', /three parts/],
  ['a.b', /three parts/],
  ['"a"', /three parts/],
  ['{"iss":', /three parts/],
  ['a.b.c.d.e', /encrypted/],
  [tokenOf('text'), /no claims/],
  [tokenOf(null), /no claims/],
  [tokenOf([claims]), /no claims/],
  ['a.%%%.c', /no claims/],
  [`a.${Buffer.from('{"iss":').toString('base64url')}.c`, /no claims/],
  [`a.${Buffer.from([0x22, 0xff, 0x22]).toString('base64url')}.c`, /no claims/],
  [`a.${'b'.repeat(16_384)}.c`, /at most/],
])('%.40j is no ID token', (text, words) => {
  expect(claimsIn(text)).toEqual({ mistake: expect.stringMatching(words) });
});
