import fc from 'fast-check';
import { expect, test } from 'vitest';
import { trimBlanks } from './credential.ts';

test('blanks at both ends go, blanks inside and every other kind of space stay', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(' ', '\t', 'a', '\u00a0', '\u3000') }), (text) => {
      expect(trimBlanks(text)).toBe(/^[ \t]*(.*?)[ \t]*$/su.exec(text)?.[1]);
    }),
  );
});
