import { setTimeout as wait } from 'node:timers/promises';
import { type BenchOptions, type Figure, median } from './figures.ts';
import { type BenchServer, startServer } from './server-process.ts';

/**
 * P15: the longest that a request with a key waits, embedded, while rows are written all the time and the database makes its
 * checkpoints. One request after the other, so that none waits for another.
 */
export async function pauses({ quick }: BenchOptions): Promise<Figure[]> {
  const server = await startServer();
  try {
    // Fills caches and lets the compiler optimize.
    await longestWait(server, 1);
    const quiet = await longestWait(server, quick ? 1 : 5);
    const longest: number[] = [];
    for (let round = 0; round < (quick ? 1 : 3); round += 1) {
      const seconds = quick ? 1 : 10;
      const [wait, bytes] = await Promise.all([longestWait(server, seconds), server.writeRows(seconds)]);
      console.error(`bench: longest ${wait.toFixed(0)} ms, ${(bytes / 1e6).toFixed(0)} MB of log`);
      longest.push(wait);
    }
    const ours = median(longest);
    return [
      {
        id: 'P15',
        what: 'longest wait of a key request while rows are written',
        ours: `${ours.toFixed(0)} ms`,
        reference: `${quiet.toFixed(0)} ms without`,
        ratio: ours,
        floor: '≤ 100 ms',
        goal: '≤ 100 ms',
        passes: ours <= 100,
      },
    ];
  } finally {
    await server.stop();
  }
}

/** Milliseconds. */
async function longestWait({ address, keys }: BenchServer, seconds: number): Promise<number> {
  let longest = 0;
  const end = performance.now() + seconds * 1_000;
  while (performance.now() < end) {
    const startedAt = performance.now();
    const answer = await fetch(`${address}/api/v2/auth/context`, {
      headers: { authorization: `Bearer ${keys[0]}` },
    });
    await answer.arrayBuffer();
    if (!answer.ok) throw new Error(`A request with a key was answered with ${answer.status}.`);
    longest = Math.max(longest, performance.now() - startedAt);
    await wait(2);
  }
  return longest;
}
