import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import {
  handlesTermination,
  hasEnded,
  processesOf,
  processesWith,
  signal,
  type Usage,
  usageBelow,
  usageOf,
} from '../../../platform/processes.ts';
import { EngineUnavailable } from '../contract.ts';
import { inGroup, makeGroup, ranOutOfMemory, removeGroup } from './cgroups.ts';
import type { Sandbox } from './sandbox.ts';
import { seccompFilter } from './seccomp.ts';
import { asTenant } from './tenant.ts';

/** A command that runs in a shell. */
export type RunningCommand = {
  /** PID of the first process. 0: the command could not be started, and `ended` rejects. */
  readonly pid: number;
  /** Exit status as a shell reports it: 128 plus the number of a signal. Resolves when everything that the command started has ended. */
  readonly ended: Promise<number>;
  /** Resources that the processes use. Stops counting above `maxThreads`. */
  usage(maxThreads: number): Promise<Usage>;
  /** Valid after the end: whether the kernel ended the command because it used too much memory. */
  readonly isOutOfMemory: boolean;
  /** Sends SIGTERM to the processes of the command, but not to the programs around it. */
  terminate(): Promise<void>;
  /** Kills every process. */
  kill(): void;
};

export type Command = {
  readonly mark: Mark;
  readonly text: string;
  readonly env: Readonly<Record<string, string>>;
  readonly workingDirectory: string;
  readonly fileBytes: number;
  /** Receives a chunk of output. While the returned promise is pending, the pipe and the command wait. */
  readonly output: (stream: 'stdout' | 'stderr', chunk: Buffer) => Promise<void> | undefined;
};

/**
 * A variable and its value that identify the processes of one command, even after they left their group or the engine was
 * restarted. It is unique, and comes first in the environment (platform/processes.ts).
 */
export type Mark = readonly [name: string, value: string];

/** Script for `sh -c`: disables core dumps and limits the size of files (blocks of 512 bytes, POSIX ulimit). */
const limited = 'ulimit -c 0; ulimit -f "$1"; exec /bin/sh -c "$2"';
/** Waits until the network is connected. File 5 leads to this process. */
const whenConnected = 'echo >&5; read -r go <&5 || exit 1; ';
/** Closes the files through which this process communicates with bwrap. */
const closed = 'exec 3>&- 4>&- 5>&- 6>&-; ';
/** After the command exits, read its remaining output for at most this many milliseconds. */
const drainMs = 2_000;

/** Options of slirp4netns(1): connections to the outside, but not to this machine. It writes to file 3 when ready, and ends when file 4 closes. */
export const slirpOptions = [
  '--configure',
  '--mtu=65520',
  '--disable-host-loopback',
  '--ready-fd=3',
  '--exit-fd=4',
];

/** Devices that slirp4netns opens. On some machines only root can open them. */
export const slirpDevices = ['/dev/net/tun'];

/** Maximum checks for processes that are ending, and the ms between checks. */
const [maxRounds, lookMs] = [200, 10];

function shell({ text, fileBytes }: Command, before = ''): string[] {
  return ['-c', before + limited, 'sh', String(Math.ceil(fileBytes / 512)), text];
}

