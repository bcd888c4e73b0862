import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { AppError } from '../../core/errors.ts';
import { createLog } from '../../platform/log.ts';
import { createMarks, markMs } from './marks.ts';

function marksOver(store: { isAway: boolean }) {
  const written: string[] = [];
  const clock = new FakeClock();
  const marks = createMarks({
    async write(owner, keyId) {
      if (store.isAway) throw new AppError('store_unavailable');
      written.push(`${owner} ${keyId}`);
    },
    clock,
    log: createLog({ level: 'silent' }),
  });
  return { marks, written, clock };
}

test('RV-01 a mark that the store did not take is written when it is back, once', async () => {
  const store = { isAway: true };
  const { marks, written } = marksOver(store);
  await marks.set('ada', 'key1');
  await marks.set('bob', 'key2');
  await expect(marks.writeOwed()).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(written).toEqual([]);
  store.isAway = false;
  await marks.writeOwed();
  await marks.writeOwed();
  expect(written).toEqual(['ada key1', 'bob key2']);
});

test('a mark that was taken is owed no more, and none is owed for longer than a key is remembered', async () => {
  const store = { isAway: false };
  const { marks, written, clock } = marksOver(store);
  await marks.set('ada', 'key1');
  await marks.writeOwed();
  expect(written).toEqual(['ada key1']);
  store.isAway = true;
  await marks.set('ada', 'key2');
  store.isAway = false;
  clock.advance(markMs + 1);
  await marks.writeOwed();
  expect(written).toEqual(['ada key1']);
});

test('a change that comes while an older mark is written is owed until its own is', async () => {
  const written: string[] = [];
  let during: (() => Promise<void>) | null = null;
  let isAway = true;
  const marks = createMarks({
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
  await marks.set('ada', 'key1');
  during = async () => {
    isAway = true;
    await marks.set('ada', 'key1');
    isAway = false;
  };
  isAway = false;
  await marks.writeOwed();
  await marks.writeOwed();
  expect(written).toEqual(['key1', 'key1']);
});
