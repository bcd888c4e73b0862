import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { createGzip, gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { expect, onTestFinished, test } from 'vitest';
import { fileBlobs } from '../../platform/blobs/file-blobs.ts';
import { findOutput, storeOutput } from './output.ts';
import { unpackTree } from './tree.ts';

type Header = Parameters<ReturnType<typeof pack>['entry']>[0];

function openFolder(name: string): string {
  const root = mkdtempSync(join(tmpdir(), 'postern-tree-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, name));
  return join(root, name);
}

/** Unpacks a tar with these entries into `tree`, the only entry of its folder. */
async function unpack(...entries: Header[]): Promise<void> {
  const tree = openFolder('tree');
  const tar = pack();
  for (const header of entries) tar.entry(header, header.type === 'file' ? 'x' : '');
  tar.finalize();
  const bytes = await buffer(tar.pipe(createGzip()));
  await unpackTree(Readable.from([bytes]), tree).finally(() =>
    expect(readdirSync(join(tree, '..'))).toEqual(['tree']),
  );
}

test('what a build stored is unpacked with its modes and links', async () => {
  const [output, tree] = [openFolder('output'), openFolder('tree')];
  mkdirSync(join(output, 'bin/sub'), { recursive: true });
  writeFileSync(join(output, 'bin/sub/run'), 'run', { mode: 0o755 });
  writeFileSync(join(output, 'a.txt'), 'text');
  symlinkSync('../a.txt', join(output, 'bin/link'));
  symlinkSync('nowhere', join(output, 'broken'));
  const blobs = fileBlobs(openFolder('blobs'));
  await blobs.prepare();
  const found = await findOutput(output, { outputFiles: 10 });
  if (found.kind === 'failed') throw new Error(found.message);
  await unpackTree(await blobs.read((await storeOutput(found, blobs)).digest), tree);
  expect((readdirSync(tree, { recursive: true }) as string[]).toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
    'a.txt',
    'bin',
    'bin/link',
    'bin/sub',
    'bin/sub/run',
    'broken',
  ]);
  expect(readFileSync(join(tree, 'bin/link'), 'utf8')).toBe('text');
  const modes = ['bin/sub/run', 'a.txt'].map((name) =>
    (lstatSync(join(tree, name)).mode & 0o777).toString(8),
  );
  expect(modes).toEqual(['755', '644']);
});

test.each(['file', 'link'])(
  'an output whose names together are too long for memory fails: a %s',
  async (kind) => {
    const output = openFolder('output');
    if (kind === 'file') writeFileSync(join(output, 'abcdef'), '');
    else symlinkSync('abc', join(output, 'def'));
    const limits = { outputFiles: 10, nameChars: 6 };
    expect(await findOutput(output, limits)).toMatchObject({ kind: 'found' });
    expect(await findOutput(output, { ...limits, nameChars: 5 })).toMatchObject({
      reason: 'output_too_large',
      message: 'The output has names of files and links with more than 5 characters together.',
    });
  },
);

test('a blob store that refuses is the error of storing an output', async () => {
  const output = openFolder('output');
  writeFileSync(join(output, 'a.txt'), 'text');
  const found = await findOutput(output, { outputFiles: 10 });
  if (found.kind === 'failed') throw new Error(found.message);
  const full = new Error('full');
  await expect(storeOutput(found, { write: () => Promise.reject(full) })).rejects.toBe(full);
});

test.each<[string, Header[]]>([
  ['a file out of the folder', [{ name: '../x', type: 'file' }]],
  ['an absolute path', [{ name: '/tmp/x', type: 'file' }]],
  [
    'a path that is not plain',
    [
      { name: 'a/', type: 'directory' },
      { name: 'a/../../x', type: 'file' },
    ],
  ],
  ['a file whose folder is missing', [{ name: 'a/x', type: 'file' }]],
  [
    'a file below a link',
    [
      { name: 'a', type: 'symlink', linkname: '..' },
      { name: 'a/x', type: 'file' },
    ],
  ],
  [
    'a file in place of a link',
    [
      { name: 'a', type: 'symlink', linkname: '../x' },
      { name: 'a', type: 'file' },
    ],
  ],
  ['a link out of the folder', [{ name: 'a', type: 'symlink', linkname: '../x' }]],
  ['a link to the machine', [{ name: 'a', type: 'symlink', linkname: '/etc' }]],
  ['a device', [{ name: 'a', type: 'character-device' }]],
  [
    'a hard link',
    [
      { name: 'b', type: 'file' },
      { name: 'a', type: 'link', linkname: 'b' },
    ],
  ],
])('%s is refused', async (_, entries) => {
  await expect(unpack(...entries)).rejects.toThrow(Error);
});

test('a tar that is truncated is refused', async () => {
  const bytes = gzipSync(Buffer.alloc(2_000));
  const cut = Readable.from([bytes.subarray(0, bytes.length - 8)]);
  await expect(unpackTree(cut, openFolder('tree'))).rejects.toThrow('unexpected end of file');
});
