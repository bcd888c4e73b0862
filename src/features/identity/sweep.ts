import { type Clock, day } from '../../core/clock.ts';
import type { IdentityStores } from './stores.ts';

const batch = 5_000;
/** Bounds one run to half a million rows a table, so that a flood's leftovers cannot keep the lease for ever. */
const maxRounds = 100;
const endedSessionsKeptMs = 30 * day;

/** Removes what has expired, in batches until nothing is left over. */
export async function sweepIdentity(
  read: Pick<IdentityStores, 'records' | 'attempts' | 'sessions'>,
  clock: Clock,
): Promise<void> {
  const before = clock.now() - endedSessionsKeptMs;
  await repeat(() => read.records.removeExpired(batch));
  await repeat(() => read.attempts.removeExpired(batch));
  await repeat(() => read.sessions.removeEnded(before, batch));
}

async function repeat(remove: () => Promise<number>): Promise<void> {
  for (let round = 0; round < maxRounds; round += 1) {
    if ((await remove()) < batch) return;
  }
}
