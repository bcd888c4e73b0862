import type { Stats } from 'node:fs';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, opendir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Readable } from 'node:stream';
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { keepLastUsed } from '../last-used.ts';
import { AppError } from '../../core/errors.ts';
import type { Log } from '../log.ts';
import { writeStagingFile, type Written } from './staging-file.ts';
import type { OpenBlob, RemoteBlobs } from './blobs.ts';

/**
 * A cache in `folder` for blobs that another machine stores. The bytes of a digest never change, so no entry needs to be
 * invalidated; the least recently used are removed first when the cache is full.
 *
 * Anyone, such as another process with the same folder, may change or remove a file at any time. So each process
 * hashes a file once before it trusts it. A changed, wrong or missing file is fetched again. Call prepare() first; it
 * prepares the folder only.
 */
export type CacheOptions = {
  readonly folder: string;
  /** Size of the cache, in bytes. */
  readonly maxBytes: number;
  readonly log: Log;
};

/**
 * A blob up to this size is fetched whole before its first byte is sent. So wrong or missing bytes become an error
 * response.
 */
const maxWholeBytes = 64 * 1024 * 1024;
/** Attempts to fetch a body that breaks off. */
const attempts = 2;
/**
 * Bodies streamed through at the same time, each as slowly as its reader. Fewer than the connections to the store, so
 * that blobs that fit the cache can still be fetched.
 */
const maxPassing = 48;
/** Digests remembered as too large for the cache, so that a range request for one asks the store only once. */
const maxKnown = 10_000;

type Kept = {
  readonly size: number;
  /** The file's state when its bytes were hashed; null when this process has not hashed it. */
  readonly seen: Pick<Stats, 'mtimeMs' | 'ino' | 'size'> | null;
};

export function cachedBlobs(origin: RemoteBlobs, { folder, maxBytes, log }: CacheOptions): RemoteBlobs {
  const incoming = join(folder, 'incoming');
  const largest = Math.min(maxWholeBytes, Math.floor(maxBytes / 4));
  const kept = new LRUCache<string, Kept>({
    maxSize: maxBytes,
    sizeCalculation: ({ size }) => Math.max(1, size),
    dispose(_, digest, reason) {
      // A reader that has the file open can continue to read.
      if (reason === 'evict' || reason === 'delete') leave(digest);
    },
  });
  /** Files being removed. */
  const leaving = new Map<string, Promise<void>>();
  const tooLarge = keepLastUsed<number>(maxKnown);
  const fetching = new Map<string, Promise<boolean>>();

  const placeOf = (digest: string) => join(folder, digest.slice(0, 2), digest.slice(2));
  function leave(digest: string): void {
    const gone = rm(placeOf(digest), { force: true })
      .catch(noteTrouble)
      .finally(() => leaving.delete(digest));
    leaving.set(digest, gone);
  }

  let isTroubled = false;
  /** The cache is optional: without it, every blob comes from the store. Logs once for each outage. */
  function noteTrouble(error: unknown): void {
    if (!isTroubled) log.warn({ err: error }, 'cannot use the cache folder of the object store');
    isTroubled = true;
  }

  /** Opens the file with the bytes of the digest; undefined when it is missing or holds other bytes. */
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

  /** True when the blob is in the cache now. */
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
      // Someone may have emptied the folder. Create it before the store begins to send.
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
      await putInPlace(digest, await writeStagingFile(stream, incoming));
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
      // Otherwise the removal of the old file could remove the new one.
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
    if (passing >= maxPassing)
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

  /** Reads what earlier processes fetched, the least recently used first. */
  async function readFolder(): Promise<void> {
    const found: { digest: string; size: number; usedAt: number }[] = [];
    for await (const shelf of await opendir(folder)) {
      if (!shelf.isDirectory() || !/^[0-9a-f]{2}$/.test(shelf.name)) continue;
      // Another process with the same folder may have removed it since its name was read.
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
