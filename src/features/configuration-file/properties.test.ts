import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { containsKey } from '../../core/key-shape.ts';
import { maxProblems } from './problem.ts';
import { readConfigurationFile } from './read.ts';
import { readTemplate } from './references.ts';

const everyKind = readFileSync(join(import.meta.dirname, 'golden/every-kind.yaml'), 'utf8');

/** Pieces of YAML that are difficult for parsers, and field names of the file. */
const pieces = fc.constantFrom(
  '\n',
  '\n  ',
  '\t',
  ' ',
  ': ',
  '- ',
  '? ',
  '{',
  '}',
  '[',
  ']',
  ', ',
  '"',
  "'",
  '|\n',
  '>-\n',
  '#',
  '---\n',
  '...\n',
  '%YAML 1.1\n',
  '&a ',
  '*a',
  '!!str ',
  '!x ',
  '<<: ',
  '__proto__: ',
  '\r\n',
  '\ufeff',
  '\u0000',
  '\ud800',
  'version: 1\n',
  'services:\n',
  'web:',
  'build: ',
  'run: ',
  'static: {}',
  'requires: ',
  'env: ',
  '${',
  '}',
  '..',
  '1',
  '0x1f',
  '.nan',
  'null',
  'true',
  '~',
  '\\x00',
  '💥',
  'app_pat_0123456789abcdef0123',
);
const texts = fc.oneof(
  fc.array(pieces, { maxLength: 60 }).map((parts) => parts.join('')),
  fc.string({ unit: 'binary', maxLength: 200 }),
  // The example with one part replaced.
  fc
    .tuple(fc.nat(everyKind.length), fc.nat(30), fc.array(pieces, { maxLength: 4 }))
    .map(
      ([from, length, parts]) => everyKind.slice(0, from) + parts.join('') + everyKind.slice(from + length),
    ),
);

test('no text makes the reader throw; problems are few, short, on one line, and lie inside the text', {
  tags: 'flood',
}, () => {
  fc.assert(
    fc.property(texts, (text) => {
      const read = readConfigurationFile(text);
      if (read.kind === 'valid') return;
      const lines = text.split('\n');
      expect(read.problems.length).toBeGreaterThan(0);
      expect(read.problems.length).toBeLessThanOrEqual(maxProblems);
      for (const { line, column, path, message, fix } of read.problems) {
        expect(line).toBeGreaterThanOrEqual(1);
        expect(line).toBeLessThanOrEqual(lines.length);
        expect(column).toBeGreaterThanOrEqual(1);
        expect(column).toBeLessThanOrEqual((lines[line - 1] ?? '').length + 1);
        for (const said of [path, message, fix]) {
          expect(said.length).toBeLessThan(2_000);
          expect(said).not.toMatch(/\p{Cc}/u);
          expect(containsKey(said)).toBe(false);
        }
      }
    }),
    { numRuns: 2_000 },
  );
});

test('what is read twice is read the same', () => {
  fc.assert(
    fc.property(texts, (text) => {
      const [one, other] = [readConfigurationFile(text), readConfigurationFile(text)];
      expect(JSON.stringify(one)).toBe(JSON.stringify(other));
    }),
  );
});

test('a text without ${ is its own template', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      fc.pre(!text.includes('${'));
      expect(readTemplate(text)).toEqual({ template: text === '' ? [] : [text], mistakes: [] });
    }),
  );
});
