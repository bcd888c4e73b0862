import type { Clock } from '../../core/clock.ts';
import { createSweep } from '../../platform/kv/sweep.ts';
import { type LocalSource, type Mark, noMark } from './source.ts';
import { RollingWindow, slotMs } from './window.ts';
import { steadyClock } from './steady-clock.ts';

/**
 * Counts in this process. Owners with a counted request are never dropped (that would hand them a fresh budget);
 * idle ones are swept while others spend, so memory follows the owners of the last minute.
 */
export function memorySource(deps: { clock: Clock }): LocalSource {
  const clock = steadyClock(deps.clock);
  const owners = new Map<string, RollingWindow>();
  const marks = new Map<string, { readonly mark: Mark; readonly endsAt: number }>();
  const sweepOwners = createSweep(owners, (window, now) => window.used(now) === 0);
  const sweepMarks = createSweep(marks, ({ endsAt }, now) => endsAt <= now);
  let nextSweepAt = 0;

  function windowOf(owner: string, now: number): RollingWindow {
    const known = owners.get(owner);
    if (known !== undefined) return known;
    // Before it is added: a window that has counted nothing yet would look idle.
    sweepOwners(4, now);
    const window = new RollingWindow(now);
    owners.set(owner, window);
    return window;
  }

  /** Ten times a second while there is traffic; a handful of entries, so no request notices. */
  function tidy(now: number): void {
    nextSweepAt = now + slotMs;
    sweepOwners(32, now);
    sweepMarks(32, now);
  }

  function markOf(key: string, now: number): Mark {
    const entry = marks.size === 0 ? undefined : marks.get(key);
    return entry === undefined || entry.endsAt <= now ? noMark : entry.mark;
  }

  return {
    spend({ owner, key, limit, now: read }) {
      const now = clock.now(read);
      if (now >= nextSweepAt) tidy(now);
      const window = windowOf(owner, now);
      const allowed = window.spend(now, limit);
      return {
        allowed,
        remaining: allowed ? limit - window.used(now) : 0,
        resetMs: window.resetMs(now),
        retryAfterMs: allowed ? 0 : window.retryAfterMs(now, limit),
        mark: markOf(key, now),
      };
    },
    peek(owner, limit) {
      const now = clock.now();
      const window = owners.get(owner);
      if (window === undefined) return { remaining: limit, resetMs: 0, retryAfterMs: 0 };
      return {
        remaining: Math.max(0, limit - window.used(now)),
        resetMs: window.resetMs(now),
        retryAfterMs: window.retryAfterMs(now, limit),
      };
    },
    setMark({ key, mark, ttlMs }) {
      const now = clock.now();
      sweepMarks(4, now);
      marks.set(key, { mark: { kind: 'read', value: mark }, endsAt: now + ttlMs });
    },
  };
}
