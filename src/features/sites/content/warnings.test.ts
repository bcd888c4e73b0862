import { expect, test } from 'vitest';
import { countTurns } from '../../../../test/turns.ts';
import { judged } from './judge.ts';
import type { VersionRules } from './version-rules.ts';
import { foldedName, warningsOf } from './warnings.ts';
import { keyFormat } from '../../keys/key-value.ts';

const blob = { digest: '0'.repeat(64), size: 1 };
const filesOf = (names: readonly string[]) => new Map(names.map((name) => [name, blob]));
const noRules: VersionRules = { redirects: [], headers: [], notApplied: [], spa: false };

test('T51 what is kept of a name to compare it is short, however long its characters are written out', () => {
  const long = '\ufdfa'.repeat(341);
  const names = [long, `${long.slice(0, -1)}x`, 'A'.repeat(1_000), '\u0390'.repeat(500), 'a.html'];
  const folded = names.map(foldedName);
  expect(Math.max(...folded.map((one) => one.length))).toBeLessThanOrEqual(64);
  expect(new Set(folded).size).toBe(names.length);
  expect(foldedName('a'.repeat(1_000))).toBe(foldedName('A'.repeat(1_000)));
  expect(foldedName(`${long}É`)).toBe(foldedName(`${long}é`));
});

test('T51 while ten thousand names are compared, other tasks have their turn', async () => {
  const names = Array.from({ length: 10_000 }, (_, at) => `${'\ufdfa'.repeat(10)}${at}.html`);
  const others = countTurns();
  const warnings = await warningsOf(filesOf([...names, 'a.css', 'A.css', 'b.css', 'B.css']), noRules);
  expect(others.turns()).toBeGreaterThan(50);
  expect(warnings.find(({ code }) => code === 'similar_names')?.message).toMatch(
    /^2 pairs of names, such as a\.css and A\.css, differ/,
  );
});

test('T51 while ten thousand renamed files are judged again, other tasks have their turn', async () => {
  const names = Array.from({ length: 10_000 }, (_, at) => `site/é${at}.html`);
  const limits = {
    maxFiles: 20_000,
    maxFileBytes: 10,
    maxExtractedBytes: 100_000,
    allowedExtensions: [],
    forbiddenExtensions: [],
  };
  const others = countTurns();
  const { files } = await judged(
    limits,
    { format: keyFormat('app'), onKey: () => undefined },
    (judge) => names.forEach((name) => judge.keep(name, blob)),
    (kept) => new Map([...kept].map(([path, one]) => [path.slice('site/'.length), one])),
  );
  expect(files.size).toBe(10_000);
  expect(others.turns()).toBeGreaterThan(50);
});

test('the pages that could be the start page are named nearest to the top first, at most a hundred', async () => {
  const deep = Array.from({ length: 150 }, (_, at) => `a/b/${at}.html`);
  const [warning] = await warningsOf(filesOf([...deep, 'z/y.html', 'x.HTM', 'x.css']), noRules);
  expect(warning?.pages).toEqual(['x.HTM', 'z/y.html', ...deep.slice(0, 98)]);
});
