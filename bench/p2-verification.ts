import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type BenchOptions, type Figure, perSecond, sideBySide } from './figures.ts';
import { serverCore } from './load.ts';

const here = import.meta.dirname;

/**
 * P2: one verification in process: ours (key check, limit, confirmation) against better-auth's verifyApiKey on in-memory
 * SQLite. better-auth is installed on first use, in bench/better-auth, never in the project.
 */
export async function verification({ quick }: BenchOptions): Promise<Figure[]> {
  const folder = join(here, 'better-auth');
  if (!existsSync(join(folder, 'node_modules', 'better-auth')))
    execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd: folder,
      stdio: 'inherit',
    });
  const seconds = quick ? 1 : 2;
  const ours = async () => measure(join(here, 'verify-here.ts'), seconds);
  const theirs = async () => measure(join(folder, 'verify.mjs'), seconds);
  const found = await sideBySide(quick ? 1 : 5, ours, theirs);
  return [
    {
      id: 'P2',
      what: 'verification in process, against better-auth 1.7.5',
      ours: perSecond(found.ours),
      reference: perSecond(found.reference),
      ratio: found.ratio,
      floor: '≥ 100',
      goal: '≥ 100',
      passes: found.ratio >= 100,
    },
  ];
}

/** Runs each round in a new process, pinned to one core. */
function measure(program: string, seconds: number): number {
  const text = execFileSync('taskset', ['-c', serverCore, process.execPath, program, String(seconds)], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return (JSON.parse(text) as { perSecond: number }).perSecond;
}
