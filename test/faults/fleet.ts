import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import type { Workload } from '../../src/config/names.ts';
import { type RedisServer, startRedis } from '../contract/kv-redis-server.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import { type PostgresServer, startPostgres } from './postgres-server.ts';
import { freePorts, type Ports, type Program, startProgram } from './program.ts';

/** Two web and two gateway processes and a worker, on one PostgreSQL and one Redis, each behind a faulty network. */
export type Fleet = {
  readonly webs: readonly [Member, Member];
  readonly gateways: readonly [Member, Member];
  readonly worker: Member;
  readonly database: FaultProxy;
  readonly kv: FaultProxy;
  readonly postgres: PostgresServer;
  readonly redis: RedisServer;
  /** The UI address that all of them use: the address of the first web process. */
  readonly uiUrl: string;
  readonly contentUrl: string;
  readonly dataDir: string;
  /** The database's address without the faulty network, for commands. */
  readonly databaseUrl: string;
  start(workload: Exclude<Workload, 'all'>, options?: MemberOptions): Promise<Member>;
  stop(): Promise<void>;
};

type MemberOptions = {
  readonly ports?: Ports;
  /** The main file of another build of the program. */
  readonly main?: string;
};

export type FleetOptions = {
  /** Options for Node. */
  readonly nodeOptions?: readonly string[];
};

export type Member = Program & { readonly ports: Ports };

export async function startFleet(postgresBin: string, { nodeOptions }: FleetOptions = {}): Promise<Fleet> {
  const dataDir = mkdtempSync(join(tmpdir(), 'postern-fleet-'));
  const postgres = await startPostgres(postgresBin);
  const redis = await startRedis();
  const database = await startFaultProxy(Number(new URL(postgres.url).port));
  const kv = await startFaultProxy(Number(new URL(redis.url).port));
  const through = (url: string, port: number, user?: string) => {
    const to = new URL(url);
    to.port = String(port);
    if (user !== undefined) to.username = user;
    return to.href;
  };
  const first = await freePorts();
  const uiUrl = `http://localhost:${first.web}`;
  const contentUrl = `http://sites.localhost:${first.gateway}`;
  const running: Member[] = [];

  async function start(
    workload: Exclude<Workload, 'all'>,
    { ports, main }: MemberOptions = {},
  ): Promise<Member> {
    const own = ports ?? (await freePorts());
    const role = workload === 'gateway' ? 'postern_gateway' : undefined;
    const program = await startProgram(
      {
        dataDir,
        databaseUrl: through(postgres.url, database.port, role),
        ports: own,
        ...(main === undefined ? {} : { main }),
        ...(nodeOptions === undefined ? {} : { nodeOptions }),
        settings: {
          KV_URL: through(redis.url, kv.port),
          SERVICE_UI_URL: uiUrl,
          SITES_CONTENT_URL: contentUrl,
        },
      },
      workload,
    );
    const member = { ...program, ports: own };
    running.push(member);
    return member;
  }

  async function stop(): Promise<void> {
    for (const member of running) await member.end('SIGKILL');
    await Promise.all([database.stop(), kv.stop()]);
    await redis.stop();
    await postgres.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }

  async function startAll() {
    const webs = [await start('web', { ports: first }), await start('web')] as const;
    await giveGatewayItsRole(postgres.url);
    const gateways = [
      await start('gateway', { ports: { ...(await freePorts()), gateway: first.gateway } }),
      await start('gateway'),
    ] as const;
    return { webs, gateways, worker: await start('worker') };
  }

  // When one fails to start, the others must not outlive the suite.
  const members = await startAll().catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return {
    ...members,
    database,
    kv,
    postgres,
    redis,
    uiUrl,
    contentUrl,
    dataDir,
    databaseUrl: postgres.url,
    start,
    stop,
  };
}

/** As docs/how-to/run-the-workloads-apart.md describes. */
async function giveGatewayItsRole(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('create role postern_gateway login');
  await client.query('grant usage on schema gateway to postern_gateway');
  await client.query('grant select on all tables in schema gateway to postern_gateway');
  await client.end();
}

/**
 * Sends every request every 25 ms, one at a time, while `during` runs; returns the responses by name. `breaks` receives the
 * longest time without a 200 of each name, in milliseconds.
 */
export async function watch(
  questions: Readonly<Record<string, () => Promise<number>>>,
  during: () => Promise<void>,
  breaks: Record<string, number> = {},
): Promise<Record<string, number[]>> {
  const answers: Record<string, number[]> = {};
  let isOver = false;
  const asking = Object.entries(questions).map(async ([name, ask]) => {
    const heard: number[] = [];
    answers[name] = heard;
    breaks[name] = 0;
    let lastGoodAt = performance.now();
    while (!isOver) {
      const status = await ask().catch(() => 0);
      heard.push(status);
      breaks[name] = Math.max(breaks[name] ?? 0, performance.now() - lastGoodAt);
      if (status === 200) lastGoodAt = performance.now();
      await wait(25);
    }
  });
  try {
    await during();
  } finally {
    isOver = true;
    await Promise.all(asking);
  }
  return answers;
}

/** Milliseconds until `ask` returns `status`. @throws when it takes longer than `maxMs` */
export async function timeUntil(ask: () => Promise<number>, status: number, maxMs: number): Promise<number> {
  const startedAt = performance.now();
  for (;;) {
    const heard = await ask().catch(() => 0);
    const ms = performance.now() - startedAt;
    if (heard === status) return ms;
    if (ms > maxMs) throw new Error(`Still ${heard} after ${ms.toFixed(0)} ms.`);
    await wait(20);
  }
}
