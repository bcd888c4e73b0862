// @module-tag sql
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemRandom } from '../../src/core/ids.ts';
import { memorySource } from '../../src/features/rate-limit/memory-source.ts';
import { createRateLimiter } from '../../src/features/rate-limit/rate-limit.ts';
import { redisSource } from '../../src/features/rate-limit/redis-source.ts';
import type { LimitSource } from '../../src/features/rate-limit/source.ts';
import { kvScript } from '../../src/platform/kv/kv-script.ts';
import { type RedisKv } from '../../src/platform/kv/redis-kv.ts';
import { FakeClock } from '../clock.ts';
import {
  connectPatiently,
  connectTo,
  isRedisMissing,
  type RedisServer,
  startRedis,
} from './kv-redis-server.ts';
import { limiterContract } from './limiter.ts';

describe('memory', () => {
  const clock = new FakeClock();
  const source = memorySource({ clock });
  limiterContract({
    sources: () => [source, source],
    now: () => clock.now(),
    elapse: (ms) => clock.advance(ms),
    numRuns: 500,
  });

  test('a clock set back by an hour neither locks an owner out nor grants a second budget', () => {
    const request = { owner: 'usr_back', key: 'k', limit: 5 };
    for (let i = 0; i < 5; i++) expect(source.spend(request).allowed).toBe(true);
    clock.advance(-3_600_000);
    const refused = source.spend(request);
    expect(refused.allowed).toBe(false);
    expect(refused.retryAfterMs).toBeLessThanOrEqual(60_100);
    clock.advance(refused.retryAfterMs);
    expect(source.spend(request).allowed).toBe(true);
  });

  test('a stamp ends with its lifetime', () => {
    source.setStamp({ owner: 'usr_m', key: 'brief', stamp: 'x', ttlMs: 1_000 });
    clock.advance(1_000);
    expect(source.spend({ owner: 'usr_m', key: 'brief', limit: 5 }).stamp).toEqual({
      kind: 'read',
      value: null,
    });
  });
});

describe.skipIf(isRedisMissing)('redis', () => {
  let server: RedisServer;
  let first: RedisKv;
  let second: RedisKv;
  let sources: readonly [LimitSource, LimitSource];
  const clock = new FakeClock();
  const setServerTime = kvScript(`redis.call('SET', 'test:now', ARGV[1])`);
  const testTime = `return tonumber(redis.call('GET', 'test:now'))`;
  const elapse = async (ms: number) => {
    clock.advance(ms);
    await first.run(setServerTime, [], [String(clock.now())]);
  };

  beforeAll(async () => {
    server = await startRedis();
    [first, second] = [connectPatiently(server), connectPatiently(server)];
    await Promise.all([first.start(), second.start()]);
    sources = [redisSource({ kv: first, timeLua: testTime }), redisSource({ kv: second, timeLua: testTime })];
    await elapse(0);
  });
  afterAll(async () => {
    await Promise.all([first.close(), second.close()]);
    await server.stop();
  });

  limiterContract({ sources: () => sources, now: () => clock.now(), elapse, numRuns: 40 });

  test('the server’s clock decides, and an owner’s slots end by themselves', async () => {
    const source = redisSource({ kv: first });
    const request = { owner: 'usr_real', key: 'k', limit: 600 };
    const spends = await Promise.all(Array.from({ length: 601 }, async () => source.spend(request)));
    expect(spends.filter(({ allowed }) => allowed)).toHaveLength(600);
    const refused = await source.spend(request);
    expect(refused.retryAfterMs).toBeGreaterThan(30_000);
    expect(refused.retryAfterMs).toBeLessThanOrEqual(60_100);
    const lifetime = await first.run(
      kvScript(`return {redis.call('PTTL', KEYS[1]), redis.call('LLEN', KEYS[1])}`),
      ['rl:{usr_real}'],
      [],
    );
    expect(lifetime).toEqual([expect.any(Number), expect.any(Number)]);
    const [ttlMs, slots] = lifetime as [number, number];
    expect(ttlMs).toBeGreaterThan(30_000);
    expect(ttlMs).toBeLessThanOrEqual(61_000);
    expect(slots).toBeLessThanOrEqual(601);
  });

  test('an owner costs at most 601 slots, however long the requests continue', async () => {
    const request = { owner: 'usr_long', key: 'k', limit: 1_000_000 };
    for (let i = 0; i < 1_500; i++) {
      await sources[0].spend(request);
      await elapse(100);
    }
    const slots = await first.run(kvScript(`return redis.call('LLEN', KEYS[1])`), ['rl:{usr_long}'], []);
    expect(slots).toBeLessThanOrEqual(601);
    expect((await sources[0].peek('usr_long', 1_000_000)).remaining).toBe(1_000_000 - 600);
  });

  test('a server clock set back a little keeps the budget; by hours, it does not lock an owner out', async () => {
    const request = { owner: 'usr_back', key: 'k', limit: 5 };
    for (let i = 0; i < 5; i++) expect((await sources[0].spend(request)).allowed).toBe(true);
    await elapse(-30_000);
    expect((await sources[0].spend(request)).allowed).toBe(false);
    await elapse(-3_600_000);
    expect(await sources[0].spend(request)).toMatchObject({ allowed: true, remaining: 4 });
  });

  test('RL-06 while a store hangs, stops and returns, requests continue under the limit, and an alarm fires', async () => {
    let alarms = 0;
    const outageClock = new FakeClock();
    const hasty = connectTo(server);
    await expect.poll(() => hasty.start()).toBeUndefined();
    // Only the store that hangs has a short limit.
    let source = redisSource({ kv: first });
    const limiter = createRateLimiter({
      source: {
        spend: (request) => source.spend(request),
        peek: (...owner) => source.peek(...owner),
        setStamp: (stamp) => source.setStamp(stamp),
      },
      fallback: memorySource({ clock: outageClock }),
      clock: outageClock,
      random: systemRandom,
      onFallback: () => void (alarms += 1),
    });
    const request = { owner: 'usr_outage', key: 'k', limit: 20 };
    const serve = async (count: number) => {
      let allowed = 0;
      for (let i = 0; i < count; i++) allowed += (await limiter.spend(request)).allowed ? 1 : 0;
      return allowed;
    };
    expect(await serve(10)).toBe(10);
    server.freeze();
    source = redisSource({ kv: hasty });
    expect(await serve(15)).toBe(10);
    expect(alarms).toBe(15);
    server.thaw();
    await server.stop();
    source = redisSource({ kv: first });
    outageClock.advance(1_000);
    expect(await serve(5)).toBe(0);
    expect(alarms).toBe(20);

    await server.start();
    await expect.poll(() => first.ping()).toBeUndefined();
    outageClock.advance(1_000);
    expect((await limiter.spend(request)).stamp.kind).toBe('read');
    expect(alarms).toBe(20);
    await hasty.close();
  });
});
