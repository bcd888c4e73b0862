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
  /** The main file of web processes and workers. */
  readonly main?: string;
};

export type Member = Program & { readonly ports: Ports };

export async function startFleet(
  postgresBin: string,
  { nodeOptions, main: mainOfAll }: FleetOptions = {},
): Promise<Fleet> {
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
    { ports, main = workload === 'gateway' ? undefined : mainOfAll }: MemberOptions = {},
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

/** Starts the workloads as docs/how-to/run-the-workloads-apart.md describes. */
async function giveGatewayItsRole(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('create role postern_gateway login');
  await client.query('grant usage on schema gateway to postern_gateway');
  await client.query('grant select on all tables in schema gateway to postern_gateway');
  await client.end();
}

/** A wait here ends a test only at half of the suite's limit: a busy machine may need minutes. */
const patienceMs = 7 * 60_000;

/** Sends every request every 25 ms, one at a time, while `during` runs; passes it the responses by name, and returns them. */
export async function watch(
  questions: Readonly<Record<string, () => Promise<number>>>,
  during: (answers: Readonly<Record<string, readonly number[]>>) => Promise<void>,
): Promise<Record<string, number[]>> {
  const answers: Record<string, number[]> = {};
  let isOver = false;
  const asking = Object.entries(questions).map(async ([name, ask]) => {
    const heard: number[] = [];
    answers[name] = heard;
    while (!isOver) {
      heard.push(await ask().catch(() => 0));
      await wait(25);
    }
  });
  try {
    await during(answers);
  } finally {
    isOver = true;
    await Promise.all(asking);
  }
  return answers;
}

/** Resolves when `heard` has `count` more responses: with this status, or with any. @throws when they do not come */
export async function untilHeard(
  heard: readonly number[] | undefined,
  count: number,
  status?: number,
): Promise<void> {
  const number = () => heard?.filter((one) => status === undefined || one === status).length ?? 0;
  const wanted = number() + count;
  const giveUpAt = performance.now() + patienceMs;
  while (number() < wanted) {
    if (performance.now() > giveUpAt)
      throw new Error(`Still ${number()} of ${wanted} responses. The last: ${heard?.slice(-20).join(' ')}`);
    await wait(20);
  }
}

/** Milliseconds until `ask` returns `status`. @throws when it never does */
export async function timeUntil(ask: () => Promise<number>, status: number): Promise<number> {
  const startedAt = performance.now();
  for (;;) {
    const heard = await ask().catch(() => 0);
    const ms = performance.now() - startedAt;
    if (heard === status) return ms;
    if (ms > patienceMs) throw new Error(`Still ${heard} after ${ms.toFixed(0)} ms.`);
    await wait(20);
  }
}
