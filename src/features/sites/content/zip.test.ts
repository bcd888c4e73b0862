import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, describe, expect, test } from 'vitest';
import { type ZipPart, type ZipShape, zipOf } from '../../../../test/archives/zip.ts';
import { ArchiveRefused, smallFile } from './archive.ts';
import { readZip } from './zip.ts';

const folder = mkdtempSync(join(tmpdir(), 'postern-zip-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Read twice, with every file whole and with every file as a stream: both must come to the same. */
async function read(bytes: Buffer, maxEntries = 100) {
  const path = join(folder, 'upload.zip');
  writeFileSync(path, bytes);
  const [whole, streamed] = await Promise.allSettled([
    readAs(path, maxEntries, smallFile),
    readAs(path, maxEntries, -1),
  ]);
  expect(outcomeOf(streamed)).toEqual(outcomeOf(whole));
  if (whole.status === 'rejected') throw whole.reason;
  return whole.value;
}

/** Which words a refusal has may differ. */
function outcomeOf<T>(settled: PromiseSettledResult<T>): T | string {
  if (settled.status === 'fulfilled') return settled.value;
  return settled.reason instanceof ArchiveRefused ? 'refused' : String(settled.reason);
}

async function readAs(path: string, maxEntries: number, wholeUpTo: number) {
  const found: { name: string; problem?: string; content?: string }[] = [];
  for await (const { name, problem, open } of readZip(path, maxEntries, wholeUpTo)) {
    if (problem !== undefined) found.push({ name, problem });
    else {
      const bytes = await open();
      found.push({ name, content: (Buffer.isBuffer(bytes) ? bytes : await buffer(bytes)).toString() });
    }
  }
  return found;
}

const page: ZipPart = { name: 'index.html', content: '<h1>Hello</h1>'.repeat(20) };

test('./ in front of every name, as tar writes a ZIP, is left out', async () => {
  const parts: ZipPart[] = [
    { name: './', mode: 0o040_755 },
    { ...page, name: './index.html' },
    { name: './a/', mode: 0o040_755 },
    { name: '././a/b.txt', content: 'x' },
  ];
  expect(await read(zipOf(parts))).toEqual([
    { name: 'index.html', content: String(page.content) },
    { name: 'a/', content: '' },
    { name: 'a/b.txt', content: 'x' },
  ]);
});

test('a file named . is an entry like others, so that its name is refused and not its content lost', async () => {
  const parts: ZipPart[] = [page, { name: '.', content: 'x' }, { name: './.', content: 'y' }];
  expect((await read(zipOf(parts))).slice(1)).toEqual([
    { name: '.', content: 'x' },
    { name: '.', content: 'y' },
  ]);
});

test('a ZIP padded with zero bytes is refused with the command that does not pad it', async () => {
  await expect(read(zipOf([page], { after: Buffer.alloc(9_000) }))).rejects.toThrow(/zero bytes.*tar -a -cf/);
});

test('an archive of files and folders is read as it was packed, deflated or stored', async () => {
  const parts: ZipPart[] = [
    page,
    { name: 'a/', mode: 0o040_755 },
    { name: 'a/b.txt', content: 'x', stored: true },
  ];
  expect(await read(zipOf(parts))).toEqual([
    { name: 'index.html', content: '<h1>Hello</h1>'.repeat(20) },
    { name: 'a/', content: '' },
    { name: 'a/b.txt', content: 'x' },
  ]);
  expect(await read(zipOf([page], { comment: Buffer.from('made by hand') }))).toHaveLength(1);
  expect(await read(zipOf([]))).toEqual([]);
});

describe('T39 T40 T41 entries that are refused by themselves', () => {
  test.each<[string, ZipPart, RegExp]>([
    ['a symbolic link', { ...page, mode: 0o120_777 }, /symbolic link/],
    ['a device', { ...page, mode: 0o020_644 }, /neither a file nor a folder/],
    ['a pipe', { ...page, mode: 0o010_644 }, /neither a file nor a folder/],
    ['a socket', { ...page, mode: 0o140_644 }, /neither a file nor a folder/],
    ['a program with the set-user-ID bit', { ...page, mode: 0o104_755 }, /set-user-ID/],
    ['a folder that is called a file', { name: 'a', mode: 0o040_755 }, /folder and a file/],
    ['a file that is called a folder', { name: 'a/', mode: 0o100_644 }, /folder and a file/],
    ['a folder with content', { name: 'a/', content: 'x', stored: true }, /folder with content/],
    ['an encrypted file', { ...page, flags: 0x08_01 }, /encrypted/],
    ['an encrypted directory', { ...page, flags: 0x28_00 }, /encrypted/],
    ['another compression', { ...page, method: 12 }, /method 12/],
    [
      'another name in the local header',
      { ...page, local: { name: 'other.html' } },
      /differs from the central/,
    ],
    ['another size in the local header', { ...page, local: { size: 5 } }, /differs from the central/],
    ['another checksum in the local header', { ...page, local: { crc: 5 } }, /differs from the central/],
    [
      'another compression in the local header',
      { ...page, local: { method: 0 } },
      /differs from the central/,
    ],
    ['other flags in the local header', { ...page, local: { flags: 0 } }, /differs from the central/],
    ['a name in Latin-1', { ...page, name: Buffer.from([0x61, 0xe9, 0x2e]) }, /not UTF-8/],
    [
      'a name in overlong UTF-8',
      { ...page, name: Buffer.from([0xc0, 0xae, 0xc0, 0xae, 0x2f, 0x61]) },
      /not UTF-8/,
    ],
    ['a second name', { ...page, extra: unicodePath('other.html') }, /two different names/],
  ])('%s', async (_what, part, problem) => {
    const [found] = await read(zipOf([part]));
    expect(found?.problem).toMatch(problem);
    expect(found?.content).toBeUndefined();
  });
});

describe('T40 T41 archives that are refused whole', () => {
  test.each<[string, Buffer | [ZipPart[], ZipShape], RegExp]>([
    ['nothing', Buffer.alloc(0), /not a ZIP/],
    ['text', Buffer.from('<h1>not a zip</h1>'), /not a ZIP/],
    ['a cut archive', zipOf([page]).subarray(0, -5), /not a ZIP|truncated|after its end/],
    ['an archive without its beginning', zipOf([page]).subarray(7), /./],
    ['bytes before the first entry', [[page], { before: Buffer.from('#!/bin/sh\n') }], /belong to no entry/],
    ['bytes after the end', [[page], { after: Buffer.from('x') }], /after its end/],
    ['bytes before the directory', [[page], { beforeDirectory: Buffer.alloc(7) }], /belong to no entry/],
    [
      'bytes after the directory',
      [[page], { beforeEnd: Buffer.alloc(9) }],
      /between its central directory and its end/,
    ],
    [
      'a second end in the comment',
      [[page], { comment: zipOf([]) }],
      /between its central directory|after its end/,
    ],
    ['one of several disks', [[page], { disk: 1 }], /multi-part/],
    ['more entries than there are', [[page], { entries: 2 }], /./],
    [
      'fewer entries than there are',
      [[page, { name: 'b', content: 'x' }], { entries: 1 }],
      /does not hold|./,
    ],
    [
      'two entries that share their bytes',
      [[page, { ...page, name: 'indey.html', offset: 0 }], {}],
      /overlap/,
    ],
    ['a size that reaches into the next', [[{ ...page, compressedSize: 200 }, page], {}], /overlap/],
    ['a size that ends early', [[{ ...page, compressedSize: 5 }, page], {}], /belong to no entry/],
  ])('%s', async (_what, made, problem) => {
    const bytes = Buffer.isBuffer(made) ? made : zipOf(...made);
    const refusal = await read(bytes).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ArchiveRefused);
    expect((refusal as ArchiveRefused).message).toMatch(problem);
  });

  test.each<[string, ZipPart]>([
    ['a wrong checksum', { ...page, crc: 1 }],
    ['more bytes than said', { ...page, size: 10 }],
    ['fewer bytes than said', { ...page, size: 100_000 }],
    ['broken deflate', { name: 'a', content: Buffer.from('not deflated at all'), stored: true, method: 8 }],
  ])('%s', async (_what, part) => {
    await expect(read(zipOf([part]))).rejects.toBeInstanceOf(ArchiveRefused);
  });

  test('an archive with too many entries is refused before any is read', async () => {
    const many = Array.from({ length: 101 }, (_, at) => ({ name: `f${at}.html`, content: 'x' }));
    await expect(read(zipOf(many))).rejects.toThrow('has more than 100 entries');
    expect(await read(zipOf(many.slice(1)))).toHaveLength(100);
  });
});

/** Info-ZIP's field 0x7075: version, checksum of the first name, the second name. */
function unicodePath(name: string): Buffer {
  const data = Buffer.concat([Buffer.from([1, 0, 0, 0, 0]), Buffer.from(name)]);
  const head = Buffer.alloc(4);
  head.writeUInt16LE(0x70_75, 0);
  head.writeUInt16LE(data.length, 2);
  return Buffer.concat([head, data]);
}

test('T51 headers that hold more than names are refused before they fill the memory', async () => {
  const extra = Buffer.alloc(60_000);
  // One field of zeroes: its id, then its length.
  extra.writeUInt16LE(extra.length - 4, 2);
  const parts = Array.from({ length: 60 }, (_, at) => ({ name: `${at}.txt`, content: 'x', extra }));
  await expect(read(zipOf(parts.slice(0, 10)))).resolves.toHaveLength(10);
  await expect(read(zipOf(parts))).rejects.toThrow(ArchiveRefused);
});
