import type { AuditContext, UserRef } from '../../core/caller.ts';
import { type Clock, day } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { ChangeFeed } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import { inBatches } from '../../platform/in-batches.ts';
import { keepLastUsed } from '../../platform/last-used.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { AgentDefinition } from './definition.ts';
import type { AgentDefinitionStore, GrantStanding, PersonGrant } from './definition-store.ts';
import type { AgentSession, AgentSessionStore } from './session-store.ts';

/**
 * The definition of the agents of one consent. An administrator chose it for the client, or the person chose an offered
 * one. A change takes effect within a second, and at once in the process that made it.
 */
export type GrantDefinitions = {
  /** The current access of the agents of this consent. */
  standingOf(user: UserRef, grant: Pick<PersonGrant, 'clientId' | 'grantId'>): Promise<Standing>;
  choicesFor(clientId: string): Promise<DefinitionChoices>;
  /** Records that the person allows the client something, with this definition. @throws AppError state_conflict */
  chooseAtConsent(auditContext: AuditContext, grant: PersonGrant, definitionId: string): Promise<void>;
  /** The consents of a person whose calls are kept, most recently used first. */
  list(user: UserRef): Promise<AgentAccess[]>;
  /** Chooses the definition for the consent of this session. `definitionId` null: its agents only read. @throws AppError not_found, state_conflict */
  choose(
    auditContext: AuditContext,
    user: UserRef,
    sessionId: string,
    definitionId: string | null,
  ): Promise<AgentAccess>;
  /** Removes choices for consents that no longer exist. */
  prune(): Promise<void>;
};

export type Standing = Omit<GrantStanding, 'definitionId'> & {
  readonly definition: AgentDefinition | undefined;
};

export type DefinitionChoices = {
  /** The definition of the client, which leaves the person no choice. */
  readonly pinned: AgentDefinition | undefined;
  /** By name. */
  readonly offered: readonly AgentDefinition[];
};

/** One consent of a person for a client. */
export type AgentAccess = {
  /** The newest session of the consent. */
  readonly session: AgentSession;
  readonly definition: AgentDefinition | undefined;
  /** True: an administrator chose it for the client. */
  readonly isPinned: boolean;
};

type Stores = { readonly agentDefinitions: AgentDefinitionStore; readonly audit: AuditWriter };

const maxShown = 100;
const keptMs = 90 * day;
const prunedAtOnce = 500;
/** Maximum number of consents whose access is cached. */
const maxKnown = 5_000;

export function createGrantDefinitions(deps: {
  readonly read: {
    readonly agentDefinitions: AgentDefinitionStore;
    readonly agentSessions: Pick<AgentSessionStore, 'find' | 'grantsOf'>;
  };
  /** Announces the change under the topic `agents`. */
  readonly tx: Tx<Stores>;
  readonly feed: Pick<ChangeFeed, 'subscribe'>;
  /** False: this process may have missed a change. */
  readonly isFresh: () => boolean;
  readonly clock: Clock;
}): GrantDefinitions {
  const { read, tx, isFresh, clock } = deps;
  const known = keepLastUsed<Standing>(maxKnown);
  // Counts changes, so that values read before a change are not cached after it.
  let heard = 0;
  deps.feed.subscribe(({ topic }) => {
    // Definitions name repositories.
    if (topic !== 'agents' && topic !== 'repository') return;
    heard += 1;
    known.clear();
  });

  async function put(
    stores: Stores,
    auditContext: AuditContext,
    grant: PersonGrant,
    definitionId: string | null,
  ): Promise<void> {
    const { clientId } = grant;
    // The lock keeps the definition from being deleted or closed before this is written.
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

  async function standingOf(
    { id: userId, issuer, subject }: UserRef,
    { clientId, grantId }: Pick<PersonGrant, 'clientId' | 'grantId'>,
  ): Promise<Standing> {
    const name = JSON.stringify([userId, clientId, grantId]);
    const kept = known.get(name);
    if (kept !== undefined && isFresh()) return kept;
    const before = heard;
    const grant = { userId, issuer, subject, clientId, grantId };
    const { definitionId, ...standing } = await read.agentDefinitions.standingOf(grant);
    const definition = definitionId === null ? undefined : await read.agentDefinitions.find(definitionId);
    const found = { ...standing, definition };
    if (before === heard) known.set(name, found);
    return found;
  }

  return {
    standingOf,
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
      const { definition } = await standingOf(user, session);
      return { session, definition, isPinned: false };
    },
    async prune() {
      const before = clock.now() - keptMs;
      await inBatches(prunedAtOnce, (limit) =>
        tx(({ agentDefinitions }) => agentDefinitions.pruneChoices(before, limit)),
      );
    },
  };
}
