import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { AppError } from '../../core/errors.ts';
import { createLog } from '../../platform/log.ts';
import { createRevocationStamps, stampMs } from './revocation-stamps.ts';

function stampsOver(store: { isAway: boolean }) {
  const written: string[] = [];
  const clock = new FakeClock();
  const stamps = createRevocationStamps({
    async write(owner, keyId) {
      if (store.isAway) throw new AppError('store_unavailable');
      written.push(`${owner} ${keyId}`);
    },
    clock,
    log: createLog({ level: 'silent' }),
  });
  return { stamps, written, clock };
}

test('RV-01 a stamp that the store did not take is written when it is back, once', async () => {
  const store = { isAway: true };
  const { stamps, written } = stampsOver(store);
  await stamps.set('ada', 'key1');
  await stamps.set('bob', 'key2');
  await expect(stamps.writeOwed()).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(written).toEqual([]);
  store.isAway = false;
  await stamps.writeOwed();
  await stamps.writeOwed();
  expect(written).toEqual(['ada key1', 'bob key2']);
});

test('a stamp that was taken is owed no more, and none is owed for longer than a key is remembered', async () => {
  const store = { isAway: false };
  const { stamps, written, clock } = stampsOver(store);
  await stamps.set('ada', 'key1');
  await stamps.writeOwed();
  expect(written).toEqual(['ada key1']);
  store.isAway = true;
  await stamps.set('ada', 'key2');
  store.isAway = false;
  clock.advance(stampMs + 1);
  await stamps.writeOwed();
  expect(written).toEqual(['ada key1']);
});

test('a change that comes while an older stamp is written is owed until its own is', async () => {
  const written: string[] = [];
  let during: (() => Promise<void>) | null = null;
  let isAway = true;
  const stamps = createRevocationStamps({
    async write(_owner, keyId) {
      if (isAway) throw new AppError('store_unavailable');
      written.push(keyId);
      const next = during;
      during = null;
      await next?.();
    },
    clock: new FakeClock(),
    log: createLog({ level: 'silent' }),
  });
  await stamps.set('ada', 'key1');
  during = async () => {
    isAway = true;
    await stamps.set('ada', 'key1');
    isAway = false;
  };
  isAway = false;
  await stamps.writeOwed();
  await stamps.writeOwed();
  expect(written).toEqual(['key1', 'key1']);
});
