import { createHash, randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { access, mkdir, open, opendir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AppError } from '../../core/errors.ts';
import { flushNames } from '../flush-names.ts';
import type { Blob, Blobs } from './blobs.ts';

const digestShape = /^[0-9a-f]{64}$/;

/**
 * Blobs as files: `folder/ab/cdef…`, written aside in `folder/incoming` and renamed. Call prepare() first; what an
 * earlier process left in `incoming` goes then.
 */
export function fileBlobs(folder: string): Blobs & { prepare(): Promise<void> } {
  const incoming = join(folder, 'incoming');
  const shelves = new Set<string>();

  function placeOf(digest: string): { shelf: string; path: string } {
    // A digest from outside that is none must never become a path.
    if (!digestShape.test(digest)) throw new Error('A blob is asked for by 64 hexadecimal digits.');
    const shelf = join(folder, digest.slice(0, 2));
    return { shelf, path: join(shelf, digest.slice(2)) };
  }

  async function keep(written: string, blob: Blob): Promise<void> {
    const { shelf, path } = placeOf(blob.digest);
    if (!shelves.has(shelf)) {
      await mkdir(shelf, { recursive: true });
      await flushNames(folder);
      shelves.add(shelf);
    }
    if (await isThere(path)) {
      // Fresh again, so that a sweep that goes by age leaves it to whoever wrote it now.
      const now = new Date();
      await utimes(path, now, now);
      await rm(written);
      return;
    }
    await rename(written, path);
    await flushNames(shelf);
  }

  return {
    async prepare() {
      await rm(incoming, { recursive: true, force: true });
      await mkdir(incoming, { recursive: true });
    },
    async write(source) {
      const written = join(incoming, randomUUID());
      try {
        const blob = await writeAside(source, written);
        await keep(written, blob);
        return blob;
      } catch (error) {
        await rm(written, { force: true });
        throw isFull(error) ? new AppError('store_unavailable', { cause: error }) : error;
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

async function writeAside(source: Readable, path: string): Promise<Blob> {
  const hash = createHash('sha256');
  let size = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      size += chunk.length;
      done(null, chunk);
    },
  });
  // `flush` asks the disk to keep the bytes before the file is closed.
  await pipeline(source, counted, createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true }));
  return { digest: hash.digest('hex'), size };
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

function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT');
}
