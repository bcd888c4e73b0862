// @module-tag sql
import { generateKeyPairSync } from 'node:crypto';
import { generateIdentity, generateHybridIdentity, identityToRecipient } from 'age-encryption';
import { compactDecrypt, decodeProtectedHeader, importJWK } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Harness, openHarness, type Person } from '../harness.ts';

let h: Harness;
let ada: Person;
let root: Person;
beforeAll(async () => {
  h = await openHarness();
  ada = await h.person('Ada');
  root = await h.person('Root', { admin: true });
});
afterAll(() => h.close());

const minimal = { name: 'sealed', scopes: ['repos:read'], repositoryAccess: { mode: 'all' } };
const create = (sealTo: unknown, as: Person = root) =>
  h.call('POST', as === root ? '/tokens' : '/me/tokens', { as, body: { ...minimal, sealTo } });

function newJwk(crv: string) {
  const { privateKey } =
    crv === 'X25519' ? generateKeyPairSync('x25519') : generateKeyPairSync('ec', { namedCurve: crv });
  const jwk = privateKey.export({ format: 'jwk' });
  const { d: _, ...publicKey } = jwk;
  return { publicKey, privateKey: jwk };
}

/** A public key of each form. */
async function publicKeys() {
  const x = newJwk('X25519').publicKey.x ?? '';
  return [
    { kind: 'jwk', key: newJwk('P-256').publicKey },
    { kind: 'age', recipient: await identityToRecipient(await generateIdentity()) },
    { kind: 'libsodium', publicKey: Buffer.from(x, 'base64url').toString('base64') },
  ] as const;
}

const forms = {
  jwk: /^[\w-]+(?:\.[\w-]+){4}$/,
  age: /^-----BEGIN AGE ENCRYPTED FILE-----\n[^-]+\n-----END AGE ENCRYPTED FILE-----\n$/,
  libsodium: /^[A-Za-z0-9+/]{142}==$/,
};

describe('a response with sealTo', () => {
  test('has only the encrypted value, for personal keys, service keys and rotations', async () => {
    for (const sealTo of await publicKeys()) {
      const service = await create(sealTo);
      const path = `/tokens/${service.data.id}/rotate`;
      const rotated = await h.call('POST', path, { as: root, body: { sealTo } });
      for (const answer of [service, await create(sealTo, ada), rotated]) {
        expect([sealTo.kind, answer.status]).toEqual([sealTo.kind, 201]);
        expect(answer.data).not.toHaveProperty('token');
        expect(answer.data.sealed).toEqual({
          kind: sealTo.kind,
          value: expect.stringMatching(forms[sealTo.kind]),
        });
        expect(answer.text).not.toMatch(/app_(?:pat|svc)_/);
      }
    }
  });

  test('returns the id of the public key, as the secrets API of GitHub asks for it', async () => {
    const [, , libsodium] = await publicKeys();
    expect((await create({ ...libsodium, keyId: '568250167242549743' })).data.sealed.keyId).toBe(
      '568250167242549743',
    );
    const { publicKey } = newJwk('P-256');
    const { data } = await create({ kind: 'jwk', key: { ...publicKey, kid: 'ci-1' } });
    expect(decodeProtectedHeader(data.sealed.value)).toMatchObject({ kid: 'ci-1' });
  });

  test.each(['P-256', 'P-384', 'P-521', 'X25519'])('can be a JWE for %s', async (crv) => {
    const { publicKey, privateKey } = newJwk(crv);
    const { data } = await create({ kind: 'jwk', key: publicKey });
    const { plaintext, protectedHeader } = await compactDecrypt(
      data.sealed.value,
      await importJWK(privateKey, 'ECDH-ES+A256KW'),
    );
    expect(protectedHeader).toMatchObject({ alg: 'ECDH-ES+A256KW', enc: 'A256GCM' });
    const value = new TextDecoder().decode(plaintext);
    const context = await h.call('GET', '/auth/context', { as: `Bearer ${value}` });
    expect(context.data.keyId).toBe(data.id);
  });

  test('can be an age file for a post-quantum recipient', async () => {
    const recipient = await identityToRecipient(await generateHybridIdentity());
    expect((await create({ kind: 'age', recipient })).data.sealed.value).toMatch(forms.age);
  });
});

