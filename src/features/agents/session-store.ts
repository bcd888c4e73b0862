import { type Sql, sql } from '../../platform/database/sql.ts';

/** The calls of one grant and client of a person. 30 idle minutes end a session. Times in milliseconds. */
export type AgentSession = {
  readonly id: string;
  readonly userId: string;
  readonly clientId: string;
  /** Empty: the identity provider names none. */
  readonly grantId: string;
  readonly startedAt: number;
  readonly lastCallAt: number;
  /** When someone ended the access of its grant. */
  readonly endedAt: number | null;
  readonly calls: number;
  /** The definition of the newest call, with its name at that time; null: there was none. */
  readonly definition: DefinitionName | null;
};

export type DefinitionName = { readonly id: string; readonly name: string };

export type AgentGrant = Pick<AgentSession, 'userId' | 'clientId' | 'grantId'>;

export const callSteps = ['upload_offered', 'upload_received', 'confirmation_asked'] as const;
/**
 * `upload_offered`: the call got an upload address. `upload_received`: the files arrived there. `confirmation_asked`: the
 * person must confirm first, and nothing changed.
 */
export type CallStep = (typeof callSteps)[number];

export type AgentCall = {
  /** Counts from 1 in its session. */
  readonly number: number;
  readonly at: number;
  readonly tool: string;
  /** Null: the tool answered. */
  readonly code: string | null;
  readonly durationMs: number;
  /** The approval that it requested or used; null: it needed none. */
  readonly approvalId: string | null;
  /** Null: the call is the whole of what the agent did. */
  readonly step: CallStep | null;
  /** The site or Environment that the call created or published, if its arguments name none. */
  readonly objectId: string | null;
  /** For a call that changed something, the request id of its audit events. */
  readonly requestId: string | null;
  readonly arguments: Readonly<Record<string, unknown>>;
};

export type NewCall = Omit<AgentCall, 'number'> & {
  readonly userId: string;
  readonly clientId: string;
  /** Empty: the identity provider names none. */
  readonly grantId: string;
  readonly definition: DefinitionName | null;
};

export type ClientUse = { readonly clientId: string; readonly people: number; readonly lastCallAt: number };

export type ToolUsage = { readonly tool: string; readonly people: number; readonly calls: number };

/** Where a call is recorded. */
export type CallPlace = { readonly sessionId: string; readonly number: number };

/** `userId` null: sessions of everyone. `id`: only this session. */
export type SessionFilter = { readonly userId: string | null; readonly id?: string | undefined };

/** The tables `agent_sessions`, `agent_calls` and `agent_ended_grants`. */
export type AgentSessionStore = {
  /** Adds a call to the open session, and resolves with its place; undefined: no session is open. */
  addToSession(call: NewCall, idleSince: number): Promise<CallPlace | undefined>;
  /** Adds a call to the open session, or to a new one. Needs a transaction. */
  add(call: NewCall, session: { readonly newId: string; readonly idleSince: number }): Promise<CallPlace>;
  /** Newest first. */
  list(filter: SessionFilter, page: number, limit: number): Promise<{ items: AgentSession[]; total: number }>;
  find(id: string): Promise<AgentSession | undefined>;
  /** The newest session of each grant of a person that was not ended, most recently used first. */
  grantsOf(userId: string, limit: number): Promise<AgentSession[]>;
  /** False: it had already ended. */
  endGrant(grant: AgentGrant, at: number): Promise<boolean>;
  /** In chronological order. One page costs the same for any number of calls. */
  calls(sessionId: string, page: number, limit: number): Promise<AgentCall[]>;
  /** Counts successful calls, except those that only asked for confirmation. */
  usageSince(at: number): Promise<ToolUsage[]>;
  /** Every client with a stored session. */
  clients(): Promise<ClientUse[]>;
  /** Removes sessions without a call since then. Resolves with how many were removed. */
  prune(before: number, limit: number): Promise<number>;
};

type SessionRow = Omit<AgentSession, 'definition'> & {
  readonly definitionId: string | null;
  readonly definitionName: string | null;
};

