import { renameSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

/** Replaces the file atomically: no reader finds a part of it. */
export function writeJson(path: string, value: unknown): void {
  const next = `${path}.next`;
  writeFileSync(next, JSON.stringify(value), { mode: 0o600 });
  renameSync(next, path);
}

/** Undefined: the file does not exist, or a power loss left a part of it. Only Postern writes into these folders. */
export async function readJson<T>(path: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as T;
  } catch {
    return undefined;
  }
}
