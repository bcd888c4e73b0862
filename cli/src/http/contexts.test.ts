import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { contextFile, type Contexts, type Credential } from './contexts.ts';
import type { Keychain } from './keychain.ts';

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-contexts-'));
});
afterEach(async () => await rm(home, { recursive: true, force: true }));

const origin = 'https://postern.example.com';
const credential: Credential = { kind: 'key', key: 'secret-of-the-key' };
const path = () => join(home, '.config/postern/contexts.json');
const open = (keychain: Keychain | undefined) =>
  contextFile({ env: { HOME: home }, wait: async () => undefined }, () => keychain);
const store = async (keychain: Keychain | undefined, held: Credential | null) =>
  await open(keychain).update(async () => ({
    contexts: { current: 'a', servers: { a: { origin, credential: held } } },
    result: undefined,
  }));
const heldBy = ({ servers }: Contexts) => servers['a']?.credential;

function keychainOf(entries: Map<string, string>): Keychain {
  return {
    get: (name) => entries.get(name) ?? null,
    set: (name, text) => void entries.set(name, text),
    remove: (name) => void entries.delete(name),
  };
}
const locked: Keychain = {
  get: () => {
    throw new Error('locked');
  },
  set: () => {
    throw new Error('locked');
  },
  remove: () => {
    throw new Error('locked');
  },
};

test('with a keychain, the file holds no credential, and a sign-out removes it from the keychain', async () => {
  const entries = new Map<string, string>();
  const keychain = keychainOf(entries);
  await store(keychain, credential);
  expect(await readFile(path(), 'utf8')).not.toContain('secret-of-the-key');
  expect([...entries.keys()]).toEqual([`a ${origin}`]);
  expect(heldBy(await open(keychain).read())).toEqual(credential);
  await store(keychain, null);
  expect([...entries.keys()]).toEqual([]);
});

test.each([
  ['without a keychain', undefined],
  ['with one that cannot be used', locked],
])('%s, the file holds the credential, and only its user can read it', async (_, keychain) => {
  await store(keychain, credential);
  expect(heldBy(await open(keychain).read())).toEqual(credential);
  expect((await stat(path())).mode & 0o777).toBe(0o600);
});

test('an unavailable keychain loses nothing: a change of the file keeps its entries', async () => {
  const entries = new Map<string, string>();
  await store(keychainOf(entries), credential);
  for (const away of [undefined, locked]) {
    const file = open(away);
    expect(heldBy(await file.read())).toEqual({ kind: 'keychain' });
    await file.update(async (contexts) => ({ contexts, result: undefined }));
  }
  expect(heldBy(await open(keychainOf(entries)).read())).toEqual(credential);
});
