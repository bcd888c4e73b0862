import { z } from 'zod';
import { administratorSession, type RoutePolicy } from '../../core/authorize.ts';
import { timestamp, timestampOrNull } from '../../core/clock.ts';
import { defineRoute, pagePagination, type Route } from '../../platform/http.ts';
import { idParams, pageQuery, plainText, timestampSchema } from '../../platform/schemas.ts';
import { ownId } from '../people/people.ts';
import type { AgentCall, AgentSession, AgentSessions } from './agents.ts';
import { callResults, resultOf } from './call-result.ts';
import { callSteps } from './session-store.ts';
import { charactersOf } from './hidden-value.ts';

/** Allowed without a role: the sessions belong to the person's own account. */
const own: RoutePolicy = { callers: ['session'], identity: 'live' };
/** Removing access requires a weaker identity check than giving it (decision 0008). */
const endingAnyones: RoutePolicy = { callers: ['session'], role: 'admin', identity: 'live' };
const ending =
  'Within a second, Postern refuses every token of the consent behind these calls. The client must ask the person again. With Keycloak, the consent there stays.';
const listQuery = z.strictObject({
  ...pageQuery,
  id: plainText(100).optional().describe('Only the session with this id'),
});
const sessionParams = idParams('The id of a session', 'ags_3kTq9ZpW1xYb7LcD5mNa');

const sessionSchema = z
  .strictObject({
    id: z.string(),
    clientId: z.string().describe('The MCP client'),
    startedAt: timestampSchema,
    lastCallAt: timestampSchema,
    calls: z.number().int(),
    isOpen: z.boolean().describe('False: 30 minutes passed without a call, or it was ended'),
    endedAt: timestampSchema.nullable().describe('When the access of its client was ended'),
    definition: z
      .strictObject({ id: z.string(), name: z.string() })
      .nullable()
      .describe(
        'The agent definition of its newest call, with its name at that time. Null: the agent only reads',
      ),
  })
  .meta({ id: 'AgentSession' });

const anyoneSessionSchema = sessionSchema
  .extend({ user: z.strictObject({ id: z.string(), name: z.string().nullable() }) })
  .meta({ id: 'AgentSessionOfAnyone' });

const call = {
  number: z.number().int().describe('From 1'),
  at: timestampSchema,
  tool: z.string(),
  code: z.string().nullable().describe('Null: the tool answered. Otherwise the code of its refusal'),
  result: z
    .enum(callResults)
    .describe(
      '`asked`: a person must answer first. `failed`: the server, or one that it needs, could not answer',
    ),
  durationMs: z.number().int(),
  approvalId: z
    .string()
    .nullable()
    .describe('The approval that the call requested or used. Null: it needed none'),
  objectId: z
    .string()
    .nullable()
    .describe(
      'Id of the site or Environment that the call created or published. Null: the arguments name it, or there is none',
    ),
  step: z
    .enum(callSteps)
    .nullable()
    .describe(
      '`upload_offered`: the agent got an address to send files to. `upload_received`: the files arrived. `confirmation_asked`: the person must confirm first, and nothing changed. Null: none of them',
    ),
};

const ownCallSchema = z
  .strictObject({
    ...call,
    arguments: z
      .record(z.string(), z.unknown())
      .describe('The arguments that the agent sent. Sizes replace contents of files and values of variables'),
  })
  .meta({ id: 'AgentCall' });

const reviewedCallSchema = z
  .strictObject({
    ...call,
    requestId: z
      .string()
      .nullable()
      .describe('For a call that changed something, the request id of its events in the audit log'),
    arguments: z.array(
      z.strictObject({
        name: z.string(),
        characters: z.number().int().describe('Number of characters of its value as JSON'),
      }),
    ),
  })
  .meta({ id: 'ReviewedAgentCall' });

const exampleSession = {
  id: 'ags_3kTq9ZpW1xYb7LcD5mNa',
  clientId: 'postern-mcp',
  startedAt: '2026-01-01T09:00:00.000Z',
  lastCallAt: '2026-01-01T09:02:00.000Z',
  calls: 1,
  isOpen: true,
  endedAt: null,
  definition: { id: 'agd_2mTq9ZpW1xYb7LcD5mNa', name: 'Review apps' },
};
const exampleEnded = { ...exampleSession, isOpen: false, endedAt: '2026-01-01T09:05:00.000Z' };
const exampleCall = {
  number: 1,
  at: '2026-01-01T09:00:00.000Z',
  tool: 'get_site',
  code: null,
  result: 'done' as const,
  durationMs: 12,
  approvalId: null,
  objectId: null,
  step: null,
};
const exampleUser = { id: 'usr_8fQ2mV6sT0aXk4RjB1Zc', name: 'Ada' };