/** Runs the command without isolation, with all permissions of Postern. */
export function runPlain(command: Command): RunningCommand {
  const child = spawn('/bin/sh', shell(command), {
    cwd: command.workingDirectory,
    env: { ...variableOf(command.mark), ...command.env, ...variableOf(command.mark) },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const group = child.pid ?? 0;
  const endAll = async () => {
    try {
      return await statusOf(child, command);
    } finally {
      await endMarked(command.mark);
    }
  };
  return {
    pid: group,
    ended: endAll(),
    usage: async () => usageOf(await processesOf(group)),
    isOutOfMemory: false,
    terminate: () => terminate(group),
    kill() {
      if (group > 0) signal(-group, 'SIGKILL');
    },
  };
}

/**
 * Sends SIGTERM to the processes. It skips bwrap and a shell that only waits for a command: the shell would end before the
 * command, and everything else ends with the shell.
 */
async function terminate(root: number): Promise<void> {
  const found = await processesOf(root);
  for (const { pid } of found) {
    const isParent = found.some(({ parent }) => parent === pid);
    if (!isParent || (await handlesTermination(pid))) signal(pid, 'SIGTERM');
  }
}

/** Kills the processes of a command that this or an earlier process started. */
export async function endMarked([name, value]: Mark): Promise<void> {
  // Each round kills processes that started meanwhile.
  for (let round = 0; round < maxRounds; round++) {
    const left = await processesWith(name, value);
    if (left.length === 0) return;
    for (const pid of left) signal(pid, 'SIGKILL');
    await wait(lookMs);
  }
  throw new Error(`Processes do not end: ${name}=${value}`);
}

export function variableOf([name, value]: Mark): Record<string, string> {
  return { [name]: value };
}

/** Runs the command in a bubblewrap sandbox. `ended` rejects with EngineUnavailable when the sandbox cannot be created. */
export async function runInSandbox(command: Command, sandbox: Sandbox): Promise<RunningCommand> {
  const { network, searchPath } = sandbox;
  // NUL ends an argument, so the text after it would become an option of bwrap.
  if (sandbox.args.some((arg) => arg.includes('\0'))) throw new Error('An argument of bwrap contains NUL.');
  const words = shell(command, `${network === 'own' ? whenConnected : ''}${closed}`);
  const started = asTenant(
    [
      ...(typeof network === 'string' ? [] : enterNetwork(network.holder)),
      'bwrap',
      '--args',
      '3',
      '--',
      '/bin/sh',
      ...words,
    ],
    sandbox.sources,
  );
  const group = sandbox.group && (await makeGroup(sandbox.group.parent, sandbox.group.name, sandbox.group));
  const [program = '', ...options] = group === null ? started : inGroup(group, started);
  const child = spawn(program, options, {
    // Variables of the command, such as LD_PRELOAD, would also affect bwrap, which runs outside the sandbox.
    env: { ...variableOf(command.mark), PATH: searchPath },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
    detached: true,
  });
  const outer = child.pid ?? 0;
  const filter = seccompFilter();
  const args = [
    ...sandbox.args,
    '--json-status-fd',
    '4',
    ...(filter === undefined ? [] : ['--seccomp', '6']),
  ];
  // Sent through a pipe, because every user of the machine can read the arguments of a process.
  pipeOf(child, 3).end(`${args.join('\0')}\0`);
  pipeOf(child, 6).end(filter);
  let status = '';
  const init = () => Number(/"child-pid": (\d+)/.exec(status)?.[1] ?? 0);
  let isKilled = false;
  let isOutOfMemory = false;
  let complaint = '';
  let slirp: ChildProcess | undefined;
  const gate = pipeOf(child, 5);
  let isWaiting = false;
  const connectOnce = () => {
    // The shell's question can arrive before the process id that bwrap wrote earlier.
    if (!isWaiting || init() === 0 || slirp !== undefined) return;
    slirp = connect(init(), searchPath, {
      onReady: () => gate.write('\n'),
      onFailure(text) {
        complaint = `slirp4netns: ${text}`;
        // Without an answer the shell exits.
        gate.destroy();
      },
    });
  };
  gate.once('data', () => {
    isWaiting = true;
    connectOnce();
  });
  pipeOf(child, 4).on('data', (chunk: Buffer) => {
    status += chunk.toString();
    connectOnce();
  });
  let refusal = '';
  const exit = statusOf(child, {
    ...command,
    output(stream, chunk) {
      // Lines of the command can contain secrets.
      if (stream === 'stderr')
        refusal ||= /^(?:bwrap|mount|nsenter|setpriv|unshare): .{1,300}/m.exec(chunk.toString())?.[0] ?? '';
      return command.output(stream, chunk);
    },
  });
  return {
    pid: outer,
    ended: exit.then(async (code) => {
      // The first process ends last: the kernel waits for every other process of its namespace (pid_namespaces(7)).
      for (let round = 0; round < maxRounds && !(await hasEnded(init())); round++) await wait(lookMs);
      // slirp4netns exits when this pipe closes.
      if (slirp !== undefined) pipeOf(slirp, 4).destroy();
      if (group !== null) {
        isOutOfMemory = await ranOutOfMemory(group);
        await removeGroup(group);
      }
      // bwrap ended with everything else in the group.
      if (isOutOfMemory) return code;
      // bwrap reports an exit code only for a command that it started.
      if (!status.includes('"exit-code"')) complaint ||= refusal || `bwrap exited with ${code}`;
      if (complaint !== '' && !isKilled) throw new EngineUnavailable(complaint.trim());
      return code;
    }),
    usage: (maxThreads) => usageBelow(outer, maxThreads),
    get isOutOfMemory() {
      return isOutOfMemory;
    },
    terminate: () => terminate(outer),
    kill() {
      isKilled = true;
      // The kernel ends every process of the namespace with bwrap.
      if (outer > 0) signal(-outer, 'SIGKILL');
    },
  };
}

/** Arguments before a command that enters the network of a process (nsenter(1)) as its user, who owns the namespaces. */
export function enterNetwork(holder: number): string[] {
  const namespaces = `/proc/${holder}/ns`;
  return ['nsenter', `--user=${namespaces}/user`, `--net=${namespaces}/net`, '--preserve-credentials', '--'];
}

/** Connects the network namespace of a process to the outside, but not to this machine (slirp4netns(1)). */
function connect(
  pid: number,
  searchPath: string,
  { onReady, onFailure }: { readonly onReady: () => void; readonly onFailure: (text: string) => void },
): ChildProcess {
  const [program = '', ...options] = asTenant(
    ['slirp4netns', ...slirpOptions, String(pid), 'tap0'],
    slirpDevices,
  );
  const slirp = spawn(program, options, {
    env: { PATH: searchPath },
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
  });
  let complaint = '';
  slirp.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-500);
  });
  let isReady = false;
  pipeOf(slirp, 3).once('data', () => {
    isReady = true;
    onReady();
  });
  pipeOf(slirp, 4).on('error', () => undefined);
  slirp.once('error', ({ message }) => onFailure(message));
  slirp.once('exit', () => {
    if (!isReady) onFailure(complaint);
  });
  return slirp;
}

