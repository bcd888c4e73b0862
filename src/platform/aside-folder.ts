import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { day } from '../core/clock.ts';
import type { RoomCheck } from './free-space.ts';

/** Nobody takes this long to write a file aside; in ms. */
const longestWriting = day;

/** Of a folder on a disk. `isShared`: other processes may use the folder, too. */
export type FolderOptions = { readonly isShared?: boolean; readonly requireRoom?: RoomCheck };

/**
 * Makes a folder that files are written aside into ready, and removes what an earlier process left there. Where other processes
 * may be writing into it right now, that is what is a day old.
 */
export async function prepareAside(
  folder: string,
  { isShared }: { readonly isShared: boolean },
): Promise<void> {
  if (!isShared) await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    // One that is gone by now was its owner's to remove.
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }));
    if (Date.now() - mtimeMs > longestWriting) await rm(path, { recursive: true, force: true });
  }
}
