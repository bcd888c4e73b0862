import type { Clock } from '../../../core/clock.ts';

/**
 * After some failures in a row nobody asks for a while: whoever waits for an answer that will not come holds a
 * connection and a place in the line. Then one question is let through, and its answer decides for the rest.
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
      // Whoever asks now tries for all; the others go on waiting for what comes of it.
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
