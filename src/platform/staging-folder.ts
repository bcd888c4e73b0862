import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { day } from '../core/clock.ts';
import type { FreeSpaceCheck } from './free-space.ts';
import { answers, showLife } from './sign-of-life.ts';

/** Options of a folder on a disk. `isShared`: other processes may use the same folder. */
export type FolderOptions = { readonly isShared?: boolean; readonly requireFreeSpace?: FreeSpaceCheck };

export type StagingFolder = {
  /** Folder in which this process writes. */
  readonly path: string;
  /** Creates the folder and removes files that ended processes left in it. */
  prepare(): Promise<void>;
};

/** No process takes longer than this to write a file, in ms. Used where no socket shows whether a process still runs. */
const maxWritingMs = day;
const ofProcess = /^([0-9a-f-]{36})\.(?:d|sock)$/;

/**
 * A folder for files that have no final name yet. In a shared folder each process writes to a separate subfolder, next
 * to a socket on which it listens. When a process is killed, the next process that starts removes its files.
 */
export function stagingFolder(
  folder: string,
  { isShared = false }: Pick<FolderOptions, 'isShared'>,
): StagingFolder {
  const token = randomUUID();
  const path = isShared ? join(folder, `${token}.d`) : folder;

  async function prepareShared(): Promise<void> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    // Listen first: another process must not find this subfolder without a socket and remove it.
    const life = await showLife(folder, `${token}.sock`);
    await mkdir(path, { recursive: true, mode: 0o700 });
    const names = await readdir(folder);
    const tokens = new Set(names.flatMap((name) => ofProcess.exec(name)?.[1] ?? []));
    tokens.delete(token);
    for (const staged of tokens) {
      const [place, socket] = [join(folder, `${staged}.d`), join(folder, `${staged}.sock`)];
      if (life === null) await removeOld(place);
      else if (!(await answers(folder, `${staged}.sock`)))
        for (const gone of [place, socket]) await rm(gone, { recursive: true, force: true });
    }
    await removeOld(folder);
  }

  return {
    path,
    async prepare() {
      if (isShared) return await prepareShared();
      await rm(folder, { recursive: true, force: true });
      await mkdir(folder, { recursive: true, mode: 0o700 });
    },
  };
}

/** Removes files that belong to no known process, such as those that an earlier release wrote. */
async function removeOld(folder: string): Promise<void> {
  const there = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const { name } of there.filter((one) => one.isFile())) {
    const path = join(folder, name);
    // Without a time, its owner has removed the file meanwhile. It counts as new and is skipped.
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }));
    if (Date.now() - mtimeMs > maxWritingMs) await rm(path, { force: true });
  }
}
