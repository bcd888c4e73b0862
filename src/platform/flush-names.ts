import { execFile } from 'node:child_process';
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { promisify } from 'node:util';

/** Keeps the names in a folder: a file whose name was not flushed is lost with the power, whatever was flushed of it. */
export async function flushNames(folder: string): Promise<void> {
  // Windows has no way to flush a folder, and refuses to open one.
  if (process.platform === 'win32') return;
  const names = await open(folder, 'r');
  try {
    await names.sync();
  } finally {
    await names.close();
  }
}

/** The same, for what is done before anything else may be: it waits for the disk. */
export function flushNamesNow(folder: string): void {
  if (process.platform === 'win32') return;
  const names = openSync(folder, 'r');
  try {
    fsyncSync(names);
  } finally {
    closeSync(names);
  }
}

const run = promisify(execFile);

/**
 * Asks the disk to keep everything that was written to the file system of `folder`: for a thousand files a tenth of the
 * time that asking for each takes. False where that cannot be had (syncfs(2) is Linux’s, and Node has no call for it).
 */
export async function flushFileSystem(folder: string): Promise<boolean> {
  if (process.platform !== 'linux') return false;
  return await run('sync', ['-f', folder]).then(
    () => true,
    () => false,
  );
}
