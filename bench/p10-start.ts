import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { holderOf } from '../src/platform/data-dir.ts';
import { freePort } from '../scripts/local-servers.ts';
import { type BenchOptions, type Figure, median } from './figures.ts';
import { withoutSettings } from './server-process.ts';

/**
 * P10: time from `npm start` to ready, on the embedded backends: first with an empty folder, then with a used one. Memory
 * counts npm and all its child processes, and what they share once, as the limit of a container does: the peak during a
 * first start, and after ten idle seconds.
 */
export async function start({ quick }: BenchOptions): Promise<Figure[]> {
  const firsts: number[] = [];
  const warms: number[] = [];
  const peaks: number[] = [];
  const idles: number[] = [];
  for (let round = 0; round < (quick ? 1 : 5); round++) {
    await inFolder(async (folder) => {
      firsts.push(await secondsOf(await startOnce(folder)));
      warms.push(await secondsOf(await startOnce(folder)));
    });
  }
  // Starts of their own: looking at the memory of a process delays it.
  for (let round = 0; round < (quick ? 1 : 3); round++) {
    await inFolder(async (folder) => {
      const first = await startOnce(folder, { isWatched: true });
      // What the database compiles after the start counts too.
      await wait(quick ? 0 : 3_000);
      peaks.push(first.peakMegabytes());
      await first.stop();
      const warm = await startOnce(folder);
      await wait(quick ? 1_000 : 10_000);
      idles.push(megabytesOf(warm.pid));
      await warm.stop();
    });
  }
  return [
    figure('start to ready, first', median(firsts), 's', 4),
    figure('start to ready, warm', median(warms), 's', 1.2),
    figure('memory, idle for 10 s', median(idles), 'MB', 400),
    figure('memory, the most during a first start', median(peaks), 'MB', 805),
  ];
}

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-start-'));
  try {
    await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function secondsOf({ seconds, stop }: Awaited<ReturnType<typeof startOnce>>): Promise<number> {
  await stop();
  return seconds;
}

async function startOnce(folder: string, { isWatched = false } = {}) {
  const [port, gateway, metrics] = [await freePort(), await freePort(), await freePort()];
  const startedAt = performance.now();
  const child = spawn('npm', ['start'], {
    cwd: join(import.meta.dirname, '..'),
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...withoutSettings(process.env),
      DATA_DIR: folder,
      PORT: String(port),
      GATEWAY_PORT: String(gateway),
      METRICS_PORT: String(metrics),
      SERVICE_UI_URL: `http://localhost:${port}`,
    },
  });
  const pid = child.pid ?? 0;
  let peak = 0;
  const watch = () => (peak = Math.max(peak, megabytesOf(pid)));
  const sampling = isWatched ? setInterval(watch, 50) : undefined;
  await ready(child, `http://127.0.0.1:${metrics}/readyz`);
  return {
    seconds: (performance.now() - startedAt) / 1_000,
    pid,
    peakMegabytes: () => peak,
    async stop() {
      clearInterval(sampling);
      child.kill('SIGTERM');
      await once(child, 'exit');
      // npm ends before the server does, and the next start needs the folder.
      while ((await holderOf(folder)) !== undefined) await wait(10);
    },
  };
}

async function ready(child: ChildProcess, url: string): Promise<void> {
  const giveUpAt = performance.now() + 60_000;
  while (performance.now() < giveUpAt) {
    if (child.exitCode !== null)
      throw new Error('The server ended before it was ready; its message is above.');
    const status = await fetch(url).then(
      (answer) => answer.status,
      () => 0,
    );
    if (status === 200) return;
    await wait(10);
  }
  child.kill('SIGKILL');
  throw new Error('The server was not ready within a minute.');
}

/** Proportional memory of a process and all its descendants (proc(5) smaps_rollup). */
function megabytesOf(pid: number): number {
  try {
    const own =
      Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) / 1_024;
    const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean),
    );
    return own + children.reduce((sum, child) => sum + megabytesOf(Number(child)), 0);
  } catch {
    // The process or one of its threads has ended.
    return 0;
  }
}

function figure(what: string, value: number, unit: string, most: number): Figure {
  const text = `${value.toFixed(unit === 's' ? 2 : 0)} ${unit}`;
  return {
    id: 'P10',
    what,
    ours: text,
    reference: '–',
    ratio: value / most,
    floor: `≤ ${most} ${unit}`,
    goal: `≤ ${most} ${unit}`,
    passes: value <= most,
  };
}
