import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { BuildLimits } from '../../src/features/engine/contract.ts';
import { createLocalEngine } from '../../src/features/engine/local/local-engine.ts';
import { fileBlobs } from '../../src/platform/blobs/file-blobs.ts';
import { generousLimits } from './engine-contract.ts';

/** A folder with a blob store and the local engines of one test file. Checks that none of them reports a defect. */
export function createMachine() {
  const folder = mkdtempSync(join(tmpdir(), 'postern-engine-'));
  const blobs = fileBlobs(join(folder, 'blobs'));
  const defects: unknown[] = [];
  const clock = { now: 0 };
  beforeAll(() => blobs.prepare());
  afterEach(() => expect(defects.splice(0)).toEqual([]));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function local(
    isolation: 'process' | 'bwrap',
    {
      limits = {},
      hidden = [folder, process.env['HOME'] ?? '/root'],
      searchPath = process.env['PATH'] ?? '',
    }: { limits?: Partial<BuildLimits>; hidden?: string[]; searchPath?: string } = {},
  ) {
    return createLocalEngine({
      folder: join(folder, isolation),
      isolation,
      hidden,
      searchPath,
      blobs,
      limits: { ...generousLimits, ...limits },
      now: () => clock.now,
      onDefect: (error) => void defects.push(error),
    });
  }
  return { folder, blobs, defects, clock, local };
}

/** The words of every process of this machine. */
export function programs(): string[] {
  return processIds().flatMap((pid) => {
    const words = fileOf(pid, 'cmdline').split('\0').join(' ').trim();
    return words === '' ? [] : [words];
  });
}

/** Processes that have this text in a variable of their environment. */
export function processesWithText(text: string): { readonly pid: number; readonly words: string }[] {
  return processIds().flatMap((pid) =>
    fileOf(pid, 'environ').includes(text) && pid !== process.pid
      ? [{ pid, words: fileOf(pid, 'cmdline') }]
      : [],
  );
}

function processIds(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function fileOf(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    // The process has ended.
    return '';
  }
}

// CI installs bubblewrap and slirp4netns; elsewhere these tests say that they are skipped.
export const isBwrapMissing =
  process.env['CI'] !== 'true' && spawnSync('bwrap', ['--version']).error !== undefined;
