import { describe, expect, test } from 'vitest';
import { didYouMean } from './nearest.ts';
import { firstOf, maxProblems, type Finding } from './problem.ts';
import { readConfigurationFile } from './read.ts';
import { brokenRules } from './rules.ts';
import { maxCharacters } from './yaml-text.ts';

/** Files below 256 KiB that once took seconds or all memory of the process. */
const longNames = Array.from({ length: 20 }, (_, at) => `${'n'.repeat(898)}${String(at).padStart(2, '0')}`);
const manyReferences = (name: string, count = 1_000) => `\${services.${name}.url}`.repeat(count);
const fileWith = (...values: string[]) =>
  [
    'version: 1',
    'environment:',
    '  env:',
    ...values.map((value, at) => `    A${at}: "${value}"`),
    'services:',
    ...longNames.map((name) => `  ${name}: { static: {} }`),
  ].join('\n');
const aliases = (count: number) =>
  [
    'version: 1',
    'environment:',
    '  env:',
    `    A: &a "${'${x}'.repeat(10_000)}"`,
    ...Array.from({ length: count }, (_, at) => `    A${at}: *a`),
    'services: { web: { static: {} } }',
  ].join('\n');

const reported: [title: string, text: string][] = [
  ['a thousand names of 60 letters beside service names of 900', fileWith(manyReferences('x'.repeat(60)))],
  ['a short name, thousands of times, beside service names of 900', fileWith(manyReferences('q', 3_000))],
  ['the same in values that are as long as allowed', fileWith(...Array(40).fill(manyReferences('q', 235)))],
  ['50 aliases of a text of 40,000 characters', aliases(50)],
  ['200 aliases of a text of 40,000 characters', aliases(200)],
];

test.each(reported)('%s: few and short problems', (_title, text) => {
  const read = readConfigurationFile(text);
  if (read.kind === 'valid') throw new Error('expected problems');
  expect(read.problems.length).toBeGreaterThan(0);
  expect(read.problems.length).toBeLessThanOrEqual(maxProblems);
  for (const { path, message, fix } of read.problems)
    for (const said of [path, message, fix]) expect(said.length).toBeLessThan(2_000);
});

test.each([50, 200])('%i aliases of a long text are one problem', (count) => {
  expect(readConfigurationFile(aliases(count))).toMatchObject({
    kind: 'invalid',
    problems: [
      {
        rule: 'alias',
        line: 4 + Math.ceil(maxCharacters / 40_000) - 1,
        message: `With its aliases replaced, the file has more than ${maxCharacters} characters of text.`,
      },
    ],
  });
});

test.each([
  ['pairs in a flow sequence', `x: [${'<<: '.repeat(2_500)}web]`],
  ['pairs in a flow map', `version: 1\nservices: { a${': '.repeat(4_000)} }`],
  ['flow sequences', `x: ${'['.repeat(12_000)}`],
  ['block sequences', `x:\n${'- '.repeat(12_000)}a`],
])('thousands of levels of %s are one problem, or broken YAML', (_title, text) => {
  const read = readConfigurationFile(text);
  if (read.kind === 'valid') throw new Error('expected problems');
  expect(read.problems.map(({ rule }) => rule)).toContain('yaml');
});

test('an alias of a map counts its names and its texts', () => {
  const lines = [`a: &a { ${'n'.repeat(60_000)}: "${'v'.repeat(60_000)}" }`];
  for (let at = 0; at < 10; at += 1) lines.push(`a${at}: *a`);
  // 9 × 120,000 characters are more than 1 MiB; the first 8 are not.
  expect(readConfigurationFile(lines.join('\n'))).toMatchObject({ problems: [{ rule: 'alias', line: 9 }] });
  expect(readConfigurationFile(lines.slice(0, 8).join('\n'))).not.toMatchObject({
    problems: expect.arrayContaining([expect.objectContaining({ rule: 'alias' })]),
  });
});

describe('the rules beside the schema', () => {
  const running = { image: 'node:24', run: { command: 'node .', port: 80 } };
  const found = (env: Record<string, unknown>, services: Record<string, unknown> = {}) => [
    ...brokenRules({ environment: { env }, services }),
  ];

  test('a value is read up to 4,000 characters', () => {
    const text = (length: number) => '${x}'.padEnd(length, '-');
    expect(found({ A: text(4_000) })).toHaveLength(1);
    expect(found({ A: text(4_001) })).toEqual([]);
  });

  test('of a map, the first 100 entries are read', () => {
    const many = (text: string) =>
      Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`A${at}`, text]));
    expect(found(many('${x}'))).toHaveLength(100);
    const web = { ...running, env: many('1'), secrets: many('s'), routes: many('nowhere') };
    expect(found({}, { web })).toHaveLength(200);
  });

  test('a name of more than 40 characters is neither looked for nor listed', () => {
    const long = 'n'.repeat(41);
    const web = { ...running, routes: { '/a': long }, requires: [long, 'nowhere'] };
    expect(found({}, { web, [long]: { ...running, requires: [long] } })).toMatchObject([
      { path: ['services', 'web', 'requires', 1], fix: 'The services are web.' },
    ]);
    expect(found({ A: '${services.q.url}' }, { [long]: running })).toMatchObject([
      { fix: 'No service has a valid name.' },
    ]);
  });

  test('no value is checked after the last finding that is reported', () => {
    let looked = 0;
    const env: Record<string, unknown> = {};
    for (let at = 0; at < 100; at += 1) env[`A${at}`] = '${x}'.repeat(20);
    const counted = () => ({
      get static() {
        looked += 1;
        return {};
      },
      get env() {
        looked += 1;
        return env;
      },
    });
    const services = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`s${at}`, counted()]));
    expect([...firstOf(brokenRules({ environment: { env }, services }))]).toHaveLength(maxProblems);
    expect(looked).toBe(0);
  });
});

test('no more findings are made than are reported', () => {
  let made = 0;
  function* endless(): Generator<Finding> {
    for (;;) {
      made += 1;
      yield { path: [], at: 'name', rule: 'value', message: '', fix: '' };
    }
  }
  expect([...firstOf(endless())]).toHaveLength(maxProblems);
  expect(made).toBe(maxProblems);
});

test('only short names are compared, and only with short texts', () => {
  const name = `${'n'.repeat(60)}m`;
  expect(didYouMean(name.slice(1), [name.slice(1)])).not.toBeNull();
  expect(didYouMean(name.slice(1), [name])).toBeNull();
  expect(didYouMean(name, [name.slice(1)])).toBeNull();
});
