import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { findPostgres, postgresAnswers, preparePostgres } from '../../scripts/local-servers.ts';

/** CI installs PostgreSQL; elsewhere the tests that need it say that they are skipped. */
export const isPostgresMissing = process.env['CI'] !== 'true' && findPostgres() === undefined;

/**
 * A PostgreSQL for databases of Environments, as an operator prepares it: the role `maker` may create databases and roles and
 * is no superuser, and every other role needs its password. Every role may connect to the database `shared`.
 */
export async function startPostgres() {
  const { folder, url: superuser, program, args, account } = await preparePostgres();
  const rules = ['postern trust', 'maker trust', 'all scram-sha-256'];
  writeFileSync(
    join(folder, 'data', 'pg_hba.conf'),
    rules.map((rule) => `host all ${named(rule)}\n`).join(''),
  );
  const server = spawn(program, [...args, '-c', 'fsync=off', '-c', 'log_min_messages=fatal'], {
    ...account,
    stdio: 'ignore',
  });
  while (!(await postgresAnswers(superuser))) {
    if (server.exitCode !== null || server.signalCode !== null)
      throw new Error('PostgreSQL ended before it answered.');
    await wait(100);
  }
  const run = async (text: string, url = superuser): Promise<Record<string, unknown>[]> => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(text)).rows;
    } finally {
      await client.end();
    }
  };
  await run('create role maker login createdb createrole');
  await run('revoke connect on database postgres from public; grant connect on database postgres to maker');
  await run('create database shared');
  return {
    superuser,
    url: superuser.replace('postern@', 'maker@'),
    /** Runs a query as the superuser, or as the role of `url`. Returns the rows. */
    run,
    /** What Environments have on it: roles, databases and their sessions. */
    async left(): Promise<unknown[]> {
      const rows = await run(`
        select rolname as name from pg_roles where starts_with(rolname, 'postern_')
        union all select datname from pg_database where starts_with(datname, 'postern_')
        union all select usename from pg_stat_activity where starts_with(usename, 'postern_')`);
      return rows.map(({ name }) => name);
    },
    async stop() {
      server.kill('SIGINT');
      if (server.exitCode === null) await once(server, 'exit');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function named(rule: string): string {
  const [role = '', method = ''] = rule.split(' ');
  return `${role} 127.0.0.1/32 ${method}`;
}
