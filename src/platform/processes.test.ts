import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { processesWith, startOf, usageBelow } from './processes.ts';

const started: ReturnType<typeof spawn>[] = [];
afterEach(async () => {
  for (const child of started.splice(0)) {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
});

async function start(env: Record<string, string>, ...launcher: string[]): Promise<number> {
  const [program, ...words] = [...launcher, 'sh', '-c', 'echo started; read -r end'];
  const child = spawn(program, words, {
    env: { ...env, PATH: process.env['PATH'] ?? '' },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  started.push(child);
  if (child.stdout !== null) await once(child.stdout, 'data');
  return child.pid ?? 0;
}

const value = `of-the-test-${process.pid}`;

test('a process is found by a variable at the start of its environment, however long the rest is', async () => {
  const long = 'x'.repeat(100_000);
  const first = await start({ POSTERN_TEST: value, LONG: long });
  await start({ LONG: long, POSTERN_TEST: value });
  await start({ POSTERN_TEST: `${value}-and-more` });
  expect(await processesWith('POSTERN_TEST', value)).toEqual([first]);
});

test.skipIf(process.getuid?.() !== 0)(
  'a process of another pid namespace is not found by its environment',
  async () => {
    await start({ POSTERN_TEST: value }, 'unshare', '--pid', '--fork', '--mount-proc');
    // unshare(1) itself is a process of this namespace.
    const outer = started.at(-1)?.pid;
    expect(await processesWith('POSTERN_TEST', value)).toEqual([outer]);
  },
);

test.runIf(existsSync(`/proc/self/task/${process.pid}/children`))(
  'what a process uses counts its descendants and their threads, up to a limit',
  async () => {
    // More children than one read of proc(5) gives.
    const many = 'i=0; while [ $i -lt 1000 ]; do sleep 1000 & i=$((i + 1)); done; echo started; wait';
    const child = spawn('sh', ['-c', `(trap "" HUP; ${many}); true`], {
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    });
    const pid = child.pid ?? 0;
    onTestFinished(() => void process.kill(-pid, 'SIGKILL'));
    if (child.stdout !== null) await once(child.stdout, 'data');
    const { pids, threads, residentBytes } = await usageBelow(pid, 10_000);
    expect([pids.length, threads]).toEqual([1_002, 1_002]);
    expect(residentBytes).toBeGreaterThan(1_002 * 4_096);
    expect((await usageBelow(pid, 100)).threads).toBe(101);
    const own = await usageBelow(process.pid, 10_000);
    expect(own.pids).toContain(pid);
    expect(own.threads).toBeGreaterThan(own.pids.length);
  },
);

test.runIf(existsSync('/proc/self/maps'))('of a file of any length, only the start is read', async () => {
  expect(await startOf('/proc/self/maps', 5_000)).toHaveLength(5_000);
  expect(await startOf('/proc/self/comm', 5_000)).toMatch(/^.{1,15}\n$/);
  expect(await startOf('/proc/none/environ', 10)).toBe('');
});

test('a file that bash opened before the start reaches no program that this process starts', () => {
  const program = `
    import { closeInheritedFiles } from '${import.meta.dirname}/processes.ts';
    import { spawnSync } from 'node:child_process';
    const files = () => spawnSync('ls', ['/proc/self/fd'], { encoding: 'utf8' }).stdout.split('\\n').includes('63');
    const before = files();
    closeInheritedFiles();
    console.log(before, files());`;
  const started = spawnSync(
    'bash',
    ['-c', 'exec 63</dev/null; exec "$0" --input-type=module --eval "$1"', process.execPath, program],
    {
      encoding: 'utf8',
    },
  );
  expect([started.stdout, started.stderr]).toEqual(['true false\n', '']);
});
