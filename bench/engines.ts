import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { loadCore } from './load.ts';
import { freePort } from './server-process.ts';

/** PostgreSQL and Redis of their own, on loopback and beside the load generator, gone afterwards. */
export type Engine = { readonly url: string; stop(): Promise<void> };

export async function startPostgres(): Promise<Engine> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-postgres-'));
  const port = await freePort();
  const bin = postgresPrograms();
  // PostgreSQL refuses to run as root; Debian's package brings a user for it.
  const account = process.getuid?.() === 0 ? userId('postgres') : undefined;
  if (account) chownSync(folder, account.uid, account.gid);
  const data = join(folder, 'data');
  const initdb = ['-D', data, '-U', 'postern', '-A', 'trust', '-E', 'UTF8', '--locale=C'];
  execFileSync(join(bin, 'initdb'), initdb, { ...account, stdio: 'ignore' });
  const settings = [
    'log_min_messages=fatal',
    'max_connections=100',
    // Room for all that is measured: how growth costs a query, not how much memory the server was given.
    'shared_buffers=2GB',
    'max_wal_size=4GB',
  ];
  const server = spawn(
    'taskset',
    [
      '-c',
      loadCore,
      join(bin, 'postgres'),
      '-D',
      data,
      '-h',
      '127.0.0.1',
      '-p',
      String(port),
      '-k',
      folder,
    ].concat(settings.flatMap((setting) => ['-c', setting])),
    { ...account, stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const url = `postgres://postern@127.0.0.1:${port}/postgres`;
  await answering(server, async () => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.end();
  });
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
    await once(socket, 'connect');
    socket.destroy();
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

async function answering(server: ChildProcess, ask: () => Promise<void>): Promise<void> {
  for (let attempt = 0; attempt < 150; attempt++) {
    if (server.exitCode !== null)
      throw new Error('An engine ended before it answered; its message is above.');
    try {
      return await ask();
    } catch {
      // Not yet: it is still starting.
      await wait(200);
    }
  }
  throw new Error('An engine did not answer within 30 seconds.');
}

/** The newest installed server: Debian keeps each version in a directory of its own. */
function postgresPrograms(): string {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...versions.map((one) => join(debian, one, 'bin')),
    ...(process.env['PATH'] ?? '').split(':'),
  ];
  const found = folders.find((folder) => existsSync(join(folder, 'initdb')));
  if (found === undefined) throw new Error('There is no PostgreSQL here: apt-get install postgresql');
  return found;
}

function userId(name: string): { uid: number; gid: number } {
  const id = (flag: string) => Number(execFileSync('id', [flag, name], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}
