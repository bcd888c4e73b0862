import { beforeEach, describe, expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { day, minute } from '../../core/clock.ts';
import { createSignInThrottle, type SignInThrottle } from './sign-in-throttle.ts';

const ada = 'ada@example.com';
let clock: FakeClock;
let throttle: SignInThrottle;
beforeEach(() => {
  clock = new FakeClock();
  throttle = createSignInThrottle({ clock });
});

const wrong = (address: string, device: string | null = null, account = ada) =>
  throttle.attempt(account, address, device).kind;
function right(address: string, device: string | null = null): void {
  const attempt = throttle.attempt(ada, address, device);
  if (attempt.kind === 'refused') throw new Error('The throttle refused the right password.');
  attempt.succeed();
}

/** Sends as many wrong passwords as the account's counter allows, from eleven addresses. */
function lockOut(): void {
  for (let address = 1; address <= 11; address += 1)
    for (let count = 0; count < 10; count += 1) wrong(`192.0.2.${address}`);
  expect(wrong('192.0.2.100')).toBe('refused');
}

describe('wrong passwords of strangers', () => {
  test('keep out strangers, not the known device of the owner, wherever it is', () => {
    lockOut();
    expect(wrong('198.51.100.1', 'laptop')).toBe('allowed');
    expect(wrong('198.51.100.2', null)).toBe('refused');
  });

  test('do not keep out the address from which the owner signed in within a day', () => {
    right('198.51.100.1');
    clock.advance(day - 1);
    lockOut();
    expect(wrong('198.51.100.1')).toBe('allowed');
    clock.advance(1);
    expect(wrong('198.51.100.1')).toBe('refused');
  });

  test('are kept out of another account although the address is known to one', () => {
    right('198.51.100.1');
    for (let address = 1; address <= 10; address += 1)
      for (let count = 0; count < 10; count += 1) wrong(`192.0.2.${address}`, null, 'eve@example.com');
    expect(wrong('198.51.100.1', null, 'eve@example.com')).toBe('refused');
  });
});

describe('a known device', () => {
  test('has its own ten tries in a quarter of an hour, from any address', () => {
    for (let count = 0; count < 10; count += 1)
      expect(wrong(`198.51.100.${count}`, 'laptop')).toBe('allowed');
    expect(wrong('198.51.100.77', 'laptop')).toBe('refused');
    expect(wrong('198.51.100.77', 'phone')).toBe('allowed');
    clock.advance(15 * minute);
    expect(wrong('198.51.100.77', 'laptop')).toBe('allowed');
  });

  test('does not use up the tries of the account', () => {
    for (let count = 0; count < 100; count += 1) wrong(`198.51.100.${count}`, `device ${count}`);
    expect(wrong('192.0.2.1')).toBe('allowed');
  });

  test('stays within what its address may try', () => {
    for (let count = 0; count < 10; count += 1) wrong('198.51.100.1');
    expect(wrong('198.51.100.1', 'laptop')).toBe('refused');
  });
});

test('known addresses are bounded: the one that signed in longest ago is forgotten', () => {
  throttle = createSignInThrottle({ clock, maxKnownAddresses: 2 });
  for (const address of ['198.51.100.1', '198.51.100.2', '198.51.100.3']) right(address);
  lockOut();
  expect(wrong('198.51.100.1')).toBe('refused');
  expect(wrong('198.51.100.2')).toBe('allowed');
  expect(wrong('198.51.100.3')).toBe('allowed');
});

describe('the sign-in throttle', () => {
  const fail = (throttle: ReturnType<typeof createSignInThrottle>, account: string, address: string) =>
    throttle.attempt(account, address).kind;

  test('gives a right password its try back', () => {
    const throttle = createSignInThrottle({ clock: new FakeClock(), perAccount: 2 });
    for (let count = 0; count < 10; count += 1) {
      const attempt = throttle.attempt('a', '1.1.1.1');
      if (attempt.kind === 'allowed') attempt.succeed();
      expect(attempt.kind).toBe('allowed');
    }
  });

  test('slides: a try is free again exactly when the oldest failure is a quarter of an hour old', () => {
    const clock = new FakeClock();
    const throttle = createSignInThrottle({ clock, perAccount: 2 });
    fail(throttle, 'a', '1.1.1.1');
    clock.advance(10 * minute);
    fail(throttle, 'a', '1.1.1.1');
    expect(throttle.attempt('A', '2.2.2.2')).toMatchObject({ kind: 'refused', retryAfterSeconds: 300 });
    clock.advance(5 * minute);
    expect(fail(throttle, 'a', '1.1.1.1')).toBe('allowed');
    expect(fail(throttle, 'a', '1.1.1.1')).toBe('refused');
  });

  test('ten wrong passwords from a stranger do not lock the owner out, a hundred from anywhere do', () => {
    const throttle = createSignInThrottle({ clock: new FakeClock() });
    for (let count = 0; count < 10; count += 1) fail(throttle, 'a', '6.6.6.6');
    expect(fail(throttle, 'a', '6.6.6.6')).toBe('refused');
    expect(fail(throttle, 'a', '1.1.1.1')).toBe('allowed');
    for (let count = 0; count < 89; count += 1) fail(throttle, 'a', `7.7.7.${count}`);
    expect(fail(throttle, 'a', '8.8.8.8')).toBe('refused');
  });

  test('takes all addresses of one IPv6 customer for one', () => {
    const throttle = createSignInThrottle({ clock: new FakeClock() });
    for (let count = 0; count < 10; count += 1) fail(throttle, 'a', `2001:db8:1:2::${count}`);
    expect(fail(throttle, 'a', '2001:db8:1:2:ffff::1')).toBe('refused');
    expect(fail(throttle, 'a', '2001:db8:1:3::1')).toBe('allowed');
  });

  test('stops one address that tries many accounts, and nobody else', () => {
    const throttle = createSignInThrottle({ clock: new FakeClock(), perAddress: 3 });
    for (const account of ['a', 'b', 'c']) fail(throttle, account, '1.1.1.1');
    expect(fail(throttle, 'd', '1.1.1.1')).toBe('refused');
    expect(fail(throttle, 'd', '2.2.2.2')).toBe('allowed');
  });
});

describe('recovery codes', () => {
  const code = (address: string) => throttle.attemptCode(ada, address).kind;

  test('count with the passwords from the same address', () => {
    for (let count = 0; count < 5; count += 1) {
      expect(wrong('198.51.100.1')).toBe('allowed');
      expect(code('198.51.100.1')).toBe('allowed');
    }
    expect(code('198.51.100.1')).toBe('refused');
    expect(wrong('198.51.100.1')).toBe('refused');
  });

  test('have one limit from all addresses, however many of them the password has made known', () => {
    for (let address = 1; address <= 10; address += 1)
      for (let count = 0; count < 10; count += 1) {
        right(`192.0.2.${address}`);
        expect(code(`192.0.2.${address}`)).toBe('allowed');
      }
    right('192.0.2.100');
    expect(code('192.0.2.100')).toBe('refused');
    clock.advance(15 * minute);
    expect(code('192.0.2.100')).toBe('allowed');
  });

  test('are not blocked by wrong passwords of strangers', () => {
    lockOut();
    expect(code('198.51.100.1')).toBe('allowed');
  });
});
