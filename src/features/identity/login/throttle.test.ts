import { beforeEach, describe, expect, test } from 'vitest';
import { FakeClock } from '../../../../test/clock.ts';
import { day, minute } from '../../../core/clock.ts';
import { createSignInThrottle, type SignInThrottle } from './throttle.ts';

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

/** As many wrong passwords as the account's counter takes, from eleven addresses. */
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
  test('has ten tries in a quarter of an hour of its own, from wherever it asks', () => {
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
