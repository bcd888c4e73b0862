import fc from 'fast-check';
import { expect, test } from 'vitest';
import { addressBucket } from './address.ts';

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['::FFFF:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::', '2001:db8:1:2::/64'],
  ['2001:0DB8:0001:0002::9', '2001:db8:1:2::/64'],
  ['2001:db8::9', '2001:db8:0:0::/64'],
  ['2001:db8:0:0:1::', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['1::2:3:4:5:6:7', '1:0:2:3::/64'],
  ['::2:3:4:5:6:7:8', '0:2:3:4::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['2001:db8:1:2:3:4:5', 'unknown'],
  ['unix:', 'unknown'],
  ['', 'unknown'],
  [null, 'unknown'],
])('%s is throttled as %s', (address, bucket) => {
  expect(addressBucket(address)).toBe(bucket);
});

test('every way to write an address leads to the bucket of its first 64 bits', () => {
  const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }));
  fc.assert(
    fc.property(
      fc.array(group, { minLength: 8, maxLength: 8 }),
      fc.nat(7),
      fc.nat(8),
      (groups, from, length) => {
        const bucket = `${groups
          .slice(0, 4)
          .map((value) => value.toString(16))
          .join(':')}::/64`;
        const full = groups.map((value) => value.toString(16).padStart(4, '0').toUpperCase());
        expect(addressBucket(full.join(':'))).toBe(bucket);
        const to = Math.min(8, from + length);
        fc.pre(to > from && groups.slice(from, to).every((value) => value === 0));
        const short = groups.map((value) => value.toString(16));
        expect(addressBucket(`${short.slice(0, from).join(':')}::${short.slice(to).join(':')}`)).toBe(bucket);
      },
    ),
  );
});
