import { type Clock, day } from '../../core/clock.ts';
import { inBatches } from '../../platform/in-batches.ts';
import type { IdentityStores } from './stores.ts';

const batch = 5_000;
const endedSessionsKeptMs = 30 * day;

/** Removes expired rows in batches until none is left. */
export async function sweepIdentity(
  read: Pick<IdentityStores, 'records' | 'attempts' | 'sessions'>,
  clock: Clock,
): Promise<void> {
  const before = clock.now() - endedSessionsKeptMs;
  await inBatches(batch, (limit) => read.records.removeExpired(limit));
  await inBatches(batch, (limit) => read.attempts.removeExpired(limit));
  await inBatches(batch, (limit) => read.sessions.removeEnded(before, limit));
}
