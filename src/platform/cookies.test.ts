import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cookiesIn, cookieValue } from './cookies.ts';

test('spaces and tabs around a name and a value are ignored, inside and every other kind of space they stay', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(' ', '\t', 'a', '\u00a0', '\u3000') }), (text) => {
      const trimmed = /^[ \t]*(.*?)[ \t]*$/su.exec(text)?.[1];
      expect(cookiesIn(`${text}=${text}`)).toEqual([{ name: trimmed, value: trimmed }]);
    }),
  );
});

test('a cookie counts only when it was sent once, under exactly this name', () => {
  const header = 'a=1; ab=2;c; a =3;\td=4=5 ;e=';
  expect(cookiesIn(header).map(({ name }) => name)).toEqual(['a', 'ab', 'a', 'd', 'e']);
  expect(['a', 'ab', 'b', 'c', 'd', 'e', '\u00a0d'].map((name) => cookieValue(header, name))).toEqual([
    undefined,
    '2',
    undefined,
    undefined,
    '4=5',
    '',
    undefined,
  ]);
  expect(cookieValue(undefined, 'a')).toBeUndefined();
});
