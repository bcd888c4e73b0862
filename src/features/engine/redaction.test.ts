import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRedactor } from './redaction.ts';

function redact(values: readonly string[], ...chunks: readonly string[]): string {
  const redactor = createRedactor(values);
  return chunks.map((chunk) => redactor.push(chunk)).join('') + redactor.end();
}
const base64 = (text: string) => Buffer.from(text).toString('base64');

describe('a secret is replaced', () => {
  const secret = 'p@ss "word"/Ünï?';
  test.each([
    ['as it is', secret],
    ['in base64', base64(secret)],
    ['in base64 of URLs', Buffer.from(secret).toString('base64url')],
    ['URL-encoded', encodeURIComponent(secret)],
    [
      'URL-encoded in lower case',
      encodeURIComponent(secret).replaceAll(/%../g, (code) => code.toLowerCase()),
    ],
    ['as a form encodes it', encodeURIComponent(secret).replaceAll('%20', '+')],
    ['in JSON', JSON.stringify({ secret }).slice(11, -2)],
    ['in JSON with escaped slashes', JSON.stringify(secret).slice(1, -1).replaceAll('/', '\\/')],
  ])('%s', (_, form) => {
    expect(redact([secret], `before ${form} after\n`)).toBe('before [redacted] after\n');
  });

  test.each(['u:', 'us:', 'user:'])('in the base64 of a longer text that begins with %s', (before) => {
    const shown = redact(['a-long-password'], base64(`${before}a-long-password!`));
    expect(shown).toContain('[redacted]');
    expect(Buffer.from(shown.replace('[redacted]', ''), 'base64').toString()).not.toContain('password');
  });

  test('line by line, when its value has many', () => {
    const key = '-----BEGIN KEY-----\r\n  c2VjcmV0IG9uZQ\nc2VjcmV0IHR3bw\n-----END KEY-----\n';
    expect(redact([key], '> c2VjcmV0IHR3bw <\nand c2VjcmV0IG9uZQ\n')).toBe(
      '> [redacted] <\nand [redacted]\n',
    );
    expect(redact([key], key)).not.toMatch(/c2V|KEY/);
  });

  test('in base64 that is wrapped into lines', () => {
    const long = 'x1y2z3'.repeat(30);
    for (const width of [64, 76]) {
      const lines = base64(long).replaceAll(new RegExp(`.{${width}}`, 'g'), '$&\n');
      expect(redact([long], lines).replaceAll(/\[redacted\]|\n/g, '')).toBe('');
    }
  });

  test('with every character that another secret has in common with it', () => {
    expect(redact(['abcdef', 'defghi', 'cdef'], '-abcdefghi-')).toBe('-[redacted]-');
    expect(redact(['anana'], 'bananana!')).toBe('b[redacted]!');
  });
});

test('a value of three characters or less is not replaced, and neither are short lines of a longer one', () => {
  expect(redact(['yes', '', 'a\nlonger one'], 'yes, a longer one is a secret')).toBe(
    'yes, a [redacted] is a secret',
  );
});

test('text shaped like a key is replaced, also across chunks', () => {
  const parts = ['key postern_p', 'at_AbCdEf012345', '6789 and\nacme_svc_', 'AbCdEf0123456789'];
  expect(redact([], ...parts)).toBe('key postern_pat_[redacted] and\nacme_svc_[redacted]');
});

test('a complete line is shown at once, and of an incomplete one what can be no secret', () => {
  const redactor = createRedactor(['0123456789']);
  expect(redactor.push('a line\nand 01234')).toBe('a line\n');
  expect(redactor.push('x and more')).toBe('and ');
  expect(redactor.end()).toBe('01234x and more');
});

test('a word without an end is not held', () => {
  const redactor = createRedactor(['secret']);
  const shown = redactor.push('x'.repeat(100_000));
  expect(shown.length).toBeGreaterThan(99_000);
});

const word = fc.string({ minLength: 4, maxLength: 12, unit: fc.constantFrom('a', 'b', 'ä', '/', ' ', '😀') });
/** Output of secrets, parts of secrets and other text, and where it is split into chunks. */
const output = fc.array(word, { minLength: 1, maxLength: 3 }).chain((secrets) =>
  fc.record({
    secrets: fc.constant(secrets),
    pieces: fc.array(
      fc.oneof(
        fc.constantFrom(...secrets, ...secrets.map(base64), ...secrets.map((one) => one.slice(1))),
        fc.constantFrom('\n', 'x', 'b', 'acme_pat_AbCdEf0123456789', ' '),
      ),
      { maxLength: 30 },
    ),
    cuts: fc.array(fc.nat(200), { maxLength: 20 }),
  }),
);

test('wherever the chunks end, the result is the same', () => {
  fc.assert(
    fc.property(output, ({ secrets, pieces, cuts }) => {
      const text = pieces.join('');
      const places = [0, ...cuts.toSorted((one, other) => one - other), text.length];
      const chunks = places.map((place, at) => text.slice(place, places[at + 1]));
      expect(redact(secrets, ...chunks)).toBe(redact(secrets, text));
    }),
    { numRuns: 1_000 },
  );
});

test('a secret is redacted in any text around it', () => {
  fc.assert(
    fc.property(output, ({ secrets, pieces }) => {
      const shown = redact(secrets, ...pieces).split('[redacted]');
      for (const secret of secrets.map((one) => one.trim()).filter(({ length }) => length > 3))
        for (const between of shown) expect(between).not.toContain(secret);
    }),
    { numRuns: 1_000 },
  );
});
