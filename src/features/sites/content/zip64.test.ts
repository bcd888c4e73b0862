import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, describe, expect, test } from 'vitest';
import {
  type Zip64End,
  type ZipPart,
  type ZipShape,
  zip64Field,
  zipOf,
} from '../../../../test/archives/zip.ts';
import { ArchiveRefused } from './archive.ts';
import { readZip } from './zip.ts';

const folder = mkdtempSync(join(tmpdir(), 'postern-zip64-'));
afterAll(() => rmSync(folder, { recursive: true }));

const read = (parts: readonly ZipPart[], shape: ZipShape, maxEntries = 100) =>
  readBytes(zipOf(parts, shape), maxEntries);

async function readBytes(bytes: Buffer, maxEntries: number) {
  const path = join(folder, 'upload.zip');
  writeFileSync(path, bytes);
  const found: { name: string; problem?: string; content?: string }[] = [];
  for await (const { name, problem, open } of readZip(path, maxEntries)) {
    if (problem !== undefined) found.push({ name, problem });
    else {
      const file = await open();
      found.push({ name, content: (Buffer.isBuffer(file) ? file : await buffer(file)).toString() });
    }
  }
  return found;
}

/** In a field, it says that the value is in the Zip64 field. */
const full = 0xff_ff_ff_ff;
const text = '<h1>Hello</h1>'.repeat(20);
const page: ZipPart = { name: 'index.html', content: text, stored: true };
const other: ZipPart = { name: 'a/b.txt', content: 'x' };
const sized: ZipPart = { ...page, size: full, compressedSize: full };

