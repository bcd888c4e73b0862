import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../scripts/local-servers.ts';
import type { TrustedIssuer } from '../src/features/keys/keys.ts';
import { loadCore, serverCore } from './load.ts';

/** The server of bench-server.ts in a separate process, pinned to one core. */
export type BenchServer = {
  readonly pid: number;
  readonly address: string;
  /** Live personal keys, each of a different person. */
  readonly keys: readonly string[];
  /** Database and key-value calls since the last call of this function. */
  calls(): Promise<{ database: number; kv: number }>;
  /** Stops the periodic jobs, so that later counts include the requests only. */
  restJobs(): Promise<void>;
  /** Writes rows for `seconds`, beside the requests; the bytes of log that they took. */
  writeRows(seconds: number): Promise<number>;
  /** Makes service keys without a value that trust one repository of this issuer. `audience`: of its ID tokens. */
  trust(issuer: TrustedIssuer): Promise<{ readonly audience: string; readonly keyIds: readonly string[] }>;
  stop(): Promise<void>;
};

export async function startServer(
  engines: Engines = {},
  nodeOptions: readonly string[] = [],
): Promise<BenchServer> {
  const { child, pid, stop } = await startProgram('bench-server.ts', engines, nodeOptions);
  const { address, keys } = (await answerOf(child)) as { address: string; keys: string[] };
  return {
    pid,
    address,
    keys,
    async calls() {
      child.send('count');
      return (await answerOf(child)) as { database: number; kv: number };
    },
    async restJobs() {
      child.send('rest');
      await answerOf(child);
    },
    async writeRows(seconds) {
      child.send(seconds);
      return Number(await answerOf(child));
    },
    async trust(issuer) {
      child.send({ issuer });
      return (await answerOf(child)) as { audience: string; keyIds: string[] };
    },
    stop,
  };
}

/** The server of content-server.ts in a separate process, pinned to one core. */
export type ContentServer = {
  /** Address of the gateway. */
  readonly address: string;
  readonly webAddress: string;
  /** The Host header of the public site, by page size in KiB. */
  readonly hosts: Readonly<Record<string, string>>;
  /** Gets a grant for the private site with this page size: its Host and Cookie headers. */
  letIn(kib: number): Promise<{ readonly host: string; readonly cookie: string }>;
  stop(): Promise<void>;
};

export async function startContentServer(engines: Engines = {}): Promise<ContentServer> {
  const { child, stop } = await startProgram('content-server.ts', engines, []);
  const { address, webAddress, hosts } = (await answerOf(child)) as Pick<
    ContentServer,
    'address' | 'webAddress' | 'hosts'
  >;
  return {
    address,
    webAddress,
    hosts,
    async letIn(kib) {
      child.send(kib);
      return (await answerOf(child)) as { host: string; cookie: string };
    },
    stop,
  };
}

/** The server of environment-server.ts in a separate process, pinned to one core. */
export type EnvironmentServer = {
  readonly pid: number;
  /** Address of the gateway. */
  readonly address: string;
  /** Host and Cookie headers that open the process behind `port`. */
  readonly headers: { readonly Host: string; readonly Cookie: string };
  /** Collects its garbage; the bytes of JavaScript that are left. */
  collect(): Promise<number>;
  stop(): Promise<void>;
};

/** `port`: of the process that answers for the one Environment. */
export async function startEnvironmentServer(port: number): Promise<EnvironmentServer> {
  const { child, pid, stop } = await startProgram('environment-server.ts', {}, ['--expose-gc']);
  child.send(port);
  const { address, headers } = (await answerOf(child)) as Pick<EnvironmentServer, 'address' | 'headers'>;
  return {
    pid,
    address,
    headers,
    async collect() {
      child.send('collect');
      return Number(await answerOf(child));
    },
    stop,
  };
}

/** The server of log-server.ts in a separate process, pinned to one core. */
export type LogServer = {
  /** The address of the log. */
  readonly address: string;
  /** A key that may read it. */
  readonly key: string;
  /** How often the log was read since the last call of this function. */
  reads(): Promise<number>;
  /** Collects its garbage; the bytes of JavaScript that are left. */
  collect(): Promise<number>;
  stop(): Promise<void>;
};

export async function startLogServer(): Promise<LogServer> {
  const { child, stop } = await startProgram('log-server.ts', {}, ['--expose-gc']);
  const { address, key } = (await answerOf(child)) as Pick<LogServer, 'address' | 'key'>;
  const numberFor = async (message: string) => {
    child.send(message);
    return Number(await answerOf(child));
  };
  return {
    address,
    key,
    reads: () => numberFor('count'),
    collect: () => numberFor('collect'),
    stop,
  };
}

type Engines = { readonly databaseUrl?: string; readonly kvUrl?: string };

async function startProgram(program: string, engines: Engines, nodeOptions: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-'));
  const path = join(import.meta.dirname, program);
  const child = spawn('taskset', ['-c', serverCore, process.execPath, ...nodeOptions, path], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: {
      ...withoutSettings(process.env),
      DATA_DIR: folder,
      PORT: String(await freePort()),
      GATEWAY_PORT: String(await freePort()),
      LOG_LEVEL: 'error',
      ...(engines.databaseUrl === undefined ? {} : { DATABASE_URL: engines.databaseUrl }),
      SESSION_SECRET: 'the session secret of the measurements',
      ENCRYPTION_KEY: 'the encryption key of the measurements',
      GRANT_SECRET: 'the grant secret of the measurements',
      ...(engines.kvUrl === undefined ? {} : { KV_URL: engines.kvUrl }),
    },
  });
  return {
    child,
    // Without one the program did not start, and answerOf() says so.
    pid: child.pid ?? 0,
    async stop() {
      child.send('stop');
      await once(child, 'exit');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A small server pinned to the same core as ours, or to the one of the load generator, which reports the port it listens on. */
export async function startNeighbour(
  program: string,
  {
    env = {},
    message,
    isBesideLoad = false,
  }: { env?: NodeJS.ProcessEnv; message?: object; isBesideLoad?: boolean } = {},
): Promise<{ pid: number; port: number; stop(): Promise<void> }> {
  const path = join(import.meta.dirname, program);
  const core = isBesideLoad ? loadCore : serverCore;
  const child = spawn('taskset', ['-c', core, process.execPath, path], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...withoutSettings(process.env), ...env },
  });
  if (message !== undefined) child.send(message);
  const port = Number(await answerOf(child));
  return {
    pid: child.pid ?? 0,
    port,
    async stop() {
      child.send('stop');
      await once(child, 'exit');
    },
  };
}

async function answerOf(child: ChildProcess): Promise<unknown> {
  const answered = new AbortController();
  const ended = once(child, 'exit', { signal: answered.signal }).then(([code]) => {
    throw new Error(`The server ended (${String(code)}); its message is above.`);
  });
  // The await below gets the failure. Later the end of the process is expected.
  ended.catch(() => undefined);
  const [message]: unknown[] = await Promise.race([once(child, 'message'), ended]);
  answered.abort();
  return message;
}

/** Settings in the shell must not reach the measured server. */
export function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = { ...env };
  for (const name of [
    'DATABASE_URL',
    'KV_URL',
    'SERVICE_UI_URL',
    'BOOTSTRAP_ADMIN_EMAIL',
    'BOOTSTRAP_ADMIN_PASSWORD',
  ])
    delete kept[name];
  return kept;
}
