import type { AuditContext, UserRef } from '../../core/caller.ts';
import { type Clock, day } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Tx } from '../../platform/database/database.ts';
import { inBatches } from '../../platform/in-batches.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { AgentDefinition } from './definition.ts';
import type { AgentDefinitionStore, PersonGrant } from './definition-store.ts';
import type { AgentSession, AgentSessionStore } from './session-store.ts';

/**
 * The definition under which the agents of one consent work: that of the client, which an administrator chose, or one that the
 * person chose among those that are offered. Each call reads it, so a change holds from the next call on.
 */
export type GrantDefinitions = {
  of(grant: PersonGrant): Promise<AgentDefinition | undefined>;
  choicesFor(clientId: string): Promise<DefinitionChoices>;
  /** The person allows the client something, under this definition. @throws AppError state_conflict */
  chooseAtConsent(auditContext: AuditContext, grant: PersonGrant, definitionId: string): Promise<void>;
  /** The consents of a person whose calls are kept, those used last first. */
  list(user: UserRef): Promise<AgentAccess[]>;
  /** For the consent of this session. `definitionId` null: its agents only read. @throws AppError not_found, state_conflict */
  choose(
    auditContext: AuditContext,
    user: UserRef,
    sessionId: string,
    definitionId: string | null,
  ): Promise<AgentAccess>;
  /** Forgets choices for consents that are gone. */
  prune(): Promise<void>;
};

export type DefinitionChoices = {
  /** The definition of the client; then there is no choice. */
  readonly pinned: AgentDefinition | undefined;
  /** By name. */
  readonly offered: readonly AgentDefinition[];
};

/** One consent of a person for a client. */
export type AgentAccess = {
  /** The newest one of it. */
  readonly session: AgentSession;
  readonly definition: AgentDefinition | undefined;
  /** True: an administrator chose it for the client. */
  readonly isPinned: boolean;
};

type Stores = { readonly agentDefinitions: AgentDefinitionStore; readonly audit: AuditWriter };

const maxShown = 100;
const keptMs = 90 * day;
const prunedAtOnce = 500;

export function createGrantDefinitions(deps: {
  readonly read: {
    readonly agentDefinitions: AgentDefinitionStore;
    readonly agentSessions: Pick<AgentSessionStore, 'find' | 'grantsOf'>;
  };
  readonly tx: Tx<Stores>;
  readonly clock: Clock;
}): GrantDefinitions {
  const { read, tx, clock } = deps;

  async function put(
    stores: Stores,
    auditContext: AuditContext,
    grant: PersonGrant,
    definitionId: string | null,
  ): Promise<void> {
    const { clientId } = grant;
    // Nobody deletes or closes the definition until this is written.
    const all = await stores.agentDefinitions.hold();
    const pinned = all.find(({ clients }) => clients.includes(clientId));
    if (pinned !== undefined)
      throw new AppError('state_conflict', {
        message: `An administrator chose the definition ${pinned.name} for this client.`,
        hint: 'Ask an administrator for another one.',
      });
    if (definitionId !== null && !all.some(({ id, isOffered }) => id === definitionId && isOffered))
      throw new AppError('state_conflict', {
        message: 'This agent definition is not offered.',
        hint: 'Choose another one.',
      });
    await stores.agentDefinitions.choose(grant, definitionId, clock.now());
    await stores.audit.append({
      event: 'mcp.definition_chosen',
      auditContext,
      target: { kind: 'client', id: clientId },
      outcome: 'success',
      details: { definitionId },
    });
  }

  return {
    of: (grant) => read.agentDefinitions.ofGrant(grant),
    async choicesFor(clientId) {
      const all = await read.agentDefinitions.list();
      return {
        pinned: all.find(({ clients }) => clients.includes(clientId)),
        offered: all.filter(({ isOffered }) => isOffered),
      };
    },
    chooseAtConsent: (auditContext, grant, definitionId) =>
      tx((stores) => put(stores, auditContext, grant, definitionId)),
    async list(user) {
      const [all, choices, sessions] = await Promise.all([
        read.agentDefinitions.list(),
        read.agentDefinitions.choicesOf(user),
        read.agentSessions.grantsOf(user.id, maxShown),
      ]);
      return sessions.map((session) => {
        const pinned = all.find(({ clients }) => clients.includes(session.clientId));
        const choice = choices.find(
          ({ clientId, grantId }) => clientId === session.clientId && grantId === session.grantId,
        );
        const chosen = all.find(({ id, isOffered }) => isOffered && id === choice?.definitionId);
        return { session, definition: pinned ?? chosen, isPinned: pinned !== undefined };
      });
    },
    async choose(auditContext, user, sessionId, definitionId) {
      const session = await read.agentSessions.find(sessionId);
      if (session === undefined || session.userId !== user.id) throw new AppError('not_found');
      const { clientId, grantId } = session;
      if (grantId === '')
        throw new AppError('state_conflict', {
          message: 'The identity provider does not say to which consent these calls belong.',
          hint: 'Ask an administrator to choose a definition for the client.',
        });
      if (session.endedAt !== null)
        throw new AppError('state_conflict', {
          message: 'The access of this client was ended.',
          hint: 'Connect the client again.',
        });
      const grant = { issuer: user.issuer, subject: user.subject, clientId, grantId };
      await tx((stores) => put(stores, auditContext, grant, definitionId));
      return { session, definition: await read.agentDefinitions.ofGrant(grant), isPinned: false };
    },
    async prune() {
      const before = clock.now() - keptMs;
      await inBatches(prunedAtOnce, (limit) => read.agentDefinitions.pruneChoices(before, limit));
    },
  };
}
