import type { Server } from 'node:http';
import type { Config, Workload } from './config.ts';
import type { Log } from './platform/log.ts';

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

/** Resolves after SIGTERM or SIGINT, when everything has been answered, written and closed. */
export async function runUntilStopped(running: {
  readonly log: Log;
  readonly operations: Server;
  /** From now on, /readyz says no. */
  readonly onStopping: () => void;
  readonly stop: () => Promise<void>;
}): Promise<void> {
  const signal = await new Promise<string>((resolve) => {
    process.once('SIGTERM', () => resolve('SIGTERM'));
    process.once('SIGINT', () => resolve('SIGINT'));
  });
  running.onStopping();
  running.log.info({ signal }, 'stopping');
  // Whatever hangs must not keep the process past its grace (contract 1: within 10 s).
  setTimeout(() => process.exit(1), 9_500).unref();
  await close(running.operations);
  await running.stop();
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
  });
}
