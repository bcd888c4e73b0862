import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { countTurns } from '../../../../test/turns.ts';
import type { Manifest } from './manifest.ts';
import { reportOf } from './report.ts';

type Files = Readonly<Record<string, string>>;

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');
const manifestOf = (files: Files): Manifest =>
  new Map(Object.entries(files).map(([path, text]) => [path, { digest: digestOf(text), size: text.length }]));

async function report(files: Files, before: Files | null = null) {
  const texts = new Map(Object.values(files).map((text) => [digestOf(text), text]));
  return await reportOf({
    files: manifestOf(files),
    before: before === null ? null : { number: 3, files: manifestOf(before) },
    isAnswered: (path) => [path, `${path}.html`, `${path}index.html`].some((one) => one.slice(1) in files),
    async read(digest) {
      const bytes = Buffer.from(texts.get(digest) ?? '');
      // In pieces, as a store hands them out; one of them cuts a character in two.
      return (async function* pieces() {
        for (let at = 0; at < bytes.length; at += 7) yield bytes.subarray(at, at + 7);
      })();
    },
  });
}

test('what was added, changed and removed is told, with the bytes between', async () => {
  const before = { 'index.html': 'one', 'old.css': 'p{}', 'same.txt': 'same' };
  const after = { 'index.html': 'other', 'new.js': '1', 'same.txt': 'same' };
  expect(await report(after, before)).toMatchObject({
    against: 3,
    added: { count: 1, names: ['new.js'] },
    changed: { count: 1, names: ['index.html'] },
    removed: { count: 1, names: ['old.css'] },
    sizeChange: 0,
    isComplete: true,
  });
  expect(await report(after)).toMatchObject({ against: null, added: { count: 3 }, removed: { count: 0 } });
});

test('of many names a hundred are listed and all are counted', async () => {
  const many = Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`${at}.txt`, String(at)]));
  const { added } = await report(many);
  expect([added.count, added.names.length]).toEqual([150, 100]);
});

test('links that lead nowhere are found, and those that lead somewhere are not', async () => {
  const page = `
    <a href="about">by its clean name</a> <a href="/docs/">folder</a> <a href="docs/ü b.html#part">name</a>
    <a href="gone.html">gone</a> <a href="?q=1">itself</a> <a href="#top">part</a> <a href="">itself</a>
    <a href="https://example.com/x">elsewhere</a> <a href="mailto:a@example.com">post</a>
    <img src="missing.png"> <img srcset="a.png 1x, lost.png 2x"> <form action="nowhere.html"></form>
    <script>document.write('<a href="not-a-link.html">')</script> <!-- <a href="comment.html"> -->
    <link rel=canonical href="https://example.com/"> <link rel="stylesheet" href="absent.css">`;
  const files = {
    'index.html': page,
    'about.html': '',
    'docs/index.html': '',
    'docs/ü b.html': '',
    'a.png': '',
  };
  const decodedFiles = { ...files, 'docs/%C3%BC%20b.html': '' };
  const { brokenLinks, absolutePaths, mixedContent } = await report(decodedFiles);
  expect(brokenLinks).toEqual(
    ['gone.html', 'missing.png', 'lost.png', 'nowhere.html', 'absent.css'].map((target) => ({
      page: 'index.html',
      target,
    })),
  );
  expect([absolutePaths, mixedContent]).toEqual([[], []]);
});

test('a link is seen from its own page and from the page’s base', async () => {
  const files = {
    'a/b/page.html': '<a href="../x.html">up</a><a href="x.html">beside</a>',
    'a/x.html': '',
    'based.html': '<base href="/a/"><a href="x.html">through the base</a><a href="y.html">gone</a>',
  };
  const { brokenLinks } = await report(files);
  expect(brokenLinks).toEqual([
    { page: 'a/b/page.html', target: 'x.html' },
    { page: 'based.html', target: 'y.html' },
  ]);
});

test('addresses of the author’s machine and of another root are told as that', async () => {
  const targets = [
    'file:///home/ada/site/a.css',
    'C:\\site\\logo.png',
    'C:/site/logo.png',
    'http://localhost:3000/app.js',
    'https://127.0.0.1/x',
    '/project/assets/app.js',
  ];
  const page = targets.map((target) => `<img src="${target}">`).join('');
  const { absolutePaths, brokenLinks } = await report({
    'index.html': `${page}<img src="/here/gone.png"><img src="/gone.png">`,
    'here/there.png': '',
  });
  expect(absolutePaths.map(({ target }) => target)).toEqual(targets);
  expect(brokenLinks.map(({ target }) => target)).toEqual(['/here/gone.png', '/gone.png']);
});