/** Returns a pipe of `stdio`, which Node does not type. */
export function pipeOf(child: ChildProcess, at: number): Readable & Writable {
  // Node creates a socket for each 'pipe' in `stdio`.
  const pipe = child.stdio[at] as (Readable & Writable) | null | undefined;
  if (pipe === null || pipe === undefined) throw new Error(`The process has no pipe ${at}.`);
  return pipe.on('error', () => undefined);
}

/** Resolves when the process has ended and its output was read. Rejects when it cannot be started. */
async function statusOf(child: ChildProcess, { output }: Pick<Command, 'output'>): Promise<number> {
  for (const name of ['stdout', 'stderr'] as const) {
    const pipe = child[name];
    pipe?.on('data', (chunk: Buffer) => {
      const room = output(name, chunk);
      if (room === undefined) return;
      pipe.pause();
      void room.then(() => pipe.resume());
    });
  }
  const closed = new Promise<void>((resolve) => {
    child.once('close', () => resolve());
  });
  const [code, name] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
    child.once('error', (error) => reject(new EngineUnavailable(error.message, { cause: error })));
    child.once('exit', (...end) => resolve(end));
  });
  if (child.pid !== undefined) signal(-child.pid, 'SIGKILL');
  // A process that left the group can keep the pipes open.
  const drained = new AbortController();
  await Promise.race([closed, wait(drainMs, undefined, { signal: drained.signal }).catch(() => undefined)]);
  drained.abort();
  for (const stream of [child.stdout, child.stderr]) stream?.removeAllListeners('data').destroy();
  return code ?? 128 + (name === null ? 0 : constants.signals[name]);
}
