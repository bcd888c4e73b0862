import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { postgresAnswers, preparePostgres } from '../../scripts/local-servers.ts';

/** A real PostgreSQL for one suite, on loopback in a temporary directory; removed by stop(). */
export type PostgresServer = {
  readonly url: string;
  /** Shuts it down as an operator does (fast shutdown); its data stays for resume(). */
  halt(): Promise<void>;
  resume(): Promise<void>;
  stop(): Promise<void>;
};

/** For nine processes that fill their pools, as during a rolling update (docs/explanation/scale.md). */
const maxConnections = 200;

export async function startPostgres(bin: string): Promise<PostgresServer> {
  const { folder, url, program, args, account } = await preparePostgres(bin);
  const launch = async () => {
    const ours = ['-c', 'log_min_messages=fatal', '-c', `max_connections=${maxConnections}`];
    const server = spawn(program, [...args, ...ours], { ...account, stdio: 'ignore' });
    const isRunning = () => server.exitCode === null && server.signalCode === null;
    while (!(await postgresAnswers(url))) {
      if (!isRunning()) throw new Error('PostgreSQL ended before it answered.');
      await wait(100);
    }
    return { server, isRunning };
  };
  let running = await launch();
  async function halt(): Promise<void> {
    if (!running.isRunning()) return;
    // SIGINT is PostgreSQL's fast shutdown.
    running.server.kill('SIGINT');
    await once(running.server, 'exit');
  }
  return {
    url,
    halt,
    async resume() {
      running = await launch();
    },
    async stop() {
      await halt();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Creates another empty database on the server at `url`. `name`: letters and underscores. */
export async function createDatabase(url: string, name: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`create database ${name}`);
  await client.end();
}
