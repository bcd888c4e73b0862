import { expect, test } from 'vitest';
import { createSharedAnswers } from './shared-answers.ts';

test('callers that come while a question is under way share the next one, and no earlier answer', async () => {
  const shared = createSharedAnswers();
  const asked: PromiseWithResolvers<number>[] = [];
  const ask = () => {
    asked.push(Promise.withResolvers<number>());
    return asked.at(-1)?.promise ?? Promise.reject(new Error('unreachable'));
  };
  const first = shared('branches', ask);
  const later = Array.from({ length: 19 }, () => shared('branches', ask));
  expect(asked).toHaveLength(1);
  asked[0]?.resolve(1);
  expect(await first).toBe(1);
  await expect.poll(() => asked.length).toBe(2);
  const last = shared('branches', ask);
  asked[1]?.resolve(2);
  expect(new Set(await Promise.all(later))).toEqual(new Set([2]));
  await expect.poll(() => asked.length).toBe(3);
  asked[2]?.resolve(3);
  expect(await last).toBe(3);
});

test('another question gets a separate answer, and a failure is shared but not kept', async () => {
  const shared = createSharedAnswers();
  let count = 0;
  const fail = async () => {
    count += 1;
    throw new Error(`failure ${count}`);
  };
  const failed = await Promise.allSettled([shared('a', fail), shared('a', fail), shared('a', fail)]);
  expect(failed.map((one) => one.status === 'rejected' && String(one.reason))).toEqual([
    'Error: failure 1',
    'Error: failure 2',
    'Error: failure 2',
  ]);
  expect(await Promise.all([shared('a', async () => 'a'), shared('b', async () => 'b')])).toEqual(['a', 'b']);
});
