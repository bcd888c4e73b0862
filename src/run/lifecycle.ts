import { createServer } from 'node:net';
import type { ConfigMistake } from '../config/config-error.ts';
import { listenersOf } from '../config/listeners.ts';
import type { Config } from '../config/read.ts';
import type { Workload } from '../config/names.ts';
import { second } from '../core/clock.ts';
import type { OpenBackends } from '../composition/backends/backends.ts';
import { freeBytesIn } from '../platform/free-space.ts';
import { drain } from '../platform/drain.ts';
import { listen } from '../platform/listen.ts';
import type { Log } from '../platform/log.ts';
import type { OperationsDeps } from '../surfaces/web/probes.ts';
import { createWaiting, type Waiting } from './waiting.ts';

/** The parts of a workload that differ: everything between its backends and its end. */
export type WorkloadParts = {
  readonly metrics: OperationsDeps['metrics'];
  /** Reasons not to be ready, besides the stores. */
  readonly checks?: OperationsDeps['checks'];
  readonly work?: OperationsDeps['work'];
  /** Called again until it succeeds. @throws an error that waiting cannot resolve */
  readonly start: () => Promise<void>;
  readonly listen: () => Promise<unknown>;
  /** Reports to the operator that the process is ready. */
  readonly greet: () => void | Promise<void>;
  readonly stop: () => Promise<void>;
};

/**
 * Runs any workload to its end: starts it, opens its listeners, waits for unavailable stores, and stops in order at
 * SIGTERM or SIGINT. Resolves to the exit code of the process.
 */
export async function runWorkload(
  config: Config,
  backends: Pick<
    OpenBackends,
    'log' | 'missing' | 'database' | 'databaseBytes' | 'pingKv' | 'pingBlobs' | 'close'
  >,
  parts: WorkloadParts,
): Promise<number> {
  const waiting = createWaiting({ log: backends.log, missing: backends.missing, start: parts.start });
  await waiting.tryStart();
  await parts.listen();
  const operations = await openOperations(config, parts, backends, waiting);
  const stopped = runUntilStopped({
    log: backends.log,
    operations,
    async stop() {
      waiting.stop();
      await parts.stop();
      await backends.close();
    },
  });

  async function becomeReady(): Promise<void> {
    if (await waiting.untilReady()) await parts.greet();
  }

  await Promise.race([stopped, becomeReady()]);
  await stopped;
  return 0;
}

/**
 * Finds every port that listen() would refuse, before the database takes seconds to open.
 * @throws ConfigError that names each setting, or the first error that is no known mistake
 */
export async function requirePorts(config: Config): Promise<void> {
  const listeners = listenersOf(config);
  const mistakes: ConfigMistake[] = [];
  for (const one of Object.values(listeners)) {
    if (one === 0) continue;
    const probe = createServer();
    try {
      await listen(probe, config.host, one);
    } catch (error) {
      const { explainStart } = await import('../composition/backends/start-errors.ts');
      const mistake = explainStart(error, listeners);
      if (mistake === undefined) throw error;
      mistakes.push(mistake);
      continue;
    }
    await new Promise((resolve) => probe.close(resolve));
  }
  if (mistakes.length === 0) return;
  const { ConfigError } = await import('../config/config-error.ts');
  throw new ConfigError(mistakes);
}

/** One log line for the operator of a single workload. */
export function greetBriefly(
  workload: Workload,
  { host, metricsPort }: Config,
  { description }: { readonly description: string },
): void {
  const ms = Math.round(performance.now());
  console.log(
    `Postern ${workload} is ready (${ms} ms); operations http://${host}:${metricsPort}/readyz; data ${description}`,
  );
}

/** The operations endpoints. After stopping() they report that the process is not ready. */
type Operations = { stopping(): void; close(): Promise<void> };

/** Opens `/livez`, `/readyz` and `/metrics` at METRICS_PORT, as the last listener. */
async function openOperations(
  { host, metricsPort, dataDir }: Config,
  { metrics, checks, work }: Pick<WorkloadParts, 'metrics' | 'checks' | 'work'>,
  backends: Pick<OpenBackends, 'database' | 'databaseBytes' | 'pingKv' | 'pingBlobs'>,
  { requireOpen, reasons }: Pick<Waiting, 'requireOpen' | 'reasons'>,
): Promise<Operations> {
  // Loaded here, so that it does not delay a database that opens in its thread.
  const { createOperationsServer } = await import('../surfaces/web/probes.ts');
  let isStopping = false;
  const server = createOperationsServer({
    metrics,
    // A gateway needs no folder, and has none until it fetches something.
    freeBytes: () => freeBytesIn(dataDir).catch(() => Number.NaN),
    databaseBytes: backends.databaseBytes,
    checks: {
      database: () => requireOpen('database').then(() => backends.database.ping()),
      kv: () => requireOpen('kv').then(backends.pingKv),
      blobs: () => requireOpen('blobs').then(backends.pingBlobs),
      ...checks,
    },
    reasons,
    ...(work === undefined ? {} : { work }),
    isStopping: () => isStopping,
  });
  await listen(server, host, metricsPort);
  return {
    stopping() {
      isStopping = true;
    },
    // The shutdown steps that follow matter more than a scrape.
    close: () => drain(server, { patience: second }),
  };
}

/** Resolves after SIGTERM or SIGINT, when everything has been answered, written and closed. */
async function runUntilStopped(running: {
  readonly log: Log;
  readonly operations: Operations;
  readonly stop: () => Promise<void>;
}): Promise<void> {
  const signal = await new Promise<string>((resolve) => {
    for (const one of ['SIGTERM', 'SIGINT'] as const) {
      // The handler that ended the process at once before it was ready.
      process.removeAllListeners(one);
      process.once(one, () => resolve(one));
    }
  });
  running.operations.stopping();
  running.log.info({ signal }, 'stopping');
  // A step that hangs must not keep the process past its grace period (contract 1: within 10 s).
  setTimeout(() => process.exit(1), 9_500).unref();
  await running.operations.close();
  await running.stop();
}
