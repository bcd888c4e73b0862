import { z } from 'zod';
import { administratorSession, type RoutePolicy } from '../../../core/authorize.ts';
import type { Caller } from '../../../core/caller.ts';
import { timestamp, timestampOrNull } from '../../../core/clock.ts';
import { defineRoute, type Route } from '../../../platform/http.ts';
import { idParams, timestampSchema } from '../../../platform/schemas.ts';
import { ownId } from '../own-id.ts';
import type { OwnSessions } from './own-sessions.ts';
import type { ListedSession } from './session-store.ts';

/** Taking rights away requires a weaker identity check than granting them (decision 0008). */
const ending: RoutePolicy = {
  callers: ['session'],
  role: 'admin',
  identity: 'live',
  exemptFromChangeLimit: true,
};
/** A person finds and ends a foreign session also while the identity provider is unavailable. */
const own: RoutePolicy = { callers: ['session'], identity: 'none', exemptFromChangeLimit: true };

const sessionSchema = z
  .strictObject({
    id: z.string(),
    isCurrent: z.boolean().describe('Whether this request came with it'),
    agent: z.string().nullable().describe('The User-Agent of the browser at the sign-in'),
    address: z.string().nullable().describe('The network address of the browser at the sign-in'),
    createdAt: timestampSchema,
    lastSeenAt: timestampSchema.describe('When it was last used, up to a minute late'),
    authenticatedAt: timestampSchema
      .nullable()
      .describe('When the person last proved who they are; null = the identity provider did not say'),
    methods: z
      .array(z.string())
      .nullable()
      .describe('How the person signed in (`amr`, RFC 8176); null = the identity provider did not say'),
  })
  .meta({ id: 'BrowserSession' });

const endedSchema = z.strictObject({ ended: z.number().int() }).meta({ id: 'EndedSessions' });
const idSchema = z.strictObject({ id: z.string() });

const example = {
  id: 'ses_Kp3s9QeR1tYv5Uw7Xz0A',
  isCurrent: true,
  agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  address: '192.0.2.7',
  createdAt: '2026-01-02T09:00:00.000Z',
  lastSeenAt: '2026-01-02T09:30:00.000Z',
  authenticatedAt: '2026-01-02T09:00:00.000Z',
  methods: ['pwd'],
};

const person = idParams('The person’s id, as in lists', 'usr_4fKq0Zb1Xw8TnLr2Vd6M');
const whatStays = 'API keys, connected clients and links to private sites that are open stay as they are.';

/** The routes of browser sessions, of any identity provider. */
export function sessionRoutes({ ownSessions }: { ownSessions: OwnSessions }): Route[] {
  const tag = 'Browser sessions';
  const list = { status: 200, data: sessionSchema.array() } as const;
  return [
    defineRoute({
      method: 'GET',
      path: '/me/sessions',
      operationId: 'listMySessions',
      tag,
      summary: 'List the browsers in which I am signed in',
      description: 'The 100 that were used last.',
      policy: own,
      success: list,
      example: { data: [example] },
      handle: async ({ caller }) => ({
        data: (await ownSessions.list(ownId(caller))).map((one) => toSession(one, caller)),
      }),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/me/sessions',
      operationId: 'endMyOtherSessions',
      tag,
      summary: 'Sign out everywhere else',
      description: `Ends all sessions but the one of this request, and the sessions of the identity provider behind them. ${whatStays}`,
      policy: own,
      success: { status: 200, data: endedSchema },
      example: { data: { ended: 2 } },
      async handle({ auditContext, caller }) {
        const ended = await ownSessions.endAll(auditContext, 'person', ownId(caller), currentOf(caller));
        return { data: { ended } };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/me/sessions/{id}',
      operationId: 'endMySession',
      tag,
      summary: 'Sign out in one browser',
      description: `Ends the session, and the session of the identity provider behind it. ${whatStays}`,
      policy: own,
      params: idParams('The session’s id, as in lists', example.id),
      success: { status: 200, data: idSchema },
      errors: ['not_found'],
      example: { data: { id: example.id } },
      async handle({ auditContext, caller, params: { id } }) {
        await ownSessions.end(auditContext, 'person', ownId(caller), id);
        return { data: { id } };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/users/{id}/sessions',
      operationId: 'listUserSessions',
      tag,
      summary: 'List the browsers in which a person is signed in',
      description: 'The 100 that were used last.',
      policy: administratorSession,
      params: person,
      success: list,
      errors: ['not_found'],
      example: { data: [{ ...example, isCurrent: false }] },
      handle: async ({ caller, params: { id } }) => ({
        data: (await ownSessions.list(id)).map((one) => toSession(one, caller)),
      }),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/users/{id}/sessions',
      operationId: 'endUserSessions',
      tag,
      summary: 'Sign a person out in every browser',
      description: `Ends all sessions of the person, and the sessions of the identity provider behind them. ${whatStays}`,
      policy: ending,
      params: person,
      success: { status: 200, data: endedSchema },
      errors: ['not_found'],
      example: { data: { ended: 3 } },
      handle: async ({ auditContext, params: { id } }) => ({
        data: { ended: await ownSessions.endAll(auditContext, 'administrator', id, null) },
      }),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/users/{id}/sessions/{session}',
      operationId: 'endUserSession',
      tag,
      summary: 'Sign a person out in one browser',
      description: `Ends the session, and the session of the identity provider behind it. ${whatStays}`,
      policy: ending,
      params: person.extend({
        session: z.string().meta({ description: 'The session’s id, as in lists', examples: [example.id] }),
      }),
      success: { status: 200, data: idSchema },
      errors: ['not_found'],
      example: { data: { id: example.id } },
      async handle({ auditContext, params: { id, session } }) {
        await ownSessions.end(auditContext, 'administrator', id, session);
        return { data: { id: session } };
      },
    }),
  ];
}

function currentOf(caller: Caller): string | null {
  return caller.kind === 'session' ? caller.sessionId : null;
}

function toSession({ createdAt, lastSeenAt, authenticatedAt, ...session }: ListedSession, caller: Caller) {
  return {
    ...session,
    isCurrent: session.id === currentOf(caller),
    createdAt: timestamp(createdAt),
    lastSeenAt: timestamp(lastSeenAt),
    authenticatedAt: timestampOrNull(authenticatedAt),
  };
}
