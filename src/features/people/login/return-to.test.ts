import { describe, expect, test } from 'vitest';
import { safeReturnTo } from './return-to.ts';

const origin = 'https://postern.example';

describe('where a person lands after signing in', () => {
  test.each([
    '/',
    '/keys',
    '/keys?a=b&c=%2F',
    '/s/abc#part',
    '/a//b',
    '/?next=https://evil.example',
    '/@evil',
  ])('%s is kept', (path) => {
    expect(safeReturnTo(path, origin)).toBe(path);
  });

  test.each([
    undefined,
    '',
    'keys',
    'https://evil.example',
    'https:evil.example',
    '//evil.example',
    '///evil.example',
    '////evil.example',
    '/\\evil.example',
    '\\/evil.example',
    '\\\\evil.example',
    '/\t/evil.example',
    '/\n/evil.example',
    '/\r\nset-cookie: a=b',
    '/ /evil.example',
    '/.//evil.example',
    '/..//evil.example',
    '/a/..//evil.example',
    '/%2e%2e//evil.example',
    '/./\\evil.example',
    'javascript:alert(1)',
    '/\u0000',
    '/\u2028//evil.example',
    '/auth/login',
    '/auth/callback?code=1',
    '/identity/session/end',
    '/setup',
    '/a/../auth/login',
    `/${'a'.repeat(3_000)}`,
  ])('%j becomes the start page', (path) => {
    expect(safeReturnTo(path, origin)).toBe('/');
  });

  test('whatever is kept stays on our origin for a browser', () => {
    for (const path of [
      '/x',
      '/%5c%5cevil.example',
      '/%09/evil.example',
      '/;@evil.example',
      '/?#//evil.example',
    ]) {
      const kept = safeReturnTo(path, origin);
      expect(new URL(kept, `${origin}/auth/callback`).origin).toBe(origin);
    }
  });
});
