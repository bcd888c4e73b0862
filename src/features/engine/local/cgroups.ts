import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';

const runProgram = promisify(execFile);

/** Limits of the kernel for all processes of one command together (cgroups(7), version 2). */
export type GroupLimits = { readonly memoryBytes: number; readonly threads: number };

/** Maximum checks of a group whose processes are ending, and the ms between checks. */
const [maxRounds, lookMs] = [200, 10];
/** Group of Postern's own processes: a group that sets limits for its children cannot contain processes. */
const ownGroup = 'postern';

/**
 * The control group in which Postern creates the groups of commands. Null: Postern has no delegated group with memory limits,
 * such as systemd gives with `Delegate=yes`.
 */
export async function openGroups(): Promise<string | null> {
  const given = await givenGroup();
  if (given === undefined) return null;
  const parent = given.folder;
  try {
    const controllers = (await readFile(join(parent, 'cgroup.controllers'), 'utf8')).trim().split(' ');
    // The group of the whole machine has no limits.
    if (!controllers.includes('memory') || !existsSync(join(parent, 'memory.max'))) return null;
    if (!given.isOfContainer && !(await isDelegated(parent))) return null;
    await mkdir(join(parent, ownGroup), { recursive: true });
    for (const pid of (await readFile(join(parent, 'cgroup.procs'), 'utf8')).split('\n').filter(Boolean))
      await writeFile(join(parent, ownGroup, 'cgroup.procs'), pid);
    await writeFile(join(parent, 'cgroup.subtree_control'), '+memory +pids');
    return parent;
  } catch {
    // The group is read-only, or belongs to another user.
    return null;
  }
}

/** The group in which Postern was started. */
async function givenGroup(): Promise<{ folder: string; isOfContainer: boolean } | undefined> {
  const read = (name: string) => readFile(`/proc/self/${name}`, 'utf8').catch(() => '');
  const own = /^0::(.+)$/m.exec(await read('cgroup'))?.[1];
  // proc_pid_mountinfo(5): the fourth field is the root of the mount, and the fifth its place.
  const mount = /^\S+ \S+ \S+ (\S+) (\S+) .* - cgroup2 /m.exec(await read('mountinfo'));
  if (own === undefined || mount === null) return undefined;
  const path = basename(own) === ownGroup ? dirname(own) : own;
  const [, root = '/', place = ''] = mount;
  return { folder: join(place, relative(root, path)), isOfContainer: path === '/' };
}

/** Whether systemd delegated this group to Postern (systemd.resource-control(5)). */
async function isDelegated(folder: string): Promise<boolean> {
  const manager = folder.includes('/user@') ? ['--user'] : [];
  const asked = [...manager, 'show', '--property=Delegate', '--value', basename(folder)];
  const { stdout } = await runProgram('systemctl', asked);
  return stdout.trim() === 'yes';
}

/** Creates the group of a command. `name`: a folder that only this command uses. Returns the path of the group. */
export async function makeGroup(
  parent: string,
  name: string,
  { memoryBytes, threads }: GroupLimits,
): Promise<string> {
  const group = join(parent, createHash('sha256').update(name).digest('hex').slice(0, 32));
  // The counters of an earlier command must not count for this one.
  await removeGroup(group);
  await mkdir(group);
  await writeFile(join(group, 'memory.max'), String(memoryBytes));
  // A machine without swap lacks this file.
  await writeFile(join(group, 'memory.swap.max'), '0').catch(() => undefined);
  await writeFile(join(group, 'memory.oom.group'), '1');
  await writeFile(join(group, 'pids.max'), String(threads));
  return group;
}

/** Arguments that start a program in the group. */
export function inGroup(group: string, words: readonly string[]): string[] {
  return ['/bin/sh', '-c', 'echo 0 >"$0/cgroup.procs" && exec "$@"', group, ...words];
}

/** Whether the kernel ended processes of the group because they used too much memory. */
export async function ranOutOfMemory(group: string): Promise<boolean> {
  const events = await readFile(join(group, 'memory.events'), 'utf8').catch(() => '');
  return Number(/^oom_kill (\d+)$/m.exec(events)?.[1] ?? 0) > 0;
}

/** Ends all processes of the group and removes it. */
export async function removeGroup(group: string): Promise<void> {
  if (!existsSync(group)) return;
  // Linux before 5.14 lacks this file. A sandbox ends with its first process anyway.
  await writeFile(join(group, 'cgroup.kill'), '1').catch(() => undefined);
  for (let round = 0; round < maxRounds; round++) {
    const isGone = await rmdir(group).then(
      () => true,
      ({ code }: NodeJS.ErrnoException) => code === 'ENOENT',
    );
    if (isGone) return;
    await wait(lookMs);
  }
}
