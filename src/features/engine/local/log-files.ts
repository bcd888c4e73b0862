import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LogLine } from '../build-log.ts';
import type { LogEntry } from '../contract.ts';

/**
 * The log of a service in files of one folder, each named by the id of its first line. With more than `maxFiles`, the oldest
 * file is removed. One process writes while others read.
 */
const maxFiles = 8;
/** Bytes of the newest file to read for the last lines. */
const lastBytes = 64 * 1024;

export type LogFiles = {
  append(line: LogLine): void;
  /** Writes the lines appended since the last flush. */
  flush(): void;
  close(): void;
};

/** Continues the ids of existing lines. `maxBytes`: maximum bytes of all files together. */
export function openLogFiles(folder: string, maxBytes: number): LogFiles {
  const bytesPerFile = Math.ceil(maxBytes / maxFiles);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  let next = nextIdIn(folder);
  let file: { readonly descriptor: number; bytes: number } | undefined;
  let pending = '';

  const flush = () => {
    const text = pending;
    pending = '';
    if (file === undefined || text === '') return;
    try {
      file.bytes += writeSync(file.descriptor, text);
    } catch {
      // On a full disk, lines are lost. The service must not end because of that.
    }
  };
  const close = () => {
    flush();
    if (file !== undefined) closeSync(file.descriptor);
    file = undefined;
  };
  const openNext = () => {
    close();
    try {
      const old = idsOf(readdirSync(folder)).slice(0, 1 - maxFiles);
      for (const id of old) rmSync(join(folder, nameOf(id)));
      file = { descriptor: openSync(join(folder, nameOf(next)), 'wx', 0o600), bytes: 0 };
    } catch {
      // Lines are lost on a full disk. The next line retries.
    }
  };

  return {
    append(line) {
      if (file === undefined || file.bytes + pending.length >= bytesPerFile) openNext();
      pending += `${JSON.stringify({ id: next, ...line })}\n`;
      next += 1;
    },
    flush,
    close,
  };
}

/** ID of the next line. Call it while nothing writes. */
export function nextIdIn(folder: string): number {
  const newest = idsOf(readdirSync(folder)).at(-1);
  if (newest === undefined) return 1;
  const lines = readFileSync(join(folder, nameOf(newest)), 'utf8').split('\n').length - 1;
  return newest + Math.max(1, lines);
}

/** Lines with an id above `after`, oldest first. */
export async function readLogFiles(folder: string, after: number, limit: number): Promise<LogEntry[]> {
  const ids = idsOf(await namesIn(folder));
  const found: LogEntry[] = [];
  // The last file that begins before the wanted line can contain it.
  for (const id of ids.slice(
    Math.max(
      0,
      ids.findLastIndex((first) => first <= after + 1),
    ),
  )) {
    if (found.length >= limit) break;
    // The writer may have removed the file.
    const text = await readFile(join(folder, nameOf(id)), 'utf8').catch(() => '');
    found.push(...entriesIn(text).filter((entry) => entry.id > after));
  }
  return found.slice(0, limit);
}

/** A text that changes when lines are written. Blocks for some microseconds. */
export function stateOfLogFiles(folder: string): string {
  try {
    const newest = idsOf(readdirSync(folder)).at(-1);
    return newest === undefined ? '' : `${newest} ${statSync(join(folder, nameOf(newest))).size}`;
  } catch {
    // The writer has removed the file, or the folder does not exist yet.
    return '';
  }
}

/** The newest lines, at most `limit`. */
export async function lastOfLogFiles(folder: string, limit: number): Promise<LogEntry[]> {
  const newest = idsOf(await namesIn(folder)).slice(-2);
  const texts = await Promise.all(newest.map((id) => endOf(join(folder, nameOf(id)))));
  return texts.flatMap(entriesIn).slice(-limit);
}

async function endOf(path: string): Promise<string> {
  const file = await open(path).catch(() => undefined);
  if (file === undefined) return '';
  try {
    const { size } = await file.stat();
    const start = Math.max(0, size - lastBytes);
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(size - start), position: start });
    const text = buffer.toString('utf8', 0, bytesRead);
    return start === 0 ? text : text.slice(text.indexOf('\n') + 1);
  } finally {
    await file.close();
  }
}

/** Parses complete lines only: the writer may be in the middle of the last one. */
function entriesIn(text: string): LogEntry[] {
  return text
    .split('\n')
    .slice(0, -1)
    .flatMap((line) => {
      try {
        // append() wrote the line.
        return [JSON.parse(line) as LogEntry];
      } catch {
        // A power loss can leave a part of a line.
        return [];
      }
    });
}

async function namesIn(folder: string): Promise<string[]> {
  return await readdir(folder).catch(() => []);
}

function idsOf(names: readonly string[]): number[] {
  return names
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .toSorted((one, other) => one - other);
}

function nameOf(id: number): string {
  return String(id);
}
