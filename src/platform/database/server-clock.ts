import type { Clock } from '../../core/clock.ts';

/**
 * Time as the database has it (contract 10.5): this process's clock plus the difference measured last. A process
 * whose own clock is off still expires keys at the same second as the others.
 */
export type ServerClock = Clock & {
  /** Measures the difference anew. */
  sync(): Promise<void>;
  /** Milliseconds this process's clock is behind the database's. */
  offset(): number;
};

/** Milliseconds; half of it is the largest error a sample can have. */
const slowestSample = 500;

export function createServerClock(deps: { local: Clock; serverTime: () => Promise<number> }): ServerClock {
  const { local, serverTime } = deps;
  let offset = 0;
  return {
    now: () => local.now() + offset,
    offset: () => offset,
    async sync() {
      const before = local.now();
      const server = await serverTime();
      const after = local.now();
      // A slow answer, or a step of our clock meanwhile, tells nothing: keep what was measured before.
      if (after < before || after - before > slowestSample) return;
      // The server answered somewhere between asking and hearing: the middle is off by half the round trip at most.
      offset = Math.round(server - (before + after) / 2);
    },
  };
}
