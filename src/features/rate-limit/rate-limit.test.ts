import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { systemRandom } from '../../core/ids.ts';
import { memorySource } from './memory-source.ts';
import { createRateLimiter, resetSeconds, retryAfterSeconds } from './rate-limit.ts';
import type { LimitSource, Spend } from './source.ts';

const request = { owner: 'usr_1', key: 'k1', limit: 600 };

/** Two processes with one shared source that a test can make unavailable. */
function setUp() {
  const clock = new FakeClock();
  const store = memorySource({ clock });
  let isDown = false;
  let asked = 0;
  const answer = async <T>(read: () => T): Promise<T> => {
    asked += 1;
    if (isDown) throw new Error('away');
    return read();
  };
  const source: LimitSource = {
    spend: (one) => answer(() => store.spend(one)),
    peek: (owner, limit) => answer(() => store.peek(owner, limit)),
    setStamp: (stamp) => answer(() => store.setStamp(stamp)),
  };
  let alarms = 0;
  const start = () =>
    createRateLimiter({
      source,
      fallback: memorySource({ clock }),
      clock,
      random: systemRandom,
      onFallback: () => void (alarms += 1),
    });
  return {
    clock,
    first: start(),
    second: start(),
    setDown: (down: boolean) => void (isDown = down),
    asked: () => asked,
    alarms: () => alarms,
  };
}

test('RL-01 601 requests in one minute: 600 served, then Retry-After, and waiting that long succeeds', async () => {
  const { clock, first } = setUp();
  for (let i = 0; i < 600; i++) {
    expect((await first.spend(request)).allowed).toBe(true);
    if (i % 13 === 0) clock.advance(77);
  }
  const refused = await first.spend(request);
  expect(refused.allowed).toBe(false);
  const seconds = Number(first.headers(600, refused)['retry-after']);
  expect(seconds).toBeGreaterThanOrEqual(1);
  clock.advance((seconds - 1) * 1_000);
  expect((await first.spend(request)).allowed).toBe(false);
  clock.advance(1_000);
  expect((await first.spend(request)).allowed).toBe(true);
});

test('RL-02 three keys of one owner over two processes: 600 together', async () => {
  const { first, second } = setUp();
  const tries = ['k1', 'k2', 'k3'].flatMap((key) =>
    Array.from({ length: 250 }, async (_, i) => (i % 2 ? first : second).spend({ ...request, key })),
  );
  expect((await Promise.all(tries)).filter(({ allowed }) => allowed)).toHaveLength(600);
});

test('RL-04 a changed limit is in force with the next request on both processes', async () => {
  const { first, second } = setUp();
  for (let i = 0; i < 5; i++) await first.spend({ ...request, limit: 5 });
  expect((await second.spend({ ...request, limit: 5 })).allowed).toBe(false);
  expect(await second.spend({ ...request, limit: 7 })).toMatchObject({ allowed: true, remaining: 1 });
  expect((await first.spend({ ...request, limit: 3 })).allowed).toBe(false);
});

test('RL-06 with the store away each process holds the limit by itself, and every such request is alarmed', async () => {
  const { first, second, setDown, alarms } = setUp();
  for (let i = 0; i < 400; i++) await first.spend(request);
  setDown(true);
  const serve = async (limiter: typeof first) => {
    let allowed = 0;
    for (let i = 0; i < 700; i++) allowed += (await limiter.spend(request)).allowed ? 1 : 0;
    return allowed;
  };
  // The first has let 400 through already; the second has seen nothing.
  expect(await serve(first)).toBe(200);
  expect(await serve(second)).toBe(600);
  expect(alarms()).toBe(1_400);
});

test('RL-06 a dead store is asked once a second, not by every request, and used again when it is back', async () => {
  const { clock, first, setDown, asked } = setUp();
  await first.spend(request);
  setDown(true);
  const before = asked();
  for (let i = 0; i < 500; i++) {
    await first.spend(request);
    clock.advance(10);
  }
  expect(asked() - before).toBeLessThanOrEqual(6);
  setDown(false);
  clock.advance(1_000);
  expect((await first.spend(request)).stamp.kind).toBe('read');
  expect((await first.spend(request)).stamp.kind).toBe('read');
});

test('RL-06 while limiting alone, the revocation stamp is unknown rather than absent', async () => {
  const { first, second, setDown } = setUp();
  await first.stampChanged('usr_1', 'k1', 60_000);
  const { stamp } = await second.spend(request);
  expect(stamp).toEqual({ kind: 'read', value: expect.stringMatching(/^\w{22}$/) });
  setDown(true);
  expect((await second.spend(request)).stamp).toEqual({ kind: 'unknown' });
  expect(await second.peek('usr_1', 600)).toMatchObject({ remaining: 598 });
  await expect(first.stampChanged('usr_1', 'k1', 60_000)).rejects.toThrow('away');
});

test('two stamps of a key never look equal', async () => {
  const { first } = setUp();
  const stamps = new Set<string | null>();
  for (let i = 0; i < 100; i++) {
    await first.stampChanged('usr_1', 'k1', 60_000);
    const { stamp } = await first.spend(request);
    stamps.add(stamp.kind === 'read' ? stamp.value : null);
  }
  expect(stamps.size).toBe(100);
});

test('the headers are those of the IETF draft, with Retry-After on a refusal only', async () => {
  const { clock, first } = setUp();
  expect(first.headers(600, await first.spend(request))).toEqual({
    'ratelimit-policy': '"default";q=600;w=60',
    ratelimit: '"default";r=599;t=60',
  });
  clock.advance(30_000);
  const low = { ...request, owner: 'usr_2', limit: 1 };
  // Nothing is left: t is now the moment that counts, the 60 seconds and what remains of the slot.
  expect(first.headers(1, await first.spend(low)).ratelimit).toBe('"default";r=0;t=61');
  clock.advance(20_000);
  expect(first.headers(1, await first.spend(low))).toEqual({
    'ratelimit-policy': '"default";q=1;w=60',
    ratelimit: '"default";r=0;t=41',
    'retry-after': '41',
  });
});

test('Retry-After is never 0', () => {
  const spend: Spend = {
    allowed: false,
    remaining: 0,
    resetMs: 0,
    retryAfterMs: 0,
    stamp: { kind: 'unknown' },
  };
  expect(retryAfterSeconds(spend)).toBe(1);
  expect(retryAfterSeconds({ ...spend, retryAfterMs: 1 })).toBe(1);
  expect(retryAfterSeconds({ ...spend, retryAfterMs: 1_001 })).toBe(2);
  expect(resetSeconds({ ...spend, resetMs: 900, retryAfterMs: 1_900 })).toBe(2);
  expect(resetSeconds({ ...spend, remaining: 600 })).toBe(0);
});
