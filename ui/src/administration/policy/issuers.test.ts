import { expect, test } from 'vitest';
import { issuerInWords, mistakesInIssuers, sentIssuer } from './issuers.ts';

const url = 'https://gitlab.example.com';
const jwks = { keys: [{ kty: 'RSA', kid: 'one', n: 'n', e: 'AQAB' }] };

test('pasted public keys are sent as JSON; fetched ones are not sent', () => {
  const text = JSON.stringify(jwks);
  expect(sentIssuer({ url, preset: 'gitlab', jwks: text })).toEqual({ url, preset: 'gitlab', jwks });
  expect(sentIssuer({ url, preset: 'gitlab', jwks })).toEqual({ url, preset: 'gitlab', jwks });
  expect(sentIssuer({ url, preset: 'gitlab' })).toEqual({ url, preset: 'gitlab' });
});

test('a list of changes names the keys of an issuer', () => {
  expect(issuerInWords({ url, preset: 'gitlab' })).toBe(`${url} (GitLab CI)`);
  expect(issuerInWords({ url, preset: 'gitlab', jwks })).toBe(`${url} (GitLab CI, with the keys one)`);
  expect(issuerInWords({ url, preset: 'other', jwks: '?' })).toContain('that were pasted');
});

test.each([
  ['', /^Paste a key set/],
  ['{', /^Paste a key set/],
  ['[]', /^Paste a key set/],
  ['{"keys":{}}', /^Paste a key set/],
  ['{"keys":[{"kty":"RSA","d":"secret"}]}', /private key/],
  ['{"keys":[{"kty":"oct","k":"secret"}]}', /private key/],
])('the text %j is not sent as a key set', (text, words) => {
  const issuers = [
    { url, preset: 'gitlab' },
    { url, preset: 'gitlab', jwks: text },
  ];
  expect(mistakesInIssuers('federation.issuers', issuers)).toEqual({
    'federation.issuers.1.jwks': expect.stringMatching(words),
  });
});

test('a key set, typed or from the server, has no mistake', () => {
  const issuers = [{ jwks }, { jwks: JSON.stringify(jwks) }, {}];
  expect(mistakesInIssuers('federation.issuers', issuers)).toEqual({});
});
