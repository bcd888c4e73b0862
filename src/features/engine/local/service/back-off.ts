import { minute, second } from '../../../../core/clock.ts';

/** A service that was ready this long has started well: what ends it later is a new failure. In ms. */
const settledMs = 5 * minute;

/** How long a service waits before it starts again: 1 s, 2 s, 4 s and so on, 60 s at most. In ms. */
export function pauseMs(failures: number): number {
  return Math.min(minute, second * 2 ** Math.max(0, failures - 1));
}

/** Failures in a row, with one that happens now. `readyMs`: how long the service was ready. */
export function failuresAfter(failures: number, readyMs: number): number {
  return readyMs >= settledMs ? 1 : failures + 1;
}
