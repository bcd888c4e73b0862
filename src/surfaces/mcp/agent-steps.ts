import type { RoutePolicy } from '../../core/authorize.ts';
import type { Caller } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import { mcpScope } from '../../core/scopes.ts';
import {
  type AgentDefinition,
  policyUnder,
  reachUnder,
  scopesUnder,
} from '../../features/agents/definition.ts';
import type { McpPolicy } from '../../features/agents/mcp-policy.ts';
import type { GrantDefinitions } from '../../features/agents/grant-definitions.ts';
import { type RateLimiter, retryAfterSeconds } from '../../features/rate-limit/rate-limit.ts';

export type AgentCaller = Extract<Caller, { kind: 'access_token' }>;

export const mcpPath = '/mcp';

/** Any person who may use Postern, through a client that the person allowed. */
export const agents: RoutePolicy = {
  callers: ['access_token'],
  role: 'user',
  tokenScope: mcpScope,
  identity: 'introspected',
};

/** Steps of every request of an agent, to the endpoint and to an upload address. */
export type AgentStepsDeps = {
  readonly policy: () => Promise<McpPolicy>;
  readonly definitions: Pick<GrantDefinitions, 'standingOf'>;
  readonly limiter: Pick<RateLimiter, 'spend'>;
};

/** While MCP is off, an address answers as if it did not exist. @throws AppError not_found */
export async function requireEnabled({ policy }: Pick<AgentStepsDeps, 'policy'>): Promise<McpPolicy> {
  const inForce = await policy();
  if (!inForce.enabled) throw new AppError('not_found');
  return inForce;
}

/** @throws AppError rate_limited */
export async function limitAgents(
  { limiter }: Pick<AgentStepsDeps, 'limiter'>,
  userId: string,
  perMinute: number,
): Promise<void> {
  // A separate name, so that the budget is independent of the budgets of keys and changes.
  const spend = await limiter.spend({ owner: `mcp:${userId}`, key: '', limit: perMinute });
  if (spend.allowed) return;
  const wait = retryAfterSeconds(spend);
  throw new AppError('rate_limited', {
    message: `Your agents may make ${perMinute} requests in any 60 seconds.`,
    retryAfterSeconds: wait,
    details: { limit: perMinute, retryAfterSeconds: wait },
  });
}

/** The rights of a person that policy and definition leave to a client. */
export type AgentRights = {
  readonly policy: McpPolicy;
  readonly definition: AgentDefinition | undefined;
  /** The administrator's policy, before the definition narrows it. */
  readonly wholePolicy: McpPolicy;
};

/** Requires a valid grant and an allowed client. @throws AppError */
export async function accessUnder(
  { definitions }: Pick<AgentStepsDeps, 'definitions'>,
  { user, clientId }: AgentCaller,
  grantId: string,
  wholePolicy: McpPolicy,
): Promise<AgentRights> {
  const { isEnded, clientStatus, definition } = await definitions.standingOf(user, { clientId, grantId });
  if (isEnded) throw accessEnded;
  if (clientStatus !== 'allowed')
    throw clientStatus === 'waiting' ? clientWaits : new AppError('client_not_allowed');
  return { policy: policyUnder(wholePolicy, definition), definition, wholePolicy };
}

/** The caller of routes, with the remaining scopes and reach. */
export function agentUnder(
  caller: AgentCaller,
  { policy, definition }: Pick<AgentRights, 'policy' | 'definition'>,
): AgentCaller {
  return { ...caller, scopes: scopesUnder(policy, definition), agent: reachUnder(definition) };
}

export const accessEnded = new AppError('invalid_credential', {
  message: 'The access of this client was ended.',
  hint: 'Connect the client again. The person must allow it once more.',
});
const clientWaits = new AppError('client_not_allowed', {
  message: 'An administrator must allow this client first.',
});