test('the audit log says that the value was sealed, and to which public key', async () => {
  const [jwk, age, libsodium] = await publicKeys();
  for (const [sealTo, publicKey] of [
    [jwk, expect.stringMatching(/^[\w-]{43}$/)],
    [age, age.recipient],
    [libsodium, libsodium.publicKey],
  ] as const) {
    const { data } = await create(sealTo);
    await h.call('POST', `/tokens/${data.id}/rotate`, { as: root, body: { sealTo } });
    const timeline = await h.call('GET', `/tokens/${data.id}/timeline`, { as: root });
    const told = timeline.data.map((event: { event: string; details: { sealedTo: unknown } }) => [
      event.event,
      event.details.sealedTo,
    ]);
    expect(Object.fromEntries(told)).toEqual({
      'api_key.created': { kind: sealTo.kind, publicKey },
      'api_key.rotated': { kind: sealTo.kind, publicKey },
    });
  }
});

describe('a public key that cannot be used', () => {
  const zeros = Buffer.alloc(32);
  const point = newJwk('P-256').publicKey;
  const okp = newJwk('X25519').publicKey;
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' });
  const { privateKey } = newJwk('P-256');

  test.each([
    ['another kind', { kind: 'pgp', key: 'x' }, 'sealTo.kind'],
    ['a private JWK', { kind: 'jwk', key: privateKey }, 'sealTo.key.d'],
    ['RSA', { kind: 'jwk', key: rsa }, 'sealTo.key.kty'],
    ['a curve of signatures', { kind: 'jwk', key: { ...okp, crv: 'Ed25519' } }, 'sealTo.key.crv'],
    ['another curve', { kind: 'jwk', key: { ...point, crv: 'secp256k1' } }, 'sealTo.key.crv'],
    ['a curve of another type', { kind: 'jwk', key: { ...point, crv: 'X25519' } }, 'sealTo.key.crv'],
    ['half a point', { kind: 'jwk', key: { ...point, y: undefined } }, 'sealTo.key.y'],
    ['a key for signatures', { kind: 'jwk', key: { ...point, use: 'sig' } }, 'sealTo.key.use'],
    ['a point beside the curve', { kind: 'jwk', key: { ...point, y: point.x } }, 'sealTo.key'],
    ['a JWK of small order', { kind: 'jwk', key: { ...okp, x: zeros.toString('base64url') } }, 'sealTo.key'],
    ['the identity of age', { kind: 'age', recipient: 'AGE-SECRET-KEY-1QQQ' }, 'sealTo.recipient'],
    ['an ssh key', { kind: 'age', recipient: 'ssh-ed25519 AAAA' }, 'sealTo.recipient'],
    ['a mistyped recipient', { kind: 'age', recipient: `age1${'q'.repeat(58)}` }, 'sealTo.recipient'],
    ['too few bytes', { kind: 'libsodium', publicKey: 'AAAA' }, 'sealTo.publicKey'],
    [
      'a box key of small order',
      { kind: 'libsodium', publicKey: zeros.toString('base64') },
      'sealTo.publicKey',
    ],
    ['an unknown field', { kind: 'age', recipient: 'age1q', passphrase: 'x' }, 'sealTo.passphrase'],
  ])('%s is refused by name, and no key is created', async (_, sealTo, field) => {
    const before = await h.call('GET', '/tokens', { as: root });
    const { status, error, text } = await create(sealTo);
    expect([status, error.code, error.details.fields.map((one: { field: string }) => one.field)]).toEqual([
      400,
      'invalid_body',
      expect.arrayContaining([field]),
    ]);
    expect(error.message).toContain(field);
    expect(text).not.toContain(privateKey.d);
    const after = await h.call('GET', '/tokens', { as: root });
    expect(after.metadata.pagination.items).toBe(before.metadata.pagination.items);
  });
});
