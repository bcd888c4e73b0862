import { z } from 'zod';
import type { RoutePolicy } from '../../core/authorize.ts';
import { timestamp } from '../../core/clock.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { idParams, timestampSchema } from '../../platform/schemas.ts';
import { sessionUser } from '../keys/keys.ts';
import type { AgentAccess, GrantDefinitions } from './grant-definitions.ts';

/** Allowed without a role, like the sessions of the person's agents. */
const own: RoutePolicy = { callers: ['session'], identity: 'live' };
/** A definition can give an agent more tools. */
const widening: RoutePolicy = { callers: ['session'], role: 'user', identity: 'introspected' };

const accessSchema = z
  .strictObject({
    sessionId: z.string().describe('The newest session of this consent'),
    clientId: z.string().describe('The MCP client'),
    lastCallAt: timestampSchema,
    definition: z
      .strictObject({ id: z.string(), name: z.string() })
      .nullable()
      .describe('The definition of its agents. Null: they only read'),
    isPinned: z.boolean().describe('True: an administrator chose the definition for the client'),
  })
  .meta({ id: 'AgentAccess' });

const example = {
  sessionId: 'ags_3kTq9ZpW1xYb7LcD5mNa',
  clientId: 'postern-mcp',
  lastCallAt: '2026-01-01T09:02:00.000Z',
  definition: { id: 'agd_2mTq9ZpW1xYb7LcD5mNa', name: 'Review apps' },
  isPinned: false,
};

export function grantDefinitionRoutes(definitions: GrantDefinitions): Route[] {
  const tag = 'Agent sessions';
  return [
    defineRoute({
      method: 'GET',
      path: '/me/agents/access',
      operationId: 'listMyAgentAccess',
      tag,
      summary: 'List the consents that your agents use',
      description:
        'Each has the definition of its agents. Most recently used first, at most 100. Omits consents whose access was ended.',
      policy: own,
      success: { status: 200, data: z.strictObject({ access: z.array(accessSchema) }) },
      example: { data: { access: [example] } },
      async handle({ caller }) {
        return { data: { access: (await definitions.list(sessionUser(caller))).map(toShown) } };
      },
    }),
    defineRoute({
      method: 'PUT',
      path: '/me/agents/sessions/{id}/definition',
      operationId: 'chooseMyAgentDefinition',
      tag,
      summary: 'Choose the agent definition of one of your clients',
      description:
        'Chooses the definition for the consent behind this session. It takes effect within a second. Send the id of a definition that administrators offer, or null: then its agents only read. You cannot choose one for a client that has a definition from an administrator.',
      policy: widening,
      params: idParams('The id of a session', example.sessionId),
      body: z
        .strictObject({ definitionId: z.string().max(60).nullable() })
        .meta({ id: 'AgentDefinitionChoice' }),
      errors: ['not_found', 'state_conflict'],
      success: { status: 200, data: accessSchema },
      example: { body: { definitionId: example.definition.id }, data: example },
      async handle({ caller, auditContext, params: { id }, body: { definitionId } }) {
        const user = sessionUser(caller);
        return { data: toShown(await definitions.choose(auditContext, user, id, definitionId)) };
      },
    }),
  ];
}

function toShown({ session, definition, isPinned }: AgentAccess) {
  return {
    sessionId: session.id,
    clientId: session.clientId,
    lastCallAt: timestamp(session.lastCallAt),
    definition: definition === undefined ? null : { id: definition.id, name: definition.name },
    isPinned,
  };
}