test('parts over plain http are mixed content; a link to such a page is not', async () => {
  const page = `<script src="http://cdn.example.com/x.js"></script><a href="http://example.com/">page</a>
    <link rel="icon" href="http://example.com/i.ico"><img src="https://example.com/ok.png"><img src="//example.com/ok.png">`;
  const { mixedContent } = await report({ 'index.html': page });
  expect(mixedContent.map(({ target }) => target)).toEqual([
    'http://cdn.example.com/x.js',
    'http://example.com/i.ico',
  ]);
});

test('it says so when there is more than it looks at', async () => {
  const many = Object.fromEntries(Array.from({ length: 501 }, (_, at) => [`${at}.html`, `<p>${at}`]));
  expect((await report(many)).isComplete).toBe(false);
  const links = Array.from({ length: 101 }, (_, at) => `<a href="gone-${at}.html">x</a>`).join('');
  const cut = await report({ 'index.html': links });
  expect([cut.brokenLinks.length, cut.isComplete]).toEqual([100, false]);
  const twice = await report({ 'index.html': '<a href="gone.html">x</a><a href="gone.html">y</a>' });
  expect([twice.brokenLinks.length, twice.isComplete]).toEqual([1, true]);
});

test('broken pages are read to their end, and of endless ones a part, which is said', async () => {
  const broken = `<a href="gone.html"<b><<>><a href='\u0000'><a href="last.html">`;
  const { brokenLinks } = await report({ 'index.html': broken });
  expect(brokenLinks.map(({ target }) => target)).toContain('last.html');
  const nested = await report({ 'index.html': '<div>'.repeat(2_000) });
  expect(nested.isComplete).toBe(false);
  const crowded = await report({ 'index.html': '<a href="index.html">'.repeat(20_001) });
  expect(crowded.isComplete).toBe(false);
});

test('an address or a base too long for any browser is passed over, and said to be', async () => {
  const found = await report({
    'index.html': `<base href="/${'a/'.repeat(100_000)}">${'<a href="gone"></a>'.repeat(2_000)}<a href="/${'a'.repeat(2_001)}">`,
  });
  expect(found).toMatchObject({ isComplete: false, brokenLinks: [{ page: 'index.html', target: 'gone' }] });
});

test('while a page of many links is checked, other tasks get a turn', async () => {
  const others = countTurns();
  const pages = Array.from({ length: 2_000 }, (_, at) => `<a href="/gone/${at}"></a>`).join('');
  await reportOf({
    files: manifestOf({ 'index.html': pages }),
    before: null,
    isAnswered: () => true,
    read: async () =>
      (async function* whole() {
        yield Buffer.from(pages);
      })(),
  });
  expect(others.turns()).toBeGreaterThan(10);
});

test.each([
  ['nested without end', '<b>'.repeat(10_700) + '</i>'.repeat(8_000)],
  ['as deep as the report reads', '<bb>'.repeat(511) + '</ii>'.repeat(12_700)],
])('many pages %s are given up soon, and others have their turn', async (_, html) => {
  const files = new Map(
    Array.from({ length: 300 }, (_, at) => [
      `${at}.html`,
      { digest: digestOf(String(at)), size: html.length },
    ]),
  );
  const others = countTurns();
  const { isComplete } = await reportOf({
    files,
    before: null,
    isAnswered: () => true,
    read: async () =>
      (async function* whole() {
        yield Buffer.from(html);
      })(),
  });
  expect(isComplete).toBe(false);
  expect(others.turns()).toBeGreaterThan(10);
});

test('pages with the same content are read once, and each has its own links', async () => {
  const html = '<a href="gone.html">x</a>';
  let reads = 0;
  const { brokenLinks } = await reportOf({
    files: manifestOf({ 'a.html': html, 'b/a.html': html }),
    before: null,
    isAnswered: () => false,
    read: async () => {
      reads += 1;
      return (async function* whole() {
        yield Buffer.from(html);
      })();
    },
  });
  expect(brokenLinks.map(({ page }) => page)).toEqual(['a.html', 'b/a.html']);
  expect(reads).toBe(1);
});
