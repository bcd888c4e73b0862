import type { AuditContext } from '../../../core/caller.ts';
import { AppError } from '../../../core/errors.ts';
import type { UserStore } from '../user-store.ts';
import type { EndSession } from './session-end.ts';
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
  /** Writes when sessions were last used, so that the list shows it. */
  flushLastSeen: () => Promise<void>;
  endSession: EndSession;
}): OwnSessions {
  const { read, users, endSession } = deps;

  async function requirePerson(userId: string): Promise<void> {
    if ((await users.find(userId)) === undefined) throw new AppError('not_found');
  }

  return {
    async list(userId) {
      await requirePerson(userId);
      await deps.flushLastSeen();
      return await read.listOf(userId, maxListed);
    },
    async end(auditContext, by, userId, sessionId) {
      const [found] = await read.listOf(userId, 1, sessionId);
      if (found === undefined) throw new AppError('not_found', { message: 'There is no such session.' });
      await endSession(auditContext, sessionId, `ended_by_${by}`);
    },
    async endAll(auditContext, by, userId, spared) {
      await requirePerson(userId);
      let ended = 0;
      for (;;) {
        const rest = (await read.listOf(userId, maxListed)).filter(({ id }) => id !== spared);
        if (rest.length === 0) return ended;
        for (const { id } of rest) await endSession(auditContext, id, `ended_by_${by}`);
        ended += rest.length;
      }
    },
  };
}