describe('T40 T41 Zip64 archives', () => {
  test('one that says the truth is read like every other', async () => {
    const content = [
      { name: 'index.html', content: text },
      { name: 'a/b.txt', content: 'x' },
    ];
    expect(await read([page, other], { zip64: {} })).toEqual(content);
    const extra = zip64Field(text.length, text.length);
    expect(await read([{ ...sized, extra }, other], { zip64: {} })).toEqual(content);
    const placed = { ...sized, offset: full, extra: zip64Field(text.length, text.length, 0) };
    expect(await read([placed, other], {})).toEqual(content);
  });

  test.each<[string, Partial<Zip64End>, RegExp]>([
    ['another signature', { signature: 1 }, /invalid Zip64 end/],
    ['the signature of the old end', { signature: 0x06_05_4b_50 }, /invalid Zip64 end/],
    ['a record that ends early', { length: 43 }, /invalid Zip64 end/],
    ['a record that reaches into its locator', { length: 45 }, /invalid Zip64 end/],
    ['a record longer than the file', { length: 2 ** 40 }, /invalid Zip64 end/],
    ['another disk', { disk: 1 }, /multi-part/],
    ['a directory on another disk', { directoryDisk: 1 }, /multi-part/],
    ['fewer entries on this disk', { entriesHere: 1 }, /multi-part/],
    ['more entries on this disk', { entriesHere: 3 }, /multi-part/],
    ['one entry less', { entries: 1 }, /differs from its end record/],
    ['no entry', { entries: 0 }, /differs from its end record/],
    ['one entry more', { entries: 3 }, /not a ZIP file that can be read/],
    ['more entries than anyone has', { entries: 2 ** 40 }, /more than 100 entries/],
    ['an empty directory', { directorySize: 0 }, /between its central directory and its end/],
    ['a directory that ends early', { directorySize: 50 }, /between its central directory and its end/],
    [
      'a directory longer than the file',
      { directorySize: 2 ** 52 },
      /between its central directory and its end/,
    ],
    ['a directory at the start', { directoryAt: 0 }, /between its central directory and its end/],
    ['a directory behind the end', { directoryAt: 2 ** 52 }, /between its central directory and its end/],
    ['another signature of the locator', { locatorSignature: 1 }, /invalid Zip64 end/],
    ['a locator that points to the start', { recordAt: 0 }, /invalid Zip64 end/],
    ['a locator that points beside the record', { recordAt: 1 }, /invalid Zip64 end/],
    ['a locator that points behind the end', { recordAt: 2 ** 52 }, /invalid Zip64 end/],
    ['a locator to another disk', { recordDisk: 1 }, /invalid Zip64 end/],
    ['a locator that knows of more disks', { disks: 2 }, /invalid Zip64 end/],
    ['an old end that counts otherwise', { endEntries: 1 }, /two end records/],
    ['an old end with another size', { endDirectorySize: 1 }, /two end records/],
    [
      'an old end that points elsewhere',
      { endEntries: 2, endDirectoryAt: 3 },
      /between its central directory/,
    ],
  ])('an end with %s is refused', async (_what, lie, problem) => {
    const refusal = await read([page, other], { zip64: lie }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ArchiveRefused);
    expect((refusal as ArchiveRefused).message).toMatch(problem);
  });

  test('an end with a directory moved to bytes that look like one is refused', async () => {
    const directory = zipOf([other], {});
    const parts = [{ ...page, content: directory, stored: true }];
    for (const directoryAt of Array.from({ length: directory.length }, (_, at) => at))
      await expect(read(parts, { zip64: { directoryAt } })).rejects.toBeInstanceOf(ArchiveRefused);
  });

  test('an end of which only the old part is there, or cut in two, is refused', async () => {
    const bytes = zipOf([page, other], { zip64: {} });
    for (const cut of [1, 20, 56, 76]) {
      const end = bytes.length - 22;
      const without = Buffer.concat([bytes.subarray(0, end - cut), bytes.subarray(end)]);
      await expect(readBytes(without, 100)).rejects.toBeInstanceOf(ArchiveRefused);
    }
    await expect(readBytes(bytes.subarray(-22), 100)).rejects.toThrow('invalid Zip64 end');
  });

  test.each<[string, Buffer]>([
    ['another size', zip64Field(281, 280)],
    ['another packed size', zip64Field(280, 281)],
    ['one size of two', zip64Field(280)],
    ['no Zip64 field', Buffer.alloc(0)],
    ['a field that is cut short', zip64Field(280, 280).subarray(0, 18)],
  ])('T41 a local header with %s is not what the directory says', async (_what, extra) => {
    const local = { size: full, compressedSize: full };
    const good = { ...page, local: { ...local, extra: zip64Field(280, 280) } };
    expect(await read([good], {})).toEqual([{ name: 'index.html', content: text }]);
    expect(await read([{ ...page, local: { ...local, extra } }], {})).toEqual([
      { name: 'index.html', problem: expect.stringContaining('differs from the central directory') },
    ]);
  });

  test.each<[string, Partial<ZipPart>]>([
    ['a size one too large', { extra: zip64Field(281, 280) }],
    ['a size larger than any disk', { extra: zip64Field(2 ** 40, 280) }],
    ['a packed size one too large', { extra: zip64Field(280, 281) }],
    ['a packed size larger than the file', { extra: zip64Field(280, 2 ** 40) }],
    ['no packed size', { extra: zip64Field(280, 0) }],
    ['both sizes one too small', { extra: zip64Field(279, 279) }],
    ['both sizes larger than a number', { extra: zip64Field(2 ** 53, 2 ** 53) }],
    ['a place inside another entry', { offset: full, extra: zip64Field(280, 280, 1) }],
    ['a place behind the end', { offset: full, extra: zip64Field(280, 280, 2 ** 40) }],
    ['one size of two', { extra: zip64Field(280) }],
    ['no field at all', {}],
  ])('an entry with %s is refused', async (_what, lie) => {
    await expect(read([{ ...sized, ...lie }, other], {})).rejects.toBeInstanceOf(ArchiveRefused);
  });

  test('65,535 empty folders are too many entries, before any is read', {
    tags: 'flood',
  }, async () => {
    const folders = Array.from({ length: 65_535 }, (_, at) => ({ name: `${at}/` }));
    await expect(read(folders, { zip64: {} }, 65_534)).rejects.toThrow('has more than 65534 entries');
    // This many entries need Zip64; an end record that states them without it is broken.
    await expect(read(folders, {}, 65_535)).rejects.toThrow('invalid Zip64 end');
    await expect(read(folders.slice(1), {}, 65_533)).rejects.toThrow('has more than 65533 entries');
  });
});
