import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { processesOf } from '../src/platform/processes.ts';
import { Browser } from '../test/faults/browser.ts';
import { administrator, freePorts, startProgram } from '../test/faults/program.ts';
import { newRepository } from '../test/git-repository.ts';
import { type BenchOptions, type Figure, median } from './figures.ts';
import { call, commit, prepare, removeAll, settled } from './shop.ts';

/**
 * P13: processor time that the local engine takes for idle services, one in each Environment: what the program and all it
 * started take with one and with nine of them, less what the program takes without any; and the time of a sign-in beside nine
 * of them against none. 500 other processes sleep.
 */
export async function idleServices({ quick }: BenchOptions): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-idle-'));
  const repository = newRepository();
  commit(repository, 0);
  const settings = { ENVIRONMENTS_ENGINE: 'local', ENVIRONMENTS_ALLOW_FILE_REPOSITORIES: 'true' };
  const sleepers = Array.from({ length: 500 }, () => spawn('sleep', ['1000000']));
  const program = await startProgram({ dataDir: folder, ports: await freePorts(), settings });
  const ada = new Browser(program.origin);
  const percents: number[] = [];
  const signIns: number[] = [];
  try {
    await prepare(ada, repository);
    for (let count = 0; count < 9; count += 1) {
      const { id } = await call(ada, 'POST', '/environments', { repository: 'acme/shop', branch: 'main' });
      await settled(ada, id, 'deployed');
    }
    // Fewer each time: a program that has just started compiles its code meanwhile.
    for (const left of [9, 1, 0]) {
      await removeAll(ada, left);
      await wait(quick ? 0 : 10_000);
      const rounds: number[] = [];
      for (let round = 0; round < (quick ? 1 : 5); round++)
        rounds.push(await percentOf(program.pid, quick ? 1 : 10));
      const shown = rounds.map((one) => one.toFixed(2)).join(' ');
      console.error(`bench: with ${left} idle services, % of a core: ${shown}`);
      percents.push(median(rounds));
      signIns.push(await signInMs(program.origin, quick ? 1 : 15));
    }
  } finally {
    // Processes outlive the program, so a round that failed must not leave any.
    await removeAll(ada);
    await program.end('SIGTERM');
    for (const sleeper of sleepers) sleeper.kill();
    repository.remove();
    rmSync(folder, { recursive: true, force: true });
  }
  const [nine = Number.NaN, one = Number.NaN, none = Number.NaN] = percents;
  const [besideNine = Number.NaN, , alone = Number.NaN] = signIns;
  return [
    figure('one idle service', one - none, 1),
    figure('nine idle services', nine - none, 3),
    signInFigure(besideNine, alone),
  ];
}

/** Median of `times` sign-ins, each in a new browser. */
async function signInMs(origin: string, times: number): Promise<number> {
  const all: number[] = [];
  for (let count = 0; count < times; count += 1) {
    const browser = new Browser(origin);
    const begun = performance.now();
    await browser.signIn(administrator.email, administrator.password);
    all.push(performance.now() - begun);
  }
  console.error(`bench: sign-ins, ms: ${all.map((one) => one.toFixed(0)).join(' ')}`);
  return median(all);
}

/** The percentage of a core that a process and its descendants use, including those that have ended. */
async function percentOf(root: number, seconds: number): Promise<number> {
  const begun = await ticksOf(root);
  await wait(seconds * 1_000);
  return ((await ticksOf(root)) - begun) / seconds;
}

/** Hundredths of a second, which is what Linux counts in (proc_pid_stat(5), fields 14 to 17). */
async function ticksOf(root: number): Promise<number> {
  const found = await processesOf(root);
  return found.reduce((sum, { pid }) => {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 15);
    return sum + fields.map(Number).reduce((all, ticks) => all + ticks, 0);
  }, 0);
}

function signInFigure(besideNine: number, alone: number): Figure {
  return {
    id: 'P13',
    what: 'sign-in beside nine idle services, against none',
    ours: `${besideNine.toFixed(0)} ms`,
    reference: `${alone.toFixed(0)} ms`,
    ratio: besideNine / alone,
    floor: '≤ 1.2 ×',
    goal: '1 ×',
    passes: besideNine / alone <= 1.2,
  };
}

function figure(what: string, percent: number, most: number): Figure {
  return {
    id: 'P13',
    what: `processor time of the local engine, ${what}`,
    ours: `${percent.toFixed(2)} %`,
    reference: '–',
    ratio: percent / most,
    floor: `≤ ${most} %`,
    goal: `≤ ${most} %`,
    passes: percent <= most,
  };
}
