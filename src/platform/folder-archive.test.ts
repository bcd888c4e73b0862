import {
  createWriteStream,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { pack } from 'tar-stream';
import { ArchiveSpoiled, readArchive, writeArchive } from './folder-archive.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-archive-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function written(): Promise<Buffer> {
  mkdirSync(join(folder, 'from/empty'), { recursive: true });
  writeFileSync(join(folder, 'from/one'), 'first');
  writeFileSync(join(folder, 'from/none'), '');
  const file = join(folder, 'archive');
  const archive = writeArchive(createWriteStream(file));
  await archive.addText('head.json', '{}');
  await archive.addFolder('data', join(folder, 'from'));
  await archive.finish();
  return readFileSync(file);
}

let count = 0;
/** Unpacks these bytes into a new folder. */
async function unpacked(bytes: Buffer): Promise<string> {
  const [file, into] = [join(folder, `file-${(count += 1)}`), join(folder, `into-${count}`)];
  writeFileSync(file, bytes);
  mkdirSync(into);
  await readArchive(file, into);
  return into;
}

test('folders, empty ones too, and texts come back as they were', async () => {
  const into = await unpacked(await written());
  expect((readdirSync(into, { recursive: true }) as string[]).toSorted()).toEqual([
    'data',
    'data/empty',
    'data/none',
    'data/one',
    'head.json',
  ]);
  expect(readFileSync(join(into, 'data/one'), 'utf8')).toBe('first');
});

test('an archive that is cut off at any byte is refused', async () => {
  const bytes = await written();
  for (let at = 0; at < bytes.length; at += 7)
    await expect(unpacked(bytes.subarray(0, at))).rejects.toBeInstanceOf(ArchiveSpoiled);
  await expect(unpacked(bytes.subarray(0, -1))).rejects.toBeInstanceOf(ArchiveSpoiled);
});

const contentOf = (into: string) =>
  readdirSync(into, { recursive: true, withFileTypes: true })
    .map((one) => [one.name, one.isFile() ? readFileSync(join(one.parentPath, one.name), 'utf8') : null])
    .toSorted(([a], [b]) => String(a).localeCompare(String(b)));

test('an archive in which any byte was changed is refused, or says the same in another way', async () => {
  const bytes = await written();
  const right = contentOf(await unpacked(bytes));
  const unpackings: unknown[] = [];
  let refused = 0;
  // The first ten bytes are gzip's header: a time and a system, which are not read.
  for (let at = 10; at < bytes.length; at += 3) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 0x04;
    const got: unknown = await unpacked(changed).then(contentOf, (error: unknown) => error);
    if (got instanceof ArchiveSpoiled) refused += 1;
    else unpackings.push(got);
  }
  // Compression has more than one way of writing the zeros between two entries.
  for (const archive of unpackings) expect(archive).toEqual(right);
  expect(refused).toBeGreaterThan(100);
});

test.each(['../outside', '/etc/passwd', 'a/../../b', 'a//b', 'a\\b', '.ssh/key', 'twice'])(
  'an archive that someone else made with %s in it is refused, and nothing is written beside',
  async (name) => {
    const tar = pack();
    tar.entry({ name }, 'x');
    if (name === 'twice') tar.entry({ name }, 'y');
    tar.entry({ name: 'manifest.json' }, '[]');
    tar.finalize();
    const pieces: Buffer[] = [];
    for await (const piece of tar) pieces.push(piece as Buffer);
    await expect(unpacked(gzipSync(Buffer.concat(pieces)))).rejects.toBeInstanceOf(ArchiveSpoiled);
    expect(readdirSync(folder).filter((one) => !/^(?:file|into)-/.test(one))).toEqual([]);
  },
);

test('a link in an archive is refused', async () => {
  const tar = pack();
  tar.entry({ name: 'link', type: 'symlink', linkname: '/etc/passwd' });
  tar.finalize();
  const pieces: Buffer[] = [];
  for await (const piece of tar) pieces.push(piece as Buffer);
  await expect(unpacked(gzipSync(Buffer.concat(pieces)))).rejects.toThrow('not a file');
});
