import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { isOpensslMissing } from '../../../test/certificate.ts';
import { newRepository, type TestRepository } from '../../../test/git-repository.ts';
import { gitHost, httpsGitServer } from '../../../test/git-servers.ts';
import { createOutbound } from '../outbound.ts';
import { gitIn } from './git.ts';

let repository: TestRepository;
beforeAll(() => {
  repository = newRepository();
});
afterAll(() => repository.remove());

function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'postern-check-out-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function openGit(options: Partial<Parameters<typeof gitIn>[1]> = {}) {
  const outbound = createOutbound({
    allowsPrivate: true,
    resolve: async (host) => (host === gitHost ? [{ address: '127.0.0.1' }] : []),
  });
  const searchPath = process.env['PATH'] ?? '';
  const mirrors = temporaryFolder();
  const git = gitIn(mirrors, { outbound, searchPath, allowsFiles: true, ...options });
  await git.prepare();
  const folder = temporaryFolder();
  const remote = (cloneUrl: string) => ({ id: 'repo_1', cloneUrl, credential: null });
  const checkOut = (sha: string, branch: string, patterns = ['**'], url = repository.url) =>
    git.checkOut(remote(url), { branch, sha, patterns }, folder);
  const treeOf = (sha: string, branch: string, patterns = ['**']) =>
    git.treeOf(remote(repository.url), { branch, sha, patterns });
  return { folder, mirrors, checkOut, treeOf };
}
const filesIn = (folder: string) => readdirSync(folder, { recursive: true }).map(String).toSorted();
const failed = (reason: string, path?: string) => ({
  kind: 'failed',
  reason,
  ...(path === undefined ? {} : { path }),
});

test('the files that the patterns select are written, with their content, modes and links', async () => {
  repository.commit(
    {
      'web/run.sh': '#!/bin/sh\n',
      'web/a b/deep/ü.txt': 'deep',
      'web/.env': 'x',
      'web/link': { to: 'a b/deep' },
      'web2/x': 'no',
      'package.json': '{}',
    },
    'files',
  );
  repository.git('update-index', '--chmod=+x', 'web/run.sh');
  repository.git('commit', '--quiet', '--message', 'A program');
  const sha = repository.git('rev-parse', 'HEAD');
  repository.git('reset', '--quiet', '--hard');
  const { folder, checkOut, treeOf } = await openGit();
  const patterns = ['web/**', 'package.json'];
  const answer = await checkOut(sha, 'files', patterns);
  expect(answer).toMatchObject({ kind: 'ok' });
  expect(await treeOf(sha, 'files', patterns)).toEqual(answer);
  expect(filesIn(folder)).toEqual([
    'package.json',
    'web',
    'web/.env',
    'web/a b',
    'web/a b/deep',
    'web/a b/deep/ü.txt',
    'web/link',
    'web/link/ü.txt',
    'web/run.sh',
  ]);
  expect(readFileSync(join(folder, 'web/link/ü.txt'), 'utf8')).toBe('deep');
  expect(statSync(join(folder, 'web/run.sh')).mode & 0o100).toBe(0o100);
  expect(statSync(join(folder, 'web/.env')).mode & 0o100).toBe(0);
  expect(readlinkSync(join(folder, 'web/link'))).toBe('a b/deep');
});

test('the tree is the same exactly when the selected files are', async () => {
  const { treeOf } = await openGit();
  const first = repository.commit({ 'api/a': '1', 'docs/b': '1' }, 'trees');
  const second = repository.commit({ 'docs/b': '2' }, 'trees');
  const third = repository.commit({ 'api/a': '2' }, 'trees');
  const trees = await Promise.all([first, second, third].map((sha) => treeOf(sha, 'trees', ['api/**'])));
  expect(trees[0]).toMatchObject({ kind: 'ok' });
  expect(trees[1]).toEqual(trees[0]);
  expect(trees[2]).not.toEqual(trees[0]);
});

test('without a look at the content, none is fetched', async () => {
  const { mirrors, treeOf } = await openGit();
  const sha = repository.commit({ 'large.bin': 'x'.repeat(10) + Math.PI.toString().repeat(50_000) }, 'large');
  expect(await treeOf(sha, 'large')).toMatchObject({ kind: 'ok' });
  const bytes = filesIn(mirrors)
    .filter((name) => name.includes('/objects/'))
    .reduce((sum, name) => sum + statSync(join(mirrors, name)).size, 0);
  expect(bytes).toBeLessThan(60_000);
});

test('an earlier commit of the branch is written as it was', async () => {
  const { folder, checkOut } = await openGit();
  const earlier = repository.commit({ file: 'earlier' }, 'history');
  repository.commit({ file: 'later' }, 'history');
  repository.commit({ file: 'latest' }, 'history');
  expect(await checkOut(earlier, 'history')).toMatchObject({ kind: 'ok' });
  expect(readFileSync(join(folder, 'file'), 'utf8')).toBe('earlier');
});

