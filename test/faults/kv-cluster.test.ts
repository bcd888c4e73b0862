import { setTimeout as realTime } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AppError } from '../../src/core/errors.ts';
import { redisSource } from '../../src/features/rate-limit/redis-source.ts';
import type { RedisKv } from '../../src/platform/kv/redis-kv.ts';
import { kvContract } from '../contract/kv.ts';
import { connectPatiently, connectTo, isRedisMissing, startCluster } from '../contract/kv-redis-server.ts';

describe.skipIf(isRedisMissing)('a Redis Cluster of three masters', () => {
  let cluster: Awaited<ReturnType<typeof startCluster>>;
  let kv: RedisKv;
  let other: RedisKv;
  /** For nodes that do not answer. */
  let hasty: RedisKv;
  beforeAll(async () => {
    cluster = await startCluster();
    [kv, other, hasty] = [connectPatiently(cluster), connectPatiently(cluster), connectTo(cluster)];
    await Promise.all([kv, other, hasty].map((client) => client.start()));
  });
  afterAll(async () => {
    await Promise.all([kv, other, hasty].map((client) => client.close()));
    await cluster.stop();
  });

  kvContract({ kv: () => kv, elapse: (ms) => realTime(ms) });

  test('limits apply to owners on every node, whichever process counts', async () => {
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
    await sources[0]?.setStamp({ owner: 'usr_1', key: 'k', stamp: 'revoked', ttlMs: 10_000 });
    const seen = await sources[1]?.spend({ owner: 'usr_1', key: 'k', limit: 100 });
    expect(seen?.stamp).toEqual({ kind: 'read', value: 'revoked' });
  });

  test('values on several nodes are read at once, with one clock', async () => {
    const keys = Array.from({ length: 50 }, (_, number) => `grant:${number}`);
    await Promise.all(keys.map((key) => kv.set(key, `value of ${key}`, { ttlMs: 10_000 })));
    const before = await other.time();
    const { values, now } = await other.getAll([...keys, 'nothing']);
    expect(values).toEqual([...keys.map((key) => `value of ${key}`), null]);
    expect(now).toBeGreaterThanOrEqual(before);
    expect(await kv.time()).toBeGreaterThanOrEqual(now);
  });

  const keys = Array.from({ length: 50 }, (_, number) => `slot:${number}`);

  /** The result of a query to every node: `all` when all answered, else the code. */
  async function outcome(ask: (key: string) => unknown): Promise<string> {
    try {
      await Promise.all(keys.map(ask));
      return 'all';
    } catch (error) {
      return error instanceof AppError ? error.code : String(error);
    }
  }

  const write = () => outcome((key) => hasty.set(key, 'there', { ttlMs: 10_000 }));
  const read = () => outcome((key) => hasty.get(key));

  /** Someone always asks: that is how a silence is found out, and what must not start two attempts at once. */
  async function askInVain(ms: number): Promise<void> {
    for (const end = Date.now() + ms; Date.now() < end; await realTime(50)) {
      const asked = await Promise.allSettled(Array.from({ length: 30 }, () => hasty.get('slot:1')));
      expect(asked.every(({ status }) => status === 'rejected')).toBe(true);
    }
  }

  test('a cluster that was suspended for 12 s answers afterwards', async () => {
    for (const node of cluster.nodes) node.freeze();
    // Longer than two attempts to connect, which may take 5 s each.
    await askInVain(12_000);
    for (const node of cluster.nodes) node.thaw();
    await expect.poll(write).toBe('all');
  });

  test('a silent cluster answers again after a restart of its nodes', async () => {
    for (const node of cluster.nodes) node.freeze();
    await askInVain(1_000);
    // New connections are refused now.
    for (const node of cluster.nodes) await node.kill();
    await askInVain(1_000);
    for (const node of cluster.nodes) await node.start();
    await expect.poll(write).toBe('all');
  });

  test.each([0, 1, 2])('after master %i is killed and restarted, its slots answer again', async (number) => {
    const node = cluster.nodes[number];
    await node?.kill();
    await expect.poll(read).toBe('store_unavailable');
    await node?.start();
    await expect.poll(write).toBe('all');
  });
});
