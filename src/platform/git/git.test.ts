import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { isOpensslMissing } from '../../../test/certificate.ts';
import { newRepository, type TestRepository } from '../../../test/git-repository.ts';
import { gitHost, httpsGitServer, isSshServerMissing, sshGitServer } from '../../../test/git-servers.ts';
import { createOutbound } from '../outbound.ts';
import { type GitCredential, gitIn } from './git.ts';

/** The subject of every commit that test/git-repository.ts makes. */
const subject = 'A change';

const resolved: string[] = [];
async function openGit(options: Partial<Parameters<typeof gitIn>[1]> & { allowsPrivate?: boolean } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'postern-mirrors-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { allowsPrivate = true, ...rest } = options;
  const outbound = createOutbound({
    allowsPrivate,
    async resolve(host) {
      resolved.push(host);
      return host === gitHost ? [{ address: '127.0.0.1' }] : [];
    },
  });
  const searchPath = process.env['PATH'] ?? '';
  const git = gitIn(folder, { outbound, searchPath, allowsFiles: true, ...rest });
  await git.prepare();
  return { folder, git };
}
const remote = (cloneUrl: string, credential: GitCredential | null = null) => ({
  id: 'repo_1',
  cloneUrl,
  credential,
});
const mirrorsIn = (folder: string) => readdirSync(folder).filter((name) => name.endsWith('.git'));
const failed = (reason: string) => ({ kind: 'failed', reason });

let repository: TestRepository;
beforeAll(() => {
  repository = newRepository();
});
afterAll(() => repository.remove());

