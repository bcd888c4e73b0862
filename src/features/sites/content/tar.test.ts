import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { paxOf, tarBlocks, tarEnd, tarGzOf, type TarPart } from '../../../../test/archives/tar.ts';
import { ArchiveRefused } from './archive.ts';
import { readTarGz } from './tar.ts';

async function read(bytes: Buffer, maxBytes = 1_000_000) {
  const found: { name: string; problem?: string; content?: string }[] = [];
  // In pieces that cut headers and blocks in two.
  const pieces = Array.from({ length: Math.ceil(bytes.length / 97) }, (_, at) =>
    bytes.subarray(at * 97, (at + 1) * 97),
  );
  for await (const { name, problem, open } of readTarGz(Readable.from(pieces), maxBytes)) {
    if (problem !== undefined) found.push({ name, problem });
    else found.push({ name, content: (await buffer(await open())).toString() });
  }
  return found;
}

const page: TarPart = { name: 'index.html', content: '<h1>Hello</h1>'.repeat(100) };

test('an archive of files and folders is read as it was packed, also as `tar -C folder -cz .` names them', async () => {
  const parts: TarPart[] = [
    { name: './' },
    { ...page, name: './index.html' },
    { name: './a/' },
    { name: './a/b.txt', content: 'x' },
    paxOf({ path: `a/${'long/'.repeat(30)}é.txt` }),
    { name: 'a/long', content: 'y' },
  ];
  expect(await read(tarGzOf(parts))).toEqual([
    { name: 'index.html', content: page.content },
    { name: 'a/', content: '' },
    { name: 'a/b.txt', content: 'x' },
    { name: `a/${'long/'.repeat(30)}é.txt`, content: 'y' },
  ]);
});

test('an archive in the format v7, which has no magic number, is read too', async () => {
  const isV7 = true;
  const parts: TarPart[] = [
    { ...page, isV7 },
    { name: 'a/', isV7 },
    { name: 'a/b.txt', content: 'x', isV7 },
  ];
  expect(await read(tarGzOf(parts))).toEqual([
    { name: 'index.html', content: page.content },
    { name: 'a/', content: '' },
    { name: 'a/b.txt', content: 'x' },
  ]);
  await expect(read(tarGzOf([{ ...page, isV7, checksum: 1 }]))).rejects.toThrow(ArchiveRefused);
  await expect(read(tarGzOf([{ name: 'a/', content: 'x', isV7 }]))).rejects.toThrow(/folder with content/);
  expect(await read(tarGzOf([{ name: 'a', type: '2', link: 'b', isV7 }]))).toMatchObject([
    { problem: expect.stringContaining('symbolic link') },
  ]);
});

test('a file that nobody reads is skipped, and the next one is whole', async () => {
  const bytes = tarGzOf([{ name: 'big', content: 'x'.repeat(200_000) }, page]);
  const names: string[] = [];
  let last = '';
  for await (const { name, open } of readTarGz(Readable.from([bytes]), 1_000_000)) {
    names.push(name);
    if (name === 'index.html') last = (await buffer(await open())).toString();
  }
  expect(names).toEqual(['big', 'index.html']);
  expect(last).toBe(page.content);
});

test('a size that a pax header only repeats is no trouble', async () => {
  const size = String(page.content?.length);
  expect(await read(tarGzOf([paxOf({ path: 'é.html', size }), page]))).toEqual([
    { name: 'é.html', content: page.content },
  ]);
});

test('a comment for all entries, as git archive writes one, is no trouble', async () => {
  const comment: TarPart = { ...paxOf({ comment: 'a'.repeat(600) }), type: 'g' };
  expect(await read(tarGzOf([comment, page, { name: 'a.txt', content: '12 path=text' }]))).toEqual([
    { name: 'index.html', content: page.content },
    { name: 'a.txt', content: '12 path=text' },
  ]);
});

