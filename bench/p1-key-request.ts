import { startPostgres, startRedis } from './engines.ts';
import { type BenchOptions, type Figure, perSecond, sideBySide } from './figures.ts';
import { load } from './load.ts';
import { recordAnswer } from './recorded-answer.ts';
import { type BenchServer, startNeighbour, startServer } from './server-process.ts';

/**
 * P1: a request with a key (`GET /auth/context`: key check, scopes, rolling limit, usage) against the same server
 * and the same answer without any of it. P1b: the same request against Fastify with one route that gives the same answer.
 * Both by processor time of the server, which other load on the machine changes least.
 */
export async function keyRequest(options: BenchOptions): Promise<Figure[]> {
  const embedded = await startServer();
  let alone: Measured;
  let bare: Measured;
  try {
    alone = await againstPlain(embedded, options);
    bare = await againstBare(embedded, options);
  } finally {
    await embedded.stop();
  }
  const postgres = await startPostgres();
  const redis = await startRedis();
  try {
    const shared = await startServer({ databaseUrl: postgres.url, kvUrl: redis.url });
    try {
      const together = await againstPlain(shared, options);
      return [
        figure('P1', 'key request, embedded', alone, 0.85, 0.95),
        figure('P1', 'key request, PostgreSQL and Redis', together, 0.55, 0.7),
        figure('P1b', 'key request, embedded, against bare Fastify', bare, 0.55, 0.75),
      ];
    } finally {
      await shared.stop();
    }
  } finally {
    await redis.stop();
    await postgres.stop();
  }
}

/** Requests per second of processor time. */
type Measured = { ours: number; reference: number; ratio: number };

async function againstPlain(server: BenchServer, { quick }: BenchOptions): Promise<Measured> {
  return await sideBySide(quick ? 1 : 15, withKey(server, quick), () =>
    rate(`${server.address}/api/v2/bench/plain`, server.pid, quick),
  );
}

async function againstBare(server: BenchServer, { quick }: BenchOptions): Promise<Measured> {
  const url = `${server.address}/api/v2/auth/context`;
  const { headers, body } = await recordAnswer(url, authorization(server, 0), addedByFastify);
  const bare = await startNeighbour('bare-fastify.ts', {
    message: { headers: Object.fromEntries(headers), body: JSON.parse(body.toString()) },
  });
  try {
    return await sideBySide(quick ? 1 : 15, withKey(server, quick), () =>
      rate(`http://127.0.0.1:${bare.port}/`, bare.pid, quick),
    );
  } finally {
    await bare.stop();
  }
}

const addedByFastify = ['content-length', 'content-type'];

function withKey(server: BenchServer, quick: boolean): (round: number) => Promise<number> {
  return (round) =>
    rate(`${server.address}/api/v2/auth/context`, server.pid, quick, authorization(server, round));
}

async function rate(
  url: string,
  pid: number,
  quick: boolean,
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  const found = await load(url, { seconds: quick ? 1 : 2, headers, server: pid });
  if (found.refused > 0 || found.broken > 0)
    throw new Error(`${found.refused} requests to ${url} were refused, ${found.broken} broke.`);
  return found.perProcessorSecond;
}

function authorization({ keys }: BenchServer, round: number): { authorization: string } {
  return { authorization: `Bearer ${keys[round % keys.length]}` };
}

function figure(
  id: string,
  what: string,
  { ours, reference, ratio }: Measured,
  floor: number,
  goal: number,
): Figure {
  return {
    id,
    what,
    ours: `${perSecond(ours)} of processor time`,
    reference: perSecond(reference),
    ratio,
    floor: `≥ ${floor}`,
    goal: `≥ ${goal}`,
    passes: ratio >= floor,
  };
}
