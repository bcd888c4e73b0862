import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

/** Words that readers from all over the world stumble over, and what to write. CONTRIBUTING.md has the habits behind them. */
const instead: Readonly<Record<string, string>> = {
  anew: 'again',
  anybody: 'anyone',
  everybody: 'everyone',
  mend: 'fix',
  mended: 'fixed',
  mends: 'fixes',
  somebody: 'someone',
};
const root = resolve(import.meta.dirname, '..');
const worst = new RegExp(String.raw`\b(?:${Object.keys(instead).join('|')})\b`, 'gi');

function findingsIn(path: string, text: string): string[] {
  return text.split('\n').flatMap((line, at) =>
    [...line.matchAll(worst)].map(([word]) => {
      return `${path}:${at + 1} has "${word}": write "${instead[word.toLowerCase()]}"`;
    }),
  );
}

test('code, texts and documents are in plain English', () => {
  const files = ['src', 'ui/src', 'cli/src', 'test', 'bench', 'scripts', 'docs', 'chart', 'deploy']
    .flatMap((top) =>
      (readdirSync(join(root, top), { recursive: true }) as string[]).map((name) => join(top, name)),
    )
    .filter((path) => /\.(?:tsx?|mjs|sh|md|tpl|ya?ml|txt|conf|service)$/.test(path))
    .filter((path) => !path.includes('node_modules'));
  expect(files.length).toBeGreaterThan(500);
  const others = files.filter((path) => join(root, path) !== import.meta.filename);
  expect(others.flatMap((path) => findingsIn(path, readFileSync(join(root, path), 'utf8')))).toEqual([]);
});

test('a word of the list is found with its line and its replacement', () => {
  expect(findingsIn('page.md', 'A person\nMend it.')).toEqual(['page.md:2 has "Mend": write "fix"']);
});
