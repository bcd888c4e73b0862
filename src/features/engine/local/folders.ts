import { execFile } from 'node:child_process';
import { chmod, lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const runProgram = promisify(execFile);

/** Restores permissions that commands removed from their files, as Go does with downloaded modules. */
export async function makeReadable(folder: string): Promise<void> {
  await runProgram('chmod', ['-R', 'u+rwX', folder]).catch(async ({ code }: NodeJS.ErrnoException) => {
    // Postern's image has no chmod(1).
    if (code === 'ENOENT') await makeReadableHere(folder);
  });
}

async function makeReadableHere(path: string): Promise<void> {
  const found = await lstat(path);
  if (!found.isDirectory() && !found.isFile()) return;
  const missing = found.isDirectory() ? 0o700 : 0o600;
  if ((found.mode & missing) !== missing) await chmod(path, found.mode | missing);
  if (!found.isDirectory()) return;
  for (const name of await readdir(path)) await makeReadableHere(join(path, name));
}

export async function removeFolder(folder: string): Promise<void> {
  if ((await lstat(folder).catch(() => undefined)) === undefined) return;
  await makeReadable(folder);
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}

/** Disk usage according to du(1). Files that vanish meanwhile do not count. */
export async function bytesBelow(folder: string): Promise<number> {
  const { stdout } = await runProgram('du', ['-skx', folder], { maxBuffer: 64 * 1024 * 1024 }).catch(
    // du reports an error for files that vanish, and still prints the sum.
    (error: { stdout?: string }) => ({ stdout: error.stdout ?? '' }),
  );
  return (Number.parseInt(stdout, 10) || 0) * 1_024;
}
