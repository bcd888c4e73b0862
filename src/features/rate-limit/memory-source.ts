import type { Clock } from '../../core/clock.ts';
import { createSweep } from '../../platform/kv/sweep.ts';
import { type LocalSource, type Stamp, noStamp } from './source.ts';
import { RollingWindow, slotMs } from './rolling-window.ts';
import { steadyClock } from './steady-clock.ts';

/**
 * Counts in this process. Never drops an owner with a counted request (that would give the owner a new budget). Removes
 * idle owners while others spend, so memory is proportional to the owners of the last minute.
 */
export function memorySource(deps: { clock: Clock }): LocalSource {
  const clock = steadyClock(deps.clock);
  const owners = new Map<string, RollingWindow>();
  const stamps = new Map<string, { readonly stamp: Stamp; readonly endsAt: number }>();
  const sweepOwners = createSweep(owners, (window, now) => window.used(now) === 0);
  const sweepStamps = createSweep(stamps, ({ endsAt }, now) => endsAt <= now);
  let nextSweepAt = 0;

  function windowOf(owner: string, now: number): RollingWindow {
    const known = owners.get(owner);
    if (known !== undefined) return known;
    // Sweep before adding the new window, which has counted nothing yet and would look idle.
    sweepOwners(4, now);
    const window = new RollingWindow(now);
    owners.set(owner, window);
    return window;
  }

  /** Runs at most ten times a second while there is traffic, over a few entries, so it does not delay a request. */
  function tidy(now: number): void {
    nextSweepAt = now + slotMs;
    sweepOwners(32, now);
    sweepStamps(32, now);
  }

  function stampOf(key: string, now: number): Stamp {
    const entry = stamps.size === 0 ? undefined : stamps.get(key);
    return entry === undefined || entry.endsAt <= now ? noStamp : entry.stamp;
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
        stamp: stampOf(key, now),
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
    setStamp({ key, stamp, ttlMs }) {
      const now = clock.now();
      sweepStamps(4, now);
      stamps.set(key, { stamp: { kind: 'read', value: stamp }, endsAt: now + ttlMs });
    },
  };
}
