import { execFileSync } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundled } from '../../cli/build.ts';

// A stand-in for @napi-rs/keyring, which keeps its entries in a file beside it.
const standIn = `const { existsSync, readFileSync, writeFileSync } = require('node:fs');
const file = require('node:path').join(__dirname, 'entries.json');
const read = () => (existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {});
exports.Entry = class {
  constructor(service, account) { this.name = service + '/' + account; }
  getPassword() { return read()[this.name] ?? null; }
  setPassword(text) { writeFileSync(file, JSON.stringify({ ...read(), [this.name]: text })); }
  deletePassword() { const { [this.name]: gone, ...rest } = read(); writeFileSync(file, JSON.stringify(rest)); return gone !== undefined; }
};
`;
const key = `app_pat_${'0'.repeat(40)}`;
let home: string;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-keychain-'));
  for (const [folder, file] of [
    ['node_modules/@postern/cli/dist', 'postern.mjs'],
    ['', 'postern.mjs'],
  ] as const) {
    await mkdir(join(home, folder), { recursive: true });
    await copyFile(bundled, join(home, folder, file));
  }
  await mkdir(join(home, 'node_modules/@napi-rs/keyring'), { recursive: true });
  await writeFile(join(home, 'node_modules/@napi-rs/keyring/index.js'), standIn);
});
afterAll(async () => await rm(home, { recursive: true, force: true }));

function postern(file: string, config: string, args: readonly string[], input = ''): string {
  const env = { HOME: home, XDG_CONFIG_HOME: join(home, config) };
  return execFileSync(process.execPath, [join(home, file), ...args], { env, input, encoding: 'utf8' });
}
const stored = async (config: string) => await readFile(join(home, config, 'postern/contexts.json'), 'utf8');
const entries = async () =>
  JSON.parse(await readFile(join(home, 'node_modules/@napi-rs/keyring/entries.json'), 'utf8'));

const login = ['login', 'https://postern.example.com', '--token-stdin', '--no-check'];

test('with @napi-rs/keyring installed, the credential is only in the keychain', async () => {
  const installed = 'node_modules/@postern/cli/dist/postern.mjs';
  postern(installed, 'one', login, key);
  expect(await stored('one')).not.toContain(key);
  const name = 'postern/postern.example.com https://postern.example.com';
  expect(JSON.parse((await entries())[name])).toEqual({ kind: 'key', key });
  expect(postern(installed, 'one', ['context', 'list'])).toContain('\tkey\t');
  postern(installed, 'one', ['logout']);
  expect(await entries()).toEqual({});
});

test('a downloaded file runs no package of its folder', async () => {
  postern('postern.mjs', 'two', login, key);
  expect(await stored('two')).toContain(key);
});
