import { createReadStream } from 'node:fs';
import { access, mkdir, open, opendir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../core/errors.ts';
import { stagingFolder, type FolderOptions } from '../staging-folder.ts';
import { unlessFull } from '../disk-full.ts';
import { flushFileSystem, flushNames } from '../flush-names.ts';
import { inGroups, writeStagingFile, type Written } from './staging-file.ts';
import { type Blobs, type BlobBatch, checkDigest, writeOne } from './blobs.ts';

/**
 * Blobs as files `folder/ab/cdef…`. Each is written to a staging file in `folder/incoming` and then renamed. Call
 * prepare() first; it removes what an earlier process left in `incoming`.
 */
export function fileBlobs(
  folder: string,
  { isShared = false, requireFreeSpace }: FolderOptions = {},
): Blobs & { prepare(): Promise<void> } {
  const { path: incoming, prepare } = stagingFolder(join(folder, 'incoming'), { isShared });
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
      // Also when the blob exists already: its writer may not have flushed its name yet.
      touched.add(await shelfFor(digest));
      // Replaces an existing file, which held the same bytes. The new file has a new time, so a sweep by age does not
      // remove it before its writer uses it.
      await rename(path, placeOf(digest).path);
    });
    const areNamesFlushed = touched.size >= manyFiles && (await flushFileSystem(folder));
    if (!areNamesFlushed) await inGroups([...touched], flushNames);
  }

  function batch(): BlobBatch {
    /** Staging files that have no final name and have not been flushed. */
    let waiting: Written[] = [];

    return {
      async write(source) {
        const written = await writeStagingFile(source, incoming, requireFreeSpace);
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
    prepare,
    batch,
    write: (source) => writeOne(batch(), source),
    async read(digest, range) {
      const { path } = placeOf(digest);
      try {
        // Opened here, so that a missing blob becomes an error response and not a truncated body.
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

/** From this number of files on, flushing the whole file system is cheaper than flushing one file at a time. */
const manyFiles = 16;

async function flushFile(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Undefined when the file was removed after its name was read. */
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
