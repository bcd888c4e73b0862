import { startPostgres, startRedis } from './engines.ts';
import { type BenchOptions, type Figure, perSecond, sideBySide } from './figures.ts';
import { load } from './load.ts';
import { type BenchServer, startServer } from './server-process.ts';

/**
 * P1: a request with a key (`GET /auth/context`: key check, scopes, rolling limit, usage) against the same server
 * and the same answer without any of it.
 */
export async function keyRequest(options: BenchOptions): Promise<Figure[]> {
  const embedded = await startServer();
  let alone: Measured;
  try {
    alone = await measure(embedded, options);
  } finally {
    await embedded.stop();
  }
  const postgres = await startPostgres();
  const redis = await startRedis();
  try {
    const shared = await startServer({ databaseUrl: postgres.url, kvUrl: redis.url });
    try {
      const together = await measure(shared, options);
      return [
        figure('key request, embedded', alone, 0.85, 0.95),
        figure('key request, PostgreSQL and Redis', together, 0.55, 0.7),
      ];
    } finally {
      await shared.stop();
    }
  } finally {
    await redis.stop();
    await postgres.stop();
  }
}

type Measured = { ours: number; reference: number; ratio: number };

async function measure({ address, keys }: BenchServer, { quick }: BenchOptions): Promise<Measured> {
  const seconds = quick ? 1 : 2;
  return await sideBySide(
    quick ? 1 : 15,
    async (round) => {
      const headers = { authorization: `Bearer ${keys[round % keys.length]}` };
      const found = await load(`${address}/api/v2/auth/context`, { seconds, headers });
      if (found.refused > 0 || found.broken > 0)
        throw new Error(`${found.refused} requests with a good key were refused, ${found.broken} broke.`);
      return found.perSecond;
    },
    async () => (await load(`${address}/api/v2/bench/plain`, { seconds })).perSecond,
  );
}

function figure(what: string, { ours, reference, ratio }: Measured, floor: number, goal: number): Figure {
  return {
    id: 'P1',
    what,
    ours: perSecond(ours),
    reference: perSecond(reference),
    ratio,
    floor: `≥ ${floor}`,
    goal: `≥ ${goal}`,
    passes: ratio >= floor,
  };
}
