import { expect, test } from 'vitest';
import { createOutbound, isPrivateTarget, isPublic } from './outbound.ts';

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
const outbound = (allowsPrivate: boolean | readonly string[]) =>
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

test('T61 OUTBOUND_ALLOW_PRIVATE allows the hosts and networks that it lists, and never link-local addresses', async () => {
  const byName = outbound(['Inside.example.com', 'mixed.example.com']);
  expect(await byName.addressOf('inside.example.com')).toEqual({ kind: 'address', address: '10.0.0.8' });
  expect(await byName.addressOf('10.0.0.8')).toEqual({ kind: 'private' });
  const byNetwork = outbound(['10.0.0.0/8', 'fd00::/8']);
  expect(await byNetwork.addressOf('inside.example.com')).toMatchObject({ kind: 'address' });
  expect(await byNetwork.addressOf('fd12::1')).toMatchObject({ kind: 'address' });
  expect(await byNetwork.addressOf('192.168.0.1')).toEqual({ kind: 'private' });
  for (const allowed of [
    true,
    ['mixed.example.com', '169.254.0.0/16', 'fe80::/10', '169.254.169.254', '::/0'],
  ])
    for (const host of ['mixed.example.com', '169.254.169.254', 'fe80::1'])
      expect(await outbound(allowed).addressOf(host)).toEqual({ kind: 'private' });
});

test.each(['10.0.0.0/8', '10.0.0.7', 'fd00::/8', 'git.inside.example', 'gitlab'])(
  'OUTBOUND_ALLOW_PRIVATE may name %s',
  (text) => expect(isPrivateTarget(text)).toBe(true),
);

test.each(['10.0.0.0/33', '10.0.0.0/8/8', 'https://git.example', 'a b', '', '*.example.com', 'fe80::1%lo'])(
  'OUTBOUND_ALLOW_PRIVATE may not name "%s"',
  (text) => expect(isPrivateTarget(text)).toBe(false),
);

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