describe('T39 entries that are refused by themselves', () => {
  test.each<[string, TarPart[], RegExp]>([
    ['a symbolic link', [{ name: 'a', type: '2', link: '/etc/passwd' }], /symbolic link/],
    ['a hard link', [{ name: 'a', type: '1', link: 'index.html' }], /hard link/],
    ['a character device', [{ name: 'a', type: '3' }], /neither a file nor a folder/],
    ['a block device', [{ name: 'a', type: '4' }], /neither a file nor a folder/],
    ['a pipe', [{ name: 'a', type: '6' }], /neither a file nor a folder/],
    ['a sparse file (pax)', [paxOf({ 'GNU.sparse.major': '1', 'GNU.sparse.minor': '0' }), page], /sparse/],
    ['a program with the set-user-ID bit', [{ ...page, mode: 0o4755 }], /set-user-ID/],
  ])('%s', async (_what, parts, problem) => {
    const found = await read(tarGzOf(parts));
    expect(found.at(-1)?.problem).toMatch(problem);
  });
});

describe('T40 T41 archives that are refused whole', () => {
  /** Entries that some readers find, and others take for the content of what stands before them. */
  const within = Buffer.concat([tarEnd, tarBlocks([{ name: 'hidden.html', content: 'x' }])]);
  const cut = tarGzOf([page]);
  test.each<[string, Buffer, RegExp]>([
    ['nothing', Buffer.alloc(0), /gzip|truncated/],
    ['text', Buffer.from('<h1>not an archive</h1>'), /not a gzip/],
    ['a cut gzip', cut.subarray(0, -12), /gzip|truncated/],
    ['a cut tar', gzipSync(tarBlocks([page]).subarray(0, 700)), /truncated/],
    ['text, gzipped', gzipSync('<h1>not a tar</h1>'.repeat(100)), /without a size|not a tar/],
    ['a wrong header checksum', tarGzOf([{ ...page, checksum: 1 }]), /not a tar/],
    [
      'bytes after its end',
      gzipSync(Buffer.concat([tarBlocks([page]), tarEnd, tarBlocks([page])])),
      /after its end/,
    ],
    [
      'a pax header of megabytes',
      tarGzOf([{ ...paxOf({ comment: 'x'.repeat(100_000) }) }, page]),
      /header longer/,
    ],
    [
      'a long name of megabytes',
      tarGzOf([{ name: 'x', type: 'L', content: 'x'.repeat(100_000) }, page]),
      /header longer/,
    ],
    [
      'a folder with content',
      tarGzOf([{ name: 'a/', type: '5', content: 'x' }]),
      /not a tar|folder with content/,
    ],
    [
      'a folder whose content is entries',
      tarGzOf([page, { name: 'a/', content: within }]),
      /folder with content/,
    ],
    [
      'a size that a pax header denies',
      tarGzOf([page, paxOf({ size: '0' }), { name: 'x', content: within }]),
      /two different sizes/,
    ],
    [
      'a size that only a pax header has',
      gzipSync(
        Buffer.concat([
          tarBlocks([page, paxOf({ size: '1024' }), { name: 'x' }]),
          tarBlocks([{ name: 'hidden.html', content: 'x' }]),
          tarEnd,
        ]),
      ),
      /two different sizes/,
    ],
    [
      'a name for all entries',
      tarGzOf([{ ...paxOf({ comment: 'x'.repeat(600), path: 'other.html' }), type: 'g' }, page]),
      /one name or size/,
    ],
    ['a size for all entries', tarGzOf([{ ...paxOf({ size: '0' }), type: 'g' }, page]), /one name or size/],
    ['an empty pax header', tarGzOf([paxOf({}), page]), /empty header/],
    ['a size beyond the end', tarGzOf([{ ...page, size: 5_000_000 }]), /truncated/],
    [
      'two gzip members with two archives',
      Buffer.concat([tarGzOf([page]), tarGzOf([page])]),
      /after its end/,
    ],
  ])('%s', async (_what, bytes, problem) => {
    const refusal = await read(bytes).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ArchiveRefused);
    expect((refusal as ArchiveRefused).message).toMatch(problem);
  });

  test('a bomb is stopped where it passes the bound, not after it is unpacked', async () => {
    const bomb = gzipSync(
      Buffer.concat([tarBlocks([{ name: 'zeros', content: Buffer.alloc(50_000_000) }]), tarEnd]),
    );
    expect(bomb.length).toBeLessThan(100_000);
    const before = process.memoryUsage().arrayBuffers;
    await expect(read(bomb, 1_000_000)).rejects.toThrow('unpacks to more than 1000000 bytes');
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20_000_000);
  });
});
