import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

/** Words that readers from all over the world stumble over, and what to write. CONTRIBUTING.md has the habits behind them. */
const instead: Readonly<Record<string, string>> = {
  anew: 'again',
  anybody: 'anyone',
  'are away': 'are unavailable',
  everybody: 'everyone',
  'in words': 'as text',
  'is away': 'is unavailable',
  'left alone': 'unchanged',
  'looked at': 'checked',
  mend: 'fix',
  mended: 'fixed',
  mends: 'fixes',
  'of its own': 'separate',
  'of others': 'of other people',
  somebody: 'someone',
  'was away': 'was unavailable',
  'what came of': 'the result of',
};
/** Generated: its texts come from `src`. */
const generated = 'ui/src/api/openapi.ts';
const root = resolve(import.meta.dirname, '..');
const worst = new RegExp(String.raw`\b(?:${Object.keys(instead).join('|')})\b`, 'gi');
/** A comment that begins like this lacks its subject. */
const fragment = /\/\*\*\s+(?:\*\s+)?(?:Of|Those|Unless|As)\b/g;

function findingsIn(path: string, text: string): string[] {
  const words = text.split('\n').flatMap((line, at) =>
    [...line.matchAll(worst)].map(([word]) => {
      return `${path}:${at + 1} has "${word}": write "${instead[word.toLowerCase()]}"`;
    }),
  );
  const fragments = [...text.matchAll(fragment)].map(({ index }) => {
    const line = text.slice(0, index).split('\n').length;
    return `${path}:${line} begins a comment without its subject: begin with the thing or the verb`;
  });
  return [...words, ...fragments];
}

test('code, texts and documents are in plain English', () => {
  const files = ['src', 'ui/src', 'cli/src', 'test', 'bench', 'scripts', 'docs', 'chart', 'deploy']
    .flatMap((top) =>
      (readdirSync(join(root, top), { recursive: true }) as string[]).map((name) => join(top, name)),
    )
    .filter((path) => /\.(?:tsx?|mjs|sh|md|tpl|ya?ml|txt|conf|service)$/.test(path))
    .filter((path) => !path.includes('node_modules') && path !== generated);
  expect(files.length).toBeGreaterThan(500);
  const others = files.filter((path) => join(root, path) !== import.meta.filename);
  expect(others.flatMap((path) => findingsIn(path, readFileSync(join(root, path), 'utf8')))).toEqual([]);
});

test('a word of the list, and a comment without its subject, are found with their line', () => {
  expect(findingsIn('page.md', 'A person\nMend it.')).toEqual(['page.md:2 has "Mend": write "fix"']);
  expect(findingsIn('a.ts', 'type A = {\n  /** Of one file. */\n};')).toEqual([
    'a.ts:2 begins a comment without its subject: begin with the thing or the verb',
  ]);
});
