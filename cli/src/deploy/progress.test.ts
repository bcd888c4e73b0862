import { expect, test } from 'vitest';
import { progressLine, progressOf } from './progress.ts';

test('the line has the bytes, the rate and the time left', () => {
  expect(progressLine(3 * 1024 ** 2, 10 * 1024 ** 2, 1_500)).toBe('3.0 MiB of 10.0 MiB, 2.0 MiB/s, 4 s left');
  expect(progressLine(512, 512, 1_000)).toBe('512 bytes of 512 bytes, 512 bytes/s, 0 s left');
});

test('only a terminal gets the line, and it is removed at the end', () => {
  const said: string[] = [];
  let now = 0;
  const io = { now: () => now, err: (text: string) => void said.push(text) };
  for (const errIsTerminal of [false, true]) {
    const progress = progressOf(2_000, { ...io, errIsTerminal });
    now += 1_000;
    progress.add(1_000);
    progress.end();
  }
  expect(said).toEqual(['\r\u001b[K1000 bytes of 2.0 KiB, 1000 bytes/s, 1 s left', '\r\u001b[K']);
});
