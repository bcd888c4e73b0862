import { createReadStream } from 'node:fs';
import { access, mkdir, open, opendir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../core/errors.ts';
import { type FolderOptions, prepareAside } from '../aside-folder.ts';
import { unlessFull } from '../disk-full.ts';
import { flushFileSystem, flushNames } from '../flush-names.ts';
import { inGroups, takeAside, type Written } from './aside.ts';
import { type Blobs, type BlobBatch, checkDigest } from './blobs.ts';

/**
 * Blobs as files: `folder/ab/cdef…`, written aside in `folder/incoming` and renamed. Call prepare() first; what an
 * earlier process left in `incoming` goes then.
 */
export function fileBlobs(
  folder: string,
  { isShared = false, requireRoom }: FolderOptions = {},
): Blobs & { prepare(): Promise<void> } {
  const incoming = join(folder, 'incoming');
  const shelves = new Set<string>();

  function placeOf(digest: string): { shelf: string; path: string } {
    checkDigest(digest);
    const shelf = join(folder, digest.slice(0, 2));
    return { shelf, path: join(shelf, digest.slice(2)) };
  }

  async function shelfFor(digest: string): Promise<string> {
    const { shelf } = placeOf(digest);
    if (!shelves.has(shelf)) {
      await mkdir(shelf, { recursive: true });
      await flushNames(folder);
      shelves.add(shelf);
    }
    return shelf;
  }

  async function keep(ready: readonly Written[]): Promise<void> {
    const isFlushed = ready.length >= manyFiles && (await flushFileSystem(incoming));
    if (!isFlushed) await inGroups(ready, ({ path }) => flushFile(path));
    const touched = new Set<string>();
    await inGroups(ready, async ({ path, digest }) => {
      // Also of one that was there: whoever wrote it may not have flushed its name yet.
      touched.add(await shelfFor(digest));
      // In place of one that was there, which held the same bytes: the new one is young, so a sweep that goes by age
      // leaves it to whoever wrote it now.
      await rename(path, placeOf(digest).path);
    });
    const areNamesFlushed = touched.size >= manyFiles && (await flushFileSystem(folder));
    if (!areNamesFlushed) await inGroups([...touched], flushNames);
  }

  function batch(): BlobBatch {
    /** Written aside; nothing has its name yet, and nothing was asked of the disk. */
    let waiting: Written[] = [];

    return {
      async write(source) {
        const written = await takeAside(source, incoming, requireRoom);
        waiting.push(written);
        return { digest: written.digest, size: written.size };
      },
      async flush() {
        await keep(waiting).catch(unlessFull);
        waiting = [];
      },
      async close() {
        await inGroups(waiting, ({ path }) => rm(path, { force: true }));
        waiting = [];
      },
    };
  }

  return {
    prepare: () => prepareAside(incoming, { isShared }),
    batch,
    async write(source) {
      const one = batch();
      try {
        const blob = await one.write(source);
        await one.flush();
        return blob;
      } finally {
        await one.close();
      }
    },
    async read(digest, range) {
      const { path } = placeOf(digest);
      try {
        // Opened here, so that a blob that is gone is an answer and not half of one.
        const file = await open(path, 'r');
        return createReadStream('', { fd: file, ...range });
      } catch (error) {
        throw new AppError('store_unavailable', { cause: error });
      }
    },
    has: (digest) => isThere(placeOf(digest).path),
    remove: (digest) => rm(placeOf(digest).path, { force: true }),
    async *list() {
      for await (const shelf of await opendir(folder)) {
        if (!shelf.isDirectory() || !/^[0-9a-f]{2}$/.test(shelf.name)) continue;
        for await (const { name } of await opendir(join(folder, shelf.name))) {
          const writtenAt = await writtenAtOf(join(folder, shelf.name, name));
          if (writtenAt !== undefined) yield { digest: shelf.name + name, writtenAt };
        }
      }
    },
  };
}

/** From so many on, flushing all at once is cheaper than one by one. */
const manyFiles = 16;

async function flushFile(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Undefined when it was removed since its name was read. */
async function writtenAtOf(path: string): Promise<number | undefined> {
  return await stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    },
  );
}

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
