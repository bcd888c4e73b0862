import { z } from 'zod';
import type { RoutePolicy } from '../../core/authorize.ts';
import { timestamp } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { idParams, timestampSchema } from '../../platform/schemas.ts';
import { ownId } from '../people/people.ts';
import { type AgentApproval, type AgentApprovals, approvalMinutes } from './approvals.ts';
import { approvalStatuses } from './approval-store.ts';

/** In the browser only: no agent can approve its own calls. */
const deciding: RoutePolicy = { callers: ['session'], role: 'user', identity: 'introspected' };
const reading: RoutePolicy = { callers: ['session'], identity: 'live' };
const params = idParams('The id of an approval', 'agp_3kTq9ZpW1xYb7LcD5mNa');
const tag = 'Agent approvals';
const path = '/me/agents/approvals';

const approvalSchema = z
  .strictObject({
    id: z.string(),
    clientId: z.string().describe('The MCP client'),
    tool: z.string(),
    status: z.enum(approvalStatuses).describe('`used`: the agent made the call that was approved'),
    requestedAt: timestampSchema,
    expiresAt: timestampSchema.describe('An approved call must be made before'),
  })
  .meta({ id: 'AgentApproval' });

const detailedSchema = approvalSchema
  .extend({
    arguments: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('The exact arguments of the call. Absent: you decided, so Postern removed them'),
  })
  .meta({ id: 'AgentApprovalWithArguments' });

const example = {
  id: 'agp_3kTq9ZpW1xYb7LcD5mNa',
  clientId: 'postern-mcp',
  tool: 'delete_site',
  status: 'waiting',
  requestedAt: '2026-01-01T09:00:00.000Z',
  expiresAt: '2026-01-01T09:10:00.000Z',
} as const;

export function agentApprovalRoutes({
  approvals,
  isEnabled,
}: {
  readonly approvals: AgentApprovals;
  /** False: `/mcp` is off, and approvals with it. */
  readonly isEnabled: () => Promise<boolean>;
}): Route[] {
  async function requireEnabled(): Promise<void> {
    if (!(await isEnabled())) throw new AppError('not_found');
  }
  const decisionRoute = (verb: 'approve' | 'refuse', decision: 'approved' | 'refused', summary: string) =>
    defineRoute({
      method: 'POST',
      path: `${path}/{id}/${verb}`,
      operationId: `${verb}AgentCall`,
      tag,
      summary,
      description:
        decision === 'approved'
          ? `The agent may make exactly this call once, until ${approvalMinutes} minutes after it asked. Postern then repeats every check of the call.`
          : 'The agent receives the refusal when it makes the same call again.',
      policy: deciding,
      params,
      errors: ['not_found', 'state_conflict'],
      success: { status: 200, data: approvalSchema },
      example: { data: { ...example, status: decision } },
      async handle({ caller, auditContext, params: { id } }) {
        await requireEnabled();
        return { data: toShown(await approvals.decide(auditContext, id, ownId(caller), decision)) };
      },
    });

  return [
    defineRoute({
      method: 'GET',
      path,
      operationId: 'listMyAgentApprovals',
      tag,
      summary: 'List the calls of your agents that wait for you',
      description: `Newest first. A call waits for ${approvalMinutes} minutes, or until its client loses access. Empty while \`/mcp\` is off.`,
      policy: reading,
      success: {
        status: 200,
        data: z.strictObject({
          isOn: z.boolean().describe('False: an administrator has switched `/mcp` off'),
          approvals: z.array(approvalSchema),
        }),
      },
      example: { data: { isOn: true, approvals: [example] } },
      async handle({ caller }) {
        const isOn = await isEnabled();
        const waiting = isOn ? await approvals.waiting(ownId(caller)) : [];
        return { data: { isOn, approvals: waiting.map(toShown) } };
      },
    }),
    defineRoute({
      method: 'GET',
      path: `${path}/{id}`,
      operationId: 'readMyAgentApproval',
      tag,
      summary: 'Read a call that waits for you, with its arguments',
      description: `Available until ${approvalMinutes} minutes after the agent asked.`,
      policy: reading,
      params,
      errors: ['not_found'],
      success: { status: 200, data: detailedSchema },
      example: { data: { ...example, arguments: { siteId: 'k3v9x0q2m7' } } },
      async handle({ caller, params: { id } }) {
        await requireEnabled();
        const { approval, arguments: sent } = await approvals.read(id, ownId(caller));
        return { data: { ...toShown(approval), ...(sent === null ? {} : { arguments: { ...sent } }) } };
      },
    }),
    decisionRoute('approve', 'approved', 'Approve a call of your agent'),
    decisionRoute('refuse', 'refused', 'Refuse a call of your agent'),
  ];
}

function toShown({ id, clientId, tool, status, requestedAt, expiresAt }: AgentApproval) {
  return {
    id,
    clientId,
    tool,
    status,
    requestedAt: timestamp(requestedAt),
    expiresAt: timestamp(expiresAt),
  };
}
