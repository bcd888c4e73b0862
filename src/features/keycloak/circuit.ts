import type { Clock } from '../../core/clock.ts';

/**
 * A circuit breaker. After several failures in a row it blocks requests for a while, because each request that waits for
 * an answer in vain occupies a connection and a queue slot. Then one request probes the server for all.
 */
export type Circuit = {
  isOpen(): boolean;
  succeeded(): void;
  failed(): void;
};

const failuresInARow = 5;
const openMs = 1_000;

export function createCircuit({ clock }: { clock: Clock }): Circuit {
  let failures = 0;
  let openUntil = 0;
  return {
    isOpen() {
      if (failures < failuresInARow) return false;
      // A clock that was set back must not keep it open.
      const now = clock.now();
      if (now < openUntil && openUntil - now <= openMs) return true;
      // This caller is the probe; stay open for the others until its result.
      openUntil = now + openMs;
      return false;
    },
    succeeded() {
      failures = 0;
    },
    failed() {
      failures += 1;
      if (failures >= failuresInARow) openUntil = clock.now() + openMs;
    },
  };
}
