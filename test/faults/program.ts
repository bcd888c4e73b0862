import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from '../../scripts/local-servers.ts';
import type { Workload } from '../../src/config/names.ts';

/** The real program as an operator runs it: a separate process that can be killed at any moment. */
export type Installation = {
  readonly dataDir: string;
  readonly databaseUrl?: string;
  /** True: creates no administrator; the program prints the one-time link instead. */
  readonly isUnattended?: boolean;
  readonly ports: Ports;
  /** Additional settings. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The main file of another build of the program. */
  readonly main?: string;
  /** Options for Node. */
  readonly nodeOptions?: readonly string[];
  /** The command that starts Node, such as `unshare -m`; default: none. */
  readonly launcher?: readonly string[];
  /** True: its output goes to a full disk, so only /readyz can report that it is ready. */
  readonly isMute?: boolean;
};

export type Ports = { readonly web: number; readonly gateway: number; readonly operations: number };

export type Program = {
  readonly origin: string;
  readonly pid: number;
  /** Everything it has printed. */
  output(): string;
  /** Sends the signal and waits until the process has ended. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<Exit>;
};

export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

export const administrator = { email: 'ada@example.com', password: 'correct horse battery staple' };

/** Processes that share a database must have the same secrets. */
const sharedSecrets = {
  SESSION_SECRET: 'the session secret of the fault tests',
  ENCRYPTION_KEY: 'the encryption key of the fault tests',
  GRANT_SECRET: 'the grant secret of the fault tests 32',
};

const thisBuild = join(import.meta.dirname, '../../src/main.ts');

export async function freePorts(): Promise<Ports> {
  const [web, gateway, operations] = await Promise.all([freePort(), freePort(), freePort()]);
  return { web, gateway, operations };
}

/** Starts the server, or one workload of it; resolves when it is ready. @throws Error with its output, when it ends first */
export async function startProgram(installation: Installation, workload?: Workload): Promise<Program> {
  return await startUntil(installation, workload, async (output) => {
    // Printed when every store is open. Polling an endpoint would need a guess at the interval.
    if (output.includes('is ready')) return true;
    return installation.isMute === true && (await answers(installation, '/readyz'));
  });
}

/** The same, but resolves as soon as the process listens: its stores may be unavailable. */
export async function startListening(installation: Installation, workload?: Workload): Promise<Program> {
  return await startUntil(installation, workload, () => answers(installation, '/livez'));
}

async function startUntil(
  installation: Installation,
  workload: Workload | undefined,
  hasCome: (output: string) => Promise<boolean>,
): Promise<Program> {
  const { child, output } = launch(installation, workload === undefined ? [] : [workload]);
  while (!(await hasCome(output()))) {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`The program ended before it was ready:\n${output()}`);
    await wait(10);
  }
  return {
    origin: originOf(installation),
    // A child that printed something has a process id.
    pid: child.pid ?? 0,
    output,
    end: (signal) => endOf(child, signal),
  };
}

/** Starts the server or a command, and kills it at the given moment, however far it has come. */
export async function startAndKill(
  installation: Installation,
  moment: Promise<unknown>,
  args: readonly string[] = [],
  signal: NodeJS.Signals = 'SIGKILL',
): Promise<Exit> {
  const { child } = launch(installation, args);
  await Promise.race([moment, once(child, 'exit')]);
  return await endOf(child, signal);
}

/** Runs a command of the program, such as `audit verify`, to its end. */
export async function runCommand(
  installation: Installation,
  args: readonly string[],
): Promise<Exit & { output: string; stdout: string }> {
  const { child, output, stdout } = launch(installation, args);
  await once(child, 'close');
  return { code: child.exitCode, signal: child.signalCode, output: output(), stdout: stdout() };
}

function launch(installation: Installation, args: readonly string[]) {
  const { dataDir, databaseUrl, isUnattended, ports, settings } = installation;
  const { main = thisBuild, nodeOptions = [], launcher = [] } = installation;
  const [program = process.execPath, ...rest] = [
    ...launcher,
    process.execPath,
    ...nodeOptions,
    main,
    ...args,
  ];
  const full = installation.isMute ? openSync('/dev/full', 'w') : undefined;
  const child = spawn(program, rest, {
    stdio: ['ignore', full ?? 'pipe', full ?? 'pipe'],
    env: {
      PATH: process.env['PATH'],
      DATA_DIR: dataDir,
      SERVICE_UI_URL: `http://localhost:${ports.web}`,
      PORT: String(ports.web),
      GATEWAY_PORT: String(ports.gateway),
      METRICS_PORT: String(ports.operations),
      LOG_LEVEL: 'warn',
      ...(isUnattended
        ? {}
        : { BOOTSTRAP_ADMIN_EMAIL: administrator.email, BOOTSTRAP_ADMIN_PASSWORD: administrator.password }),
      ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl, ...sharedSecrets }),
      ...settings,
    },
  });
  let printed = '';
  const keep = (chunk: Buffer) => {
    printed += chunk.toString();
  };
  let answered = '';
  if (full !== undefined) closeSync(full);
  child.stdout?.on('data', keep);
  child.stdout?.on('data', (chunk: Buffer) => {
    answered += chunk.toString();
  });
  child.stderr?.on('data', keep);
  return { child, output: () => printed, stdout: () => answered };
}

async function endOf(child: ChildProcess, signal: NodeJS.Signals): Promise<Exit> {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill(signal);
    await once(child, 'exit');
  }
  return { code: child.exitCode, signal: child.signalCode };
}

async function answers({ ports }: Installation, path: string): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${ports.operations}${path}`).catch(() => undefined);
  return answer?.ok ?? false;
}

function originOf({ ports }: Installation): string {
  return `http://localhost:${ports.web}`;
}
