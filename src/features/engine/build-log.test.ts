import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openBuildLog, type LogLine } from './build-log.ts';

function openLog({
  secrets = [],
  maxBytes = 1_000_000,
  periodMs,
}: {
  secrets?: string[];
  maxBytes?: number;
  periodMs?: number;
} = {}) {
  const lines: LogLine[] = [];
  const clock = { now: 1_000 };
  const log = openBuildLog({
    secrets,
    maxBytes,
    ...(periodMs === undefined ? {} : { periodMs }),
    now: () => clock.now,
    write: (line) => lines.push(line),
  });
  const out = (text: string | Buffer) => log.output('stdout', Buffer.from(text));
  const texts = () => lines.map(({ text }) => text);
  return { log, lines, clock, out, texts };
}

test('output becomes lines, each with its stream and the time at which it ended', () => {
  const { log, lines, clock, out } = openLog();
  out('one\ntw');
  clock.now = 2_000;
  log.output('stderr', Buffer.from('careful\r\n'));
  out('o\n');
  log.say('The command exited with 0.');
  out('no line break');
  expect(log.end()).toEqual(['one', 'careful', 'two', 'no line break']);
  expect(lines).toEqual([
    { at: 1_000, stream: 'stdout', text: 'one' },
    { at: 2_000, stream: 'stderr', text: 'careful' },
    { at: 2_000, stream: 'stdout', text: 'two' },
    { at: 2_000, stream: 'postern', text: 'The command exited with 0.' },
    { at: 2_000, stream: 'stdout', text: 'no line break' },
  ]);
});

test('the last ten lines are returned, for the reason of a failure', () => {
  const { log, out } = openLog();
  for (let line = 1; line <= 25; line++) out(`line ${line}\n`);
  expect(log.end()).toEqual(Array.from({ length: 10 }, (_, at) => `line ${at + 16}`));
});

test('a log that is too long is cut, which is said once, and keeps its last lines', () => {
  const { log, out, texts } = openLog({ maxBytes: 126 });
  out('first\nsecond\n');
  for (let line = 0; line < 5_000; line++) out(`line ${line} of many\n`);
  log.output('stderr', Buffer.from('the reason is lost\nit failed\n'));
  log.end();
  expect(texts().slice(0, 4)).toEqual([
    'first',
    'second',
    'line 0 of many',
    'The log is longer than 126 bytes. The rest is left out, except its last lines.',
  ]);
  expect(texts().filter((text) => text.startsWith('The log is'))).toHaveLength(1);
  expect(texts().slice(-2)).toEqual(['line 4999 of many', 'it failed']);
  expect(texts().length).toBeLessThan(600);
});

test('a line counts 32 bytes more than its text, so that short lines do not take many times the limit', () => {
  const { log, out, texts } = openLog({ maxBytes: 34 * 100 });
  for (let line = 0; line < 10; line++) out('y\n'.repeat(50));
  log.end();
  expect(
    texts().indexOf('The log is longer than 3400 bytes. The rest is left out, except its last lines.'),
  ).toBe(100);
});

test('where the log is cut, no part of a secret is shown', () => {
  for (let maxBytes = 1; maxBytes < 110; maxBytes++) {
    const { log, out, texts } = openLog({ secrets: ['top-secret-value'], maxBytes });
    out('a line with top-secret-value in it\n');
    out(`top-secret-value ${'x'.repeat(8_170)}\ntop-secret-value\n`);
    log.end();
    const shown = texts().join('\n').replaceAll('[redacted]', '');
    expect(shown).not.toMatch(/secret|value/);
  }
});

test('of a service, each period is cut on its own, and continues with complete lines', () => {
  const { log, clock, out, texts } = openLog({ secrets: ['top-secret'], maxBytes: 84, periodMs: 1_000 });
  out('first\nsecond\nthird and top-');
  out('secret\nlost ü');
  clock.now = 2_000;
  out(' end\nnext\n');
  clock.now = 3_000;
  out('last ü\n');
  log.end();
  expect(texts()).toEqual([
    'first',
    'second',
    'The log is longer than 84 bytes within 1 s. The rest is left out, except its last lines.',
    'lost ü end',
    'next',
    'last ü',
  ]);
});

test('a line without an end becomes lines of limited length, and no character is split', () => {
  const { log, out, texts } = openLog();
  out(`x${'😀'.repeat(20_000)}`);
  expect(texts().length).toBeGreaterThan(3);
  log.end();
  expect(texts().join('')).toBe(`x${'😀'.repeat(20_000)}`);
  for (const text of texts()) {
    expect(text.isWellFormed()).toBe(true);
    expect(text.length).toBeLessThanOrEqual(8_192);
  }
});

test('bytes that are no text, and NUL, become the replacement character', () => {
  const { log, out, texts } = openLog();
  out(Buffer.from([0x61, 0xff, 0x00, 0x62, 0x0a]));
  log.end();
  expect(texts()).toEqual(['a\ufffd\ufffdb']);
});

test('wherever the chunks end, the lines are the same and without secrets', () => {
  const text = 'Ünïcode 😀 and sécret-vàlue\n{"key": "sécret-vàlue"}\r\nacme_svc_AbCdEf0123456789\n';
  const bytes = Buffer.from(text);
  fc.assert(
    fc.property(fc.array(fc.nat(bytes.length), { maxLength: 20 }), (cuts) => {
      const { log, out, texts } = openLog({ secrets: ['sécret-vàlue'] });
      const places = [0, ...cuts.toSorted((one, other) => one - other), bytes.length];
      for (const [at, place] of places.entries()) out(bytes.subarray(place, places[at + 1]));
      log.end();
      expect(texts()).toEqual(['Ünïcode 😀 and [redacted]', '{"key": "[redacted]"}', 'acme_svc_[redacted]']);
    }),
  );
});

test('after skipped output, no part of a line is kept, and the next output begins a new line', () => {
  const { log, out, clock, texts } = openLog({ maxBytes: 38, periodMs: 1_000 });
  expect(log.cuts).toBe(0);
  out('first\nsecond\nhalf of a sec');
  expect(log.cuts).toBe(1);
  log.skip();
  clock.now += 1_000;
  out('third\n');
  expect(log.cuts).toBe(1);
  log.end();
  expect(texts()).toEqual([
    'first',
    'The log is longer than 38 bytes within 1 s. The rest is left out, except its last lines.',
    'third',
  ]);
});

test('a line under way alone leaves nothing where output was not read', () => {
  const { log, out, texts } = openLog({ maxBytes: 38 });
  out('first\nhalf of a sec');
  log.skip();
  out('the end\n');
  expect(log.end()).toEqual(['first', 'the end']);
  expect(texts().slice(2)).toEqual(['the end']);
});
