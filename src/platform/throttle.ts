import type { Clock } from '../core/clock.ts';

/** Counts an attempt before it runs, and undoes the count when it succeeds, so parallel attempts cannot exceed the limit. */
export type Throttle = {
  /** `refused` has the whole seconds until the oldest counted attempt leaves the window. Refused attempts do not count. */
  attempt(counters: readonly { readonly name: string; readonly limit: number }[]): Attempt;
};

export type Attempt = { kind: 'allowed'; succeed(): void } | { kind: 'refused'; retryAfterSeconds: number };

const maxTracked = 50_000;

/** Counts attempts by name in a sliding window, in this process. */
export function createThrottle({ clock, windowMs }: { clock: Clock; windowMs: number }): Throttle {
  const tries = new Map<string, number[]>();

  function recent(name: string): number[] {
    const since = clock.now() - windowMs;
    const kept = (tries.get(name) ?? []).filter((at) => at > since);
    // Insert again, so that the map's first entries are the least recently used.
    tries.delete(name);
    if (kept.length > 0) tries.set(name, kept);
    return kept;
  }

  function add(name: string, at: number): void {
    const entry = [...recent(name), at];
    tries.delete(name);
    tries.set(name, entry);
    for (const oldest of tries.keys()) {
      if (tries.size <= maxTracked) break;
      tries.delete(oldest);
    }
  }

  function giveBack(name: string, at: number): void {
    const entry = tries.get(name);
    const index = entry?.indexOf(at) ?? -1;
    if (entry !== undefined && index >= 0) entry.splice(index, 1);
  }

  return {
    attempt(counters) {
      const now = clock.now();
      for (const { name, limit } of counters) {
        const past = recent(name);
        const oldest = past[past.length - limit];
        if (oldest !== undefined) {
          return {
            kind: 'refused',
            retryAfterSeconds: Math.max(1, Math.ceil((oldest + windowMs - now) / 1000)),
          };
        }
      }
      for (const { name } of counters) add(name, now);
      return {
        kind: 'allowed',
        succeed() {
          for (const { name } of counters) giveBack(name, now);
        },
      };
    },
  };
}
