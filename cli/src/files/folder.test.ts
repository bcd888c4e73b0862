import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { filesOf, hashed, leftOutText } from './folder.ts';

async function folderWith(contents: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-folder-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  for (const [path, content] of Object.entries(contents)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
  return folder;
}

const pathsIn = (folder: string) => filesOf(folder).files.map(({ path }) => path);

test('in a work tree of git, .posternignore publishes again what .gitignore of its folder leaves out', async () => {
  const folder = await folderWith({
    '.git/HEAD': 'ref: refs/heads/main',
    '.gitignore': '*.map\n',
    '.posternignore': '!app.map\n',
    'app.map': '',
    'other.map': '',
    'below/app.map': '',
    'below/.posternignore': 'draft.html\n',
    'below/draft.html': '',
    'draft.html': '',
  });
  expect(pathsIn(folder)).toEqual(['app.map', 'below/app.map', 'draft.html']);
});

test('in an output folder .gitignore leaves nothing out, and each rule that does is counted', async () => {
  const folder = await folderWith({
    'pkg/.gitignore': '*',
    'pkg/app.wasm': '',
    '.posternignore': '# drafts\n*.map\n',
    'a.map': '',
    'below/b.map': '',
    'index.html': '',
  });
  await symlink('/etc/hostname', join(folder, 'link.txt'));
  expect(pathsIn(folder)).toEqual(['index.html', 'pkg/app.wasm']);
  expect(filesOf(folder).leftOut).toEqual([
    { rule: 'never published', count: 2, first: '.posternignore' },
    { rule: '.posternignore: *.map', count: 2, first: 'a.map' },
    { rule: 'no regular file', count: 1, first: 'link.txt' },
  ]);
  expect(leftOutText(filesOf(folder).leftOut)).toContain(
    '  .posternignore: *.map: 2 files and folders, such as a.map\n',
  );
});

test.skipIf(process.platform !== 'linux')('a file whose name is not UTF-8 is named, not opened', async () => {
  const folder = await folderWith({ 'index.html': '' });
  await writeFile(Buffer.concat([Buffer.from(`${folder}/caf`), Buffer.from([0xe9])]), '');
  expect(filesOf(folder)).toMatchObject({ files: [{ path: 'index.html' }], unreadable: ['caf\ufffd'] });
});

test('an ignore file that is a folder, or a link to nowhere, has no rules', async () => {
  const folder = await folderWith({
    'index.html': '',
    'below/index.html': '',
    '.posternignore/index.html': '',
  });
  await symlink('nowhere', join(folder, 'below/.posternignore'));
  expect(pathsIn(folder)).toEqual(['below/index.html', 'index.html']);
});

test('a file that may contain a key is found, also where a key lies across two reads', async () => {
  const at = 1024 * 1024 - 2;
  const folder = await folderWith({ a: `${'a'.repeat(at)}_pat_`, b: 'a_pa', c: 't_', d: 'x_svc_' });
  expect(hashed(filesOf(folder).files).map(({ mayHaveKey }) => mayHaveKey)).toEqual([
    true,
    false,
    false,
    true,
  ]);
});

test('an empty file, and one larger than the buffer, have their SHA-256', async () => {
  const folder = await folderWith({ empty: '', large: 'a'.repeat(3 * 1024 * 1024) });
  expect(hashed(filesOf(folder).files).map(({ path, size, sha256 }) => [path, size, sha256])).toEqual([
    ['empty', 0, 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
    ['large', 3_145_728, '6f850bc94ae6f7de14297c01616c36d712d22864497b28a63b81d776b035e656'],
  ]);
});
