import { type Clock, second } from '../../core/clock.ts';
import type { Log } from '../log.ts';

/**
 * The database's time (contract 10.5): this process's clock plus the last measured offset. A process whose own clock is
 * wrong still expires keys at the same second as the others.
 */
export type ServerClock = Clock & {
  /** Measures the offset again. */
  sync(): Promise<void>;
  /** Milliseconds this process's clock is behind the database's. */
  offset(): number;
};

/** An offset in milliseconds that has no effect; certificates and sign-ins tolerate more. */
export const maxOffMs = 2 * second;

/**
 * Call once at the start. Keys expire by the database's clock in any case, but with a wrong clock certificates and
 * sign-ins may fail.
 */
export function tellWhenOff(clock: ServerClock, log: Pick<Log, 'warn'>): void {
  const offMs = Math.round(clock.offset());
  if (Math.abs(offMs) <= maxOffMs) return;
  const words =
    'the clocks of this machine and the database server differ: synchronize both with a time server (NTP)';
  log.warn({ machineIsBehindByMs: offMs }, words);
}

/** Milliseconds. The largest error of a sample is half of it. */
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
      // A slow response, or a step of this clock meanwhile, makes the sample useless: keep the previous offset.
      if (after < before || after - before > slowestSample) return;
      // The server read its clock between request and response, so the middle is wrong by half the round trip at most.
      offset = Math.round(server - (before + after) / 2);
    },
  };
}
