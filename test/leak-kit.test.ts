import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { keySamples } from './key-samples.ts';

// The expressions use nothing that RE2, the engine of both scanners, and JavaScript read differently.
const kit = join(import.meta.dirname, '../deploy/leak-kit');

type Rule = { readonly regex: string; readonly keywords: readonly string[] };

async function gitleaksRules(): Promise<Rule[]> {
  const text = await readFile(join(kit, 'gitleaks.toml'), 'utf8');
  return [...text.matchAll(/^regex = '''(.+)'''\nkeywords = (\[.+\])$/gm)].map(
    ([, regex = '', keywords = '']) => ({
      regex,
      keywords: JSON.parse(keywords),
    }),
  );
}

async function trufflehogRules(): Promise<Rule[]> {
  const { detectors } = parse(await readFile(join(kit, 'trufflehog.yaml'), 'utf8'));
  return detectors.map(({ regex, keywords }: { regex: { key: string }; keywords: string[] }) => ({
    regex: regex.key,
    keywords,
  }));
}

/** Like the scanners: a rule is tried only if the text has one of its keywords. */
function found(text: string, rules: readonly Rule[]): string[] {
  return rules.flatMap(({ regex, keywords }) =>
    keywords.some((word) => text.includes(word)) ? (text.match(new RegExp(regex, 'g')) ?? []) : [],
  );
}

test.each([
  ['gitleaks', gitleaksRules],
  ['TruffleHog', trufflehogRules],
])('the rules for %s find every key, and besides keys only what has the form of one', async (_, read) => {
  const rules = await read();
  expect(rules).toHaveLength(2);
  for (const { title, text, keys, isOnlyShaped = false } of keySamples()) {
    const values = found(text, rules);
    expect([title, keys.filter((key) => !values.some((value) => value.includes(key)))]).toEqual([title, []]);
    expect([title, values.length]).toEqual([title, isOnlyShaped ? 1 : keys.length]);
  }
});
