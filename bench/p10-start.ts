import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from '../scripts/local-servers.ts';
import { type BenchOptions, type Figure, median } from './figures.ts';
import { withoutSettings } from './server-process.ts';

/** P10: from the command to ready, on the embedded parts: an empty folder, then one that has been used; idle memory. */
export async function start({ quick }: BenchOptions): Promise<Figure[]> {
  const firsts: number[] = [];
  const warms: number[] = [];
  let memory = 0;
  for (let round = 0; round < (quick ? 1 : 5); round++) {
    const folder = mkdtempSync(join(tmpdir(), 'postern-bench-start-'));
    try {
      const first = await startOnce(folder);
      firsts.push(first.seconds);
      await first.stop();
      const warm = await startOnce(folder);
      warms.push(warm.seconds);
      if (round === 0) {
        await wait(quick ? 1_000 : 10_000);
        memory = megabytesOf(warm.pid);
      }
      await warm.stop();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  return [
    figure('start to ready, first', median(firsts), 's', 4),
    figure('start to ready, warm', median(warms), 's', 1.2),
    figure('memory, idle for 10 s', memory, 'MB', 400),
  ];
}

async function startOnce(folder: string) {
  const [port, gateway, metrics] = [await freePort(), await freePort(), await freePort()];
  const startedAt = performance.now();
  const child = spawn(process.execPath, [join(import.meta.dirname, '../src/main.ts')], {
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
  await ready(child, `http://127.0.0.1:${metrics}/readyz`);
  return {
    seconds: (performance.now() - startedAt) / 1_000,
    pid: child.pid ?? 0,
    async stop() {
      child.kill('SIGTERM');
      await once(child, 'exit');
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

/** Resident memory of a process and everything it started (proc(5) status). */
function megabytesOf(pid: number): number {
  const own =
    Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1_024;
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean),
  );
  return own + children.reduce((sum, child) => sum + megabytesOf(Number(child)), 0);
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
