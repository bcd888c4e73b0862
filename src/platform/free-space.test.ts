import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { writeStagingFile } from './blobs/staging-file.ts';
import { createFreeSpaceCheck, createSpaceWatch } from './free-space.ts';
import { temporaryFilesIn } from './temporary-files.ts';

test('a disk that fills up is noticed within a second, told once, and again when there is room', async () => {
  let [now, free] = [0, 100];
  let looks = 0;
  const told: [boolean, number][] = [];
  const watch = createSpaceWatch({
    freeBytes: async () => {
      looks += 1;
      return free;
    },
    minBytes: 50,
    now: () => now,
    onChange: (...change) => told.push(change),
  });
  expect(await watch.isLow()).toBe(false);
  free = 49;
  now = 999;
  expect([await watch.isLow(), looks]).toEqual([false, 1]);
  for (now of [1_000, 2_000, 3_000]) expect(await watch.isLow()).toBe(true);
  free = 50;
  now = 4_000;
  expect(await watch.isLow()).toBe(false);
  expect(told).toEqual([
    [true, 49],
    [false, 50],
  ]);
});

test('a disk that does not say how full it is has changed nothing', async () => {
  let [now, isSilent] = [0, false];
  const watch = createSpaceWatch({
    async freeBytes() {
      if (isSilent) throw new Error('EIO');
      return 10;
    },
    minBytes: 50,
    now: () => now,
    onChange: () => undefined,
  });
  expect(await watch.isLow()).toBe(true);
  isSilent = true;
  now = 2_000;
  expect(await watch.isLow()).toBe(true);
});

test('UP-08 an upload stops while there is too little room for more of it, and leaves nothing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postern-room-'));
  let isLow = false;
  const requireFreeSpace = createFreeSpaceCheck({ isLow: async () => isLow });
  const temporaryFiles = temporaryFilesIn(folder, { requireFreeSpace });
  async function* pieces(): AsyncGenerator<Buffer> {
    yield Buffer.alloc(300_000);
    isLow = true;
    yield Buffer.alloc(300_000);
  }
  const full = { code: 'storage_full', status: 507 };
  await expect(temporaryFiles.take(Readable.from(pieces()))).rejects.toMatchObject(full);
  isLow = false;
  await expect(writeStagingFile(Readable.from(pieces()), folder, requireFreeSpace)).rejects.toMatchObject(
    full,
  );
  await expect(writeStagingFile(Buffer.alloc(10), folder, requireFreeSpace)).rejects.toMatchObject(full);
  expect(await readdir(folder)).toEqual([]);
  await rm(folder, { recursive: true });
});
