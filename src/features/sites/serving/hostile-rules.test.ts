import { expect, test } from 'vitest';
import { resolve, type ServedContent } from './resolve.ts';
import { parseHeaders, parseRedirects } from '../content/site-rules.ts';

/** Rules of one site and one long address must not delay other requests: such a delay would exceed the test's timeout. */
const content = (redirects = ''): ServedContent => ({
  spa: false,
  files: new Map(),
  skew: new Map(),
  redirects: parseRedirects(redirects).rules,
  headers: [],
});
const at = (where: ServedContent, path: string) => resolve(where, path, { isDocument: true, now: 0 });

test.each([
  ['/*', 'a/b.html', true],
  ['/a', 'a', true],
  ['/a', 'ab', false],
  ['/docs/*.html', 'docs/x/y.html', true],
  ['/docs/*.html', 'docs/x.css', false],
  ['/*a*a', 'aa', true],
  ['/*a*a', 'a', false],
  ['/ab*ba', 'aba', false],
  ['/a.c', 'abc', false],
])('the headers of %s for %s: %s', (pattern, path, is) => {
  const [rule] = parseHeaders(`${pattern}\n  X-Robots-Tag: none`).rules;
  expect(rule?.pattern.test(path)).toBe(is);
});

test('a path of many wildcards is compared', () => {
  const [rule] = parseHeaders(`/${'*a'.repeat(500)}*b\n  X-Robots-Tag: none`).rules;
  expect(rule?.pattern.test('a'.repeat(1_000))).toBe(false);
});

test('an address of thousands of folders or marks is answered', () => {
  const rules = Array.from({ length: 1_000 }, () => '/* /:splat').join('\n');
  for (const path of [`/${'a/'.repeat(4_000)}b`, `/${'_'.repeat(8_000)}`, `/${'a/'.repeat(500)}b`]) {
    expect(at(content(rules), path)).toEqual({ kind: 'missing' });
  }
});

test('a redirect’s answer stays a header that can be sent', () => {
  expect(parseRedirects(`/* /${':splat'.repeat(11)}`).problems).toHaveLength(1);
  expect(parseRedirects(`/a /${'a'.repeat(1_000)}`).problems).toHaveLength(1);
  expect(at(content(`/* /x/${':splat'.repeat(10)}`), `/${'ü'.repeat(1_000)}`)).toEqual({ kind: 'missing' });
  expect(at(content('/old /Ā/:x/é%20y'), '/old')).toMatchObject({ to: '/%C4%80/:x/%C3%A9%20y' });
});

test('rules that match an address and lead nowhere are given up after ten', () => {
  const inVain = Array.from({ length: 1_000 }, () => `/* /%:splat${':splat'.repeat(9)}`);
  const path = `/2f${'a'.repeat(790)}`;
  const rules = content(inVain.join('\n'));
  at(rules, path);
  for (let time = 0; time < 100; time++) expect(at(rules, path).kind).toBe('missing');
  const few = content(['/* /:splat', '/* /:splat', '/a /b'].join('\n'));
  expect(at(few, '/a')).toMatchObject({ kind: 'redirect', to: '/b' });
  expect(at(content([...inVain, '/* /found'].join('\n')), path).kind).toBe('missing');
});

const headersOf = (...lines: string[]) => {
  const { rules, problems } = parseHeaders(['/*', ...lines.map((line) => `  ${line}`)].join('\n'));
  return { headers: rules[0]?.headers, problems: problems.map(({ problem }) => problem) };
};

test.each([
  ['Permissions-Policy: camera=*', 'that is not a list of feature=() and feature=(self)'],
  ['Permissions-Policy: fullscreen=*', 'that is not a list'],
  ['Permissions-Policy: fullscreen=(self "https://elsewhere.example")', 'that is not a list'],
  ['Permissions-Policy: !!! not a policy', 'that is not a list'],
  ['Permissions-Policy: fullscreen=(),', 'that is not a list'],
  ["Permissions-Policy: camera 'none'", 'that is not a list'],
  ['Permissions-Policy: fullscreen=();x', 'that is not a list'],
  ['Permissions-Policy: gamepad=(), camera=(self)', 'leave it out or write camera=()'],
  ['Permissions-Policy: usb=self', 'leave it out or write usb=()'],
  ['Referrer-Policy: unsafe-url', 'that is not one of no-referrer, '],
  ['Referrer-Policy: same-origin, UNSAFE-URL', 'that is not one of no-referrer, '],
  ['Referrer-Policy: whatever', 'that is not one of no-referrer, '],
  ['Constructor: x', 'sets constructor'],
])('T45 %s is refused, and says nothing where it was published before', (line, problem) => {
  expect(headersOf(line)).toEqual({ headers: [], problems: [expect.stringContaining(problem)] });
});

test.each([
  'Permissions-Policy: camera=()',
  'Permissions-Policy: fullscreen=(self), gamepad=self,midi=( ), interest-cohort=()',
  'Referrer-Policy: no-referrer, Strict-Origin-When-Cross-Origin',
  "Content-Security-Policy: default-src 'self'",
])('T45 %s is taken', (line) => {
  expect(headersOf(line)).toMatchObject({ headers: [expect.anything()], problems: [] });
});

test('a path has at most 50 headers, and 8,192 characters of them', () => {
  const many = headersOf(...Array.from({ length: 52 }, () => 'X-Robots-Tag: none'));
  expect([many.headers?.length, many.problems.length]).toEqual([50, 2]);
  expect(many.problems[0]).toContain('50 headers, or 8192 characters');
  const long = headersOf(...Array.from({ length: 5 }, () => `Content-Security-Policy: ${'x'.repeat(2_000)}`));
  expect([long.headers?.length, long.problems.length]).toEqual([4, 1]);
});
