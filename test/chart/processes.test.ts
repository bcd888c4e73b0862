import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findPostgres, freePort, postgresAnswers, preparePostgres } from '../../scripts/local-servers.ts';
import { isRedisMissing, type RedisServer, startRedis } from '../contract/kv-redis-server.ts';
import { type Component, fewest, over, render, workloads } from './helm.ts';

/**
 * The processes that the chart renders, started on this machine with the settings it gives them, on a real PostgreSQL that
 * was prepared as docs/how-to/install-on-kubernetes.md says. The files of sites are in folders here.
 */
const root = join(import.meta.dirname, '../..');
const isMissing = process.env['CI'] !== 'true' && (isRedisMissing || findPostgres() === undefined);
if (isMissing)
  console.log('Left out, because PostgreSQL or redis-server is not installed: the processes of the chart.');

const password = 'long-enough-0123456789';
const role = 'postern_gateway';
const rendered = render('helm4', over(fewest, { database: { gateway: { role } } }));
const children = new Set<ChildProcess>();
let postgres: Awaited<ReturnType<typeof preparePostgres>>;
let redis: RedisServer;

beforeAll(async () => {
  if (isMissing) return;
  redis = await startRedis('--maxmemory-policy', 'noeviction');
  postgres = await preparePostgres();
  const { program, args, account } = postgres;
  children.add(
    spawn(program, [...args, '-c', 'fsync=off', '-c', 'log_min_messages=fatal'], {
      ...account,
      stdio: ['ignore', 'ignore', 'inherit'],
    }),
  );
  while (!(await postgresAnswers(postgres.url))) await wait(200);
  // The page makes a role `postern`, and the administrator of this server is called so.
  await runSql(postgres.url, 'create role administrator superuser login');
  await runSql(address('administrator', 'postgres'), 'alter role postern rename to first');
});
afterAll(async () => {
  if (isMissing) return;
  // PostgreSQL was the first.
  for (const child of [...children].toReversed()) await end(child, 'SIGINT');
  await redis.stop();
  rmSync(postgres.folder, { recursive: true });
});

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  children.delete(child);
  if (child.exitCode === null && child.signalCode === null) {
    child.kill(signal);
    await once(child, 'exit');
  }
  return child.exitCode;
}

/** What the page tells an administrator to run, block by block. */
function sqlOfPage(): string[] {
  const page = readFileSync(join(root, 'docs/how-to/install-on-kubernetes.md'), 'utf8');
  return [...page.matchAll(/```sql\n([^`]+)```/g)].map(([, sql = '']) =>
    sql.replaceAll("'…'", `'${password}'`),
  );
}

/** One statement after the other: a database cannot be made inside of a transaction. */
async function runSql(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of sql.split(';').filter((one) => one.trim() !== '')) await client.query(statement);
  } finally {
    await client.end();
  }
}

function address(role: string, database = 'postern'): string {
  const url = new URL(postgres.url);
  url.username = role;
  url.password = password;
  url.pathname = `/${database}`;
  return url.href;
}

type Running = { readonly child: ChildProcess; readonly metricsPort: number; said(): string };

/** The command and the settings of the manifest; ports, folders and what is in Secrets are of this machine. */
async function start(component: Exclude<Component, 'test'>, database = 'postern'): Promise<Running> {
  const [metricsPort, port, gatewayPort] = [await freePort(), await freePort(), await freePort()];
  const folder = join(postgres.folder, `${component}-${metricsPort}`);
  mkdirSync(folder);
  const secrets: Record<string, string> = {
    DATABASE_URL: address(component === 'gateway' ? role : 'postern', database),
    KV_URL: redis.url,
  };
  const here = {
    HOST: '127.0.0.1',
    PORT: `${port}`,
    GATEWAY_PORT: `${gatewayPort}`,
    METRICS_PORT: `${metricsPort}`,
    DATA_DIR: folder,
  };
  const given = [...rendered.env(component).values()]
    .filter(({ name }) => !name.startsWith('OBJECT_'))
    .map(({ name, value }) => [name, value ?? secrets[name] ?? `${name} of no use but long enough for all`]);
  const [, ...args] = rendered.container(component).command;
  const child = spawn(process.execPath, args, { cwd: root, env: { ...Object.fromEntries(given), ...here } });
  children.add(child);
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (part: Buffer) => (said += part.toString()));
  return { child, metricsPort, said: () => said };
}

async function ended(running: Running): Promise<number | null> {
  if (running.child.exitCode === null) await once(running.child, 'exit');
  children.delete(running.child);
  return running.child.exitCode;
}

/** Restarts a process that ends before it is ready, like a cluster. @throws with the output of the last attempt */
async function ready(component: (typeof workloads)[number], database?: string): Promise<Running> {
  let last: Running | undefined;
  for (let attempt = 0; attempt < 5; attempt++) {
    last = await start(component, database);
    while (last.child.exitCode === null) {
      const answer = await fetch(`http://127.0.0.1:${last.metricsPort}/readyz`).catch(() => null);
      if (answer?.status === 200) return last;
      await wait(100);
    }
    children.delete(last.child);
  }
  throw new Error(`${component} ended each time:\n${last?.said()}`);
}

describe.skipIf(isMissing)('on PostgreSQL and Redis', () => {
  test('the roles of the page are sufficient: the migration grants the gateway its reads, then all are ready', async () => {
    const [roles = '', ...more] = sqlOfPage();
    expect(more).toEqual([]);
    await runSql(address('administrator', 'postgres'), roles);
    const migration = await start('migrate');
    expect([await ended(migration), migration.said()]).toEqual([0, expect.stringContaining('Applied 0001_')]);

    const running: Running[] = [];
    for (const component of workloads) running.push(await ready(component));
    expect(running[1]?.said()).not.toContain('privileges that a gateway does not need');
    for (const { child } of running) expect(await end(child, 'SIGTERM')).toBe(0);
  });

  test('a dump that is restored as the page says is complete, and the gateway may read it', async () => {
    const bin = dirname(postgres.program);
    const file = join(postgres.folder, 'postern.dump');
    execFileSync(join(bin, 'pg_dump'), [
      '--format=custom',
      '--no-owner',
      `--file=${file}`,
      address('postern'),
    ]);
    await runSql(address('administrator', 'postgres'), 'create database restored owner postern');
    const into = `--dbname=${address('postern', 'restored')}`;
    execFileSync(join(bin, 'pg_restore'), ['--exit-on-error', '--no-owner', into, file]);
    const migration = await start('migrate', 'restored');
    expect([await ended(migration), migration.said()]).toEqual([0, expect.stringContaining('up to date')]);
    const gateway = await ready('gateway', 'restored');
    expect(await end(gateway.child, 'SIGTERM')).toBe(0);
  });
});
