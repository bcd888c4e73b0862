import { open } from 'node:fs/promises';

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
