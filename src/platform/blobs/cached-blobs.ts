import type { Stats } from 'node:fs';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, opendir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Readable } from 'node:stream';
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { AppError } from '../../core/errors.ts';
import type { Log } from '../log.ts';
import { takeAside, type Written } from './aside.ts';
import type { OpenBlob, RemoteBlobs } from './blobs.ts';

/**
 * Blobs of another machine, with those read last kept in `folder`. A digest's bytes never change, so nothing has to be
 * invalidated; the least used go first when there is no room. What is in the folder is believed only after its bytes
 * were hashed, once in the life of a process, and while nobody touches the file: it may be changed or removed at any
 * time, also by another process with the same folder, and is fetched again. Call prepare() first; it is of the folder alone.
 */
export type CacheOptions = {
  readonly folder: string;
  /** Room, in bytes. */
  readonly mostBytes: number;
  readonly log: Log;
};

/** A blob up to this size is fetched whole before its first byte is sent, so wrong or missing bytes are an answer. */
const largestBytes = 64 * 1024 * 1024;
/** Of a body that breaks off. */
const attempts = 2;
/**
 * Bodies that pass through at once, each as slowly as its reader likes. Fewer than there are connections to a store, so
 * that what is kept here can still be fetched.
 */
const mostPassing = 48;
/** Digests that are remembered as too large, so that a range of one asks once. */
const mostKnown = 10_000;

type Kept = {
  readonly size: number;
  /** As it was when its bytes were hashed; null: not by this process. */
  readonly seen: Pick<Stats, 'mtimeMs' | 'ino' | 'size'> | null;
};

