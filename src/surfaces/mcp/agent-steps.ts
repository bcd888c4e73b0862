import type { RoutePolicy } from '../../core/authorize.ts';
import { AppError } from '../../core/errors.ts';
import { mcpScope } from '../../core/scopes.ts';
import type { AgentSessions } from '../../features/agents/agents.ts';
import { type AgentDefinition, policyUnder } from '../../features/agents/definition.ts';
import type { McpClients } from '../../features/agents/mcp-clients.ts';
import type { McpPolicy } from '../../features/agents/mcp-policy.ts';
import type { AgentGrant } from '../../features/agents/session-store.ts';
import { type RateLimiter, retryAfterSeconds } from '../../features/rate-limit/rate-limit.ts';

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
  readonly definitionOf: (clientId: string) => Promise<AgentDefinition | undefined>;
  readonly limiter: Pick<RateLimiter, 'spend'>;
  readonly sessions: Pick<AgentSessions, 'isEnded'>;
  readonly clients: Pick<McpClients, 'statusOf'>;
};

/** Off, an address answers as if it did not exist. @throws AppError not_found */
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
  // A name of its own, so that the budget is independent of those of keys and of changes.
  const spend = await limiter.spend({ owner: `mcp:${userId}`, key: '', limit: perMinute });
  if (spend.allowed) return;
  const wait = retryAfterSeconds(spend);
  throw new AppError('rate_limited', {
    message: `Your agents may make ${perMinute} requests in any 60 seconds.`,
    retryAfterSeconds: wait,
    details: { limit: perMinute, retryAfterSeconds: wait },
  });
}

/** The policy for the client, while the grant holds and the client is allowed. @throws AppError */
export async function policyForClient(
  { sessions, clients, definitionOf }: Pick<AgentStepsDeps, 'sessions' | 'clients' | 'definitionOf'>,
  grant: AgentGrant,
  policy: McpPolicy,
): Promise<McpPolicy> {
  const [isEnded, status, definition] = await Promise.all([
    sessions.isEnded(grant),
    clients.statusOf(grant.clientId),
    definitionOf(grant.clientId),
  ]);
  if (isEnded) throw accessEnded;
  if (status !== 'allowed') throw status === 'waiting' ? clientWaits : new AppError('client_not_allowed');
  return policyUnder(policy, definition);
}

/** Policy and definition decide what agents may do; the consent of a person covers all of it. */
export function scopesUnder({ allowChanges }: McpPolicy): readonly string[] {
  return allowChanges ? ['env:write', 'sites:write', 'repos:read'] : ['env:read', 'sites:read', 'repos:read'];
}

export const accessEnded = new AppError('invalid_credential', {
  message: 'The access of this client was ended.',
  hint: 'Connect the client again. The person must allow it once more.',
});
const clientWaits = new AppError('client_not_allowed', {
  message: 'An administrator must allow this client first.',
});
