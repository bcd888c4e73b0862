import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { stagingFolder, type FolderOptions } from './staging-folder.ts';
import { unlessFull } from './disk-full.ts';
import { unlimitedSpace } from './free-space.ts';

/** Copies a stream into a temporary file, for readers that need random access. No file outlives the process that wrote it. */
export type TemporaryFiles = {
  /** Rejects with the error of `source`, or with `storage_full`; then no file is left. */
  take(source: Readable): Promise<TemporaryFile>;
};

export type TemporaryFile = { readonly path: string; discard(): Promise<void> };

/** Call prepare() first; it removes what an earlier process left. */
export function temporaryFilesIn(
  folder: string,
  { isShared = false, requireFreeSpace = unlimitedSpace }: FolderOptions = {},
): TemporaryFiles & { prepare(): Promise<void> } {
  const staging = stagingFolder(folder, { isShared });
  async function* whileSpaceIsFree(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      await requireFreeSpace();
      yield chunk;
    }
  }

  return {
    prepare: staging.prepare,
    async take(source) {
      const path = join(staging.path, randomUUID());
      const discard = () => rm(path, { force: true });
      const file = createWriteStream(path, { flags: 'wx', mode: 0o600 });
      try {
        await pipeline(source, whileSpaceIsFree, file);
        return { path, discard };
      } catch (error) {
        // The file may still be being opened, and would then appear after its removal.
        if (!file.closed) await new Promise<void>((resolve) => file.once('close', () => resolve()));
        await discard();
        return unlessFull(error);
      }
    },
  };
}
