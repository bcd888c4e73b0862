import type { AuditContext } from '../../../core/caller.ts';
import { AppError } from '../../../core/errors.ts';
import type { UserStore } from '../user-store.ts';
import type { EndSessions } from './session-end.ts';
import type { ListedSession, SessionStore } from './session-store.ts';

/** The browser sessions of one person, for that person and for administrators. */
export type OwnSessions = {
  /** The 100 that were used last. @throws `not_found` for an unknown person */
  list(userId: string): Promise<ListedSession[]>;
  /** @throws `not_found` when the person has no such session */
  end(auditContext: AuditContext, by: By, userId: string, sessionId: string): Promise<void>;
  /** Ends every session but `spared`. Resolves with how many ended. @throws `not_found` for an unknown person */
  endAll(auditContext: AuditContext, by: By, userId: string, spared: string | null): Promise<number>;
};

type By = 'person' | 'administrator';

const maxListed = 100;

export function createOwnSessions(deps: {
  read: Pick<SessionStore, 'listOf'>;
  users: Pick<UserStore, 'find'>;
  /** When this process last saw a session, in milliseconds; 0 = not since it wrote that. */
  lastSeenHere: (sessionId: string) => number;
  endSessions: EndSessions;
}): OwnSessions {
  const { read, users, lastSeenHere, endSessions } = deps;

  async function requirePerson(userId: string): Promise<void> {
    if ((await users.find(userId)) === undefined) throw new AppError('not_found');
  }

  return {
    async list(userId) {
      await requirePerson(userId);
      const found = await read.listOf(userId, maxListed);
      return found
        .map((session) => ({
          ...session,
          lastSeenAt: Math.max(session.lastSeenAt, lastSeenHere(session.id)),
        }))
        .toSorted((one, other) => other.lastSeenAt - one.lastSeenAt);
    },
    async end(auditContext, by, userId, sessionId) {
      const [found] = await read.listOf(userId, 1, sessionId);
      if (found === undefined) throw new AppError('not_found', { message: 'There is no such session.' });
      await endSessions(auditContext, { id: sessionId }, `ended_by_${by}`);
    },
    async endAll(auditContext, by, userId, spared) {
      await requirePerson(userId);
      return await endSessions(auditContext, { userId, spared }, `ended_by_${by}`);
    },
  };
}
