import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, expect, test } from 'vitest';
import { zipOf } from '../archives/zip.ts';
import { Browser } from './browser.ts';
import { administrator, freePorts, type Installation, runCommand, startProgram } from './program.ts';

const folder = mkdtempSync(join(tmpdir(), 'postern-backup-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const passphrase = 'a passphrase that is kept apart';
const plain = join(folder, 'plain.backup');
const whole = join(folder, 'whole.backup');
let first: Installation;
let keyValue: string;
let siteUrl: string;
let head: string;

/** The same addresses, another folder: what was made for the one is asked of the other. */
const at = (name: string, settings: Record<string, string> = {}): Installation => ({
  ...first,
  dataDir: join(folder, name),
  settings,
});
const withPassphrase = { BACKUP_PASSPHRASE: passphrase };

function open(url: string): Promise<string> {
  const { host, port, pathname } = new URL(url);
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path: pathname, headers: { host } }, (answer) => {
      text(answer).then(resolve, reject);
    })
      .on('error', reject)
      .end();
  });
}

// Made once; the tests behind it put it back.
test('a backup is refused while the server runs, and made when it is stopped', async () => {
  first = { dataDir: join(folder, 'first'), ports: await freePorts() };
  const program = await startProgram(first);
  const browser = new Browser(program.origin);
  await browser.signIn(administrator.email, administrator.password);
  const made = await browser.api('POST', '/me/tokens', {
    name: 'deploy',
    scopes: ['sites:write'],
    repositoryAccess: { mode: 'all' },
  });
  keyValue = made.data.token;
  const body = zipOf([{ name: 'index.html', content: '<p>still here</p>' }]);
  const site = await browser.asKey(keyValue, 'POST', '/sites?name=kept&visibility=public', {
    type: 'application/zip',
    body,
  });
  siteUrl = JSON.parse(site.text).data.url;

  // While it runs, the lock says so.
  const refused = await runCommand(first, ['backup', plain]);
  expect([refused.code, refused.output]).toEqual([
    1,
    expect.stringContaining(`in use by process ${program.pid}`),
  ]);
  // The chain writer takes a second; the backup is to have the events of this life.
  const newest = async () => (await browser.api('GET', '/audit/events?limit=1')).data[0];
  await expect.poll(async () => (await newest()).hash).not.toBeNull();
  expect((await program.end('SIGTERM')).code).toBe(0);
  browser.disconnect();

  const bare = await runCommand(first, ['backup', plain]);
  expect([bare.code, bare.stdout]).toEqual([
    0,
    expect.stringMatching(/^sha256 [0-9a-f]{64}\naudit head \d+:[0-9a-f]{64}\n$/),
  ]);
  expect(bare.output).toContain('The backup does not contain the secrets');
  head = /audit head (\S+)/.exec(bare.stdout)?.[1] ?? '';
  const full = await runCommand({ ...first, settings: withPassphrase }, ['backup', whole, '--with-secrets']);
  expect(full.code).toBe(0);
});

/** Everything as before: people sign in, keys authenticate, sites open, the audit log is whole up to the head of the backup. */
async function expectEverything(installation: Installation): Promise<void> {
  const program = await startProgram(installation);
  const browser = new Browser(program.origin);
  await browser.signIn(administrator.email, administrator.password);
  expect((await browser.asKey(keyValue, 'GET', '/auth/context')).status).toBe(200);
  expect(await open(siteUrl)).toBe('<p>still here</p>');
  expect((await program.end('SIGTERM')).code).toBe(0);
  browser.disconnect();
  const verified = await runCommand(installation, ['audit', 'verify', head]);
  expect([verified.code, verified.stdout]).toEqual([0, expect.stringContaining('The audit log is intact')]);
}

test('a backup with secrets brings everything back into an empty folder', async () => {
  const installation = at('whole', withPassphrase);
  const restored = await runCommand(installation, ['restore', whole]);
  expect([restored.code, restored.stdout]).toEqual([0, expect.stringContaining('The audit log is intact')]);
  expect(readdirSync(installation.dataDir).sort()).toEqual(['blobs', 'database', 'secrets']);
  for (const name of ['database', 'secrets', 'secrets/session_secret'])
    expect(statSync(join(installation.dataDir, name)).mode & 0o077).toBe(0);
  await expectEverything(installation);
});

