import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { armor, Encrypter, generateIdentity, identityToRecipient } from 'age-encryption';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openWorld, runPostern, type World } from './command-line.ts';

// What a real server seals, opened by the bundled file, which knows no server.
let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(async () => await world?.close());

async function put(name: string, content: string): Promise<string> {
  const path = join(world.home, name);
  await writeFile(path, content);
  return path;
}

const sealed = async (sealTo: object) =>
  (
    await world.browser.api('POST', '/tokens', {
      name: 'sealed',
      scopes: ['repos:read'],
      repositoryAccess: { mode: 'all' },
      sealTo,
    })
  ).data;

function newJwk(crv: string) {
  const { privateKey } =
    crv === 'X25519' ? generateKeyPairSync('x25519') : generateKeyPairSync('ec', { namedCurve: crv });
  const secret = privateKey.export({ format: 'jwk' });
  const { d: _, ...publicKey } = secret;
  return { publicKey, secret };
}

const base64 = (text = '') => Buffer.from(text, 'base64url').toString('base64');

async function forms() {
  const jwks = ['P-256', 'P-384', 'P-521', 'X25519'].map((crv) => {
    const { publicKey, secret } = newJwk(crv);
    return [`jwk ${crv}`, { kind: 'jwk', key: publicKey }, JSON.stringify(secret)] as const;
  });
  const identity = await generateIdentity();
  const recipient = await identityToRecipient(identity);
  const box = newJwk('X25519').secret;
  return [
    ...jwks,
    ['age', { kind: 'age', recipient }, `# created: today\n# public key: ${recipient}\n${identity}\n`],
    ['libsodium', { kind: 'libsodium', publicKey: base64(box.x) }, base64(box.d)],
  ] as const;
}

const nothing = { env: { HOME: '/nonexistent' } };

test('keys open prints only the key, and needs neither a server nor a home folder', async () => {
  for (const [name, sealTo, secret] of await forms()) {
    const { id, sealed: delivered } = await sealed(sealTo);
    const file = await put('sealed', `${delivered.value}\n`);
    const options = ['--private-key', await put('secret', secret)];
    const { code, out, err } = await runPostern(['keys', 'open', file, ...options], nothing);
    expect([name, code, err]).toEqual([name, 0, '']);
    expect(out).toMatch(/^app_svc_[0-9A-Za-z]{50}\n$/);
    const verified = await world.postern(['keys', 'verify', '--fields', 'keyId'], {
      env: { POSTERN_URL: world.server.origin, POSTERN_KEY: out.trim() },
    });
    expect(verified).toMatchObject({ code: 0, out: `${id}\n` });
    // Either of them from stdin.
    const piped = await runPostern(['keys', 'open', file, '--private-key', '-'], {
      ...nothing,
      input: secret,
    });
    const other = await runPostern(['keys', 'open', '-', ...options], { ...nothing, input: delivered.value });
    expect([piped.out, other.out]).toEqual([out, out]);
    const json = await runPostern(['keys', 'open', file, ...options, '--json'], nothing);
    expect(JSON.parse(json.out)).toEqual({ ok: true, data: { key: out.trim() }, error: null });
  }
});

test('another private key does not open it, and a value that was changed is not opened', async () => {
  const made = await forms();
  const others = await forms();
  for (const [at, [name, sealTo, secret]] of made.entries()) {
    const { value } = (await sealed(sealTo)).sealed;
    const file = await put('sealed', value);
    const other = await put('other', others[at]?.[2] ?? '');
    const ran = await runPostern(['keys', 'open', file, '--private-key', other], nothing);
    expect([name, ran]).toEqual([name, { code: 1, out: '', err: expect.stringContaining('(not_opened)') }]);
    const middle = value.length >> 1;
    const letter = value[middle] === 'A' ? 'B' : 'A';
    const changed = await put('changed', value.slice(0, middle) + letter + value.slice(middle + 1));
    const own = await put('secret', secret);
    const again = await runPostern(['keys', 'open', changed, '--private-key', own], nothing);
    expect([name, again]).toEqual([name, { code: 1, out: '', err: expect.stringContaining('(not_opened)') }]);
  }
});

test('a sealed text that is not a key is not printed', async () => {
  const identity = await generateIdentity();
  const encrypter = new Encrypter();
  encrypter.addRecipient(await identityToRecipient(identity));
  const file = await put('text', armor.encode(await encrypter.encrypt('\u001b[2Jrm -r /')));
  const ran = await runPostern(
    ['keys', 'open', file, '--private-key', await put('identity', identity)],
    nothing,
  );
  expect(ran).toEqual({ code: 1, out: '', err: expect.stringContaining('(not_a_key)') });
});

test('a missing or malformed argument is wrong usage, and no private key is shown', async () => {
  const identity = await generateIdentity();
  const secret = await put('identity', identity);
  const { value } = (await sealed({ kind: 'jwk', key: newJwk('P-256').publicKey })).sealed;
  const file = await put('jwe', value);
  for (const [args, says] of [
    [[file], '--private-key is missing.'],
    [[file, '--private-key', secret], 'a private JWK'],
    [[secret, '--private-key', secret], 'holds no sealed key.'],
    [[file, '--private-key', 'absent'], 'absent cannot be read.'],
    [['-', '--private-key', '-'], 'both read stdin'],
  ] as const) {
    const ran = await runPostern(['keys', 'open', ...args], nothing);
    expect(ran).toEqual({ code: 2, out: '', err: expect.stringContaining(says) });
    expect(ran.err).not.toContain(identity);
  }
});
