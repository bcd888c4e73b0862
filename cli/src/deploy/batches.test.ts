import { expect, test } from 'vitest';
import { batchesOf } from './batches.ts';

const file = (name: string, size: number) => ({ path: name, file: name, sha256: name, size });

test('small contents share a request, a large one has its own, and what is there is not sent', () => {
  const mebibyte = 1024 ** 2;
  const files = [
    file('a', 5 * mebibyte),
    file('b', 9 * mebibyte),
    file('c', 3 * mebibyte),
    file('d', 1),
    file('e', 2),
  ];
  const batches = batchesOf(files, ['a', 'b', 'c', 'd']);
  expect(batches.map((batch) => batch.map(({ path }) => path))).toEqual([['b'], ['a', 'c'], ['d']]);
});

test('files with the same content send it once', () => {
  const files = [file('a', 1), { ...file('b', 1), sha256: 'a' }];
  expect(batchesOf(files, ['a']).flat()).toHaveLength(1);
});
