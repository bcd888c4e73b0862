import { execFileSync } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { memoryKv } from '../../src/platform/kv/memory-kv.ts';
import { kvScript } from '../../src/platform/kv/kv-script.ts';
import type { RedisKv } from '../../src/platform/kv/redis-kv.ts';
import { FakeClock } from '../clock.ts';
import { kvContract } from './kv.ts';
import {
  connectPatiently,
  connectTo,
  isRedisMissing,
  type RedisServer,
  startRedis,
  startRelay,
} from './kv-redis-server.ts';

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
    kv = connectPatiently(server);
    await kv.start();
  });
  afterAll(async () => {
    await kv.close();
    await server.stop();
  });

  kvContract({
    kv: () => kv,
    // The server owns the expiry, so its own time has to pass; a few hundredths of a second.
    async elapse(ms) {
      const end = (await kv.time()) + ms;
      while ((await kv.time()) < end) await wait(5);
    },
  });

  const increment = kvScript(`return {redis.call('INCR', KEYS[1]), ARGV[1], false}`);

  test('a script runs as one step: a hundred at once count to a hundred', async () => {
    const runs = await Promise.all(Array.from({ length: 100 }, () => kv.run(increment, ['n'], ['a'])));
    expect(runs).toContainEqual([100, 'a', null]);
  });

  test('a server that hangs is unavailable, and is used again when it answers', async () => {
    const hasty = connectTo(server);
    await expect.poll(() => hasty.start()).toBeUndefined();
    server.freeze();
    await expect(hasty.get('a')).rejects.toMatchObject({ code: 'store_unavailable' });
    server.thaw();
    await expect.poll(() => hasty.time()).toBeGreaterThan(0);
    await hasty.close();
  });

  test('a stopped server is unavailable at once, and is used again when it is back', async () => {
    await server.stop();
    await expect(kv.get('a')).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(kv.ping()).rejects.toMatchObject({ code: 'store_unavailable' });
    await server.start();
    await expect.poll(() => kv.get('a')).toBeNull();
    // The new server has never heard of the script.
    expect(await kv.run(increment, ['n'], ['b'])).toEqual([1, 'b', null]);
  });

  test('GR-09 a read-only server answers reads, accepts no write, and is used again when it does', async () => {
    await kv.set('there', 'a', { ttlMs: 60_000 });
    const cli = (...words: string[]) =>
      execFileSync('redis-cli', ['-u', server.url, ...words], { stdio: 'pipe' });
    // No server listens at the port of its master.
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

  test('a connection that never answers is replaced by a new one', async () => {
    const relay = await startRelay(server);
    const client = connectTo(relay);
    await expect.poll(() => client.start()).toBeUndefined();
    const before = relay.accepted();
    relay.swallow();
    const unanswered = Array.from({ length: 20 }, () => client.get('a').catch((error: unknown) => error));
    for (const error of await Promise.all(unanswered))
      expect(error).toMatchObject({ code: 'store_unavailable' });
    // Connections made from now on work; the old one never will.
    await expect.poll(() => client.ping()).toBeUndefined();
    expect(relay.accepted()).toBeGreaterThan(before);
    await client.close();
    await relay.stop();
  });

  test('a start without a server reports it in time, and connects when one appears', async () => {
    await server.stop();
    const early = connectTo(server);
    await expect(early.start()).rejects.toMatchObject({ code: 'store_unavailable' });
    await server.start();
    await expect.poll(() => early.ping()).toBeUndefined();
    await early.close();
    await expect.poll(() => kv.ping()).toBeUndefined();
  });

  test('a server that evicts keys is refused, with the fix', async () => {
    const evicting = await startRedis('--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru');
    const client = connectPatiently(evicting);
    await expect(client.start()).rejects.toThrow(/maxmemory-policy is allkeys-lru; set it to noeviction/);
    await client.close();
    await evicting.stop();
  });
});
