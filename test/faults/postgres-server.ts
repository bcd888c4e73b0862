import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { freePorts } from './program.ts';

/** A real PostgreSQL of a suite's own, on loopback in a temporary directory; gone after stop(). */
export type PostgresServer = { readonly url: string; stop(): Promise<void> };

/** Where the newest installed server is; undefined = none is installed. */
export function findPostgres(): string | undefined {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : [];
  return [...versions.map((one) => join(debian, one, 'bin')), ...(process.env['PATH'] ?? '').split(':')].find(
    (one) => existsSync(join(one, 'initdb')),
  );
}

export async function startPostgres(bin: string): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-faults-'));
  // PostgreSQL refuses to run as root; Debian's package brings a user for it.
  const account =
    process.getuid?.() === 0 ? { uid: idOf('-u', 'postgres'), gid: idOf('-g', 'postgres') } : undefined;
  if (account) chownSync(folder, account.uid, account.gid);
  const data = join(folder, 'data');
  execFileSync(
    join(bin, 'initdb'),
    ['-D', data, '-U', 'postern', '-A', 'trust', '-E', 'UTF8', '--locale=C'],
    {
      ...account,
      stdio: 'ignore',
    },
  );
  const { web: port } = await freePorts();
  const server = spawn(
    join(bin, 'postgres'),
    ['-D', data, '-h', '127.0.0.1', '-p', String(port), '-k', folder, '-c', 'log_min_messages=fatal'],
    { ...account, stdio: 'ignore' },
  );
  const url = `postgres://postern@127.0.0.1:${port}/postgres`;
  const isRunning = () => server.exitCode === null && server.signalCode === null;
  while (!(await answers(url))) {
    if (!isRunning()) throw new Error('PostgreSQL ended before it answered.');
    await wait(100);
  }
  return {
    url,
    async stop() {
      // SIGINT is PostgreSQL's fast shutdown.
      if (isRunning()) {
        server.kill('SIGINT');
        await once(server, 'exit');
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  try {
    await client.connect();
    await client.end();
    return true;
  } catch {
    // Not yet: it is still starting.
    return false;
  }
}

function idOf(flag: string, name: string): number {
  return Number(execFileSync('id', [flag, name], { encoding: 'utf8' }));
}
