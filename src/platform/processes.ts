import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { open, readdir, readFile, readlink } from 'node:fs/promises';
import { constants } from 'node:os';
import { setImmediate as turn } from 'node:timers/promises';

/** A process of this machine, as proc(5) describes it. Where there is no /proc, nothing is found. */
type FoundProcess = {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly residentBytes: number;
};

const pageBytes = 4_096;

/** The process `root`, its descendants, and the members of the process group that it leads. Reads all processes of the machine. */
export async function processesOf(root: number): Promise<FoundProcess[]> {
  const all = await everyProcess();
  const found = new Set([root]);
  for (let before = 0; before !== found.size; ) {
    before = found.size;
    for (const { pid, parent, group } of all) if (found.has(parent) || group === root) found.add(pid);
  }
  return all.filter(({ pid }) => found.has(pid));
}

/** Processes, their threads and their memory. `threads` counts at least one for each process. */
export type Usage = {
  readonly pids: readonly number[];
  readonly threads: number;
  readonly residentBytes: number;
};

/** Sums the usage of processes. It does not count their threads. */
export function usageOf(processes: readonly FoundProcess[]): Usage {
  const residentBytes = processes.reduce((sum, one) => sum + one.residentBytes, 0);
  return { pids: processes.map(({ pid }) => pid), threads: processes.length, residentBytes };
}

/** Threads whose files are read without a pause, which takes about a millisecond. */
const threadsInTurn = 50;

/**
 * Usage of a process and its descendants. Reads only these (proc_pid_task(5), `children`), so other processes of the machine
 * cost nothing. The program decides how many threads it has, so the search stops after `maxThreads`.
 */
export async function usageBelow(root: number, maxThreads: number): Promise<Usage> {
  if (!existsSync(`/proc/self/task/${process.pid}/children`)) return usageOf(await processesOf(root));
  const pids: number[] = [];
  const left = [root];
  let [threads, residentBytes, untilTurn] = [0, 0, threadsInTurn];
  for (let pid = left.pop(); pid !== undefined && threads <= maxThreads; pid = left.pop()) {
    const memory = startOfNow(`/proc/${pid}/statm`);
    // It has ended.
    if (memory === '') continue;
    pids.push(pid);
    residentBytes += Number(memory.split(' ')[1]) * pageBytes;
    for (const thread of namesNow(`/proc/${pid}/task`)) {
      threads += 1;
      if (threads > maxThreads) break;
      left.push(...startOfNow(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number));
      untilTurn -= 1;
      if (untilTurn > 0) continue;
      untilTurn = threadsInTurn;
      await turn();
    }
  }
  return { pids, threads, residentBytes };
}

/** For the ids of at least 8,000 children of one thread. */
const block = Buffer.alloc(65_536);

/** Blocks for some microseconds, as files of proc(5) do; a promise would take ten times as much. Empty: the process has ended. */
function startOfNow(path: string): string {
  try {
    const file = openSync(path, 'r');
    try {
      let length = 0;
      // One read gives a page.
      for (let read = -1; read !== 0 && length < block.length; length += read)
        read = readSync(file, block, length, block.length - length, null);
      return block.toString('latin1', 0, length);
    } finally {
      closeSync(file);
    }
  } catch {
    return '';
  }
}

