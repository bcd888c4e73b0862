import { minute, second } from '../../../../core/clock.ts';

/** After a service was ready for this long, its next end counts as a first failure. In ms. */
const settledMs = 5 * minute;

/** Pause before a restart in ms: 1 s, 2 s, 4 s and so on, at most 60 s. */
export function pauseMs(failures: number): number {
  return Math.min(minute, second * 2 ** Math.max(0, failures - 1));
}

/** Consecutive failures including the current one. `readyMs`: how long the service was ready. */
export function failuresAfter(failures: number, readyMs: number): number {
  return readyMs >= settledMs ? 1 : failures + 1;
}
