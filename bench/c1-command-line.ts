import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import buildCli, { bundled } from '../cli/build.ts';
import { type BenchOptions, type Figure, median, sideBySide } from './figures.ts';
import { sshGitServer } from '../test/git-servers.ts';
import { startServer } from './server-process.ts';

const maxStartMs = 80;
const maxAgainstRsync = 2;
/** A version may have 10,000 files and folders. */
const folders = 20;
const manyFiles = 10_000 - folders;

/**
 * C1: processor time of `postern --version`, the bundled file. C2: `postern deploy` of one changed file in 10,000, as a
 * process, against rsync of the same change to a server by ssh, which is how rsync publishes; and, without a floor, against
 * rsync that compares contents, as deploy does, instead of times and sizes, and against rsync into another folder.
 */
export async function commandLine({ quick }: BenchOptions): Promise<Figure[]> {
  await buildCli();
  return [start(quick), ...(await deployOfOne(quick))];
}

function start(quick: boolean): Figure {
  const rounds = quick ? 1 : 21;
  const empty = join(mkdtempSync(join(tmpdir(), 'postern-bench-')), 'empty.mjs');
  writeFileSync(empty, '');
  const ours: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    ours.push(processorMs(bundled, '--version'));
    bare.push(processorMs(empty));
  }
  rmSync(join(empty, '..'), { recursive: true });
  const ms = median(ours);
  return {
    id: 'C1',
    what: 'postern --version, processor time; beside it an empty script',
    ours: `${ms.toFixed(0)} ms`,
    reference: `${median(bare).toFixed(0)} ms`,
    ratio: ms / maxStartMs,
    floor: `≤ ${maxStartMs} ms`,
    goal: `≤ ${maxStartMs} ms`,
    passes: ms <= maxStartMs,
  };
}

/** Processor time of Node with this script, as bash measures its children. */
function processorMs(...script: readonly string[]): number {
  const command = ['-c', '"$@" > /dev/null; times', 'bash', process.execPath, ...script];
  const [, children = ''] = execFileSync('bash', command, { encoding: 'utf8' }).split('\n');
  const times = [...children.matchAll(/(\d+)m([\d.]+)s/g)];
  return times.reduce(
    (sum, [, minutes, seconds]) => sum + Number(minutes) * 60_000 + Number(seconds) * 1_000,
    0,
  );
}

async function deployOfOne(quick: boolean): Promise<Figure[]> {
  const count = quick ? 100 : manyFiles;
  const home = mkdtempSync(join(tmpdir(), 'postern-bench-'));
  const [source, copy] = [join(home, 'project/dist'), join(home, 'copy')];
  const server = await startServer();
  const ssh = await sshGitServer();
  try {
    await server.restJobs();
    for (let at = 0; at < count; at += 1) change(source, at);
    const [key = ''] = server.keys;
    const deploy = () =>
      seconds(process.execPath, [bundled, 'deploy', source, '--public'], {
        HOME: home,
        POSTERN_URL: server.address,
        POSTERN_KEY: key,
      });
    writeFileSync(join(home, 'key'), ssh.privateKey, { mode: 0o600 });
    const bySsh = ['-p', new URL(ssh.origin).port, '-i', join(home, 'key'), '-o', 'StrictHostKeyChecking=no'];
    const shell = ['ssh', '-q', ...bySsh, '-o', 'UserKnownHostsFile=/dev/null'].join(' ');
    const rsync = (to: string, ...options: string[]) =>
      seconds('rsync', ['--archive', '--delete', ...options, `${source}/`, to], {
        PATH: process.env['PATH'] ?? '',
      });
    const published = `root@127.0.0.1:${copy}`;
    const references = {
      'rsync by ssh': () => rsync(published, '--rsh', shell),
      'rsync --checksum by ssh': () => rsync(published, '--checksum', '--rsh', shell),
      'rsync into another folder': () => rsync(copy),
    };
    cpSync(source, copy, { recursive: true, preserveTimestamps: true });
    deploy();
    const changed = (run: () => number) => async () => {
      change(source, 0);
      return await Promise.resolve(run());
    };
    const rounds = quick ? 1 : 9;
    const figures: Figure[] = [];
    for (const [name, reference] of Object.entries(references)) {
      const pairs = await sideBySide(rounds, changed(deploy), changed(reference));
      figures.push(figure(count, name, pairs, figures.length === 0 ? maxAgainstRsync : undefined));
    }
    return figures;
  } finally {
    await server.stop();
    await ssh.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

/** 4 KiB, which no version has yet. */
function change(folder: string, at: number): void {
  const inside = join(folder, String(at % folders));
  mkdirSync(inside, { recursive: true });
  writeFileSync(join(inside, `${at}.txt`), randomBytes(2_048).toString('hex'));
}

function seconds(program: string, args: readonly string[], env: Record<string, string>): number {
  const startedAt = performance.now();
  const { status, stderr, error } = spawnSync(program, args, { env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} failed: ${error?.message ?? stderr}`);
  return (performance.now() - startedAt) / 1_000;
}

function figure(
  count: number,
  against: string,
  { ours, reference, ratio }: { ours: number; reference: number; ratio: number },
  most: number | undefined,
): Figure {
  const floor = most === undefined ? '–' : `≤ ${most}`;
  return {
    id: 'C2',
    what: `postern deploy with 1 of ${count} files changed, against ${against} of the same change`,
    ours: `${ours.toFixed(2)} s`,
    reference: `${reference.toFixed(2)} s`,
    ratio,
    floor,
    goal: floor,
    passes: most === undefined || ratio <= most,
  };
}