export function agentSessionStore(db: Sql): AgentSessionStore {
  const selected = sql`
    select s.id, s.user_id, s.client_id, s.grant_id, s.started_at, s.last_call_at, e.ended_at, s.calls,
      s.definition_id, s.definition_name
      from agent_sessions s left join agent_ended_grants e using (user_id, client_id, grant_id)`;
  const of = ({ userId, id }: SessionFilter) => sql`
    ${userId === null ? sql`true` : sql`user_id = ${userId}`} and ${id === undefined ? sql`true` : sql`id = ${id}`}`;

  /**
   * One statement, because every call runs it. Undefined: no session is open. At most one is: a session begins only
   * after the previous one was idle for too long.
   */
  async function addToSession(call: NewCall, idleSince: number): Promise<CallPlace | undefined> {
    const { userId, clientId, grantId } = call;
    const at = new Date(call.at);
    return await sql<CallPlace>`
      with session as (
        update agent_sessions set last_call_at = ${at}, calls = calls + 1,
               definition_id = ${call.definition?.id ?? null}, definition_name = ${call.definition?.name ?? null}
         where user_id = ${userId} and client_id = ${clientId} and grant_id = ${grantId}
           and last_call_at >= ${new Date(idleSince)}
        returning id, calls)
      insert into agent_calls (session_id, number, at, tool, code, duration_ms, approval_id, step, object_id, request_id, arguments)
      select id, calls, ${at}, ${call.tool}, ${call.code}, ${call.durationMs}, ${call.approvalId}, ${call.step},
             ${call.objectId}, ${call.requestId}, ${JSON.stringify(call.arguments)}::jsonb
        from session
      returning session_id, number`.first(db);
  }

  return {
    addToSession,
    async add(call, { newId, idleSince }) {
      const { userId, clientId, grantId } = call;
      const at = new Date(call.at);
      // Calls of one client may come at the same time; they belong to one session.
      const key = `${userId} ${clientId} ${grantId}`;
      await sql`select pg_advisory_xact_lock(7263023, hashtext(${key}))`.run(db);
      const underWay = await addToSession(call, idleSince);
      if (underWay !== undefined) return underWay;
      await sql`
        insert into agent_sessions (id, user_id, client_id, grant_id, started_at, last_call_at, calls)
        values (${newId}, ${userId}, ${clientId}, ${grantId}, ${at}, ${at}, 0)`.run(db);
      await addToSession(call, idleSince);
      return { sessionId: newId, number: 1 };
    },
    async list(filter, page, limit) {
      const rows = await sql<SessionRow>`
        ${selected} where ${of(filter)}
         order by last_call_at desc, id limit ${limit} offset ${(page - 1) * limit}`.all(db);
      const counted = await sql<{ total: number }>`
        select count(*) as total from agent_sessions where ${of(filter)}`.first(db);
      return { items: rows.map(toSession), total: counted?.total ?? 0 };
    },
    async find(id) {
      const row = await sql<SessionRow>`${selected} where s.id = ${id}`.first(db);
      return row && toSession(row);
    },
    async grantsOf(userId, limit) {
      const rows = await sql<SessionRow>`
        select * from (
          select distinct on (g.client_id, g.grant_id) g.* from (${selected} where s.user_id = ${userId}) g
           where g.ended_at is null
           order by g.client_id, g.grant_id, g.last_call_at desc, g.id) newest
         order by last_call_at desc, id limit ${limit}`.all(db);
      return rows.map(toSession);
    },
    async endGrant({ userId, clientId, grantId }, at) {
      const changed = await sql`
        insert into agent_ended_grants (user_id, client_id, grant_id, ended_at)
        values (${userId}, ${clientId}, ${grantId}, ${new Date(at)}) on conflict do nothing`.run(db);
      return changed === 1;
    },
    async calls(sessionId, page, limit) {
      return await sql<AgentCall>`
        select number, at, tool, code, duration_ms, approval_id, step, object_id, request_id, arguments from agent_calls
         where session_id = ${sessionId} and number > ${(page - 1) * limit} and number <= ${page * limit}
         order by number`.all(db);
    },
    async usageSince(at) {
      return await sql<ToolUsage>`
        select c.tool, count(distinct s.user_id) as people, count(*) as calls
          from agent_calls c join agent_sessions s on s.id = c.session_id
         where s.last_call_at >= ${new Date(at)} and c.at >= ${new Date(at)} and c.code is null
           and c.step is distinct from 'confirmation_asked'
         group by c.tool order by c.tool`.all(db);
    },
    async clients() {
      return await sql<ClientUse>`
        select client_id, count(distinct user_id) as people, max(last_call_at) as last_call_at
          from agent_sessions group by client_id`.all(db);
    },
    async prune(before, limit) {
      return await sql`
        delete from agent_sessions where id in (
          select id from agent_sessions where last_call_at < ${new Date(before)}
           order by last_call_at limit ${limit})`.run(db);
    },
  };
}

function toSession({ definitionId, definitionName, ...session }: SessionRow): AgentSession {
  const definition = definitionId === null ? null : { id: definitionId, name: definitionName ?? '' };
  return { ...session, definition };
}
