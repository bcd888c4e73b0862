import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { decryptText, encryptionKeyOf, encryptText } from './encrypted-text.ts';

const [old, now] = [encryptionKeyOf('test', 'old secret'), encryptionKeyOf('test', 'new secret')];
const encrypted = encryptText(old, 'grüezi', 'row:1', randomBytes(12));

test('what was encrypted opens under any key of the list and the same context, and under nothing else', () => {
  expect(decryptText([now, old], encrypted, 'row:1')).toBe('grüezi');
  expect(decryptText([now], encrypted, 'row:1')).toBeUndefined();
  expect(decryptText([old], encrypted, 'row:2')).toBeUndefined();
  expect(decryptText([encryptionKeyOf('other', 'old secret')], encrypted, 'row:1')).toBeUndefined();
});

test('nothing that is cut short or changed by one bit opens', () => {
  for (let length = 0; length < encrypted.length; length += 1)
    expect(decryptText([old], encrypted.subarray(0, length), 'row:1')).toBeUndefined();
  for (let at = 0; at < encrypted.length; at += 1) {
    const changed = Buffer.from(encrypted);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(decryptText([old], changed, 'row:1')).toBeUndefined();
  }
});
