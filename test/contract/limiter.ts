import fc from 'fast-check';
import { beforeEach, expect, test } from 'vitest';
import { type LimitSource, noStamp, type Spend } from '../../src/features/rate-limit/source.ts';
import { slotMs, windowMs } from '../../src/features/rate-limit/rolling-window.ts';

export type LimiterHarness = {
  /** Two handles on one budget: two processes over a shared store, or twice the same in memory. */
  readonly sources: () => readonly [LimitSource, LimitSource];
  readonly now: () => number;
  readonly elapse: (ms: number) => void | Promise<void>;
  /** How many random histories to try; a shared store costs a round trip a request. */
  readonly numRuns: number;
};

/** What every place that counts requests promises. Called inside a describe() of each implementation. */
export function limiterContract({ sources, now, elapse, numRuns }: LimiterHarness): void {
  let owner = '';
  let owners = 0;
  beforeEach(() => {
    owner = `usr_${++owners}`;
  });
  const spend = async (limit = 600, key = 'k1', from: 0 | 1 = 0, of = owner): Promise<Spend> =>
    sources()[from].spend({ owner: of, key, limit });
  const spendMany = async (count: number, limit = 600) => {
    let allowed = 0;
    for (let i = 0; i < count; i++) allowed += (await spend(limit)).allowed ? 1 : 0;
    return allowed;
  };

  test('RL-01 600 of 601 requests in a minute are served, then Retry-After is exact to the millisecond', async () => {
    for (let i = 0; i < 600; i++) {
      expect(await spend()).toMatchObject({ allowed: true, remaining: 599 - i, retryAfterMs: 0 });
      if (i % 20 === 0) await elapse(100);
    }
    const refused = await spend();
    expect(refused).toMatchObject({ allowed: false, remaining: 0 });
    expect(refused.retryAfterMs).toBe(refused.resetMs);
    expect(refused.retryAfterMs).toBeGreaterThanOrEqual(1_000);
    await elapse(refused.retryAfterMs - 1);
    expect((await spend()).allowed).toBe(false);
    await elapse(1);
    expect((await spend()).allowed).toBe(true);
  });

  test('RL-02 three keys of one owner, 200 requests each at once over two processes: 600 and not one more', async () => {
    const tries = [0, 1, 2].flatMap((key) =>
      Array.from({ length: 210 }, (_, i) => spend(600, `k${key}`, i % 2 === 0 ? 0 : 1)),
    );
    const allowed = (await Promise.all(tries)).filter((one) => one.allowed);
    expect(allowed).toHaveLength(600);
    expect(new Set(allowed.map(({ remaining }) => remaining)).size).toBe(600);
  });

  test('RL-03 another owner has a separate budget, and reading it spends nothing', async () => {
    expect(await spendMany(3, 3)).toBe(3);
    expect((await spend(3)).allowed).toBe(false);
    const other = `${owner}-other`;
    for (let i = 0; i < 5; i++)
      expect(await sources()[1].peek(other, 3)).toMatchObject({ remaining: 3, resetMs: 0 });
    expect(await spend(3, 'k1', 0, other)).toMatchObject({ allowed: true, remaining: 2 });
    expect(await sources()[1].peek(other, 3)).toMatchObject({ remaining: 2, retryAfterMs: 0 });
    const spent = await sources()[1].peek(owner, 3);
    expect(spent.remaining).toBe(0);
    expect(spent.retryAfterMs).toBeGreaterThan(windowMs - slotMs);
  });

  test('RL-04 a changed limit is in force with the next request, on both processes', async () => {
    expect(await spendMany(10, 10)).toBe(10);
    expect((await spend(10, 'k1', 1)).allowed).toBe(false);
    expect(await spend(12, 'k1', 1)).toMatchObject({ allowed: true, remaining: 1 });
    await elapse(1_000);
    expect(await spend(12, 'k1', 0)).toMatchObject({ allowed: true, remaining: 0 });
    const lowered = await spend(1, 'k1', 1);
    expect(lowered).toMatchObject({ allowed: false, remaining: 0 });
    // Only when the last of the twelve is out of the window, a second after the first ones, may one more come.
    expect(lowered.retryAfterMs - lowered.resetMs).toBe(1_000);
  });

  test('refused requests spend nothing: repeated attempts do not extend Retry-After', async () => {
    expect(await spendMany(5, 5)).toBe(5);
    const { retryAfterMs } = await spend(5);
    for (let i = 0; i < 50; i++) {
      await elapse(100);
      expect((await spend(5)).allowed).toBe(false);
    }
    await elapse(retryAfterMs - 5_000);
    expect(await spendMany(10, 5)).toBe(5);
  });

  test('no burst at a window’s edge: 600 at the end of one minute leave nothing for the next 60 seconds', async () => {
    await elapse(59_900);
    expect(await spendMany(600)).toBe(600);
    for (let i = 0; i < 60; i++) {
      expect((await spend()).allowed).toBe(false);
      await elapse(1_000);
    }
    await elapse(slotMs);
    expect((await spend()).allowed).toBe(true);
  });

  test('a key’s revocation stamp comes with the spend, on every process, also when it is refused', async () => {
    expect((await spend(1, 'stamped')).stamp).toEqual(noStamp);
    await sources()[0].setStamp({ owner, key: 'stamped', stamp: 'first', ttlMs: 60_000 });
    expect((await spend(1, 'stamped', 1)).stamp).toEqual({ kind: 'read', value: 'first' });
    await sources()[1].setStamp({ owner, key: 'stamped', stamp: 'second', ttlMs: 60_000 });
    expect(await spend(1, 'stamped')).toMatchObject({
      allowed: false,
      stamp: { kind: 'read', value: 'second' },
    });
    expect((await spend(9, 'another')).stamp).toEqual(noStamp);
  });

  /**
   * The rule written naively: keep every instant, look at all of them. A request may be served only while fewer than
   * the limit were in the last 60 seconds, and refused only while the limit was used up within the last 60.1. Who
   * obeys is refused one millisecond before the named moment and served at it.
   */
  test('for any history of requests, pauses and limits: never above the limit, capacity back within 100 ms', async () => {
    const pause = fc.oneof(
      fc.integer({ min: 0, max: 250 }),
      fc.integer({ min: 0, max: 20_000 }),
      fc.integer({ min: 59_800, max: 60_300 }),
    );
    const step = fc.record({
      pause,
      burst: fc.integer({ min: 1, max: 12 }),
      limit: fc.integer({ min: 1, max: 20 }),
      from: fc.constantFrom(0 as const, 1 as const),
      obeys: fc.boolean(),
    });
    let history = 0;
    const run = async (steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[]) => {
      const of = `${owner}-${++history}`;
      const served: number[] = [];
      const within = (ms: number) => served.filter((at) => at > now() - ms).length;
      const slotsHeld = () =>
        served.filter((at) => Math.floor(at / slotMs) + 601 > Math.floor(now() / slotMs)).length;
      for (const { pause: idle, burst, limit, from, obeys } of steps) {
        await elapse(idle);
        for (let i = 0; i < burst; i++) {
          const held = slotsHeld();
          const mayBeServed = within(windowMs) < limit;
          const mayBeRefused = within(windowMs + slotMs) >= limit;
          const result = await spend(limit, 'k', from, of);
          expect(result.allowed ? mayBeServed : mayBeRefused).toBe(true);
          expect(result).toMatchObject({ allowed: held < limit, remaining: Math.max(0, limit - held - 1) });
          expect(result.retryAfterMs === 0).toBe(result.allowed);
          if (result.allowed) served.push(now());
          if (result.allowed || !obeys) continue;
          await elapse(result.retryAfterMs - 1);
          expect((await spend(limit, 'k', from, of)).allowed).toBe(false);
          await elapse(1);
          expect((await spend(limit, 'k', from, of)).allowed).toBe(true);
          served.push(now());
        }
      }
    };
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), run), { numRuns });
  });
}
