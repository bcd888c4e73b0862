import { createHash, hash, randomUUID } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { unlessFull } from '../disk-full.ts';
import { type RoomCheck, roomForAll } from '../free-space.ts';
import type { Blob } from './blobs.ts';

/** Content whose digest is not known before its end waits in a file of its own, under a name that says nothing. */
export type Written = Blob & { readonly path: string };

/** Rejects with what makes `source` fail, or with `storage_full`; then `source` is closed and nothing left in `folder`. */
export async function takeAside(
  source: Readable | Buffer,
  folder: string,
  requireRoom = roomForAll,
): Promise<Written> {
  const path = join(folder, randomUUID());
  // It may fail while the file is being opened; reading it tells then.
  if (source instanceof Readable) source.on('error', () => undefined);
  try {
    return { path, ...(await writeAside(source, path, requireRoom)) };
  } catch (error) {
    // Nobody reads on: what sends it would wait for ever, and keep its connection.
    if (source instanceof Readable) source.destroy();
    await rm(path, { force: true });
    return unlessFull(error);
  }
}

/** Files worked on at the same time. */
const groupSize = 16;
/** What is gathered before it is written: most files of a site take one write. */
const pieceBytes = 256 * 1024;

export async function inGroups<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += groupSize)
    await Promise.all(items.slice(at, at + groupSize).map(work));
}

async function writeAside(source: Readable | Buffer, path: string, requireRoom: RoomCheck): Promise<Blob> {
  await requireRoom();
  const file = await open(path, 'wx', 0o600);
  try {
    if (source instanceof Readable) return await writeTo(file, source, requireRoom);
    if (source.length > 0) await writeAll(file, [source], source.length);
    return { digest: hash('sha256', source, 'hex'), size: source.length };
  } finally {
    await file.close();
  }
}

async function writeTo(file: FileHandle, source: Readable, requireRoom: RoomCheck): Promise<Blob> {
  const sum = createHash('sha256');
  let size = 0;
  let pieces: Buffer[] = [];
  let gathered = 0;
  for await (const chunk of source as AsyncIterable<Buffer>) {
    sum.update(chunk);
    size += chunk.length;
    pieces.push(chunk);
    gathered += chunk.length;
    if (gathered < pieceBytes) continue;
    await requireRoom();
    await writeAll(file, pieces, gathered);
    pieces = [];
    gathered = 0;
  }
  if (gathered > 0) await writeAll(file, pieces, gathered);
  return { digest: sum.digest('hex'), size };
}

async function writeAll(file: FileHandle, pieces: readonly Buffer[], bytes: number): Promise<void> {
  const { bytesWritten } = await file.writev(pieces);
  // A disk that is nearly full, or a signal, may leave some of it to be written.
  if (bytesWritten < bytes) await file.appendFile(Buffer.concat(pieces).subarray(bytesWritten));
}
