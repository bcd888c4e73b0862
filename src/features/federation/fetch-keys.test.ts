import { expect, test } from 'vitest';
import type { Fetch } from '../../platform/fetch.ts';
import { openPlatform } from '../../../test/id-tokens/platforms.ts';
import { fetchSigningKeys } from './fetch-keys.ts';

/** What an issuer may publish about its keys, and what Postern makes of everything else. */
const issuer = 'https://issuer.example.com/id/7';
const discovery = `${issuer}/.well-known/openid-configuration`;
const jwksUri = 'https://keys.example.com/jwks';
const { publicKey } = openPlatform('github', issuer);
const { publicKey: ec } = openPlatform('other', issuer, 'ES256');

function network(pages: Readonly<Record<string, () => Response>>): Fetch {
  return async (url) => pages[url]?.() ?? new Response(null, { status: 404 });
}
const page = (value: unknown) => () => Response.json(value);
const wellKnown = page({ issuer, jwks_uri: jwksUri });
const read = (fetch: Fetch, of = issuer, timeoutMs = 60_000) => fetchSigningKeys({ fetch, timeoutMs }, of);
const answers = (keys: unknown) => network({ [discovery]: wellKnown, [jwksUri]: page(keys) });

test('keys that sign are kept, without their certificates; everything else is left out', async () => {
  const keys = [
    { ...publicKey, x5c: ['AAAA'], x5t: 'BBBB' },
    { ...ec, alg: 'ES256' },
    { ...publicKey, kid: 'encrypts', use: 'enc' },
    { ...publicKey, kid: 'private', d: 'AAAA' },
    { ...publicKey, kid: undefined },
    { kty: 'oct', kid: 'symmetric', k: 'AAAA' },
    { ...ec, kid: publicKey.kid },
    null,
  ];
  expect(await read(answers({ keys }))).toEqual([publicKey, { ...ec, alg: 'ES256' }]);
});

test('the slash of an empty path belongs to the issuer, not to the address of its document', async () => {
  const of = 'https://tenant.example.com/';
  const fetch = network({
    'https://tenant.example.com/.well-known/openid-configuration': page({ issuer: of, jwks_uri: jwksUri }),
    [jwksUri]: page({ keys: [publicKey] }),
  });
  expect(await read(fetch, of)).toEqual([publicKey]);
});

test.each([
  [
    'another issuer',
    'names another issuer',
    { [discovery]: page({ issuer: `${issuer}/`, jwks_uri: jwksUri }) },
  ],
  ['no issuer', 'names another issuer', { [discovery]: page({ jwks_uri: jwksUri }) }],
  [
    'an address without https',
    'no https address',
    { [discovery]: page({ issuer, jwks_uri: 'http://keys.example.com/' }) },
  ],
  [
    'an address with a password',
    'no https address',
    { [discovery]: page({ issuer, jwks_uri: 'https://a:b@keys.example.com/' }) },
  ],
  ['no address', 'no https address', { [discovery]: page({ issuer }) }],
  ['a redirect', 'status 302', { [discovery]: () => Response.redirect('https://evil.example.com/', 302) }],
  ['a failure', 'status 500', { [discovery]: () => new Response('{}', { status: 500 }) }],
  ['no JSON', 'is not valid JSON', { [discovery]: () => new Response('<html>') }],
  ['null', 'no JSON object', { [discovery]: page(null) }],
  [
    'a large document',
    'more than 262144 bytes',
    { [discovery]: page({ issuer, jwks_uri: jwksUri, more: 'x'.repeat(262_144) }) },
  ],
  ['no list of keys', 'no list of keys', { [discovery]: wellKnown, [jwksUri]: page({ keys: {} }) }],
  [
    'no key of a known type',
    'no key that Postern can use',
    { [discovery]: wellKnown, [jwksUri]: page({ keys: [{ kty: 'oct' }] }) },
  ],
  [
    'many keys',
    'more than 262144 bytes',
    { [discovery]: wellKnown, [jwksUri]: page({ keys: Array(3_000).fill(publicKey) }) },
  ],
])('FE-07 an issuer that answers %s has no usable keys', async (_what, why, pages) => {
  await expect(read(network(pages))).rejects.toThrow(why);
});

test('an issuer that does not answer in time has no usable keys', async () => {
  const silent: Fetch = (_url, { signal }) =>
    new Promise((_resolve, reject) => {
      signal?.addEventListener('abort', () => reject(new Error('too late')));
    });
  await expect(read(silent, issuer, 1)).rejects.toThrow('too late');
});
