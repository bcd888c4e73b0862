import { type Clock, second } from '../../core/clock.ts';
import type { Log } from '../log.ts';

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

/** Milliseconds that nobody notices; certificates and sign-ins bear more. */
export const mostOffMs = 2 * second;

/** Once at the start: keys end by the database's clock whatever happens, but certificates and sign-ins may not work. */
export function tellWhenOff(clock: ServerClock, log: Pick<Log, 'warn'>): void {
  const offMs = Math.round(clock.offset());
  if (Math.abs(offMs) <= mostOffMs) return;
  const words =
    'the clock of this machine and the one of the database differ: let both follow a time server (NTP)';
  log.warn({ machineIsBehindByMs: offMs }, words);
}

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
