import { describe, expect, test } from 'vitest';
import { containsKey, keyPositions, maskKeys } from './key-shape.ts';

const body = 'Ab3'.repeat(16);

describe('a key is found and masked', () => {
  test.each([
    ['alone', '', 'app_pat_'],
    ['after a space', 'token: ', 'app_svc_'],
    ['after a digit', '1', 'app_pat_'],
    ['after a capital letter', 'X', 'app_pat_'],
    ['after a name that ends in an underscore', 'TOKEN_', 'app_pat_'],
    ['after a long word', 'a'.repeat(40), 'app_pat_'],
    ['after another key', `app_pat_${body}`, 'app_pat_'],
    ['as the token of an upload', 'token: ', 'app_upl_'],
    ['as an exchanged token', 'token: ', 'app_fed_'],
  ])('%s', (_, before, prefix) => {
    const text = `${before}${prefix}${body}`;
    expect(containsKey(text)).toBe(true);
    expect(keyPositions(text, 10)).not.toEqual([]);
    expect(maskKeys(text)).not.toContain(body);
    expect(maskKeys(text)).toContain('[redacted]');
  });
});

test('text without a key stays as it is', () => {
  for (const text of [
    'an app_pat_ prefix',
    'app_pat_short',
    'app_pat_[redacted]',
    'compat_layer',
    `upl_${body}`,
  ])
    expect([containsKey(text), maskKeys(text)]).toEqual([false, text]);
});

test('a position is where the key begins', () => {
  expect(keyPositions(`key: app_pat_${body} app_svc_${body}`, 10)).toEqual([5, 62]);
});
