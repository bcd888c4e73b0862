import { expect, test } from 'vitest';
import { EngineUnavailable } from '../contract.ts';
import { doEach } from './do-each.ts';

test('one that is unavailable holds up no other, and the first of them is the error', async () => {
  const done: string[] = [];
  const all = doEach(['one', 'two', 'three', 'four'], async (one) => {
    if (one === 'one' || one === 'three') throw new EngineUnavailable(one);
    done.push(one);
  });
  await expect(all).rejects.toEqual(new EngineUnavailable('one'));
  expect(done).toEqual(['two', 'four']);
});
