import { createHash, hash, randomUUID } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { unlessFull } from '../disk-full.ts';
import { type FreeSpaceCheck, unlimitedSpace } from '../free-space.ts';
import type { Blob } from './blobs.ts';

/** A staging file. The digest is not known until the last byte is written, so the file has a random name. */
export type Written = Blob & { readonly path: string };

/** Rejects with the error of `source`, or with `storage_full`. Then it closes `source` and leaves no file in `folder`. */
export async function writeStagingFile(
  source: Readable | Buffer,
  folder: string,
  requireFreeSpace = unlimitedSpace,
): Promise<Written> {
  const path = join(folder, randomUUID());
  // `source` may fail while the file is being opened. The read below reports that error.
  if (source instanceof Readable) source.on('error', () => undefined);
  try {
    return { path, ...(await writeNewFile(source, path, requireFreeSpace)) };
  } catch (error) {
    // Nothing reads `source` any more. Without this its sender would wait forever and keep the connection.
    if (source instanceof Readable) source.destroy();
    await rm(path, { force: true });
    return unlessFull(error);
  }
}

/** Files processed at the same time. */
const groupSize = 16;
/** Bytes collected before each write. Most files of a site fit into one write. */
const pieceBytes = 256 * 1024;

export async function inGroups<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += groupSize)
    await Promise.all(items.slice(at, at + groupSize).map(work));
}

async function writeNewFile(
  source: Readable | Buffer,
  path: string,
  requireFreeSpace: FreeSpaceCheck,
): Promise<Blob> {
  await requireFreeSpace();
  const file = await open(path, 'wx', 0o600);
  try {
    if (source instanceof Readable) return await writeTo(file, source, requireFreeSpace);
    if (source.length > 0) await writeAll(file, [source], source.length);
    return { digest: hash('sha256', source, 'hex'), size: source.length };
  } finally {
    await file.close();
  }
}

async function writeTo(file: FileHandle, source: Readable, requireFreeSpace: FreeSpaceCheck): Promise<Blob> {
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
    await requireFreeSpace();
    await writeAll(file, pieces, gathered);
    pieces = [];
    gathered = 0;
  }
  if (gathered > 0) await writeAll(file, pieces, gathered);
  return { digest: sum.digest('hex'), size };
}

async function writeAll(file: FileHandle, pieces: readonly Buffer[], bytes: number): Promise<void> {
  const { bytesWritten } = await file.writev(pieces);
  // When the disk is nearly full, or after a signal, the system may write only a part.
  if (bytesWritten < bytes) await file.appendFile(Buffer.concat(pieces).subarray(bytesWritten));
}
