import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { systemRandom } from '../../core/ids.ts';
import { createKeyAlarms } from './alarms.ts';
import { digestOf, keyFormat } from './key-value.ts';

const format = keyFormat('app');
const value = format.generate('personal', systemRandom).value;
const older = `app_svc_${'0af3'.repeat(10)}`;

function setUp() {
  const asked: string[] = [];
  const findByDigest = async (digest: string) => void asked.push(digest);
  const alarms = createKeyAlarms({
    format,
    read: { keys: { findByDigest: (digest) => findByDigest(digest).then(() => undefined) } },
    endExchanged: async () => undefined,
    tx: () => Promise.reject(new Error('Nothing is written about a key that is not ours.')),
    denials: { record: () => undefined },
    clock: new FakeClock(),
  });
  return { alarms, asked };
}

test.each([
  ['as it is', value],
  ['with its underscores encoded', value.replaceAll('_', '%5F')],
  ['encoded whole', Buffer.from(value).toString('hex').replaceAll(/../g, '%$&')],
  ['beside a broken encoding', `%zz${value.replaceAll('_', '%5f')}%`],
  ['encoded twice', value.replaceAll('_', '%255F')],
  ['encoded whole, three times', Buffer.from(value).toString('hex').replaceAll(/../g, '%2525$&')],
  [
    'encoded whole, and every character of that',
    Buffer.from(value)
      .toString('hex')
      .replaceAll(
        /(.)(.)/g,
        (_all, a: string, b: string) => `%25%${a.charCodeAt(0).toString(16)}%${b.charCodeAt(0).toString(16)}`,
      ),
  ],
  ['beside bytes that are no text', `%ff%fe/${value.replaceAll('_', '%5F')}`],
])('a key in an address is seen %s', async (_, written) => {
  const { alarms, asked } = setUp();
  const address = `/auth/context?x=${written}`;
  expect(alarms.mentions(address)).toBe(true);
  alarms.report(address, { requestId: 'req', address: null, agent: null });
  await alarms.flush();
  expect(asked).toContain(digestOf(value));
});

test('a key of the older form in an address is found under its digest, also with letters behind it', async () => {
  const { alarms, asked } = setUp();
  const address = `/auth/context?x=${older}xyz`;
  expect(alarms.mentions(address)).toBe(true);
  alarms.report(address, { requestId: 'req', address: null, agent: null });
  await alarms.flush();
  expect(asked).toContain(digestOf(older));
});
