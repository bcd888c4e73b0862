import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { resolve, type ServedContent } from './resolve.ts';
import { followRedirects, parseRedirects } from '../content/site-rules.ts';

const words = (text: string) => text.split(' ');

const origin = 'https://site.example';
const followed = (rules: string, path: string) => followRedirects(parseRedirects(rules).rules, path);

/** What the address bar shows after a redirect from somewhere on the site. */
const landing = (to: string) => new URL(to, `${origin}/some/where?x#y`);

/** What phishing is made of. */
const odd = fc.constantFrom(
  ...words(
    '/ // \\ . .. : @ ? # & = % %2f %5c %0d%0a %09 %00 %252f \t \0 \u00a0 \u2028 \u202e \ufeff ／ ＼ 。',
  ),
  ...words('é 😀 * :a :b :splat https: javascript: data: evil.example a'),
  'Set-Cookie: x',
);
const piece = fc.oneof({ weight: 4, arbitrary: odd }, fc.string({ unit: 'binary', maxLength: 3 }));
const text = (most: number) => fc.array(piece, { maxLength: most }).map((pieces) => pieces.join(''));

function expectOnSite({ to, status }: { to: string; status: number }): void {
  expect(to).toMatch(/^\/(?![/\\])[\x21-\x7e]*$/);
  expect(to).not.toContain('\\');
  expect(landing(to).origin).toBe(origin);
  expect([301, 302, 303, 307, 308]).toContain(status);
}

describe('T46 redirects of the author’s', () => {
  test('no rule that is taken leads off the site, whatever it says and whichever address it is asked for', () => {
    let answers = 0;
    const segment = fc.oneof({ weight: 3, arbitrary: fc.constantFrom(':a', ':b', 'x', 'y') }, text(2));
    const from = fc
      .tuple(fc.array(segment, { maxLength: 2 }), fc.constantFrom('', '/*', '/*'))
      .map(([segments, rest]) => `/${segments.join('/')}${rest}`.replace('//*', '/*'));
    const to = fc.oneof(
      text(5),
      text(4).map((rest) => `/${rest}`),
      text(3).map((rest) => `/x/${rest}:splat:a`),
    );
    const rule = fc
      .tuple(from, to, fc.constantFrom('', ' 301', ' 302', ' 303', ' 307', ' 308', ' 200', ' 404'))
      .map(([one, other, status]) => `${one} ${other}${status}`);
    const address = fc.array(fc.oneof(fc.constantFrom('x', 'y'), text(3)), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(fc.array(rule, { minLength: 1, maxLength: 6 }), address, (rules, segments) => {
        const found = followed(rules.join('\n'), segments.join('/'));
        if (found === undefined) return;
        answers += 1;
        expectOnSite(found);
      }),
      { numRuns: 5_000 },
    );
    // Enough of them that the promise was put to the test.
    expect(answers).toBeGreaterThan(200);
  });

  test('a rule names a path of the site, so one with a host is refused', () => {
    const host = fc.constantFrom(
      'evil.example',
      'evil.example:443',
      'u:p@evil.example',
      '[::1]',
      'evil。example',
    );
    const start = fc.constantFrom(
      ...words(
        '// /// /\\ \\\\ \\/ /%5c /%2f /%2F/ /\t/ /\u00a0/ /\u200b/ /%09/ /%0d%0a /%00/ https:// https:',
      ),
      ...words('HTTP:/ http: javascript: data: ftp:// @ . ? # blob:https:// view-source:'),
      '',
    );
    const rest = text(2).map((one) => one.replaceAll(/\s/gu, ''));
    fc.assert(
      fc.property(start, host, rest, (first, name, more) => {
        const { rules, problems } = parseRedirects(`/a ${first}${name}${more}`);
        expect([rules, problems.length]).toEqual([[], 1]);
      }),
      { numRuns: 1_000 },
    );
  });

  test('what stands for a placeholder is one part of the path, letter by letter, and never a query', () => {
    // What would be a slash or a line break somewhere is redirected nowhere.
    const value = text(4).filter((one) => one !== '' && !/[/\\\0-\r]/.test(one));
    fc.assert(
      fc.property(value, value, (one, other) => {
        const found = followed('/blog/:a/:b /docs/:b/x-:a', `blog/${one}/${other}`);
        expect(found?.to).toBe(`/docs/${encodeURIComponent(other)}/x-${encodeURIComponent(one)}`);
        const { search, hash } = landing(found?.to ?? '');
        expect([search, hash]).toEqual(['', '']);
        const inQuery = followed('/blog/:a /docs?post=:a&by=me', `blog/${one}`);
        const { searchParams } = landing(inQuery?.to ?? '');
        expect([...searchParams]).toEqual([
          ['post', one],
          ['by', 'me'],
        ]);
        const rest = followed('/old/* /new/:splat', `old/${one}/${other}`);
        expect(rest?.to).toBe(`/new/${encodeURIComponent(one)}/${encodeURIComponent(other)}`);
      }),
      { numRuns: 2_000 },
    );
  });

  test('an address as a browser sends it comes out encoded, once', () => {
    const content: ServedContent = {
      spa: false,
      files: new Map(),
      skew: new Map(),
      redirects: parseRedirects('/blog/:a /docs/:a\n/* /all/:splat 302').rules,
      headers: [],
    };
    fc.assert(
      fc.property(text(4), (one) => {
        const found = resolve(content, `/blog/${encodeURIComponent(one)}`, { isDocument: true, now: 0 });
        if (found.kind !== 'redirect') return;
        expectOnSite(found);
        const { pathname, search, hash } = landing(found.to);
        expect([search, hash]).toEqual(['', '']);
        expect(decodeURIComponent(pathname).normalize('NFC')).toMatch(/^\/(?:docs|all\/blog)\//);
        expect(decodeURIComponent(pathname)).toContain(one.normalize('NFC'));
      }),
      { numRuns: 2_000 },
    );
  });

  test('a line that is taken is one rule: no other status, no second target, no header behind it', () => {
    fc.assert(
      fc.property(text(6), text(6), text(2), (from, to, status) => {
        const { rules, problems } = parseRedirects(`/${from} /${to} ${status}`);
        for (const rule of rules) {
          expect(rule.to).toMatch(/^\/(?!\/)[\x21-\x7e]*$/);
          expect(rule.from.every((segment) => !/[\s/]/u.test(segment))).toBe(true);
        }
        expect(rules.length + problems.length).toBeGreaterThan(0);
      }),
      { numRuns: 2_000 },
    );
  });
});