test('a commit that the branch does not contain is refused, and not fetched', async () => {
  const { mirrors, checkOut } = await openGit();
  repository.commit({ file: 'x' }, 'main');
  const other = repository.commit({ file: 'of another branch' }, 'elsewhere');
  repository.git('update-ref', 'refs/pull/1/head', other);
  expect(await checkOut(other, 'main')).toMatchObject(failed('commit_not_in_branch'));
  expect(await checkOut('1'.repeat(40), 'main')).toMatchObject(failed('commit_not_in_branch'));
  for (const name of ['main', 'HEAD', other.slice(0, 10), '--all', `${other}^`])
    expect(await checkOut(name, 'main')).toMatchObject(failed('commit_not_in_branch'));
  expect(filesIn(mirrors).filter((name) => name.endsWith('.pack'))).toEqual([]);
});

test('submodules and pointers of Git LFS are refused by name, but not where nothing asks for them', async () => {
  const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n';
  const about = `# About LFS\n\n${pointer}`;
  repository.commit({ 'assets/film.mp4': pointer, 'docs/lfs.md': about, 'code/a.js': '1' }, 'special');
  repository.git('update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},code/module`);
  repository.git('commit', '--quiet', '--message', 'A submodule');
  const sha = repository.git('rev-parse', 'HEAD');
  const expected = [
    [['assets/**'], failed('lfs_pointer', 'assets/film.mp4')],
    [['code/**'], failed('submodule', 'code/module')],
    [['docs/**', 'code/a.js'], { kind: 'ok' }],
  ] as const;
  for (const [patterns, answer] of expected)
    expect(await (await openGit()).checkOut(sha, 'special', [...patterns])).toMatchObject(answer);
});

test.each([
  ['absolute', '/etc/passwd'],
  ['above', '../../outside'],
  ['through another', 'top/../../outside'],
])('a link that leads out is refused: %s', async (name, to) => {
  const branch = `link-${name.replaceAll(' ', '-')}`;
  const sha = repository.commit({ 'web/top': { to: '..' }, 'web/link': { to } }, branch);
  expect(await (await openGit()).checkOut(sha, branch, ['web/**'])).toMatchObject(
    failed('link_outside', 'web/link'),
  );
});

test('attributes of the repository run nothing, leave nothing out and change nothing', async () => {
  const { folder, checkOut } = await openGit();
  const trap = join(folder, 'trap');
  const sha = repository.commit(
    {
      '.gitattributes': '* filter=trap\nhidden export-ignore\nversion export-subst\n',
      '.gitconfig': `[filter "trap"]\n\tsmudge = touch ${trap}\n\trequired = true\n`,
      '.githooks/post-checkout': `#!/bin/sh\ntouch ${trap}\n`,
      hidden: 'content',
      version: '$Format:%H$',
    },
    'attributes',
  );
  expect(await checkOut(sha, 'attributes', ['.git*', '.githooks/**', 'hidden', 'version'])).toMatchObject({
    kind: 'ok',
  });
  expect(existsSync(trap)).toBe(false);
  expect(readFileSync(join(folder, 'hidden'), 'utf8')).toBe('content');
  expect(readFileSync(join(folder, 'version'), 'utf8')).toBe('$Format:%H$');
});

test('no files, too many, too large or too slow: the reason says which', async () => {
  const sha = repository.commit({ a: 'x'.repeat(600), b: 'y'.repeat(600) }, 'bounds');
  const asked = async (options: Parameters<typeof openGit>[0], patterns = ['a', 'b']) =>
    await (await openGit(options)).checkOut(sha, 'bounds', patterns);
  expect(await asked({})).toMatchObject({ kind: 'ok' });
  expect(await asked({}, ['nothing/**'])).toMatchObject(failed('no_such_files'));
  expect(await asked({ maxFiles: 1 })).toMatchObject(failed('too_large'));
  expect(await asked({ maxCheckOutBytes: 1_000 })).toMatchObject(failed('too_large'));
  expect(await asked({ checkOutMs: 1 })).toMatchObject(failed('timed_out'));
});

describe.skipIf(isOpensslMissing)('over https', () => {
  test('the server is not asked for a commit that the branch does not contain', async () => {
    const server = await httpsGitServer(tmpdir());
    onTestFinished(() => server.stop());
    repository.commit({ file: 'x' }, 'main');
    const other = repository.commit({ file: 'y' }, 'not-asked');
    const { checkOut } = await openGit({ caFile: server.caFile });
    const url = server.url(`${repository.folder.split('/').at(-1) ?? ''}/.git`);
    expect(await checkOut(other, 'main', ['**'], url)).toMatchObject(failed('commit_not_in_branch'));
    // The newest commit and the history: each a question for references, and one for objects.
    expect(server.seen.filter((request) => request.url.endsWith('/git-upload-pack'))).toHaveLength(4);
  });

  test('the content is fetched with one request, however many files there are', async () => {
    const server = await httpsGitServer(tmpdir());
    onTestFinished(() => server.stop());
    const files = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`many/${at}`, `content ${at}`]));
    const sha = repository.commit(files, 'many');
    const { folder, checkOut } = await openGit({ caFile: server.caFile });
    const url = server.url(`${repository.folder.split('/').at(-1) ?? ''}/.git`);
    expect(await checkOut(sha, 'many', ['many/**'], url)).toMatchObject({ kind: 'ok' });
    expect(filesIn(folder)).toHaveLength(41);
    expect(server.seen.length).toBeLessThan(10);
  });
});
