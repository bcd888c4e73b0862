// @module-tag sql
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Harness, openHarness, type Person, settings } from '../../../test/harness.ts';
import { sql } from '../../platform/database/sql.ts';

const token = 'glpat-token-of-the-test';
let h: Harness;
let admin: Person;
beforeAll(async () => {
  h = await openHarness();
  admin = await h.person('Ada', { admin: true });
});
afterAll(() => h.close());

const put = (name: string, body: unknown, as: Parameters<Harness['call']>[2] = { as: admin }) =>
  h.call('PUT', `/repositories/acme/${name}/credential`, { ...as, body });
const credentialOf = async (name: string) =>
  (await h.call('GET', `/repositories/acme/${name}`, { as: admin })).data.credential;
const eventsOf = async (id: string) =>
  (await h.call('GET', '/audit/events', { as: admin, query: { target: id } })).data.map(
    ({ event, reason, details }: { event: string; reason: string | null; details: unknown }) => ({
      event,
      reason,
      details,
    }),
  );
const sshRepository = async (name: string, host: string) => {
  await h.repository(`acme/${name}`);
  await h.call('PATCH', `/repositories/acme/${name}`, {
    as: admin,
    body: { cloneUrl: `ssh://git@${host}/acme/${name}.git` },
  });
};
function newKey(passphrase = ''): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-key-'));
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', passphrase, '-f', join(folder, 'key')]);
  const key = readFileSync(join(folder, 'key'), 'utf8');
  rmSync(folder, { recursive: true });
  return key;
}

test('a credential is stored for the origin of the clone URL, and its value is nowhere to be seen', async () => {
  const id = await h.repository('acme/private');
  expect(await credentialOf('private')).toBeNull();
  const set = await put('private', { token, user: 'deploy' });
  expect(set.status).toBe(200);
  expect(set.data.credential).toEqual({ kind: 'token', setAt: expect.any(String) });
  expect(await credentialOf('private')).toEqual(set.data.credential);
  expect((await eventsOf(id))[0]).toEqual({
    event: 'repository.credential_set',
    reason: null,
    details: { kind: 'token', origin: 'https://git.example.com' },
  });
  expect(await h.app.services.repositories.credentialOf(id)).toEqual({
    kind: 'token',
    origin: 'https://git.example.com',
    user: 'deploy',
    token,
  });
  const rows = await sql`select * from repository_credentials`.all(h.database.sql);
  const list = await h.call('GET', '/repositories', { as: admin });
  const audit = await h.call('GET', '/audit/events', { as: admin });
  for (const place of [set.text, list.text, audit.text, JSON.stringify(rows), ...h.logged])
    expect(place).not.toContain(token);
});

test('a new credential replaces the one before, and a removed one is gone', async () => {
  const id = await h.repository('acme/replaced');
  await put('replaced', { token });
  await put('replaced', { token: 'another' });
  expect(await h.app.services.repositories.credentialOf(id)).toMatchObject({ user: 'git', token: 'another' });
  const removed = await h.call('DELETE', '/repositories/acme/replaced/credential', { as: admin });
  expect([removed.status, removed.data.credential]).toEqual([200, null]);
  expect(await h.app.services.repositories.credentialOf(id)).toBeNull();
  const again = await h.call('DELETE', '/repositories/acme/replaced/credential', { as: admin });
  expect(again.status).toBe(200);
  expect((await eventsOf(id)).map(({ event }: { event: string }) => event)).toEqual([
    'repository.credential_removed',
    'repository.credential_set',
    'repository.credential_set',
    'repository.created',
  ]);
});

test('a changed clone URL removes the credential, so that no other server can be sent it', async () => {
  const id = await h.repository('acme/moved');
  await put('moved', { token });
  const change = (body: unknown) => h.call('PATCH', '/repositories/acme/moved', { as: admin, body });
  expect((await change({ defaultBranch: 'next' })).data.credential).not.toBeNull();
  expect((await change({ cloneUrl: 'https://evil.example.com/acme/moved.git' })).data.credential).toBeNull();
  expect(await h.app.services.repositories.credentialOf(id)).toBeNull();
  expect((await eventsOf(id))[0]).toMatchObject({
    event: 'repository.credential_removed',
    reason: 'clone_url_changed',
  });
});

