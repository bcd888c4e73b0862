import { expect, test } from 'vitest';
import { createOutbound, isPublic } from './outbound.ts';

test.each([
  '1.1.1.1',
  '9.255.255.255',
  '100.63.255.255',
  '172.32.0.1',
  '223.255.255.255',
  '2606:4700:4700::1111',
])('%s is a public address', (address) => expect(isPublic(address)).toBe(true));

test.each([
  '0.0.0.0',
  '10.1.2.3',
  '100.64.0.1',
  '127.0.0.1',
  '168.63.129.16',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '198.18.0.1',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::ffff:127.0.0.1',
  '::ffff:1.1.1.1',
  '64:ff9b::7f00:1',
  'fc00::1',
  'fd00:ec2::254',
  'fe80::1',
  'ff02::1',
  '2001:db8::1',
  '2002:7f00:1::',
  '2001::1',
  '2606:4700:4700::1111%lo',
  'localhost',
  '1.1.1.1.',
  '0x7f.1',
])('%s is no public address', (address) => expect(isPublic(address)).toBe(false));

const names: Readonly<Record<string, readonly string[]>> = {
  'git.example.com': ['1.1.1.1', '2606:4700:4700::1111'],
  'inside.example.com': ['10.0.0.8'],
  'mixed.example.com': ['1.1.1.1', '169.254.169.254'],
};
const outbound = (allowsPrivate: boolean) =>
  createOutbound({
    allowsPrivate,
    resolve: async (host) => {
      const addresses = names[host];
      if (addresses === undefined) throw new Error('ENOTFOUND');
      return addresses.map((address) => ({ address }));
    },
  });

test('a host is reached at a public address only, unless private ones are allowed', async () => {
  const { addressOf } = outbound(false);
  expect(await addressOf('git.example.com')).toEqual({ kind: 'address', address: '1.1.1.1' });
  expect(await addressOf('inside.example.com')).toEqual({ kind: 'private' });
  expect(await addressOf('mixed.example.com')).toEqual({ kind: 'private' });
  expect(await addressOf('127.0.0.1')).toEqual({ kind: 'private' });
  expect(await addressOf('gone.example.com')).toEqual({ kind: 'unknown_host' });
  const open = outbound(true);
  expect(await open.addressOf('inside.example.com')).toEqual({ kind: 'address', address: '10.0.0.8' });
  expect(await open.addressOf('127.0.0.1')).toEqual({ kind: 'address', address: '127.0.0.1' });
});

test('a name server that does not answer delays nobody longer than the limit, and is asked once', async () => {
  let asked = 0;
  const { addressOf } = createOutbound({
    allowsPrivate: false,
    lookupMs: 1,
    resolve: () => {
      asked += 1;
      return new Promise(() => undefined);
    },
  });
  expect(await Promise.all(['slow.example.com', 'slow.example.com'].map(addressOf))).toEqual([
    { kind: 'unknown_host' },
    { kind: 'unknown_host' },
  ]);
  expect(asked).toBe(1);
});
