import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { createFailedAuth } from './failed-auth.ts';
import { memorySource } from './memory-source.ts';

const limit = 120;
const setUp = (maxAddresses = 20_000) => {
  const clock = new FakeClock();
  return { clock, throttle: createFailedAuth({ clock, maxAddresses }) };
};

test('the 121st bad credential of a minute is throttled, and Retry-After is long enough', () => {
  const { clock, throttle } = setUp();
  for (let i = 0; i < limit; i++) {
    expect(throttle.noteFailure('192.0.2.1', limit)).toMatchObject({
      throttled: false,
      retryAfterSeconds: 0,
    });
  }
  const { throttled, retryAfterSeconds } = throttle.noteFailure('192.0.2.1', limit);
  expect(throttled).toBe(true);
  expect(retryAfterSeconds).toBeGreaterThanOrEqual(60);
  clock.advance((retryAfterSeconds - 1) * 1_000);
  expect(throttle.noteFailure('192.0.2.1', limit).throttled).toBe(true);
  clock.advance(1_000);
  expect(throttle.noteFailure('192.0.2.1', limit).throttled).toBe(false);
});

test('another address is not affected; another address of the same IPv6 /64 is', () => {
  const { throttle } = setUp();
  for (let i = 0; i <= limit; i++) throttle.noteFailure(`2001:db8:1:2::${i.toString(16)}`, limit);
  expect(throttle.noteFailure('2001:db8:1:2:ffff::1', limit).throttled).toBe(true);
  expect(throttle.noteFailure('2001:db8:1:3::1', limit).throttled).toBe(false);
  expect(throttle.noteFailure('192.0.2.2', limit).throttled).toBe(false);
});

test('a throttled address is news once a minute, however hard it tries', () => {
  const { clock, throttle } = setUp();
  let news = 0;
  for (let i = 0; i < 3 * 600; i++) {
    if (throttle.noteFailure('192.0.2.1', 10).isNews) news += 1;
    clock.advance(100);
  }
  expect(news).toBe(3);
});

test('a lowered limit throttles with the next bad credential', () => {
  const { throttle } = setUp();
  for (let i = 0; i < 20; i++) throttle.noteFailure('192.0.2.1', limit);
  expect(throttle.noteFailure('192.0.2.1', 10).throttled).toBe(true);
  expect(throttle.noteFailure('192.0.2.1', limit).throttled).toBe(false);
});

test('an address that goes on failing stays remembered while many others come and go', () => {
  const { throttle } = setUp(1_000);
  for (let i = 0; i <= limit; i++) throttle.noteFailure('192.0.2.1', limit);
  let forgotten = 0;
  for (let i = 0; i < 10_000; i++) {
    throttle.noteFailure(`10.1.${i >> 8}.${i & 255}`, limit);
    if (i % 400 === 0 && !throttle.noteFailure('192.0.2.1', limit).throttled) forgotten += 1;
  }
  expect(forgotten).toBe(0);
});

test('RL-05 100,000 bad keys: memory stays flat, the guesser is throttled, an owner’s counter is untouched', {
  tags: 'flood',
}, () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const heap = () => {
    collect();
    return process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
  };
  const { clock, throttle } = setUp();
  const source = memorySource({ clock });
  const request = { owner: 'usr_1', key: 'k', limit: 600 };
  for (let i = 0; i < 500; i++) source.spend(request);

  // First to full size, from as many addresses as are remembered; then five times as many again.
  const flood = (count: number, offset: number) => {
    let throttled = 0;
    for (let i = offset; i < offset + count; i++) {
      throttle.noteFailure(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, limit);
      throttled += throttle.noteFailure('192.0.2.66', limit).throttled ? 1 : 0;
    }
    return throttled;
  };
  flood(20_000, 0);
  const full = heap();
  expect(flood(100_000, 20_000)).toBe(100_000);
  expect(heap() - full).toBeLessThan(4 * 1024 * 1024);

  expect(source.peek('usr_1', 600).remaining).toBe(100);
  expect(source.spend(request)).toMatchObject({ allowed: true, remaining: 99 });
});
