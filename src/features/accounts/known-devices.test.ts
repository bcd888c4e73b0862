import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { day } from '../../core/clock.ts';
import { systemRandom } from '../../core/ids.ts';
import { createKnownDevices } from './known-devices.ts';

const clock = new FakeClock();
const made = (...secrets: string[]) => createKnownDevices({ clock, random: systemRandom, secrets });
const devices = made('secret one');

describe('the cookie of a known device', () => {
  test('is recognised for its account in any spelling, under a separate name', () => {
    const [first, second] = [devices.issue('Ada@example.com'), devices.issue('ada@example.com')];
    expect(devices.recognise('ada@EXAMPLE.com', first)).toMatch(/^[\w-]{22}$/);
    expect(devices.recognise('ada@example.com', second)).not.toBe(
      devices.recognise('ada@example.com', first),
    );
  });

  test('is worth nothing for another account', () => {
    expect(devices.recognise('eve@example.com', devices.issue('ada@example.com'))).toBeNull();
  });

  test('holds a date, a random name and a MAC, and nothing of the account', () => {
    expect(devices.issue('ada@example.com')).toMatch(/^\d{10}\.[\w-]{22}\.[\w-]{43}$/);
    expect(devices.issue(`${'a'.repeat(300)}@example.com`)).toHaveLength(77);
  });

  test('cannot be made up or changed', () => {
    const cookie = devices.issue('ada@example.com');
    const [expires = '', name = '', signature = ''] = cookie.split('.');
    for (const forged of [
      undefined,
      '',
      `${Number(expires) + 1}.${name}.${signature}`,
      `${expires}.${'A'.repeat(22)}.${signature}`,
      `${expires}.${name}.${'A'.repeat(43)}`,
      `${cookie}.`,
      made('another secret').issue('ada@example.com'),
    ])
      expect([forged, devices.recognise('ada@example.com', forged)]).toEqual([forged, null]);
  });

  test('outlives a rotation of SESSION_SECRET: the first signs, all verify', () => {
    const cookie = devices.issue('ada@example.com');
    const rotated = made('secret two', 'secret one');
    expect(rotated.recognise('ada@example.com', cookie)).not.toBeNull();
    expect(devices.recognise('ada@example.com', rotated.issue('ada@example.com'))).toBeNull();
  });

  test('ends after 180 days', () => {
    const cookie = devices.issue('ada@example.com');
    clock.advance(180 * day - 1000);
    expect(devices.recognise('ada@example.com', cookie)).not.toBeNull();
    clock.advance(1000);
    expect(devices.recognise('ada@example.com', cookie)).toBeNull();
  });
});
