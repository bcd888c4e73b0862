import { expect, test } from 'vitest';
import { inBatches } from './in-batches.ts';

test('goes on until nothing is left over, and gives up its turn after a hundred rounds', async () => {
  let rows = 25;
  const asked: number[] = [];
  const remove = async (limit: number) => {
    const removed = Math.min(limit, rows);
    rows -= removed;
    asked.push(removed);
    return removed;
  };
  await inBatches(10, remove);
  expect([rows, asked]).toEqual([0, [10, 10, 5]]);
  rows = 5_000;
  await inBatches(10, remove);
  expect(rows).toBe(4_000);
});
