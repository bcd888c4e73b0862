import { expect, test } from 'vitest';
import { fileOf, matchesIn, noLines, rowsShown, withLines } from './log-lines.ts';

const line = (text: string, stream: 'stdout' | 'stderr' = 'stdout') => ({
  id: 'web.1',
  at: '2026-01-01T09:00:00.000Z',
  service: 'web',
  step: 'build' as const,
  stream,
  text,
});

test('the oldest lines are dropped, and lines keep their numbers', () => {
  const two = withLines(noLines, [line('a'), line('b')], 3);
  const kept = withLines(two, [line('c'), line('d'), line('e')], 3);
  expect(kept.dropped).toBe(2);
  expect(kept.lines.map(({ number, text }) => [number, text])).toEqual([
    [3, 'c'],
    [4, 'd'],
    [5, 'e'],
  ]);
});

test('the search ignores case and colour', () => {
  const { lines } = withLines(noLines, [line('Error: x'), line('fine'), line('\x1b[31mer\x1b[1mror\x1b[0m')]);
  expect(matchesIn(lines, 'ERROR')).toEqual([0, 2]);
  expect(matchesIn(lines, '')).toEqual([]);
});

test('only rows near the window are shown', () => {
  const rowHeight = 20;
  expect(rowsShown(10, { top: 0, height: 400, rowHeight })).toEqual([0, 10]);
  expect(rowsShown(1_000, { top: 10_000, height: 400, rowHeight })).toEqual([480, 540]);
  // The window was scrolled further than the rows that are left.
  expect(rowsShown(5, { top: 10_000, height: 400, rowHeight })).toEqual([5, 5]);
});

test('a saved log tells the streams apart', () => {
  const { lines } = withLines(noLines, [line('a'), line('\x1b[31mb', 'stderr')]);
  expect(fileOf(lines)).toBe('2026-01-01T09:00:00.000Z web a\n2026-01-01T09:00:00.000Z web [stderr] b');
});
