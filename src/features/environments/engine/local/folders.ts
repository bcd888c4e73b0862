import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { promisify } from 'node:util';

const runProgram = promisify(execFile);

/** Commands can take permissions away from their own files: Go does so with downloaded modules. */
export async function makeReadable(folder: string): Promise<void> {
  await runProgram('chmod', ['-R', 'u+rwX', folder]).catch(() => undefined);
}

export async function removeFolder(folder: string): Promise<void> {
  await makeReadable(folder);
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}

/** Of the disk, by du(1). What vanishes meanwhile counts nothing. */
export async function bytesBelow(folder: string): Promise<number> {
  const { stdout } = await runProgram('du', ['-skx', folder], { maxBuffer: 64 * 1024 * 1024 }).catch(
    // It complains about files that vanish, and still prints the sum.
    (error: { stdout?: string }) => ({ stdout: error.stdout ?? '' }),
  );
  return (Number.parseInt(stdout, 10) || 0) * 1_024;
}
