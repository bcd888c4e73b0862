import { expect, test } from 'vitest';
import { plainText } from './schemas.ts';

const name = plainText(20);

test.each([
  'deploy from CI',
  '  trimmed  ',
  'שלום',
  'می‌خواهم',
  '👩‍🚀',
  'é',
  '日本語',
  '<b>not our problem</b>'.slice(0, 20),
])('a name in anyone’s script is taken: %j', (text) => {
  expect(name.parse(text)).toBe(text.trim());
});

test.each([
  ['nothing', ''],
  ['blanks', ' \t '],
  ['a line break', 'a\nb'],
  ['NUL', 'a\0b'],
  ['an escape sequence', '\u001b[2Ka'],
  ['a line separator', 'a\u2028b'],
  ['a mark that turns the direction', 'exe\u202egpj'],
  ['an isolate that is never closed', 'a\u2066b'],
  ['a zero-width space', 'ad\u200bmin'],
  ['a byte order mark', '\ufeffadmin'],
  ['a hidden tag', 'admin\u{e0041}'],
  ['half a surrogate pair', 'a\ud800'],
  ['twenty-one characters', 'x'.repeat(21)],
])('a name with %s is refused', (_what, text) => {
  expect(name.safeParse(text).success).toBe(false);
});
