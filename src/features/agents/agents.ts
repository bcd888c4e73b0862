import type { AuditContext } from '../../core/caller.ts';
import { type Clock, day, minute } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { newId, type Random } from '../../core/ids.ts';
import type { Tx } from '../../platform/database/database.ts';
import { inBatches } from '../../platform/in-batches.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { McpPolicy } from './mcp-policy.ts';
import type {
  AgentCall,
  AgentGrant,
  AgentSession,
  AgentSessionStore,
  NewCall,
  SessionFilter,
  ToolUsage,
} from './session-store.ts';

/**
 * Records every tool call of agents, in sessions. A session ends after 30 idle minutes. The MCP policy sets for how many days it is kept.
 */
export type AgentSessions = {
  /** `change`: who changed something and from where; null: the call changed nothing. */
  record(call: Omit<NewCall, 'requestId'> & { readonly change: AuditContext | null }): Promise<void>;
  /** Newest first. */
  list(filter: SessionFilter, page: number, limit: number): Promise<{ items: AgentSession[]; total: number }>;
  /** One session with a page of its calls. `userId` null: of anyone. Throws `not_found`. */
  read(
    id: string,
    userId: string | null,
    page: number,
    limit: number,
  ): Promise<{ session: AgentSession; calls: AgentCall[] }>;
  isOpen(session: AgentSession): boolean;
  /**
   * Ends the access of the client that made these calls: its consent, and every token of it. Safe to repeat. `userId` null:
   * of anyone. @throws AppError not_found, state_conflict
   */
  end(auditContext: AuditContext, id: string, userId: string | null): Promise<AgentSession>;
  /** Who used which tool successfully in the last 30 days. */
  usage(): Promise<ToolUsage[]>;
  prune(): Promise<void>;
};

export type { AgentCall, AgentSession, ToolUsage };
export { type ToolRule, toolRules } from './mcp-policy.ts';

const idleMs = 30 * minute;
/** Each has up to 100,000 calls or more, which the database removes with it. */
const prunedAtOnce = 20;

type Stores = { readonly agentSessions: AgentSessionStore; readonly audit: AuditWriter };

export function createAgentSessions(deps: {
  readonly read: { readonly agentSessions: AgentSessionStore };
  readonly tx: Tx<Stores>;
  /** A transaction that announces a change under the topic `agents`. */
  readonly changeAgents: Tx<Stores>;
  readonly policy: () => Promise<McpPolicy>;
  /** Ends the consent at the identity provider, where Postern can. */
  readonly revokeGrant: (grant: AgentGrant) => Promise<void>;
  readonly clock: Clock;
  readonly random: Random;
}): AgentSessions {
  const { read, tx, clock, random } = deps;
  async function find(id: string, userId: string | null): Promise<AgentSession> {
    const session = await read.agentSessions.find(id);
    if (session === undefined || (userId !== null && session.userId !== userId))
      throw new AppError('not_found');
    return session;
  }

  return {
    async record({ change, ...made }) {
      const call = { ...made, requestId: change?.origin.requestId ?? null };
      const session = { newId: newId(random, 'ags'), idleSince: clock.now() - idleMs };
      // Most calls change nothing and follow others, so they need no transaction.
      if (change === null && (await read.agentSessions.addToSession(call, session.idleSince)) !== undefined)
        return;
      await tx(async (stores) => {
        const { sessionId, number } = await stores.agentSessions.add(call, session);
        if (change === null) return;
        await stores.audit.append({
          event: 'mcp.tool_called',
          auditContext: change,
          target: { kind: 'client', id: call.clientId },
          outcome: 'success',
          details: {
            tool: call.tool,
            sessionId,
            call: number,
            approvalId: call.approvalId,
            ...(call.step === null ? {} : { step: call.step }),
          },
        });
      });
    },
    list: (filter, page, limit) => read.agentSessions.list(filter, page, limit),
    async read(id, userId, page, limit) {
      const session = await find(id, userId);
      return { session, calls: await read.agentSessions.calls(id, page, limit) };
    },
    isOpen: ({ lastCallAt, endedAt }) => endedAt === null && clock.now() - lastCallAt <= idleMs,
    async end(auditContext, id, userId) {
      const session = await find(id, userId);
      if (session.grantId === '')
        throw new AppError('state_conflict', {
          message: 'The identity provider does not say to which consent these calls belong.',
          hint: 'Disconnect the client at the identity provider.',
        });
      await deps.changeAgents(async ({ agentSessions, audit }) => {
        if (!(await agentSessions.endGrant(session, clock.now()))) return;
        await audit.append({
          event: 'mcp.session_ended',
          auditContext,
          target: { kind: 'client', id: session.clientId },
          outcome: 'success',
          details: { sessionId: id, userId: session.userId },
        });
      });
      // Its tokens are refused from now on. If this call fails, the next attempt repeats it.
      await deps.revokeGrant(session);
      return await find(id, userId);
    },
    usage: () => read.agentSessions.usageSince(clock.now() - 30 * day),
    async prune() {
      const { sessionReview } = await deps.policy();
      const before = clock.now() - sessionReview.keepDays * day;
      await inBatches(prunedAtOnce, (limit) => read.agentSessions.prune(before, limit));
    },
  };
}
