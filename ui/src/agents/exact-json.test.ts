import { expect, test } from 'vitest';
import { exactJson } from './exact-json.ts';

test('an invisible character is shown as its code, and the JSON parses to the same value', () => {
  const value = { name: 'a\u202Eb\u200Bc\u00A0d\u2028e\u0007f\u{E0041}g', text: 'é مفتاح\n"x"' };
  const shown = exactJson(value);
  expect(shown).toContain('a\\u202eb\\u200bc\\u00a0d\\u2028e\\u0007f\\udb40\\udc41g');
  expect(shown).toContain('é مفتاح\\n\\"x\\"');
  expect(JSON.parse(shown)).toEqual(value);
});
