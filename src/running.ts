import type { Server } from 'node:http';
import type { Config, Workload } from './config.ts';
import { second } from './core/clock.ts';
import type { OpenParts } from './parts.ts';
import { freeBytesIn } from './platform/free-space.ts';
import { drain } from './platform/drain.ts';
import type { Log } from './platform/log.ts';
import type { OperationsDeps } from './surfaces/web/operations.ts';

/** What every workload does between its start and its end. */
export function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
}

/** One line for who reads the log of a workload on its own. */
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

/** What tells operators how this process is. From stopping() on it says that it is not ready. */
export type Operations = { stopping(): void; close(): Promise<void> };

/** Opens `/livez`, `/readyz` and `/metrics` at METRICS_PORT: the last of the listeners. */
export async function openOperations(
  { host, metricsPort, dataDir }: Config,
  metrics: OperationsDeps['metrics'],
  parts: Pick<OpenParts, 'database' | 'pingKv' | 'pingBlobs'>,
  moreChecks: OperationsDeps['checks'] = {},
): Promise<Operations> {
  // Loaded here, so that a database which opens in its thread need not wait for it.
  const { createOperationsServer } = await import('./surfaces/web/operations.ts');
  let isStopping = false;
  const server = createOperationsServer({
    metrics,
    // A gateway needs no folder, and has none until something is fetched.
    freeBytes: () => freeBytesIn(dataDir).catch(() => Number.NaN),
    checks: {
      database: () => parts.database.ping(),
      kv: parts.pingKv,
      blobs: parts.pingBlobs,
      ...moreChecks,
    },
    isStopping: () => isStopping,
  });
  await listen(server, host, metricsPort);
  return {
    stopping() {
      isStopping = true;
    },
    // What waits behind it is more than a scrape.
    close: () => drain(server, { patience: second }),
  };
}

/** Resolves after SIGTERM or SIGINT, when everything has been answered, written and closed. */
export async function runUntilStopped(running: {
  readonly log: Log;
  readonly operations: Operations;
  readonly stop: () => Promise<void>;
}): Promise<void> {
  const signal = await new Promise<string>((resolve) => {
    for (const one of ['SIGTERM', 'SIGINT'] as const) {
      // What ended it at once before it was ready.
      process.removeAllListeners(one);
      process.once(one, () => resolve(one));
    }
  });
  running.operations.stopping();
  running.log.info({ signal }, 'stopping');
  // Whatever hangs must not keep the process past its grace (contract 1: within 10 s).
  setTimeout(() => process.exit(1), 9_500).unref();
  await running.operations.close();
  await running.stop();
}
