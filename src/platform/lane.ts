import { AppError } from '../core/errors.ts';

/**
 * Runs at most `width` tasks at once; with `queue` more waiting it refuses with `store_unavailable`, so that a flood
 * stays a flood of refusals and never a growing queue (contract 10.12).
 */
type Lane = <T>(task: () => Promise<T>) => Promise<T>;

function createLane({ width, queue }: { width: number; queue: number }): Lane {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async function run<T>(task: () => Promise<T>): Promise<T> {
    if (running >= width) {
      if (waiting.length >= queue) throw new AppError('store_unavailable', { retryAfterSeconds: 1 });
      await new Promise<void>((resolve) => waiting.push(resolve));
    } else {
      running += 1;
    }
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}

/**
 * Two lanes: one for everybody, and a narrow one for those who have earned suspicion, such as an address that has
 * sent too many bad credentials. Whoever floods waits for himself.
 */
export function createLanes({ width, queue }: { width: number; queue: number }) {
  const everybody = createLane({ width, queue });
  const suspects = createLane({ width: Math.ceil(width / 8), queue: Math.ceil(queue / 16) });
  return (isSuspect: boolean): Lane => (isSuspect ? suspects : everybody);
}
