import { isDeepStrictEqual } from 'node:util';
import type { McpServer } from '@modelcontextprotocol/server';
import { decide } from '../../core/authorize.ts';
import { actorOf, type Caller, type RequestOrigin } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { AgentSessions } from '../../features/agents/agents.ts';
import type { AgentApprovals } from '../../features/agents/approvals.ts';
import { resultOf } from '../../features/agents/call-result.ts';
import type { McpUploads } from '../../features/agents/mcp-uploads.ts';
import type { Log } from '../../platform/log.ts';
import type { McpCaller } from '../web/authentication.ts';
import type { Metrics } from '../web/metrics.ts';
import {
  type AgentRights,
  accessUnder,
  type AgentStepsDeps,
  agentUnder,
  mcpPath,
  requireEnabled,
} from './agent-steps.ts';
import type { ApprovalStep } from './approval-step.ts';
import type { CallRoute } from './call-route.ts';
import type { Confirmations } from './confirmations.ts';
import { type ExternalTools, externalToolsFor } from './external-tools.ts';
import { ownRule, type ToolServerDeps, toolServer } from './mcp-server.ts';
import { denialOf, type Tool, type ToolContext } from './tool.ts';

/** The server for one request: its tools act for one person, within the rights that the request had when it began. */
export type RequestServerDeps = AgentStepsDeps & {
  readonly uiOrigin: string;
  readonly tools: readonly Tool[];
  readonly external: ExternalTools;
  readonly callRoute: (caller: Caller, origin: RequestOrigin) => CallRoute;
  readonly confirmations: Confirmations;
  readonly approvals: Pick<AgentApprovals, 'use'>;
  readonly uploads: Pick<McpUploads, 'offer'>;
  readonly sessions: Pick<AgentSessions, 'record'>;
  readonly count: Metrics['countAgentCall'];
  readonly clock: Clock;
  readonly pause: (ms: number) => Promise<void>;
  readonly log: Log;
};

/** The agent that sent a request. Its caller has the scopes and the reach that `rights` leave. */
type Agent = McpCaller & { readonly rights: AgentRights; readonly origin: RequestOrigin };

export function requestServer(
  deps: RequestServerDeps,
  { caller, grantId }: McpCaller,
  rights: AgentRights,
  origin: RequestOrigin,
): McpServer {
  const agent: Agent = { caller: agentUnder(caller, rights), grantId, rights, origin };
  const external = externalFor(deps, agent);
  return toolServer({
    tools: deps.tools,
    external: external.tools,
    lookForChanges: () => deps.external.lookForChanges(caller.user.id),
    context: contextFor(deps, agent, external),
    confirmations: deps.confirmations,
    approvals: approvalsFor(deps, agent),
    record: recorderFor(deps, agent),
    onFailure: (error, tool) =>
      deps.log.error({ err: error, requestId: origin.requestId, tool }, 'a tool failed'),
  });
}

type External = {
  readonly tools: () => Promise<readonly Tool[]>;
  /** False: the tools are no longer those that the call was allowed by. True for a call of a tool of Postern. */
  readonly isUnchanged: () => Promise<boolean>;
};

function externalFor({ external }: RequestServerDeps, { caller, rights }: Agent): External {
  const { id } = caller.user;
  let accepted: Awaited<ReturnType<ExternalTools['tools']>> | undefined;
  return {
    async tools() {
      const found = await external.tools(id);
      accepted = found;
      const same = { ...external, tools: async () => found };
      return await externalToolsFor(same, id, rights.wholePolicy, rights.definition);
    },
    isUnchanged: async () => accepted === undefined || isDeepStrictEqual(await external.tools(id), accepted),
  };
}

function contextFor(deps: RequestServerDeps, agent: Agent, external: External): ToolContext {
  const { caller, grantId, rights, origin } = agent;
  const { user, clientId } = caller;
  const { policy, definition } = rights;
  const may: ToolContext['may'] = (scope) =>
    decide(caller, { callers: [caller.kind], scope, identity: 'none' }, { kind: 'not_asked' });
  return {
    call: deps.callRoute(caller, origin),
    person: { id: user.id, name: user.name },
    clientId,
    policy,
    workspace: definition?.workspace ?? null,
    mayChange: () =>
      deps.tools.some(
        (tool) =>
          tool.effect !== 'read' && ownRule(tool, policy) !== 'hidden' && denialOf(tool, { may }) === null,
      ),
    may,
    // A call that waits, such as for its approval, ends when a right that allowed it ends.
    async pause(ms) {
      await deps.pause(ms);
      const now = await accessUnder(deps, caller, grantId ?? '', await requireEnabled(deps));
      if (!isDeepStrictEqual(now, rights) || !(await external.isUnchanged())) throw rightsChanged;
    },
    approvalId: null,
    async offerUpload(asked) {
      const offer = { ...asked, userId: user.id, clientId, grantId: grantId ?? '' };
      const { id, token, expiresAt } = await deps.uploads.offer(offer);
      return { url: `${deps.uiOrigin}${mcpPath}/uploads/${id}`, token, expiresAt };
    },
  };
}

const rightsChanged = new AppError('state_conflict', {
  message: 'What this client may do changed while the call waited.',
  hint: 'Read tools/list, then make the call again.',
});

function approvalsFor({ approvals, uiOrigin }: RequestServerDeps, { grantId }: Agent): ApprovalStep {
  return {
    use: (call) => approvals.use({ ...call, grantId }),
    pageOf: (id) => `${uiOrigin}/settings/agents/approvals/${id}`,
  };
}

function recorderFor(deps: RequestServerDeps, agent: Agent): ToolServerDeps['record'] {
  const { caller, grantId, rights, origin } = agent;
  const startedAt = deps.clock.now();
  return async ({ tool, hasChanged, code, approvalId, step, objectId, arguments: sent }) => {
    const isOwn = deps.tools.some(({ name }) => name === tool);
    deps.count(isOwn ? tool : 'external', resultOf(code, step));
    await deps.sessions.record({
      userId: caller.user.id,
      clientId: caller.clientId,
      grantId: grantId ?? '',
      definition: rights.definition ?? null,
      at: startedAt,
      tool,
      code,
      approvalId,
      step,
      objectId,
      durationMs: Math.max(0, deps.clock.now() - startedAt),
      arguments: rights.policy.sessionReview.arguments === 'none' ? {} : sent,
      change: hasChanged ? { actor: actorOf(caller), origin } : null,
    });
  };
}
