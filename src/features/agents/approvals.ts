import type { AuditContext } from '../../core/caller.ts';
import { type Clock, minute } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { newId, type Random } from '../../core/ids.ts';
import type { Tx } from '../../platform/database/database.ts';
import { decryptedOrNot, type Encryption, mac } from '../../platform/encryption.ts';
import { inBatches } from '../../platform/in-batches.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { AgentApproval, AgentApprovalStore } from './approval-store.ts';

/**
 * Calls of agents that the person must approve. An approval is for exactly one call: the same person, client, tool,
 * arguments and version of the target. It can be used once, within ten minutes of the request. It gives no right: the call
 * that uses it passes every check again. It ends when the client loses access.
 */
export type AgentApprovals = {
  /** For a call that needs an approval: uses it, or requests it. @throws AppError quota_exceeded */
  use(call: CallToApprove): Promise<Asked>;
  /** Requests that the person can decide about, newest first. */
  waiting(userId: string): Promise<AgentApproval[]>;
  /** `arguments`: null once the person decided. @throws AppError not_found, also when it expired or the access of the client ended */
  read(id: string, userId: string): Promise<{ approval: AgentApproval; arguments: Arguments | null }>;
  /** Safe to repeat. @throws AppError not_found, state_conflict when it was decided otherwise */
  decide(
    auditContext: AuditContext,
    id: string,
    userId: string,
    decision: 'approved' | 'refused',
  ): Promise<AgentApproval>;
  /** Removes expired approvals. */
  prune(): Promise<void>;
};

export type Arguments = Readonly<Record<string, unknown>>;

export type CallToApprove = {
  readonly userId: string;
  readonly clientId: string;
  /** The consent. Null: the identity provider names none. */
  readonly grantId: string | null;
  readonly tool: string;
  readonly arguments: Arguments;
  /** Everything that the approval depends on besides person, client, consent and tool, always in the same form. */
  readonly what: string;
};

export type Asked = { readonly kind: 'approved' | 'refused' | 'waiting'; readonly id: string };

export type { AgentApproval };

export const approvalMinutes = 10;
const maxWaiting = 5;
const label = 'postern-agent-approval';
const prunedAtOnce = 500;

export function createAgentApprovals(deps: {
  readonly read: { readonly agentApprovals: AgentApprovalStore };
  readonly tx: Tx<{ readonly agentApprovals: AgentApprovalStore; readonly audit: AuditWriter }>;
  /** Whether agents of this consent may still call tools. */
  readonly hasAccess: (grant: {
    readonly userId: string;
    readonly clientId: string;
    readonly grantId: string;
  }) => Promise<boolean>;
  readonly encryption: Encryption;
  /** SESSION_SECRET: first signs, all verify. A plain hash would let a reader of the table guess arguments. */
  readonly secrets: readonly string[];
  readonly clock: Clock;
  readonly random: Random;
}): AgentApprovals {
  const { read, tx, encryption, secrets, clock, random } = deps;

  function newRequest({ userId, clientId, grantId, tool, arguments: sent }: CallToApprove, digest: string) {
    const id = newId(random, 'agp');
    return {
      id,
      userId,
      clientId,
      grantId,
      tool,
      status: 'waiting',
      requestedAt: clock.now(),
      expiresAt: clock.now() + approvalMinutes * minute,
      digest,
      encryptedArguments: encryption.encrypt(JSON.stringify(sent), contextOf(id)),
    } as const;
  }

  async function isUsable({ userId, clientId, grantId }: AgentApproval): Promise<boolean> {
    return grantId === null || (await deps.hasAccess({ userId, clientId, grantId }));
  }

  async function find(id: string, userId: string) {
    const found = await read.agentApprovals.find(id, clock.now());
    if (found === undefined || found.userId !== userId || !(await isUsable(found)))
      throw new AppError('not_found');
    return found;
  }

  async function readOwn(id: string, userId: string) {
    const approval = await find(id, userId);
    const { encryptedArguments } = approval;
    if (encryptedArguments === null) return { approval, arguments: null };
    const text = decryptedOrNot(() => encryption.decrypt(encryptedArguments, contextOf(id)));
    // Its key was removed within ten minutes. A person must not approve what they cannot read.
    if (text === undefined) throw new AppError('not_found');
    // newRequest() wrote them.
    return { approval, arguments: JSON.parse(text) as Arguments };
  }

  return {
    async use(call) {
      const { userId, clientId, grantId, tool, what } = call;
      const text = JSON.stringify([userId, clientId, grantId, tool, what]);
      const digests = secrets.map((secret) => mac(secret, label, text));
      const [digest] = digests;
      if (digest === undefined) throw new Error('SESSION_SECRET holds no secret.');
      return await tx(async ({ agentApprovals }) => {
        await agentApprovals.hold(call);
        const now = clock.now();
        const open = await agentApprovals.findOpen({ userId, clientId, tool, digests }, now);
        if (open?.status === 'approved') await agentApprovals.move(open.id, 'approved', 'used', now);
        if (open !== undefined) return { kind: open.status as Asked['kind'], id: open.id };
        const waiting = await agentApprovals.waiting(userId, clientId, now);
        // The person sees no requests of a consent that ended.
        if (waiting.filter((one) => one.grantId === grantId).length >= maxWaiting)
          throw new AppError('quota_exceeded', {
            message: `${maxWaiting} calls of this client wait for the person, which is the maximum.`,
            hint: 'Ask the person to decide about them in Settings, or wait ten minutes.',
          });
        const request = newRequest(call, digest);
        await agentApprovals.insert(request);
        return { kind: 'waiting', id: request.id };
      });
    },
    async waiting(userId) {
      const all = await read.agentApprovals.waiting(userId, null, clock.now());
      const usable = await Promise.all(all.map(isUsable));
      return all.filter((_, at) => usable[at]);
    },
    read: readOwn,
    async decide(auditContext, id, userId, decision) {
      const { approval } = await readOwn(id, userId);
      const decided = await tx(async ({ agentApprovals, audit }) => {
        const moved = await agentApprovals.move(id, 'waiting', decision, clock.now());
        if (moved === undefined) return undefined;
        await audit.append({
          event: 'mcp.approval_decided',
          auditContext,
          target: { kind: 'client', id: approval.clientId },
          outcome: 'success',
          reason: decision,
          details: { tool: approval.tool, approvalId: id },
        });
        return moved;
      });
      if (decided !== undefined) return decided;
      const current = await find(id, userId);
      if (current.status === decision) return current;
      throw new AppError('state_conflict', { message: `This call was ${current.status} already.` });
    },
    prune: () => inBatches(prunedAtOnce, (limit) => read.agentApprovals.prune(clock.now(), limit)),
  };
}

function contextOf(id: string): string {
  return `agent-approval:${id}`;
}
