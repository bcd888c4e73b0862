/** Milliseconds since the Unix epoch, UTC. Injected everywhere so that tests own the time. */
export type Clock = { now(): number };

export const systemClock: Clock = { now: () => Date.now() };

export const second = 1_000;
export const minute = 60_000;
export const hour = 3_600_000;
export const day = 86_400_000;

/** RFC 3339, UTC, milliseconds: the one form of time on the wire (contract 2). */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}

/** The same for a value that has no time yet, or never gets one. */
export function timestampOrNull(ms: number | null): string | null {
  return ms === null ? null : timestamp(ms);
}