test('an ssh address needs a key without a passphrase and the host key of its server', async () => {
  await sshRepository('by-ssh', 'git.example.com:2222');
  const privateKey = newKey();
  const knownHosts = '[git.example.com]:2222 ssh-ed25519 AAAA\n';
  const refused = async (body: unknown) => {
    const { status, error } = await put('by-ssh', body);
    expect([status, error.code]).toEqual([400, 'invalid_body']);
    return JSON.stringify(error);
  };
  expect(await refused({ token })).toContain('needs privateKey and knownHosts');
  expect(await refused({ privateKey })).toContain('must have either token, or privateKey and knownHosts');
  expect(await refused({ privateKey: newKey('secret'), knownHosts })).toContain('without a passphrase');
  expect(await refused({ privateKey: 'ssh-ed25519 AAAA', knownHosts })).toContain('must be a private key');
  expect(await refused({ privateKey, knownHosts: 'git.example.com ssh-ed25519 AAAA' })).toContain(
    'ssh-keyscan -p 2222 git.example.com',
  );
  expect(await credentialOf('by-ssh')).toBeNull();
  expect((await put('by-ssh', { privateKey, knownHosts })).status).toBe(200);
  expect(
    (await put('by-ssh', { privateKey, knownHosts: '|1|c2FsdA==|aGFzaA== ssh-ed25519 AAAA' })).status,
  ).toBe(200);
});

test('a token does not fit an ssh key’s place, nor an https address a key', async () => {
  await h.repository('acme/by-https');
  const { status, error } = await put('by-https', { privateKey: newKey(), knownHosts: 'x y z' });
  expect([status, error.code]).toEqual([400, 'invalid_body']);
  expect(error.message).toContain('needs token');
  for (const body of [
    { token: 'two words' },
    { token: '' },
    { token, user: 'a:b' },
    { token, knownHosts: 'x' },
    {},
  ])
    expect((await put('by-https', body)).error.code).toBe('invalid_body');
});

test('only an administrator in the web app sets or removes a credential', async () => {
  await h.repository('acme/guarded');
  const bob = await h.person('Bob');
  expect((await put('guarded', { token }, { as: bob })).error.code).toBe('forbidden_role');
  await put('guarded', { token });
  const path = '/repositories/acme/guarded/credential';
  for (const as of [
    await h.serviceKey({ scopes: ['repos:write'] }),
    await h.key(admin, { scopes: ['repos:write'] }),
  ]) {
    expect((await put('guarded', { token }, { as })).error.code).toBe('interactive_auth_required');
    expect((await h.call('DELETE', path, { as })).error.code).toBe('interactive_auth_required');
  }
  expect(await credentialOf('guarded')).not.toBeNull();
});

test('a clone URL on this machine is refused unless an operator allows it', async () => {
  const body = { fullName: 'acme/local', cloneUrl: 'file:///srv/git/local.git' };
  expect((await h.call('POST', '/repositories', { as: admin, body })).status).toBe(201);
  const strict = await openHarness({ allowsFileRepositories: false });
  const root = await strict.person('Root', { admin: true });
  const { status, error } = await strict.call('POST', '/repositories', { as: root, body });
  expect([status, error.code]).toEqual([400, 'invalid_body']);
  expect(error.hint).toContain('ENVIRONMENTS_ALLOW_FILE_REPOSITORIES');
  await strict.close();
});

test('a row whose origin was changed in the database gives no credential', async () => {
  const id = await h.repository('acme/tampered');
  expect((await put('tampered', { token })).status).toBe(200);
  await sql`update repository_credentials set origin = 'https://evil.example.com' where repository_id = ${id}`.run(
    h.database.sql,
  );
  expect(await h.app.services.repositories.credentialOf(id)).toBeNull();
});

test('a removed repository takes its credential along, and the audit log says so', async () => {
  const id = await h.repository('acme/taken');
  await put('taken', { token });
  await h.call('DELETE', '/repositories/acme/taken', { as: admin });
  expect((await eventsOf(id)).map(({ event }: { event: string }) => event)).toContain(
    'repository.credential_removed',
  );
});

// Last: afterwards this process cannot read the tokens of its sessions.
test('SE-03 a credential outlives the older ENCRYPTION_KEY, once the job has encrypted it again', async () => {
  const id = await h.repository('acme/rotated');
  await put('rotated', { token });
  const keys = ['the-next-encryption-key-of-the-tests-01234', ...settings.encryptionKeys];
  const overlap = await h.another({ secrets: { encryptionKeys: keys } });
  await overlap.app.jobs.runNow('reseal');
  await overlap.close();
  const after = await h.another({ secrets: { encryptionKeys: keys.slice(0, 1) } });
  expect(await after.app.services.repositories.credentialOf(id)).toMatchObject({ token });
  await after.close();
});
