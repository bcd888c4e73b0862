import { setTimeout as realTime } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisSource } from '../../src/features/ratelimit/redis-source.ts';
import type { RedisKv } from '../../src/platform/kv/redis-kv.ts';
import { kvContract } from './kv.ts';
import { connectTo, isRedisMissing, startCluster } from './kv-redis-server.ts';

describe.skipIf(isRedisMissing)('a Redis Cluster of three masters', () => {
  let cluster: Awaited<ReturnType<typeof startCluster>>;
  let kv: RedisKv;
  let other: RedisKv;
  beforeAll(async () => {
    cluster = await startCluster();
    [kv, other] = [connectTo(cluster), connectTo(cluster)];
    await Promise.all([kv.start(), other.start()]);
  }, 60_000);
  afterAll(async () => {
    await Promise.all([kv.close(), other.close()]);
    await cluster.stop();
  });

  kvContract({ kv: () => kv, elapse: (ms) => realTime(ms) });

  test('limits hold for owners on every node, whichever process spends', async () => {
    const sources = [redisSource({ kv }), redisSource({ kv: other })];
    const owners = Array.from({ length: 30 }, (_, number) => `usr_${number}`);
    for (const owner of owners) {
      const spent = await Promise.all(
        Array.from(
          { length: 20 },
          async (_, turn) => await sources[turn % 2]?.spend({ owner, key: 'k', limit: 7 }),
        ),
      );
      expect(spent.filter((one) => one?.allowed)).toHaveLength(7);
    }
    await sources[0]?.setMark({ owner: 'usr_1', key: 'k', mark: 'revoked', ttlMs: 10_000 });
    const seen = await sources[1]?.spend({ owner: 'usr_1', key: 'k', limit: 100 });
    expect(seen?.mark).toEqual({ kind: 'read', value: 'revoked' });
  });

  test('what lies on several nodes is read in one go, by one clock', async () => {
    const keys = Array.from({ length: 50 }, (_, number) => `grant:${number}`);
    await Promise.all(keys.map((key) => kv.set(key, `value of ${key}`, { ttlMs: 10_000 })));
    const before = await other.time();
    const { values, now } = await other.getAll([...keys, 'nothing']);
    expect(values).toEqual([...keys.map((key) => `value of ${key}`), null]);
    expect(now).toBeGreaterThanOrEqual(before);
    expect(await kv.time()).toBeGreaterThanOrEqual(now);
  });
});
