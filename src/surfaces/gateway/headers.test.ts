import { expect, test } from 'vitest';
import type { ServedContent, ServedFile } from '../../features/sites/sites.ts';
import { fileHeaders } from './response-headers.ts';

type Written = ServedContent['headers'][number]['headers'];

const file: ServedFile = { digest: 'a'.repeat(64), size: 1, path: 'index.html', variants: [] };

/** All values of a header of a page with one block of headers for each of `written`. */
function sent(name: string, isPrivate: boolean, ...written: readonly Written[]): string[] {
  const content: ServedContent = {
    spa: false,
    files: new Map([[file.path, file]]),
    skew: new Map(),
    redirects: [],
    headers: written.map((headers) => ({ pattern: { test: () => true }, headers })),
  };
  const kind = { isPrivate, isUnlisted: false, isHttps: true };
  const form = { etag: '"x"', encoding: null, digest: file.digest, size: 1 };
  const list = fileHeaders(kind, content, file, form);
  return list.filter((_, at) => at % 2 === 1 && list[at - 1] === name);
}

const off = 'camera=(), microphone=(), geolocation=(), usb=(), payment=()';

test.each([true, false])(
  'T45 one Permissions-Policy is sent, and what is off on every site stays off (private: %s)',
  (isPrivate) => {
    expect(sent('permissions-policy', isPrivate)).toEqual([off]);
    const [sentOnce = '', ...more] = sent(
      'permissions-policy',
      isPrivate,
      [['permissions-policy', 'camera=*, fullscreen=(self),gamepad=()']],
      [['permissions-policy', 'fullscreen=(), usb=(self)']],
    );
    expect(more).toEqual([]);
    expect(sentOnce.split(', ').toSorted()).toEqual(
      [...off.split(', '), 'fullscreen=()', 'gamepad=()'].toSorted(),
    );
  },
);

test('an answer carries no more of its author’s headers than proxies take', () => {
  const many = Array.from({ length: 40 }, (): Written[number] => ['x-robots-tag', 'none']);
  expect(sent('x-robots-tag', false, many, many)).toHaveLength(50);
  const long: Written = [['content-security-policy', 'x'.repeat(2_000)]];
  expect(sent('content-security-policy', false, long, long, long, long, long)).toHaveLength(4);
});
