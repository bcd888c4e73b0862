import { type Clock, day } from '../../core/clock.ts';
import { inBatches } from '../../platform/in-batches.ts';
import type { LoginAttemptStore } from './login/login-attempt-store.ts';
import type { SessionStore } from './sessions/session-store.ts';

const batch = 5_000;
const endedSessionsKeptMs = 30 * day;

/** Removes sign-ins that were not finished in time, and sessions that ended long ago, in batches until none is left. */
export async function sweepSignIns(
  read: {
    attempts: Pick<LoginAttemptStore, 'removeExpired'>;
    sessions: Pick<SessionStore, 'removeEnded' | 'removeEndedAtProvider'>;
  },
  clock: Clock,
): Promise<void> {
  const before = clock.now() - endedSessionsKeptMs;
  await inBatches(batch, (limit) => read.attempts.removeExpired(limit));
  await inBatches(batch, (limit) => read.sessions.removeEnded(before, limit));
  await inBatches(batch, (limit) => read.sessions.removeEndedAtProvider(before, limit));
}
