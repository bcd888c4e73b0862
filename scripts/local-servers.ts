import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';

/** Helpers to start local servers: on loopback, in a temporary folder. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  if (address === null || typeof address === 'string') throw new Error('The probe has no port.');
  return address.port;
}

/** The folder of the newest installed PostgreSQL (Debian keeps each version in its own); undefined when none is installed. */
export function findPostgres(): string | undefined {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...versions.map((one) => join(debian, one, 'bin')),
    ...(process.env['PATH'] ?? '').split(':'),
  ];
  return folders.find((folder) => existsSync(join(folder, 'initdb')));
}

export type PreparedPostgres = {
  /** The caller removes it after the server has ended. */
  readonly folder: string;
  readonly url: string;
  readonly program: string;
  readonly args: readonly string[];
  /** The account that runs the server; undefined = the current user. */
  readonly account: { readonly uid: number; readonly gid: number } | undefined;
};

/** Creates an empty database in a new folder, ready to be started. Throws when no PostgreSQL is installed. */
export async function preparePostgres(bin = findPostgres()): Promise<PreparedPostgres> {
  if (bin === undefined) throw new Error('There is no PostgreSQL here: apt-get install postgresql');
  const folder = mkdtempSync(join(tmpdir(), 'postern-postgres-'));
  // PostgreSQL refuses to run as root; Debian's package creates an account for it.
  const account = process.getuid?.() === 0 ? { uid: idOf('-u'), gid: idOf('-g') } : undefined;
  if (account) chownSync(folder, account.uid, account.gid);
  const data = join(folder, 'data');
  const initdb = ['-D', data, '-U', 'postern', '-A', 'trust', '-E', 'UTF8', '--locale=C'];
  execFileSync(join(bin, 'initdb'), initdb, { ...account, stdio: 'ignore' });
  const port = await freePort();
  return {
    folder,
    url: `postgres://postern@127.0.0.1:${port}/postgres`,
    program: join(bin, 'postgres'),
    args: ['-D', data, '-h', '127.0.0.1', '-p', String(port), '-k', folder],
    account,
  };
}

function idOf(flag: '-u' | '-g'): number {
  return Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
}

/** False while it is still starting. */
export async function postgresAnswers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  try {
    await client.connect();
    await client.end();
    return true;
  } catch {
    return false;
  }
}
