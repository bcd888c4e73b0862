import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';

// Runs a program against a PostgreSQL of its own: a temporary directory, a free port on loopback, gone afterwards.
//   node scripts/with-postgres.ts node_modules/vitest/vitest.mjs run
const folder = mkdtempSync(join(tmpdir(), 'postern-postgres-'));
const port = await freePort();
const bin = findPrograms();
// PostgreSQL refuses to run as root; Debian's package brings a user for it.
const account = process.getuid?.() === 0 ? userId('postgres') : undefined;
if (account) chownSync(folder, account.uid, account.gid);

const data = join(folder, 'data');
execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'postern', '-A', 'trust', '-E', 'UTF8', '--locale=C'], {
  ...account,
  stdio: 'ignore',
});
const server = spawn(
  join(bin, 'postgres'),
  [
    '-D',
    data,
    '-h',
    '127.0.0.1',
    '-p',
    String(port),
    '-k',
    folder,
    '-c',
    'log_min_messages=error',
    '-c',
    'fsync=off',
    '-c',
    'max_connections=200',
  ],
  { ...account, stdio: ['ignore', 'ignore', 'inherit'] },
);
process.once('SIGTERM', () => server.kill('SIGINT'));
process.once('SIGINT', () => server.kill('SIGINT'));

let code = 1;
try {
  const url = `postgres://postern@127.0.0.1:${port}/postgres`;
  await answering(url);
  console.log(
    `PostgreSQL: ${execFileSync(join(bin, 'postgres'), ['--version'], { encoding: 'utf8' }).trim()}`,
  );
  const program = spawn(process.execPath, process.argv.slice(2), {
    stdio: 'inherit',
    env: { ...process.env, TEST_DATABASE_URL: url },
  });
  const [exit]: unknown[] = await once(program, 'exit');
  if (typeof exit === 'number') code = exit;
} finally {
  // SIGINT is PostgreSQL's fast shutdown.
  if (isRunning(server)) {
    server.kill('SIGINT');
    await once(server, 'exit');
  }
  rmSync(folder, { recursive: true, force: true });
}
process.exit(code);

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

/** The newest installed server: Debian keeps each version in a directory of its own. */
function findPrograms(): string {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : [];
  const found = [
    ...versions.map((one) => join(debian, one, 'bin')),
    ...(process.env['PATH'] ?? '').split(':'),
  ];
  const bin = found.find((one) => existsSync(join(one, 'initdb')));
  if (bin === undefined) throw new Error('There is no PostgreSQL here: apt-get install postgresql');
  return bin;
}

function userId(name: string): { uid: number; gid: number } {
  const id = (flag: string) => Number(execFileSync('id', [flag, name], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  if (address === null || typeof address === 'string') throw new Error('The probe has no port.');
  return address.port;
}

async function answering(url: string): Promise<void> {
  for (let attempt = 0; attempt < 150; attempt++) {
    if (!isRunning(server)) throw new Error('PostgreSQL ended before it answered; its message is above.');
    const client = new pg.Client({ connectionString: url });
    try {
      await client.connect();
      await client.end();
      return;
    } catch {
      // Not yet: it is still starting.
      await wait(200);
    }
  }
  throw new Error('PostgreSQL did not answer within 30 seconds.');
}
