import { expect, test } from 'vitest';
import { resolve, type ServedContent } from './resolve.ts';
import { parseHeaders, parseRedirects } from './site-rules.ts';

/** One site's rules and one long address must not keep everybody else waiting. */
const content = (redirects = ''): ServedContent => ({
  spa: false,
  files: new Map(),
  skew: new Map(),
  redirects: parseRedirects(redirects).rules,
  headers: [],
});
const at = (where: ServedContent, path: string) => resolve(where, path, { isDocument: true, now: 0 });

function millisecondsOf(work: () => unknown): number {
  const from = performance.now();
  work();
  return performance.now() - from;
}

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

test('a path of many wildcards is compared at once', () => {
  const [rule] = parseHeaders(`/${'*a'.repeat(500)}*b\n  X-Robots-Tag: none`).rules;
  expect(millisecondsOf(() => rule?.pattern.test('a'.repeat(1_000)))).toBeLessThan(100);
});

test('an address of thousands of folders or marks is answered at once', () => {
  const rules = Array.from({ length: 1_000 }, () => '/* /:splat').join('\n');
  for (const path of [`/${'a/'.repeat(4_000)}b`, `/${'_'.repeat(8_000)}`, `/${'a/'.repeat(500)}b`]) {
    let found: unknown;
    expect(millisecondsOf(() => (found = at(content(rules), path)))).toBeLessThan(200);
    expect(found).toEqual({ kind: 'missing' });
  }
});

test('a redirect’s answer stays a header that can be sent', () => {
  expect(parseRedirects(`/* /${':splat'.repeat(11)}`).problems).toHaveLength(1);
  expect(parseRedirects(`/a /${'a'.repeat(1_000)}`).problems).toHaveLength(1);
  expect(at(content(`/* /x/${':splat'.repeat(10)}`), `/${'ü'.repeat(1_000)}`)).toEqual({ kind: 'missing' });
  expect(at(content('/old /Ā/:x/é%20y'), '/old')).toMatchObject({ to: '/%C4%80/:x/%C3%A9%20y' });
});
