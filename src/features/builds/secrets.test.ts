// @module-tag sql
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openWorld } from '../../../test/environments/builds-world.ts';
import { sql } from '../../platform/database/sql.ts';
import { mayUseSecrets, secretsIn } from './secrets.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-secrets-'));
  for (const id of ['repo_one', 'repo_two']) mkdirSync(join(folder, id));
  writeFileSync(join(folder, 'repo_two', 'theirs'), 'of the other repository');
  writeFileSync(join(folder, 'top'), 'above');
});
afterAll(() => rmSync(folder, { recursive: true }));

const read = (name: string, id = 'repo_one') => secretsIn(folder).read(id, { TOKEN: name });
function store(name: string, value: string | Buffer) {
  writeFileSync(join(folder, 'repo_one', name), value);
  return read(name);
}

test('a secret is the text of its file without one line break at its end', async () => {
  expect(await store('a', 'value')).toEqual({ kind: 'read', values: { TOKEN: 'value' } });
  expect(await store('b', 'two\nlines\n\n')).toMatchObject({ values: { TOKEN: 'two\nlines\n' } });
  expect(await store('c', 'ä\r\n')).toMatchObject({ values: { TOKEN: 'ä' } });
  expect(await store('d', 'x'.repeat(65_536))).toMatchObject({ kind: 'read' });
  expect(await secretsIn(null).read('repo_one', {})).toEqual({ kind: 'read', values: {} });
});

test('a secret that is not stored says where an operator stores it', async () => {
  expect(await read('missing')).toEqual({
    kind: 'missing',
    message: 'The secret missing is not stored for this repository.',
    fix: 'An operator stores its value in the file repo_one/missing below SECRETS_DIR.',
  });
  expect(await read('a', 'repo_none')).toMatchObject({ kind: 'missing' });
  expect(await secretsIn(null).read('repo_one', { TOKEN: 'a' })).toMatchObject({
    message: 'The secret a cannot be read: SECRETS_DIR is not set.',
  });
});

test.each([
  ['more than 65536 bytes', 'x'.repeat(65_537)],
  ['not UTF-8', Buffer.from([0xc3, 0x28])],
  ['a NUL character', 'a\0b'],
])('a value with %s is refused, and the words do not repeat it', async (words, value) => {
  const found = await store('bad', value);
  expect(found).toMatchObject({ kind: 'missing' });
  expect(JSON.stringify(found)).toContain(words);
  expect(JSON.stringify(found)).not.toContain('xxx');
});

test('nothing is read outside the folder of the repository', async () => {
  symlinkSync('../repo_two/theirs', join(folder, 'repo_one', 'link'));
  symlinkSync('/etc/passwd', join(folder, 'repo_one', 'absolute'));
  symlinkSync('repo_two', join(folder, 'repo_link'));
  for (const name of ['link', 'absolute', '../top', '..', '.', '../repo_two/theirs', '', 'a/../a'])
    expect([name, await read(name)]).toMatchObject([name, { kind: 'missing' }]);
  for (const id of ['..', '.', 'repo_one/../repo_two', 'repo_link'])
    expect([id, await read('theirs', id)]).toMatchObject([id, { kind: 'missing' }]);
});

test('a link that stays in the folder is followed, as Kubernetes mounts them', async () => {
  mkdirSync(join(folder, 'repo_one', '..data'));
  writeFileSync(join(folder, 'repo_one', '..data', 'token'), 'mounted');
  symlinkSync('..data/token', join(folder, 'repo_one', 'token'));
  expect(await read('token')).toMatchObject({ values: { TOKEN: 'mounted' } });
});

test('a folder and a pipe are no secrets, and do not keep the process waiting', async () => {
  mkdirSync(join(folder, 'repo_one', 'folder'));
  execFileSync('/bin/sh', ['-c', 'mkfifo "$0"', join(folder, 'repo_one', 'pipe')]);
  for (const name of ['folder', 'pipe'])
    expect(await read(name)).toMatchObject({ kind: 'missing', message: `The secret ${name} is not a file.` });
});

test('only the default branch may use secrets, unless the repository names branches', () => {
  const may = (branch: string, secretBranches?: string | number | null) =>
    mayUseSecrets(
      {
        defaultBranch: 'main',
        environmentDefaults: secretBranches === undefined ? null : { secretBranches },
      },
      branch,
    );
  expect([may('main'), may('feature'), may('main', null)]).toEqual([true, false, true]);
  expect(
    ['main', 'release/1', 'feature', 'release', ''].map((branch) => may(branch, 'release/1, stage')),
  ).toEqual([false, true, false, false, false]);
  expect([may('main', ''), may('main', 7)]).toEqual([false, false]);
});

test('a build reads its secrets as files, and no row, log or answer has the value', async () => {
  const world = await openWorld();
  const value = 'a-very-secret-value';
  world.storeSecret('repo_one', 'stripe', `${value}\n`);
  const wanted = { build: { secrets: { TOKEN: 'stripe' } }, maySecrets: true };
  const jobId = await world.requestBuild(wanted);
  const build = await world.start(jobId);
  expect(build.job.secrets).toEqual({ TOKEN: value });
  build.log.output('stdout', Buffer.from(`it is ${value}\n`));
  await build.make({ 'index.html': '' });
  await world.runner.settled();
  expect(await world.textOf(jobId)).toContain('it is [redacted]');
  const rows = await sql`
    select to_jsonb(j) as row from build_jobs j union all select to_jsonb(l) from build_log_chunks l
     union all select to_jsonb(a) from artifacts a`.all(world.database.sql);
  // The build, its artifact, and at least one row of its log.
  expect(rows.length).toBeGreaterThanOrEqual(3);
  expect(JSON.stringify([rows, world.shared.logged])).not.toContain(value);
});

test('a branch without the right to secrets gets neither a build with them nor what one made', async () => {
  const world = await openWorld();
  const build = { secrets: { TOKEN: 'stripe' } };
  expect(await world.request({ build, maySecrets: true })).toEqual({
    kind: 'refused',
    reason: 'no_secret',
    message: 'The secret stripe is not stored for this repository.',
    fix: 'An operator stores its value in the file repo_one/stripe below SECRETS_DIR.',
  });
  world.storeSecret('repo_one', 'stripe', 'value');
  const jobId = await world.requestBuild({ build, maySecrets: true });
  const refused = {
    kind: 'refused',
    message: 'The branch feature may not use stored secrets, and its postern.yaml references stripe.',
  };
  expect(await world.request({ branch: 'feature', build })).toMatchObject(refused);
  await (await world.start(jobId)).make({ 'index.html': '' });
  await world.runner.settled();
  expect(await world.request({ branch: 'feature', build })).toMatchObject(refused);
  expect((await world.request({ build, maySecrets: true })).kind).toBe('built');
});
