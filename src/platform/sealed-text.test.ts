import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { openText, sealingKey, sealText } from './sealed-text.ts';

const [old, now] = [sealingKey('test', 'old secret'), sealingKey('test', 'new secret')];
const sealed = sealText(old, 'grüezi', 'row:1', randomBytes(12));

test('what was sealed opens under any key of the list and the same context, and under nothing else', () => {
  expect(openText([now, old], sealed, 'row:1')).toBe('grüezi');
  expect(openText([now], sealed, 'row:1')).toBeUndefined();
  expect(openText([old], sealed, 'row:2')).toBeUndefined();
  expect(openText([sealingKey('other', 'old secret')], sealed, 'row:1')).toBeUndefined();
});

test('nothing that is cut short or changed by one bit opens', () => {
  for (let length = 0; length < sealed.length; length += 1)
    expect(openText([old], sealed.subarray(0, length), 'row:1')).toBeUndefined();
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = Buffer.from(sealed);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(openText([old], changed, 'row:1')).toBeUndefined();
  }
});
