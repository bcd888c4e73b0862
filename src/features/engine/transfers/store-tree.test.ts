import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { expect, test } from 'vitest';
import type { Blob } from '../../../platform/blobs/blobs.ts';
import type { TreeLimits } from '../tree.ts';
import { storeTree } from './store-tree.ts';

async function tarOf(files: Readonly<Record<string, Buffer | string>>): Promise<Buffer> {
  const tar = pack();
  for (const [name, content] of Object.entries(files)) tar.entry({ name }, content);
  tar.finalize();
  return gzipSync(await buffer(tar));
}

/** Stores these bytes in parts of 1 KiB. Returns the number of stored bytes. */
async function store(bytes: Buffer, limits: Partial<TreeLimits> = {}) {
  const kept: number[] = [];
  async function write(source: Readable): Promise<Blob> {
    kept.push((await buffer(source)).length);
    return { digest: 'd', size: bytes.length };
  }
  async function* parts() {
    for (let at = 0; at < bytes.length; at += 1_024) yield bytes.subarray(at, at + 1_024);
  }
  const all = { outputFiles: 100, bytes: 4 * 1024 * 1024, ...limits };
  const artifact = await storeTree(parts(), { write }, all).catch((error: unknown) => error);
  return { artifact, kept };
}

const large = 'x'.repeat(1024 * 1024);

test('the tree is counted while its bytes pass by', async () => {
  const bytes = await tarOf({ 'a.txt': large, 'b.txt': 'b' });
  const { artifact, kept } = await store(bytes);
  expect(artifact).toEqual({ digest: 'd', size: bytes.length, files: 2, bytes: large.length + 1 });
  expect(kept).toEqual([bytes.length]);
});

const many = Object.fromEntries(Array.from({ length: 5 }, (_, at) => [`${at}.txt`, '']));
test.each<[string, () => Promise<Buffer>, Partial<TreeLimits>, string]>([
  ['more files than allowed', () => tarOf(many), { outputFiles: 4 }, 'more than 4 files'],
  [
    'more bytes than allowed',
    () => tarOf({ a: large }),
    { bytes: 100_000 },
    'unpacks to more than 100000 bytes',
  ],
  [
    'empty parts without end',
    async () => Buffer.concat(Array.from({ length: 400 }, () => gzipSync(''))),
    { bytes: 5_000 },
    'has more than 5000 bytes',
  ],
  [
    'names that are longer than a path can be',
    () => tarOf({ ['n'.repeat(4_097)]: '' }),
    {},
    'unexpected entry',
  ],
])('T56 %s are refused while they arrive', async (_, bytes, limits, words) => {
  const { artifact, kept } = await store(await bytes(), limits);
  expect(artifact).toMatchObject({ message: expect.stringContaining(words) });
  expect(kept).toEqual([]);
});

test('T56 links that only keep their reader busy are refused', async () => {
  const tar = pack();
  tar.entry({ name: 'a/', type: 'directory' });
  const around = 'a/../'.repeat(800);
  // Each points to the end of a chain that is short enough.
  for (let at = 0; at < 100; at += 1)
    tar.entry({
      name: `${at}`,
      type: 'symlink',
      linkname: `${around}${at === 0 ? 'a' : Math.min(at, 30) - 1}`,
    });
  tar.finalize();
  const { artifact, kept } = await store(gzipSync(await buffer(tar)), { outputFiles: 1_000 });
  expect([String(artifact), kept]).toEqual(['Error: The archive has too many links.', []]);
});

test('bytes behind the archive are refused, and its sender does not wait for ever', async () => {
  const bytes = Buffer.concat([await tarOf({ a: 'a' }), Buffer.alloc(200_000)]);
  const { artifact, kept } = await store(bytes);
  expect([String(artifact), kept]).toEqual(['Error: The archive has bytes after its end.', []]);
});

test('the error of the sender is the error of the storing', async () => {
  const gone = new Error('gone');
  async function* parts() {
    yield (await tarOf({ a: large })).subarray(0, 100);
    throw gone;
  }
  const write = async (source: Readable) => ({ digest: 'd', size: (await buffer(source)).length });
  await expect(storeTree(parts(), { write }, { outputFiles: 10, bytes: 1e9 })).rejects.toBe(gone);
});

test('the error of the blob store is the error of the storing', async () => {
  const full = new Error('full');
  const bytes = await tarOf({ a: large });
  const write = async (source: Readable): Promise<Blob> => {
    source.destroy();
    throw full;
  };
  const limits = { outputFiles: 10, bytes: 1e9 };
  await expect(storeTree(Readable.from([bytes]), { write }, limits)).rejects.toBe(full);
});
