import { expect, test } from 'vitest';
import type { ServedContent, ServedFile } from '../../features/sites/sites.ts';
import * as answers from './answer.ts';
import { gone } from './environment-pages.ts';
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

const off =
  'camera=(), microphone=(), geolocation=(), usb=(), payment=(), publickey-credentials-get=(), publickey-credentials-create=()';

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

test('T22 T45 a header for other origins is sent on a public site alone, and a private one keeps its own isolation', () => {
  const own: Written = [
    ['access-control-allow-origin', '*'],
    ['cross-origin-opener-policy', 'same-origin-allow-popups'],
    ['cross-origin-resource-policy', 'same-site'],
    ['cross-origin-embedder-policy', 'require-corp'],
    ['x-frame-options', 'DENY'],
  ];
  const all = (isPrivate: boolean) => own.map(([name]) => sent(name, isPrivate, own));
  expect(all(false)).toEqual(own.map(([, value]) => [value]));
  expect(all(true)).toEqual([[], ['same-origin'], ['same-origin'], ['require-corp'], ['DENY']]);
});

test('a header that browsers ignore when it comes twice is sent once, with the value of the last rule', () => {
  const both = (name: string, one: string, other: string) =>
    sent(name, false, [[name, one]], [[name, other]]);
  expect(both('cross-origin-opener-policy', 'same-origin', 'same-origin-allow-popups')).toEqual([
    'same-origin-allow-popups',
  ]);
  expect(both('access-control-allow-origin', '*', '*')).toEqual(['*']);
  expect(both('content-security-policy', 'a', 'b')).toEqual(['a', 'b']);
});

test('answers and pages of the gateway turn passkeys off as the files do', () => {
  const made = [answers.nothingHere, answers.noGrant, answers.failed, answers.tooMany(1), gone];
  for (const { headers } of made) expect(headers['permissions-policy']).toBe(off);
});
