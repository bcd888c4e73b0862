import { execFileSync } from 'node:child_process';
import { setTimeout as realTime } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { memoryKv } from '../../src/platform/kv/memory-kv.ts';
import { kvScript } from '../../src/platform/kv/kv-script.ts';
import type { RedisKv } from '../../src/platform/kv/redis-kv.ts';
import { FakeClock } from '../clock.ts';
import { kvContract } from './kv.ts';
import { connectTo, isRedisMissing, type RedisServer, startRedis, startRelay } from './kv-redis-server.ts';

describe('memory', () => {
  const clock = new FakeClock();
  const kv = memoryKv({ clock });
  kvContract({ kv: () => kv, elapse: async (ms) => clock.advance(ms) });
});

describe.skipIf(isRedisMissing)('redis', () => {
  let server: RedisServer;
  let kv: RedisKv;
  beforeAll(async () => {
    server = await startRedis();
    kv = connectTo(server);
    await kv.start();
  });
  afterAll(async () => {
    await kv.close();
    await server.stop();
  });

  // The server owns the expiry, so its own time has to pass; a few hundredths of a second.
  kvContract({ kv: () => kv, elapse: (ms) => realTime(ms) });

  const increment = kvScript(`return {redis.call('INCR', KEYS[1]), ARGV[1], false}`);

  test('a script runs as one step: a hundred at once count to a hundred', async () => {
    const runs = await Promise.all(Array.from({ length: 100 }, () => kv.run(increment, ['n'], ['a'])));
    expect(runs).toContainEqual([100, 'a', null]);
  });

  test('a server that hangs is unavailable, and is used again when it answers', async () => {
    server.freeze();
    await expect(kv.get('a')).rejects.toMatchObject({ code: 'store_unavailable' });
    server.thaw();
    await vi.waitFor(async () => expect(await kv.time()).toBeGreaterThan(0), 5_000);
  });

  test('a server that is gone is unavailable at once, and is used again when it is back', async () => {
    await server.stop();
    await expect(kv.get('a')).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(kv.ping()).rejects.toMatchObject({ code: 'store_unavailable' });
    await server.start();
    await vi.waitFor(async () => expect(await kv.get('a')).toBeNull(), 5_000);
    // The new server has never heard of the script.
    expect(await kv.run(increment, ['n'], ['b'])).toEqual([1, 'b', null]);
  });

  test('GR-09 a server that only reads answers what it has, takes nothing, and is used again when it does', async () => {
    await kv.set('there', 'a', { ttlMs: 60_000 });
    const cli = (...words: string[]) =>
      execFileSync('redis-cli', ['-u', server.url, ...words], { stdio: 'pipe' });
    // Nobody listens at the port of its master.
    cli('replicaof', '127.0.0.1', '1');
    expect(await kv.get('there')).toBe('a');
    const refused = { code: 'store_unavailable' };
    await expect(kv.set('a', 'b', { ttlMs: 1_000 })).rejects.toMatchObject(refused);
    await expect(kv.setIfAbsent('a', 'b', { ttlMs: 1_000 })).rejects.toMatchObject(refused);
    await expect(kv.setIfNewer('a', { revision: 1, text: 'b' }, { ttlMs: 1_000 })).rejects.toMatchObject(
      refused,
    );
    await expect(kv.take('there')).rejects.toMatchObject(refused);
    await expect(kv.delete('there')).rejects.toMatchObject(refused);
    cli('replicaof', 'no', 'one');
    expect(await kv.take('there')).toBe('a');
  });

  test('a connection that swallows everything is given up for a new one', async () => {
    const relay = await startRelay(server);
    const client = connectTo(relay);
    await client.start();
    relay.swallow();
    const unanswered = Array.from({ length: 20 }, () => client.get('a').catch((error: unknown) => error));
    for (const error of await Promise.all(unanswered))
      expect(error).toMatchObject({ code: 'store_unavailable' });
    // Connections made from now on work; the old one never will.
    await vi.waitFor(() => client.ping(), 5_000);
    expect(relay.accepted()).toBe(2);
    await client.close();
    await relay.stop();
  });

  test('starting without a server says so in time, and connects when one appears', async () => {
    await server.stop();
    const early = connectTo(server);
    await expect(early.start()).rejects.toMatchObject({ code: 'store_unavailable' });
    await server.start();
    await vi.waitFor(() => early.ping(), 5_000);
    await early.close();
    await vi.waitFor(() => kv.ping(), 5_000);
  });

  test('a server that evicts is refused, with the fix', async () => {
    const evicting = await startRedis('--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru');
    const client = connectTo(evicting);
    await expect(client.start()).rejects.toThrow(/maxmemory-policy is allkeys-lru; set it to noeviction/);
    await client.close();
    await evicting.stop();
  });
});
