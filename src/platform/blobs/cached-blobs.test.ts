import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AppError } from '../../core/errors.ts';
import { createLog } from '../log.ts';
import type { RemoteBlobs } from './blobs.ts';
import { cachedBlobs } from './cached-blobs.ts';
import { replaceBuiltin } from '../../../test/replace-builtin.ts';
import { fileBlobs } from './file-blobs.ts';
import { verified } from './verified.ts';

const disk = { slow: false, isFull: false, did: [] as string[] };
const { open: openFile, rename, rm, stat } = fs;
replaceBuiltin(fs, {
  async open(...how: Parameters<typeof fs.open>) {
    if (disk.isFull && how[1] === 'wx') throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    return await openFile(...how);
  },
  async rename(from, to) {
    await rename(from, to);
    disk.did.push('placed');
  },
  async rm(path, options) {
    // Enough trips to the disk to take longer than a whole fetch.
    for (let trip = 0; disk.slow && trip < 200; trip++) await stat(home);
    await rm(path, options);
    disk.did.push('removed');
  },
});

let home: string;
let store: FarAway;
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'postern-cached-'));
  store = await farAway(join(home, 'far'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

type FarAway = RemoteBlobs & {
  readonly asked: string[];
  /** Bodies that were begun: each is a connection until it is closed. */
  readonly bodies: Readable[];
  breakNext(times: number): void;
};

/** A store far away, that counts what it is asked and can break off in the middle of a body. */
async function farAway(folder: string): Promise<FarAway> {
  const files = fileBlobs(folder);
  await files.prepare();
  const asked: string[] = [];
  const bodies: Readable[] = [];
  let breaks = 0;
  return {
    ...files,
    asked,
    bodies,
    breakNext: (times) => (breaks = times),
    prepare: async () => undefined,
    begin: async () => undefined,
    ping: async () => undefined,
    close: () => undefined,
    async open(digest, range) {
      asked.push(digest);
      const whole = await buffer(await files.read(digest));
      const bytes = range === undefined ? whole : whole.subarray(range.start, range.end + 1);
      const sent = breaks > 0 ? bytes.subarray(0, bytes.length >> 1) : bytes;
      breaks -= 1;
      const expected = { size: bytes.length, digest: range === undefined ? digest : null };
      const body = Readable.from([sent]);
      bodies.push(body);
      return { size: whole.length, stream: verified(body, expected) };
    },
  };
}

const cache = () => join(home, 'cache');

async function open(maxBytes = 1_000_000) {
  const blobs = cachedBlobs(store, { folder: cache(), maxBytes, log: createLog({ level: 'silent' }) });
  await blobs.prepare();
  return {
    ...blobs,
    text: async (digest: string, range?: { start: number; end: number }) =>
      String(await buffer(await blobs.read(digest, range))),
  };
}

const put = async (text: string) => (await store.write(Readable.from([Buffer.from(text)]))).digest;
const placeOf = (digest: string) => join(cache(), digest.slice(0, 2), digest.slice(2));

test('content is fetched once, also when many ask at the same time, for a part, or after a restart', async () => {
  const digest = await put('0123456789');
  const blobs = await open();
  const all = await Promise.all(Array.from({ length: 20 }, () => blobs.text(digest)));
  expect(new Set(all)).toEqual(new Set(['0123456789']));
  expect(await blobs.text(digest, { start: 2, end: 4 })).toBe('234');
  expect(await (await open()).text(digest)).toBe('0123456789');
  expect(store.asked).toEqual([digest]);
});

test('only this user can read what was fetched', async () => {
  const digest = await put('private');
  await (await open()).text(digest);
  expect(statSync(placeOf(digest)).mode & 0o077).toBe(0);
});

test.each([
  ['changed in place', (path: string) => writeFileSync(path, 'other12345')],
  ['cut short', (path: string) => writeFileSync(path, 'right')],
  ['removed', (path: string) => rmSync(path)],
])('a file that was %s is never served: its content is fetched again', async (_, spoil) => {
  const digest = await put('right12345');
  const blobs = await open();
  await blobs.text(digest);
  spoil(placeOf(digest));
  expect(await blobs.text(digest)).toBe('right12345');
  expect(store.asked).toHaveLength(2);
});

test('what is fetched again is put in its place after the old file left, however long that takes', async () => {
  const digest = await put('right12345');
  const blobs = await open();
  await blobs.text(digest);
  rmSync(placeOf(digest));
  writeFileSync(placeOf(digest), 'other12345');
  disk.did.length = 0;
  disk.slow = true;
  try {
    expect(await blobs.text(digest)).toBe('right12345');
  } finally {
    disk.slow = false;
  }
  expect(disk.did).toEqual(['removed', 'placed']);
  expect(await blobs.text(digest)).toBe('right12345');
  expect(store.asked).toHaveLength(2);
});

test('a file that was changed while no process ran is found by its bytes, though its size and time are the same', async () => {
  const digest = await put('right12345');
  await (await open()).text(digest);
  const { atime, mtime } = statSync(placeOf(digest));
  writeFileSync(placeOf(digest), 'wrong12345');
  utimesSync(placeOf(digest), atime, mtime);
  expect(await (await open()).text(digest)).toBe('right12345');
});

test('the whole folder may be removed at any time', async () => {
  const digest = await put('right');
  const blobs = await open();
  await blobs.text(digest);
  rmSync(cache(), { recursive: true });
  expect(await blobs.text(digest)).toBe('right');
  expect(await blobs.text(digest)).toBe('right');
  expect(store.asked).toHaveLength(2);
});

test('no more is kept than there is room for: what was read longest ago goes', async () => {
  const blobs = await open(400);
  const digests: string[] = [];
  for (const letter of 'abcdef') {
    digests.push(await put(letter.repeat(100)));
    await blobs.text(digests.at(-1) ?? '');
    await blobs.text(digests[0] ?? '');
  }
  const files = () => readdirSync(cache(), { recursive: true }).filter((name) => String(name).length > 60);
  await expect.poll(files).toHaveLength(4);
  expect(existsSync(placeOf(digests[0] ?? ''))).toBe(true);
  expect(existsSync(placeOf(digests[1] ?? ''))).toBe(false);
});

test('what is larger than a quarter of the room passes through, and is asked for in parts', async () => {
  const blobs = await open(400);
  const digest = await put('x'.repeat(101));
  expect(await blobs.text(digest)).toHaveLength(101);
  expect(await blobs.text(digest, { start: 0, end: 9 })).toBe('x'.repeat(10));
  expect(existsSync(placeOf(digest))).toBe(false);
});

test('slow readers of large content are refused from the 49th on, and keep nobody from what is small', async () => {
  const blobs = await open(400);
  const large = await put('x'.repeat(101));
  const small = await put('small');
  const slow = await Promise.all(Array.from({ length: 48 }, () => blobs.read(large)));
  await expect(blobs.read(large)).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(await blobs.text(small)).toBe('small');
  for (const one of slow.splice(0, 1)) one.destroy();
  await expect.poll(() => blobs.text(large)).toHaveLength(101);
  for (const one of slow) one.destroy();
});

test('a body that breaks off once is fetched again, and twice is an outage without half a file', async () => {
  const digest = await put('0123456789');
  const blobs = await open();
  store.breakNext(2);
  await expect(blobs.read(digest)).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(existsSync(placeOf(digest))).toBe(false);
  store.breakNext(1);
  expect(await blobs.text(digest)).toBe('0123456789');
});

test('a folder that cannot be written costs time, not content', async () => {
  const digest = await put('right');
  const blobs = await open();
  rmSync(join(cache(), 'incoming'), { recursive: true });
  writeFileSync(join(cache(), 'incoming'), 'in the way');
  chmodSync(join(cache(), 'incoming'), 0o400);
  expect(await blobs.text(digest)).toBe('right');
});

test.each([
  ['has no room', () => (disk.isFull = true)],
  [
    'cannot be written',
    () => {
      rmSync(join(cache(), 'incoming'), { recursive: true });
      writeFileSync(join(cache(), 'incoming'), 'in the way');
    },
  ],
  ['has something in the way', (digest: string) => writeFileSync(join(cache(), digest.slice(0, 2)), '')],
])('a folder that %s keeps no connection to the store, and nothing in it', async (_, spoil) => {
  const digest = await put('right');
  const blobs = await open();
  spoil(digest);
  try {
    expect(await blobs.text(digest)).toBe('right');
  } finally {
    disk.isFull = false;
  }
  await expect.poll(() => store.bodies.filter((body) => !body.destroyed)).toEqual([]);
  const incoming = join(cache(), 'incoming');
  expect(statSync(incoming).isDirectory() ? readdirSync(incoming) : []).toEqual([]);
});

test('a file that another process removes while the folder is read is left out', async () => {
  const digest = await put('right');
  await (await open()).text(digest);
  // Its name is there, and opening it finds nothing.
  rmSync(placeOf(digest));
  symlinkSync(join(home, 'nowhere'), placeOf(digest));
  expect(await (await open()).text(digest)).toBe('right');
});

test('an unavailable store is reported, and cached blobs are still readable', async () => {
  const [kept, other] = [await put('kept'), await put('other')];
  const blobs = await open();
  await blobs.text(kept);
  store.open = () => Promise.reject(new AppError('store_unavailable'));
  const away = cachedBlobs(store, {
    folder: cache(),
    maxBytes: 1_000_000,
    log: createLog({ level: 'silent' }),
  });
  await away.prepare();
  expect(String(await buffer(await away.read(kept)))).toBe('kept');
  await expect(away.read(other)).rejects.toMatchObject({ code: 'store_unavailable' });
});

test('what is removed from the store is removed here', async () => {
  const digest = await put('gone');
  const blobs = await open();
  await blobs.text(digest);
  await blobs.remove(digest);
  await expect.poll(() => existsSync(placeOf(digest))).toBe(false);
  await expect(blobs.read(digest)).rejects.toMatchObject({ code: 'store_unavailable' });
});