test('a backup without secrets is restored completely once the secrets are in place', async () => {
  const installation = at('plain');
  const alone = await runCommand(installation, ['restore', plain]);
  expect([alone.code, alone.output]).toEqual([
    1,
    expect.stringContaining('ENCRYPTION_KEY of the backup is missing'),
  ]);
  expect(existsSync(installation.dataDir)).toBe(false);
  cpSync(join(first.dataDir, 'secrets'), join(installation.dataDir, 'secrets'), { recursive: true });
  chmodSync(join(installation.dataDir, 'secrets'), 0o700);
  expect((await runCommand(installation, ['restore', plain])).code).toBe(0);
  await expectEverything(installation);
});

test('no plaintext secret is in a backup, and only its user can read it', async () => {
  const { gunzipSync } = await import('node:zlib');
  for (const file of [plain, whole]) {
    const bytes = gunzipSync(readFileSync(file));
    for (const name of readdirSync(join(first.dataDir, 'secrets')))
      expect(bytes.includes(readFileSync(join(first.dataDir, 'secrets', name)))).toBe(false);
    expect(statSync(file).mode & 0o077).toBe(0);
  }
  const unsealed = await runCommand(first, ['backup', join(folder, 'unsealed'), '--with-secrets']);
  expect([unsealed.code, unsealed.output]).toEqual([
    1,
    expect.stringContaining('BACKUP_PASSPHRASE is not set'),
  ]);
  expect(existsSync(join(folder, 'unsealed'))).toBe(false);
});

test('a wrong passphrase, or none, restores nothing and is not printed', async () => {
  for (const settings of [{ BACKUP_PASSPHRASE: 'another passphrase altogether' }, {}]) {
    const refused = await runCommand(at('locked', settings), ['restore', whole]);
    expect([refused.code, refused.output]).toEqual([1, expect.stringContaining('Nothing was restored.')]);
    expect(refused.output).not.toContain('altogether');
    expect(existsSync(join(folder, 'locked'))).toBe(false);
  }
});

test('an archive that is truncated or changed anywhere is refused as a whole and leaves nothing', async () => {
  const bytes = readFileSync(plain);
  const spoiled: Record<string, Buffer> = {
    'no archive': Buffer.from('not a backup at all'),
    'without its end': bytes.subarray(0, -2_000),
    // Every place of a small one: src/platform/folder-archive.test.ts
    'changed in the middle': Buffer.from(
      bytes.map((byte, place) => (place === bytes.length >> 1 ? byte ^ 1 : byte)),
    ),
  };
  for (const [what, content] of Object.entries(spoiled)) {
    const file = join(folder, 'spoiled');
    writeFileSync(file, content);
    const refused = await runCommand(at('spoiled-data'), ['restore', file]);
    expect([what, refused.code]).toEqual([what, 1]);
    expect(refused.output).toContain('Nothing was restored.');
    expect(refused.output).not.toMatch(/^\s+at /m);
    expect([what, existsSync(join(folder, 'spoiled-data'))]).toEqual([what, false]);
  }
});

test('nothing is overwritten: neither a file by a backup, nor a folder by a restore', async () => {
  const before = readFileSync(plain);
  const again = await runCommand(first, ['backup', plain]);
  expect([again.code, again.output]).toEqual([1, expect.stringContaining('already exists')]);
  expect(readFileSync(plain).equals(before)).toBe(true);

  const onto = await runCommand(first, ['restore', plain]);
  expect([onto.code, onto.output]).toEqual([1, expect.stringContaining('is not empty')]);
  mkdirSync(join(folder, 'someone'));
  writeFileSync(join(folder, 'someone', 'notes.txt'), 'mine');
  expect((await runCommand(at('someone'), ['restore', plain])).code).toBe(1);
  expect(readdirSync(join(folder, 'someone'))).toEqual(['notes.txt']);
  expect(readdirSync(folder).filter((name) => name.endsWith('.partial'))).toEqual([]);
  await expectEverything(first);
});

test('with PostgreSQL both are refused, and name the alternative', async () => {
  const secrets = {
    SESSION_SECRET: 's'.repeat(32),
    ENCRYPTION_KEY: 'e'.repeat(32),
    GRANT_SECRET: 'g'.repeat(32),
  };
  const settings = { ...secrets, DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' };
  for (const command of ['backup', 'restore']) {
    const refused = await runCommand(at('unused', settings), [command, join(folder, 'unused.backup')]);
    expect([refused.code, refused.output]).toEqual([1, expect.stringContaining('pg_dump')]);
  }
});
