import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect, test } from 'vitest';

/**
 * Comments, test titles and documents cite the reference by number: `contract 4`, `private-access 2.2`, `T31`, `SC-07`,
 * `decision 0028`. Each number must lead to its text.
 */
const root = resolve(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const idsIn = (path: string, pattern: RegExp) => [...read(path).matchAll(pattern)].map(([, id = '']) => id);
const sections = /^#+ (\d+(?:\.\d+)?)\.? /gm;

const matrixPage = 'docs/reference/security-matrix.md';
const threatsPage = 'docs/reference/threats.md';
const checks = idsIn(matrixPage, /^\| ([A-Z]{2}-\d\d) \|/gm);
const decisions = readdirSync(join(root, 'docs/decisions')).map((name) => name.slice(0, 4));
const known = new Set([
  ...checks,
  ...idsIn(threatsPage, /^\| (T\d\d) \|/gm),
  ...idsIn('docs/reference/contract.md', sections).map((number) => `contract ${number}`),
  ...idsIn('docs/explanation/private-access.md', sections).map((number) => `private-access ${number}`),
  ...decisions.map((number) => `decision ${number}`),
]);

const prefixes = [...new Set(checks.map((id) => id.slice(0, 2)))].join('|');
// Not the T of a time such as 2026-01-01T10:00.
const single = new RegExp(String.raw`(?<![\w}-])(?:T\d\d|(?:${prefixes})-\d\d)\b(?!:\d)`, 'g');
const number = String.raw`\d+(?:\.\d+)?`;
// `contract 3, 10.15`, `decisions 0032 and 0034`; `private-access.md 2.2, step 6` is one number.
const listed = new RegExp(
  String.raw`\b(contract|private-access|decision)(?:s|\.md)? (${number}(?:(?:,| and) ${number})*)`,
  'gi',
);

function citationsIn(line: string): string[] {
  const numbered = [...line.matchAll(listed)].flatMap(([, name = '', numbers = '']) =>
    [...numbers.matchAll(new RegExp(number, 'g'))].map(([one]) => `${name.toLowerCase()} ${one}`),
  );
  return [...numbered, ...[...line.matchAll(single)].map(([id]) => id)];
}

function unresolvedIn(path: string, text: string): string[] {
  return text.split('\n').flatMap((line, at) =>
    citationsIn(line)
      .filter((citation) => !known.has(citation))
      .map((citation) => `${path}:${at + 1} cites ${citation}`),
  );
}

const files = ['src', 'ui/src', 'cli/src', 'test', 'bench', 'scripts', 'migrations', 'docs']
  .flatMap((top) =>
    (readdirSync(join(root, top), { recursive: true }) as string[]).map((name) => join(top, name)),
  )
  .filter((path) => /\.(?:tsx?|mjs|sh|sql|md)$/.test(path) && path !== 'test/citations.test.ts')
  .filter((path) => !path.includes('node_modules'));

test('every citation leads to a section, a row or a decision', () => {
  expect(files.flatMap((path) => unresolvedIn(path, read(path)))).toEqual([]);
});

test('a broken citation is named, and a time is not a citation', () => {
  const wrong = 'contract 4 and 11; 2026-01-01T99, `${day}T99:59`\nT31 T99 SC-99 (decisions 0028 and 9999)';
  expect(unresolvedIn('a.ts', wrong)).toEqual([
    'a.ts:1 cites contract 11',
    'a.ts:2 cites decision 9999',
    'a.ts:2 cites T99',
    'a.ts:2 cites SC-99',
  ]);
});

test('a file that a document names exists, and only one file fits the name', () => {
  const sources = ['src', 'ui', 'cli', 'test', 'bench', 'scripts'].flatMap((top) =>
    (readdirSync(join(root, top), { recursive: true }) as string[])
      .filter((name) => !name.includes('node_modules'))
      .map((name) => `/${top}/${name}`),
  );
  const documents = ['ARCHITECTURE.md', 'CONTRIBUTING.md', 'bench/README.md'].concat(
    files.filter((path) => path.endsWith('.md')),
  );
  const unclear = documents.flatMap((path) =>
    [...read(path).matchAll(/`([\w./-]+\.tsx?)`/g)]
      .map(([, name = '']) => ({ name, fits: sources.filter((one) => one.endsWith(`/${name}`)).length }))
      .filter(({ fits }) => fits !== 1)
      .map(({ name, fits }) => `${path} names ${name}, which fits ${fits} files`),
  );
  expect(unclear).toEqual([]);
});

test('the security matrix names the checks without a test of their id', () => {
  const tests = files
    .filter((path) => path.includes('.test.'))
    .map(read)
    .join('\n');
  const untested = checks.filter((id) => !tests.includes(id));
  expect(idsIn(matrixPage, /^- ([A-Z]{2}-\d\d): /gm)).toEqual(untested);
});

test('every test that shows a threat has its id in the title', () => {
  const shown = [...read(threatsPage).matchAll(/^\| (T\d\d) \|.*/gm)].flatMap(([row, id = '']) =>
    [...row.matchAll(/\]\(([^)]+\.test\.ts)\)/g)].map(([, path = '']) => ({ id, path })),
  );
  const text = (path: string) => read(join(dirname(threatsPage), path));
  expect(shown.filter(({ id, path }) => !text(path).includes(id))).toEqual([]);
});
