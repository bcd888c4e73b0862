import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type FolderOptions, prepareAside } from './aside-folder.ts';
import { unlessFull } from './disk-full.ts';
import { roomForAll } from './free-space.ts';

/** Puts a stream into a file for readers that must jump about in it. Nothing of it outlives the process that wrote it. */
export type Spool = {
  /** Rejects with what makes `source` fail, or with `storage_full`; then nothing is left. */
  take(source: Readable): Promise<Spooled>;
};

export type Spooled = { readonly path: string; discard(): Promise<void> };

/** Call prepare() first; what an earlier process left goes then. */
export function fileSpool(
  folder: string,
  { isShared = false, requireRoom = roomForAll }: FolderOptions = {},
): Spool & { prepare(): Promise<void> } {
  async function* whileThereIsRoom(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      await requireRoom();
      yield chunk;
    }
  }

  return {
    prepare: () => prepareAside(folder, { isShared }),
    async take(source) {
      const path = join(folder, randomUUID());
      const discard = () => rm(path, { force: true });
      try {
        await pipeline(source, whileThereIsRoom, createWriteStream(path, { flags: 'wx', mode: 0o600 }));
        return { path, discard };
      } catch (error) {
        await discard();
        return unlessFull(error);
      }
    },
  };
}
