import { expect, test } from 'vitest';
import { inShapeOf } from './stored-form.ts';

const initial = { limit: 5, words: ['a'], inner: { isOn: true, days: 7 } };

test('a stored document has exactly the fields of this release: unknown ones are left out, missing ones are the default’s', () => {
  const newer = { limit: 9, words: [], inner: { isOn: false, days: 1, hours: 2 }, more: { deep: 1 } };
  expect(inShapeOf(initial, newer)).toEqual({ limit: 9, words: [], inner: { isOn: false, days: 1 } });
  expect(inShapeOf(initial, { inner: { isOn: false } })).toEqual({
    limit: 5,
    words: ['a'],
    inner: { isOn: false, days: 7 },
  });
});

test.each([null, 'text', 3, [], [{ limit: 1 }]])(
  'a stored %j in the place of an object stays what it is, to be refused',
  (stored) => {
    expect(inShapeOf(initial, stored)).toBe(stored);
    expect(inShapeOf(initial, { ...initial, inner: stored })).toMatchObject({ inner: stored });
  },
);

test('a field that is stored as null is not missing', () => {
  expect(inShapeOf(initial, { ...initial, limit: null })).toMatchObject({ limit: null });
});

test('a name that every object inherits is no stored field', () => {
  expect(inShapeOf({ toString: 'default' }, {})).toEqual({ toString: 'default' });
});
