import { expect, test } from 'vitest';
import { publicKeyIn } from './public-key.ts';

const bytes = `${'A'.repeat(43)}=`;
const jwk = { kty: 'OKP', crv: 'X25519', x: 'A'.repeat(43) };

test('a public key is recognized by its form', () => {
  expect(publicKeyIn(' age1qqq\n')).toEqual({ sealTo: { kind: 'age', recipient: 'age1qqq' } });
  expect(publicKeyIn(bytes)).toEqual({ sealTo: { kind: 'libsodium', publicKey: bytes } });
  expect(publicKeyIn(JSON.stringify({ key_id: '5', key: bytes }))).toEqual({
    sealTo: { kind: 'libsodium', publicKey: bytes, keyId: '5' },
  });
  expect(publicKeyIn(JSON.stringify(jwk))).toEqual({ sealTo: { kind: 'jwk', key: jwk } });
});

test.each([
  'AGE-SECRET-KEY-1QQQ',
  `# public key: age1qqq\nAGE-SECRET-KEY-1QQQ`,
  JSON.stringify({ ...jwk, d: 'A' }),
])('a private key is not sent: %j', (text) => {
  expect(publicKeyIn(text)).toEqual({ mistake: expect.stringContaining('private key') });
});

test.each(['', 'ssh-ed25519 AAAA', '[]'])('%j is no public key', (text) => {
  expect(publicKeyIn(text)).toEqual({ mistake: expect.stringMatching(/^Paste /) });
});