function namesNow(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/** A process can make its environment gigabytes long (prctl(2), PR_SET_MM_MAP). The start has what its parent set first. */
const environmentBytes = 8_192;

/**
 * The processes that were started with this variable and value at the start of their environment, and that this process may
 * examine. Not those of other pid namespaces: what runs in a sandbox can write any environment, and ends with its sandbox.
 */
export async function processesWith(variable: string, value: string): Promise<number[]> {
  const wanted = `\0${variable}=${value}\0`;
  const [own, pids] = await Promise.all([pidNamespaceOf('self'), processIds()]);
  const found = await Promise.all(
    pids.map(async (pid) => {
      if ((await pidNamespaceOf(pid)) !== own) return false;
      return `\0${await startOf(`/proc/${pid}/environ`, environmentBytes)}\0`.includes(wanted);
    }),
  );
  return pids.filter((_, at) => found[at]);
}

function pidNamespaceOf(pid: number | 'self'): Promise<string | undefined> {
  return readlink(`/proc/${pid}/ns/pid`).catch(() => undefined);
}

const readBytes = 16_384;

/** The first bytes of a file of proc(5), as text. Empty: the process has ended, or this process may not read it. */
export async function startOf(path: string, bytes: number): Promise<string> {
  const file = await open(path).catch(() => undefined);
  if (file === undefined) return '';
  try {
    const parts: Buffer[] = [];
    // One read gives at most a page or two.
    for (let left = bytes; left > 0; left -= parts.at(-1)?.length ?? 0) {
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(Math.min(left, readBytes)));
      if (bytesRead === 0) break;
      parts.push(buffer.subarray(0, bytesRead));
    }
    return Buffer.concat(parts).toString('utf8');
  } catch {
    // The process ended meanwhile.
    return '';
  } finally {
    await file.close();
  }
}

/** Whether a process has ended, or waits only for its parent to notice. */
export async function hasEnded(pid: number): Promise<boolean> {
  const text = startOfNow(`/proc/${pid}/stat`);
  return text === '' || /^[ZX]/.test(text.slice(text.lastIndexOf(')') + 2));
}

/** Whether a process has a handler for SIGTERM, or ignores it (proc_pid_status(5)). False: it ends immediately, or has ended. */
export async function handlesTermination(pid: number): Promise<boolean> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return ['SigCgt', 'SigIgn'].some((name) => {
    const mask = new RegExp(`^${name}:\\s*([0-9a-f]+)`, 'm').exec(text)?.[1] ?? '0';
    return ((BigInt(`0x${mask}`) >> BigInt(constants.signals.SIGTERM - 1)) & 1n) === 1n;
  });
}

/**
 * A process that has ended, or a group without members, is no error. Neither is one of another user, such as a program with
 * the set-user-ID bit: this process cannot end it. A negative `pid` names a group, as for kill(2).
 */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}

/** O_CLOEXEC of open(2). */
const closesOnExec = 0o2000000;

/**
 * Closes the files that were open when this process was started, so that no program gets them that it starts: bash keeps
 * `<(…)` at file 63, for instance. Node opens its own files, and marks those that it was given, so that programs do not get them.
 */
export function closeInheritedFiles(): void {
  for (const file of readdirSync('/proc/self/fd').map(Number)) {
    if (file <= 2) continue;
    try {
      const flags = /^flags:\s+([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${file}`, 'utf8'))?.[1];
      if (flags !== undefined && (Number.parseInt(flags, 8) & closesOnExec) === 0) closeSync(file);
    } catch {
      // The listed folder's own file descriptor is closed by now.
    }
  }
}

async function processIds(): Promise<number[]> {
  const names = await readdir('/proc').catch(() => []);
  return names.filter((name) => /^\d+$/.test(name)).map(Number);
}

/** All processes of this machine that this process sees. */
async function everyProcess(): Promise<FoundProcess[]> {
  const stats = await Promise.all(
    (await processIds()).map(async (pid) => {
      const text = await statText(pid);
      // The name of the program, in parentheses, can contain anything.
      const fields = text
        ?.slice(text.lastIndexOf(')') + 2)
        .split(' ')
        .map(Number);
      const [, parent = 0, group = 0] = fields ?? [];
      return fields === undefined
        ? []
        : [{ pid, parent, group, residentBytes: (fields[21] ?? 0) * pageBytes }];
    }),
  );
  return stats.flat();
}

/** Undefined: the process has ended. */
function statText(pid: number): Promise<string | undefined> {
  return readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
}
