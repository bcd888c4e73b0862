import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort, postgresAnswers, preparePostgres } from '../scripts/local-servers.ts';
import { loadCore } from './load.ts';

/** Temporary PostgreSQL and Redis servers, on loopback and on the core of the load generator; removed afterwards. */
export type Engine = { readonly url: string; stop(): Promise<void> };

export async function startPostgres(): Promise<Engine> {
  const { folder, url, program, args, account } = await preparePostgres();
  const settings = [
    'log_min_messages=fatal',
    'max_connections=100',
    // Enough memory for all data: the bench measures how growth affects a query, not the size of the server's memory.
    'shared_buffers=4GB',
    'max_wal_size=4GB',
  ];
  const server = spawn(
    'taskset',
    ['-c', loadCore, program, ...args, ...settings.flatMap((setting) => ['-c', setting])],
    { ...account, stdio: ['ignore', 'ignore', 'inherit'] },
  );
  await answering(server, () => postgresAnswers(url));
  // SIGINT is PostgreSQL's fast shutdown.
  return { url, stop: () => end(server, 'SIGINT', folder) };
}

export async function startRedis(): Promise<Engine> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-redis-'));
  const port = await freePort();
  const settings = [
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--appendonly',
    'no',
    '--maxmemory-policy',
    'noeviction',
  ];
  const server = spawn(
    'taskset',
    ['-c', loadCore, 'redis-server', '--port', String(port), '--dir', folder, ...settings],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  await answering(server, async () => {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    return isOpen;
  });
  return { url: `redis://127.0.0.1:${port}`, stop: () => end(server, 'SIGTERM', folder) };
}

async function end(server: ChildProcess, signal: NodeJS.Signals, folder: string): Promise<void> {
  if (server.exitCode === null && server.signalCode === null) {
    server.kill(signal);
    await once(server, 'exit');
  }
  rmSync(folder, { recursive: true, force: true });
}

/** Retries until `ask` succeeds, while the server is starting. */
async function answering(server: ChildProcess, ask: () => Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 150; attempt++) {
    if (server.exitCode !== null)
      throw new Error('An engine ended before it answered; its message is above.');
    if (await ask()) return;
    await wait(200);
  }
  throw new Error('An engine did not answer within 30 seconds.');
}