export function agentSessionRoutes({
  sessions,
  names,
}: {
  readonly sessions: AgentSessions;
  readonly names: (userIds: readonly string[]) => Promise<ReadonlyMap<string, string>>;
}): Route[] {
  const tag = 'Agent sessions';
  const toShown = (session: AgentSession) => ({
    id: session.id,
    clientId: session.clientId,
    startedAt: timestamp(session.startedAt),
    lastCallAt: timestamp(session.lastCallAt),
    calls: session.calls,
    isOpen: sessions.isOpen(session),
    endedAt: timestampOrNull(session.endedAt),
    definition: session.definition,
  });
  const withPerson = (session: AgentSession, known: ReadonlyMap<string, string>) => ({
    ...toShown(session),
    user: { id: session.userId, name: known.get(session.userId) ?? null },
  });

  return [
    defineRoute({
      method: 'GET',
      path: '/me/agents/sessions',
      operationId: 'listMyAgentSessions',
      tag,
      summary: 'List the sessions of your agents',
      description: 'Newest first. A session is the calls of one client, until 30 minutes pass without one.',
      policy: own,
      query: listQuery,
      success: { status: 200, data: z.array(sessionSchema), pagination: 'page' },
      example: { data: [exampleSession] },
      async handle({ caller, query: { page, limit, id } }) {
        const { items, total } = await sessions.list({ userId: ownId(caller), id }, page, limit);
        return { data: items.map(toShown), pagination: pagePagination(page, limit, total) };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/me/agents/sessions/{id}',
      operationId: 'readMyAgentSession',
      tag,
      summary: 'Read the calls of one of your sessions',
      description: 'In chronological order.',
      policy: own,
      params: sessionParams,
      query: z.strictObject(pageQuery),
      errors: ['not_found'],
      success: { status: 200, data: z.array(ownCallSchema), pagination: 'page' },
      example: { data: [{ ...exampleCall, arguments: { siteId: 'k3v9x0q2m7' } }] },
      async handle({ caller, params, query: { page, limit } }) {
        const { session, calls } = await sessions.read(params.id, ownId(caller), page, limit);
        const data = calls.map((one) => ({ ...toShownCall(one), arguments: { ...one.arguments } }));
        return { data, pagination: pagePagination(page, limit, session.calls) };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/me/agents/sessions/{id}/end',
      operationId: 'endMyAgentSession',
      tag,
      summary: 'End a session of your agent',
      description: ending,
      policy: own,
      params: sessionParams,
      errors: ['not_found', 'state_conflict'],
      success: { status: 200, data: sessionSchema },
      example: { data: exampleEnded },
      async handle({ caller, auditContext, params: { id } }) {
        return { data: toShown(await sessions.end(auditContext, id, ownId(caller))) };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/agents/sessions',
      operationId: 'listAgentSessions',
      tag,
      summary: 'List the sessions of all agents',
      description: 'Newest first, for everyone.',
      policy: administratorSession,
      query: listQuery,
      success: { status: 200, data: z.array(anyoneSessionSchema), pagination: 'page' },
      example: { data: [{ ...exampleSession, user: exampleUser }] },
      async handle({ query: { page, limit, id } }) {
        const { items, total } = await sessions.list({ userId: null, id }, page, limit);
        const known = await names(items.map(({ userId }) => userId));
        const data = items.map((one) => withPerson(one, known));
        return { data, pagination: pagePagination(page, limit, total) };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/agents/sessions/{id}',
      operationId: 'readAgentSession',
      tag,
      summary: 'Read the calls of a session',
      description:
        'Names and sizes of arguments, never their values: they may name what only the person sees.',
      policy: administratorSession,
      params: sessionParams,
      query: z.strictObject(pageQuery),
      errors: ['not_found'],
      success: { status: 200, data: z.array(reviewedCallSchema), pagination: 'page' },
      example: {
        data: [{ ...exampleCall, requestId: null, arguments: [{ name: 'siteId', characters: 12 }] }],
      },
      async handle({ params, query: { page, limit } }) {
        const { session, calls } = await sessions.read(params.id, null, page, limit);
        const data = calls.map((one) => ({
          ...toShownCall(one),
          requestId: one.requestId,
          arguments: sizesOf(one),
        }));
        return { data, pagination: pagePagination(page, limit, session.calls) };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/agents/sessions/{id}/end',
      operationId: 'endAgentSession',
      tag,
      summary: 'End a session of anyone’s agent',
      description: ending,
      policy: endingAnyones,
      params: sessionParams,
      errors: ['not_found', 'state_conflict'],
      success: { status: 200, data: anyoneSessionSchema },
      example: { data: { ...exampleEnded, user: exampleUser } },
      async handle({ auditContext, params: { id } }) {
        const session = await sessions.end(auditContext, id, null);
        const known = await names([session.userId]);
        return { data: withPerson(session, known) };
      },
    }),
  ];
}

function toShownCall({ number, at, tool, code, durationMs, approvalId, step, objectId }: AgentCall) {
  const result = resultOf(code, step);
  return { number, at: timestamp(at), tool, code, result, durationMs, approvalId, step, objectId };
}

function sizesOf({ arguments: all }: AgentCall) {
  return Object.entries(all).map(([name, value]) => ({ name, characters: charactersOf(value) }));
}