export function cachedBlobs(origin: RemoteBlobs, { folder, mostBytes, log }: CacheOptions): RemoteBlobs {
  const incoming = join(folder, 'incoming');
  const largest = Math.min(largestBytes, Math.floor(mostBytes / 4));
  const kept = new LRUCache<string, Kept>({
    maxSize: mostBytes,
    sizeCalculation: ({ size }) => Math.max(1, size),
    dispose(_, digest, reason) {
      // A reader that has it open reads on.
      if (reason === 'evict' || reason === 'delete') leave(digest);
    },
  });
  /** Files being removed. */
  const leaving = new Map<string, Promise<void>>();
  const tooLarge = new LRUCache<string, number>({ max: mostKnown });
  const fetching = new Map<string, Promise<boolean>>();

  const placeOf = (digest: string) => join(folder, digest.slice(0, 2), digest.slice(2));
  function leave(digest: string): void {
    const gone = rm(placeOf(digest), { force: true })
      .catch(noteTrouble)
      .finally(() => leaving.delete(digest));
    leaving.set(digest, gone);
  }

  let isTroubled = false;
  /** The folder is a saving and no more: without it everything comes from the store. Said once an outage. */
  function noteTrouble(error: unknown): void {
    if (!isTroubled) log.warn({ err: error }, 'the folder of fetched content cannot be used');
    isTroubled = true;
  }

  /** The file with its digest's bytes, open; undefined when it is not there or is something else. */
  async function openKept(digest: string): Promise<{ file: FileHandle; size: number } | undefined> {
    const entry = kept.get(digest);
    if (entry === undefined) return undefined;
    let file: FileHandle | undefined;
    try {
      file = await open(placeOf(digest), 'r');
      const now = await file.stat();
      const isSame =
        entry.seen === null
          ? (await digestOf(file)) === digest
          : entry.seen.mtimeMs === now.mtimeMs && entry.seen.ino === now.ino && entry.seen.size === now.size;
      if (isSame) {
        if (entry.seen === null) kept.set(digest, { size: now.size, seen: now });
        return { file, size: now.size };
      }
    } catch (error) {
      if (!isMissing(error)) noteTrouble(error);
    }
    await file?.close();
    kept.delete(digest);
    return undefined;
  }

  /** True when it is kept now. */
  function fetched(digest: string): Promise<boolean> {
    let already = fetching.get(digest);
    if (already === undefined) {
      already = fetchWhole(digest).finally(() => fetching.delete(digest));
      fetching.set(digest, already);
    }
    return already;
  }

  async function fetchWhole(digest: string, attempt = 1): Promise<boolean> {
    try {
      // Also when somebody emptied the folder meanwhile; before the store begins to send.
      await mkdir(incoming, { recursive: true, mode: 0o700 });
    } catch (error) {
      noteTrouble(error);
      return false;
    }
    const { size, stream } = await origin.open(digest);
    if (size > largest) {
      stream.destroy();
      tooLarge.set(digest, size);
      return false;
    }
    try {
      await putInPlace(digest, await takeAside(stream, incoming));
      isTroubled = false;
      return true;
    } catch (error) {
      if (!(error instanceof AppError && error.code === 'store_unavailable')) {
        noteTrouble(error);
        return false;
      }
      if (attempt < attempts) return await fetchWhole(digest, attempt + 1);
      throw error;
    }
  }

  async function putInPlace(digest: string, { path, size }: Written): Promise<void> {
    const place = placeOf(digest);
    try {
      await mkdir(join(place, '..'), { recursive: true, mode: 0o700 });
      // Or what was fetched now would be removed with what was there before.
      await leaving.get(digest);
      await rename(path, place);
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
    const file = await open(place, 'r');
    try {
      kept.set(digest, { size, seen: await file.stat() });
    } finally {
      await file.close();
    }
  }

  let passing = 0;
  async function passThrough(...what: Parameters<RemoteBlobs['open']>): Promise<OpenBlob> {
    if (passing >= mostPassing)
      throw new AppError('store_unavailable', { cause: new Error('Too many bodies pass through already.') });
    passing += 1;
    try {
      const opened = await origin.open(...what);
      opened.stream.once('close', () => (passing -= 1));
      return opened;
    } catch (error) {
      passing -= 1;
      throw error;
    }
  }

  async function openBlob(
    digest: string,
    range?: { readonly start: number; readonly end: number },
  ): Promise<OpenBlob> {
    if (!tooLarge.has(digest)) {
      const there =
        (await openKept(digest)) ?? ((await fetched(digest)) ? await openKept(digest) : undefined);
      if (there !== undefined)
        return {
          size: there.size,
          stream: createReadStream('', { fd: there.file, ...(range ?? { start: 0 }) }),
        };
    }
    return await passThrough(digest, range);
  }

  /** What earlier processes fetched, the one used longest ago first. */
  async function readFolder(): Promise<void> {
    const found: { digest: string; size: number; usedAt: number }[] = [];
    for await (const shelf of await opendir(folder)) {
      if (!shelf.isDirectory() || !/^[0-9a-f]{2}$/.test(shelf.name)) continue;
      // Another process with the same folder may have removed what was there when its name was read.
      const names = (await opendir(join(folder, shelf.name)).catch(unlessMissing)) ?? [];
      for await (const { name } of names) {
        if (!/^[0-9a-f]{62}$/.test(name)) continue;
        const there = await stat(join(folder, shelf.name, name)).catch(unlessMissing);
        if (there !== undefined)
          found.push({ digest: shelf.name + name, size: there.size, usedAt: there.atimeMs });
      }
    }
    for (const { digest, size } of found.toSorted((a, b) => a.usedAt - b.usedAt))
      kept.set(digest, { size, seen: null });
  }

  return {
    ...origin,
    async prepare() {
      await rm(incoming, { recursive: true, force: true });
      await mkdir(incoming, { recursive: true, mode: 0o700 });
      await readFolder();
    },
    open: openBlob,
    read: async (digest, range): Promise<Readable> => (await openBlob(digest, range)).stream,
    async remove(digest) {
      await origin.remove(digest);
      kept.delete(digest);
    },
  };
}

async function digestOf(file: FileHandle): Promise<string> {
  const sum = createHash('sha256');
  await pipeline(createReadStream('', { fd: file, start: 0, autoClose: false }), sum);
  return sum.digest('hex');
}

function unlessMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error;
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
