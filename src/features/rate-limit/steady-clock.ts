import type { Clock } from '../../core/clock.ts';

/**
 * A clock that never goes back: when the machine's clock is set back, this one continues from its last time.
 * Otherwise a correction by an hour would lock every busy owner out for that hour.
 */
export function steadyClock(clock: Clock): { now(read?: number): number } {
  let shift = 0;
  let last = Number.NEGATIVE_INFINITY;
  return {
    now(read = clock.now()) {
      const now = read + shift;
      if (now >= last) {
        last = now;
        return now;
      }
      shift += last - now;
      return last;
    },
  };
}
