import type { Log } from '../../platform/log.ts';
import type { Keys } from './keys.ts';

export type FirstUses = {
  record(keyId: string, at: number): void;
  settled(): Promise<void>;
};

/**
 * The first use of a successor starts its predecessor's grace. It is recorded once, at once, and does not delay the
 * request.
 */
export function createFirstUses({ keys, log }: { keys: Pick<Keys, 'recordFirstUse'>; log: Log }): FirstUses {
  const running = new Map<string, Promise<void>>();
  return {
    record(keyId, at) {
      if (running.has(keyId)) return;
      const recording = keys
        .recordFirstUse(keyId, at)
        .catch((error: unknown) =>
          log.warn(
            { err: error, key: keyId },
            'could not record the first use of a key; the next use retries',
          ),
        )
        .finally(() => running.delete(keyId));
      running.set(keyId, recording);
    },
    settled: async () => void (await Promise.all(running.values())),
  };
}