describe('a repository on this machine', () => {
  test('its branches are listed with their commits, and a file is read at the newest commit of one', async () => {
    const { git } = await openGit();
    const first = repository.commit({ 'postern.yaml': 'version: 1\n', 'web/index.html': 'hello' });
    const other = repository.commit({ 'postern.yaml': 'version: 2\n' }, 'feature/x');
    expect(await git.branches(remote(repository.url))).toEqual({
      kind: 'ok',
      value: [
        { name: 'feature/x', sha: other },
        { name: 'main', sha: first },
      ],
    });
    const read = (branch: string, path = 'postern.yaml') =>
      git.readFile(remote(repository.url), branch, path);
    expect(await read('main')).toEqual({ kind: 'ok', value: { sha: first, subject, text: 'version: 1\n' } });
    expect(await read('feature/x')).toEqual({
      kind: 'ok',
      value: { sha: other, subject, text: 'version: 2\n' },
    });
    const second = repository.commit({ 'postern.yaml': 'version: 3\n' });
    expect(await read('main')).toEqual({ kind: 'ok', value: { sha: second, subject, text: 'version: 3\n' } });
    expect(await read('main', 'missing.yaml')).toEqual({
      kind: 'ok',
      value: { sha: second, subject, text: null },
    });
  });

  test('who asks much keeps neither other people nor a deploy waiting, and is not refused', async () => {
    const { git } = await openGit();
    repository.commit({ 'postern.yaml': 'version: 1\n' });
    const ended: string[] = [];
    const ask = async (asker?: string) => {
      const from = { ...remote(repository.url), ...(asker === undefined ? {} : { asker }) };
      const { kind } = await git.branches(from);
      ended.push(asker ?? 'Postern');
      return kind;
    };
    const asked = [...Array.from({ length: 30 }, () => ask('reader')), ask('person'), ask()];
    expect(new Set(await Promise.all(asked))).toEqual(new Set(['ok']));
    expect(ended.slice(0, 3).toSorted()).toEqual(['Postern', 'person', 'reader']);
  });

  test('a branch that was moved back is read where it is now', async () => {
    const { git } = await openGit();
    const kept = repository.commit({ 'postern.yaml': 'kept\n' }, 'moved');
    repository.commit({ 'postern.yaml': 'dropped\n' }, 'moved');
    const read = () => git.readFile(remote(repository.url), 'moved', 'postern.yaml');
    expect(await read()).toMatchObject({ value: { text: 'dropped\n' } });
    repository.git('reset', '--quiet', '--hard', kept);
    expect(await read()).toEqual({ kind: 'ok', value: { sha: kept, subject, text: 'kept\n' } });
  });

  test('the subject of a commit is one line, without control characters, of 200 characters at most', async () => {
    const { git } = await openGit();
    repository.commit({ 'postern.yaml': 'version: 1\n' }, 'told');
    const subjectOf = async (message: string) => {
      repository.git('commit', '--quiet', '--allow-empty', '--message', message);
      const read = await git.readFile(remote(repository.url), 'told', 'postern.yaml');
      return read.kind === 'ok' ? read.value.subject : read;
    };
    expect(await subjectOf('Füge die Suche hinzu\n\nMit Begründung.')).toBe('Füge die Suche hinzu');
    expect(await subjectOf('red \u001b[31m alert')).toBe('red [31m alert');
    expect(await subjectOf('🎉'.repeat(300))).toBe('🎉'.repeat(200));
    expect(await subjectOf('x'.repeat(100_000))).toBeNull();
  });

  test('a link, a folder or a submodule in its place is no file', async () => {
    const { git } = await openGit();
    repository.commit({ link: { to: '/etc/passwd' }, 'folder/file': 'x' }, 'odd');
    repository.git('update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},module`);
    repository.git('commit', '--quiet', '--message', 'A submodule');
    for (const path of ['link', 'folder', 'module'])
      expect(await git.readFile(remote(repository.url), 'odd', path)).toMatchObject({
        value: { text: null },
      });
  });

  test('nothing that the repository holds runs or configures git', async () => {
    const { git, folder } = await openGit();
    const trap = join(folder, 'trap');
    repository.commit(
      {
        '.gitattributes': '* filter=trap diff=trap\n',
        '.gitconfig': `[filter "trap"]\n\tsmudge = touch ${trap}\n[core]\n\tfsmonitor = touch ${trap}\n`,
        '.githooks/post-checkout': `#!/bin/sh\ntouch ${trap}\n`,
        '.gitmodules': `[submodule "m"]\n\tpath = m\n\turl = ext::sh -c touch% ${trap}\n`,
        'postern.yaml': 'version: 1\n',
      },
      'hostile',
    );
    expect(await git.readFile(remote(repository.url), 'hostile', 'postern.yaml')).toMatchObject({
      value: { text: 'version: 1\n' },
    });
    expect(existsSync(trap)).toBe(false);
  });

  test('a name that could be an option or another reference is only ever a branch', async () => {
    const { git } = await openGit();
    for (const branch of ['--upload-pack=true', 'main:refs/heads/x', '../main', 'main^{commit}', '*', ''])
      expect((await git.readFile(remote(repository.url), branch, 'postern.yaml')).kind).toBe('failed');
  });

  test('what cannot be read says why', async () => {
    const { git } = await openGit();
    expect(await git.readFile(remote(repository.url), 'missing', 'postern.yaml')).toMatchObject(
      failed('branch_not_found'),
    );
    expect(await git.branches(remote(`${repository.url}-gone`))).toMatchObject(
      failed('repository_not_found'),
    );
    expect(await git.branches(remote('http://git.example.test/x'))).toMatchObject(failed('unsupported_url'));
    expect(await git.branches(remote('ext::sh -c true'))).toMatchObject(failed('unsupported_url'));
    repository.commit({ 'large.yaml': 'x'.repeat(5_000) }, 'large');
    const small = await openGit({ maxFileBytes: 4_096 });
    expect(await small.git.readFile(remote(repository.url), 'large', 'large.yaml')).toMatchObject(
      failed('too_large'),
    );
    const missing = await openGit({ searchPath: '/nonexistent' });
    expect(await missing.git.branches(remote(repository.url))).toMatchObject(failed('not_installed'));
  });

  test('a branch that another replaced in its place, as a folder of branches, is read', async () => {
    const { git } = await openGit();
    const own = newRepository();
    onTestFinished(own.remove);
    own.commit({ 'postern.yaml': 'main\n' });
    own.commit({ 'postern.yaml': 'one\n' }, 'topic');
    const read = (branch: string) => git.readFile(remote(own.url), branch, 'postern.yaml');
    expect(await read('topic')).toMatchObject({ value: { text: 'one\n' } });
    own.git('switch', '--quiet', 'main');
    own.git('branch', '--quiet', '-D', 'topic');
    own.commit({ 'postern.yaml': 'two\n' }, 'topic/two');
    expect(await read('topic/two')).toMatchObject({ value: { text: 'two\n' } });
  });

  test('a repository that could not be read once is read the next time, from a new mirror', async () => {
    repository.commit({ 'postern.yaml': 'again\n' }, 'again');
    const { git, folder } = await openGit();
    const read = () => git.readFile(remote(repository.url), 'again', 'postern.yaml');
    await read();
    const [mirror = ''] = mirrorsIn(folder);
    // What git leaves when it is ended while it writes a pack.
    writeFileSync(join(folder, mirror, 'shallow.lock'), '');
    repository.commit({ 'postern.yaml': 'more\n' }, 'again');
    expect((await read()).kind).toBe('failed');
    expect(mirrorsIn(folder)).toEqual([]);
    expect(await read()).toMatchObject({ value: { text: 'more\n' } });
  });

  test('git may start no program but those that speak https: a server cannot make it fetch other addresses', async () => {
    const { git, folder } = await openGit();
    await git.branches(remote(repository.url));
    expect(readdirSync(join(folder, 'helpers'))).toEqual(['git-remote-http', 'git-remote-https']);
  });

  test('files are read only where that is switched on', async () => {
    const { git } = await openGit({ allowsFiles: false });
    expect(await git.branches(remote(repository.url))).toMatchObject(failed('unsupported_url'));
  });

  test('the mirror of a repository that is forgotten is gone', async () => {
    const { git, folder } = await openGit();
    repository.commit({ 'postern.yaml': 'x' });
    await git.readFile(remote(repository.url), 'main', 'postern.yaml');
    expect(mirrorsIn(folder)).toHaveLength(1);
    await git.forget('repo_1');
    expect(mirrorsIn(folder)).toEqual([]);
  });

  test('a mirror that is forgotten while it is read is gone after the answer', async () => {
    const { git, folder } = await openGit();
    repository.commit({ 'postern.yaml': 'x' });
    const reading = git.readFile(remote(repository.url), 'main', 'postern.yaml');
    await git.forget('repo_1');
    expect(await reading).toMatchObject({ kind: 'ok', value: { text: 'x' } });
    expect(mirrorsIn(folder)).toEqual([]);
  });
});

describe.skipIf(isOpensslMissing)('a repository over https', () => {
  const authorization = `Basic ${Buffer.from('git:token-of-the-test').toString('base64')}`;
  const token = (origin: string): GitCredential => ({
    kind: 'token',
    origin,
    user: 'git',
    token: 'token-of-the-test',
  });
  let server: Awaited<ReturnType<typeof httpsGitServer>>;
  beforeAll(async () => {
    server = await httpsGitServer(tmpdir(), { authorization });
  });
  afterAll(() => server.stop());
  const url = () => server.url(`${repository.folder.split('/').at(-1) ?? ''}/.git`);

  test('it is read with its token, at the address that was checked', async () => {
    const { git, folder } = await openGit({ caFile: server.caFile });
    const commit = repository.commit({ 'postern.yaml': 'over https\n' });
    const listings: string[] = [];
    server.whileAsked(() => {
      for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
        try {
          listings.push(readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
        } catch {
          // The process has ended.
        }
    });
    const answer = await git.readFile(remote(url(), token(server.origin)), 'main', 'postern.yaml');
    expect(answer).toEqual({ kind: 'ok', value: { sha: commit, subject, text: 'over https\n' } });
    expect(resolved).toContain(gitHost);
    expect(listings.some((listing) => listing.includes('remote-https'))).toBe(true);
    const encoded = authorization.split(' ')[1] ?? '';
    const written = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'));
    for (const place of [...listings, ...written]) {
      expect(place).not.toContain('token-of-the-test');
      expect(place).not.toContain(encoded);
    }
  });

  test('without its token, or with another, the server’s refusal is reported', async () => {
    const { git } = await openGit({ caFile: server.caFile });
    expect(await git.branches(remote(url()))).toMatchObject(failed('credential_refused'));
    const wrong = { ...token(server.origin), kind: 'token', user: 'git', token: 'wrong' } as const;
    expect(await git.branches(remote(url(), wrong))).toMatchObject(failed('credential_refused'));
  });

  test('a token for another origin is not sent', async () => {
    const { git } = await openGit({ caFile: server.caFile });
    const before = server.seen.length;
    expect(await git.branches(remote(url(), token('https://git.example.test')))).toMatchObject(
      failed('credential_refused'),
    );
    expect(server.seen.slice(before).map(({ authorization: sent }) => sent)).not.toContain(authorization);
  });

  test('a redirect is not followed', async () => {
    const { git } = await openGit({ caFile: server.caFile });
    const moved = url().replace(server.origin, `${server.origin}/moved`);
    expect(await git.branches(remote(moved, token(server.origin)))).toMatchObject(failed('redirected'));
  });

  test('a server of an unknown authority, without such a repository, or without an answer, says so', async () => {
    const { git } = await openGit({ caFile: server.caFile });
    const hasty = await openGit({ caFile: server.caFile, listMs: 300 });
    expect(await git.branches(remote(server.url('none.git'), token(server.origin)))).toMatchObject(
      failed('repository_not_found'),
    );
    expect(await hasty.git.branches(remote(server.url('silent/x'), token(server.origin)))).toMatchObject(
      failed('timed_out'),
    );
    expect(await git.branches(remote('https://unknown.example.test/x'))).toMatchObject(
      failed('host_not_found'),
    );
    const stranger = await openGit();
    expect(await stranger.git.branches(remote(url()))).toMatchObject(failed('unreachable'));
  });

  test('a private address is never asked', async () => {
    const { git } = await openGit({ caFile: server.caFile, allowsPrivate: false });
    const before = server.seen.length;
    expect(await git.branches(remote(url(), token(server.origin)))).toMatchObject(failed('private_address'));
    expect(server.seen.length).toBe(before);
  });
});

// CI installs OpenSSH's server; without it these tests say that they are skipped.
describe.skipIf(isSshServerMissing)('a repository over ssh', () => {
  let server: Awaited<ReturnType<typeof sshGitServer>>;
  beforeAll(async () => {
    server = await sshGitServer();
  });
  afterAll(() => server.stop());
  const key = (change: Partial<{ privateKey: string; knownHosts: string }> = {}): GitCredential => ({
    kind: 'ssh_key',
    origin: server.origin,
    privateKey: server.privateKey,
    knownHosts: server.knownHosts,
    ...change,
  });
  const url = () => server.url(`${repository.folder}/.git`);

  test('it is read with its key, and no file of the key is left', async () => {
    const { git, folder } = await openGit();
    const commit = repository.commit({ 'postern.yaml': 'over ssh\n' });
    const answer = await git.readFile(remote(url(), key()), 'main', 'postern.yaml');
    expect(answer).toEqual({ kind: 'ok', value: { sha: commit, subject, text: 'over ssh\n' } });
    expect(readdirSync(folder).filter((name) => name.startsWith('ssh-'))).toEqual([]);
  });

  test('without ssh on this machine, the answer says that a program is missing', async () => {
    const place = mkdtempSync(join(tmpdir(), 'postern-only-git-'));
    onTestFinished(() => rmSync(place, { recursive: true, force: true }));
    symlinkSync(execFileSync('which', ['git'], { encoding: 'utf8' }).trim(), join(place, 'git'));
    const { git } = await openGit({ searchPath: place });
    expect(await git.branches(remote(url(), key()))).toMatchObject(failed('not_installed'));
  });

  test('another key, another host key or no key is refused with its reason', async () => {
    const { git } = await openGit();
    const asked = async (credential: GitCredential | null) => await git.branches(remote(url(), credential));
    expect(await asked(key({ privateKey: server.otherPrivateKey }))).toMatchObject(
      failed('credential_refused'),
    );
    expect(await asked(key({ knownHosts: server.otherKnownHosts }))).toMatchObject(
      failed('host_key_unknown'),
    );
    expect(await asked(null)).toMatchObject(failed('credential_refused'));
  });
});
