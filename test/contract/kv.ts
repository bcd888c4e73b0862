import { expect, test } from 'vitest';
import type { Kv } from '../../src/platform/kv/kv.ts';

export type KvHarness = {
  readonly kv: () => Kv;
  /** Lets that much of the store's time pass. */
  readonly elapse: (ms: number) => Promise<void>;
};

const long = { ttlMs: 60_000 };

/** What every key-value store promises. Called inside a describe() of each implementation. */
export function kvContract({ kv, elapse }: KvHarness): void {
  test('a value that was set is read, and a missing one is null', async () => {
    await kv().set('a', 'ä\n{}', long);
    expect(await kv().get('a')).toBe('ä\n{}');
    expect(await kv().get('nobody')).toBeNull();
  });

  test('setting again replaces value and lifetime', async () => {
    await kv().set('b', 'one', { ttlMs: 30 });
    await kv().set('b', 'two', long);
    await elapse(60);
    expect(await kv().get('b')).toBe('two');
  });

  test('an expired value does not exist, for every verb', async () => {
    for (const key of ['c1', 'c2', 'c3', 'c4']) await kv().set(key, 'x', { ttlMs: 30 });
    await elapse(60);
    expect(await kv().get('c1')).toBeNull();
    expect(await kv().take('c2')).toBeNull();
    expect(await kv().delete('c3')).toBe(false);
    expect(await kv().setIfAbsent('c4', 'y', long)).toBe(true);
  });

  test('of fifty parallel takes of a value, exactly one gets it', async () => {
    await kv().set('d', 'ticket', long);
    const taken = await Promise.all(Array.from({ length: 50 }, () => kv().take('d')));
    expect(taken.filter((value) => value === 'ticket')).toHaveLength(1);
    expect(taken.filter((value) => value === null)).toHaveLength(49);
  });

  test('of fifty parallel sets of an absent value, exactly one succeeds and its value stays', async () => {
    const won = await Promise.all(
      Array.from({ length: 50 }, (_, i) => kv().setIfAbsent('e', String(i), long)),
    );
    expect(won.filter(Boolean)).toHaveLength(1);
    expect(await kv().get('e')).toBe(String(won.indexOf(true)));
  });

  test('delete says whether there was a value', async () => {
    await kv().set('f', 'x', long);
    expect(await kv().delete('f')).toBe(true);
    expect(await kv().delete('f')).toBe(false);
    expect(await kv().get('f')).toBeNull();
  });

  test('the store has a clock, and reports that it is healthy', async () => {
    const before = await kv().time();
    await elapse(30);
    expect((await kv().time()) - before).toBeGreaterThanOrEqual(29);
    await expect(kv().ping()).resolves.toBeUndefined();
  });
}
