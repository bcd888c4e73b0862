import { sql } from 'kysely';
import type { Sql } from '../../platform/database/database.ts';

/** The calls of one grant and client of a person, until 30 idle minutes end it. Times in milliseconds. */
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
};

export type AgentGrant = Pick<AgentSession, 'userId' | 'clientId' | 'grantId'>;

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
  readonly arguments: Readonly<Record<string, unknown>>;
};

export type NewCall = Omit<AgentCall, 'number'> & {
  readonly userId: string;
  readonly clientId: string;
  /** Empty: the identity provider names none. */
  readonly grantId: string;
};

export type ClientUse = { readonly clientId: string; readonly people: number; readonly lastCallAt: number };

export type ToolUsage = { readonly tool: string; readonly people: number; readonly calls: number };

/** The tables `agent_sessions`, `agent_calls` and `agent_ended_grants`. */
export type AgentSessionStore = {
  /** Adds a call to the session that is under way, or to a new one, and resolves with its id. Needs a transaction. */
  add(call: NewCall, session: { readonly newId: string; readonly idleSince: number }): Promise<string>;
  /** Newest first; `userId` null: of everyone. */
  list(userId: string | null, page: number, limit: number): Promise<{ items: AgentSession[]; total: number }>;
  find(id: string): Promise<AgentSession | undefined>;
  /** The newest session of each grant of a person that was not ended, the one used last first. */
  grantsOf(userId: string, limit: number): Promise<AgentSession[]>;
  /** False: it was ended already. */
  endGrant(grant: AgentGrant, at: number): Promise<boolean>;
  isEnded(grant: AgentGrant): Promise<boolean>;
  /** In the order of their time. One page costs the same however many calls there are. */
  calls(sessionId: string, page: number, limit: number): Promise<AgentCall[]>;
  /** Of calls that were answered. */
  usageSince(at: number): Promise<ToolUsage[]>;
  /** Every client of a session that is kept. */
  clients(): Promise<ClientUse[]>;
  /** Removes sessions without a call since then. Resolves with how many were removed. */
  prune(before: number, limit: number): Promise<number>;
};

type SessionRow = {
  id: string;
  user_id: string;
  client_id: string;
  grant_id: string;
  started_at: Date;
  last_call_at: Date;
  ended_at: Date | null;
  calls: number;
};

export function agentSessionStore(db: Sql): AgentSessionStore {
  const selected = sql`
    select s.id, s.user_id, s.client_id, s.grant_id, s.started_at, s.last_call_at, e.ended_at, s.calls
      from agent_sessions s left join agent_ended_grants e using (user_id, client_id, grant_id)`;
  const of = (userId: string | null) => (userId === null ? sql`true` : sql`user_id = ${userId}`);

  /** Resolves with the session and the number of this call in it. */
  async function continueSession(call: NewCall, { newId, idleSince }: { newId: string; idleSince: number }) {
    const { userId, clientId, grantId } = call;
    const at = new Date(call.at);
    // Calls of one client may come at the same time; they belong to one session.
    await sql`select pg_advisory_xact_lock(7263023, hashtext(${`${userId} ${clientId} ${grantId}`}))`.execute(
      db,
    );
    const { rows } = await sql<{ id: string; calls: number }>`
      update agent_sessions set last_call_at = ${at}, calls = calls + 1
       where id = (select id from agent_sessions
                    where user_id = ${userId} and client_id = ${clientId} and grant_id = ${grantId}
                      and last_call_at >= ${new Date(idleSince)}
                    order by last_call_at desc limit 1)
      returning id, calls`.execute(db);
    if (rows[0] !== undefined) return rows[0];
    await sql`
      insert into agent_sessions (id, user_id, client_id, grant_id, started_at, last_call_at, calls)
      values (${newId}, ${userId}, ${clientId}, ${grantId}, ${at}, ${at}, 1)`.execute(db);
    return { id: newId, calls: 1 };
  }

  return {
    async add(call, session) {
      const { id, calls } = await continueSession(call, session);
      await sql`
        insert into agent_calls (session_id, number, at, tool, code, duration_ms, approval_id, arguments)
        values (${id}, ${calls}, ${new Date(call.at)}, ${call.tool}, ${call.code}, ${call.durationMs},
                ${call.approvalId}, ${JSON.stringify(call.arguments)}::jsonb)`.execute(db);
      return id;
    },
    async list(userId, page, limit) {
      const { rows } = await sql<SessionRow>`
        ${selected} where ${of(userId)}
         order by last_call_at desc, id limit ${limit} offset ${(page - 1) * limit}`.execute(db);
      const counted = await sql<{ total: string }>`
        select count(*) as total from agent_sessions where ${of(userId)}`.execute(db);
      return { items: rows.map(toSession), total: Number(counted.rows[0]?.total ?? 0) };
    },
    async find(id) {
      const { rows } = await sql<SessionRow>`${selected} where s.id = ${id}`.execute(db);
      return rows[0] && toSession(rows[0]);
    },
    async grantsOf(userId, limit) {
      const { rows } = await sql<SessionRow>`
        select * from (
          select distinct on (g.client_id, g.grant_id) g.* from (${selected} where s.user_id = ${userId}) g
           where g.ended_at is null
           order by g.client_id, g.grant_id, g.last_call_at desc, g.id) newest
         order by last_call_at desc, id limit ${limit}`.execute(db);
      return rows.map(toSession);
    },
    async endGrant({ userId, clientId, grantId }, at) {
      const { numAffectedRows } = await sql`
        insert into agent_ended_grants (user_id, client_id, grant_id, ended_at)
        values (${userId}, ${clientId}, ${grantId}, ${new Date(at)}) on conflict do nothing`.execute(db);
      return numAffectedRows === 1n;
    },
    async isEnded({ userId, clientId, grantId }) {
      const { rows } = await sql`
        select 1 from agent_ended_grants
         where user_id = ${userId} and client_id = ${clientId} and grant_id = ${grantId}`.execute(db);
      return rows.length > 0;
    },
    async calls(sessionId, page, limit) {
      const { rows } = await sql<{
        number: number;
        at: Date;
        tool: string;
        code: string | null;
        duration_ms: number;
        approval_id: string | null;
        arguments: Record<string, unknown>;
      }>`
        select number, at, tool, code, duration_ms, approval_id, arguments from agent_calls
         where session_id = ${sessionId} and number > ${(page - 1) * limit} and number <= ${page * limit}
         order by number`.execute(db);
      return rows.map(({ at, duration_ms: durationMs, approval_id: approvalId, ...row }) => ({
        ...row,
        at: at.getTime(),
        durationMs,
        approvalId,
      }));
    },
    async usageSince(at) {
      const { rows } = await sql<{ tool: string; people: string; calls: string }>`
        select c.tool, count(distinct s.user_id) as people, count(*) as calls
          from agent_calls c join agent_sessions s on s.id = c.session_id
         where s.last_call_at >= ${new Date(at)} and c.at >= ${new Date(at)} and c.code is null
         group by c.tool order by c.tool`.execute(db);
      return rows.map(({ tool, people, calls }) => ({ tool, people: Number(people), calls: Number(calls) }));
    },
    async clients() {
      const { rows } = await sql<{ client_id: string; people: string; last_call_at: Date }>`
        select client_id, count(distinct user_id) as people, max(last_call_at) as last_call_at
          from agent_sessions group by client_id`.execute(db);
      return rows.map(({ client_id: clientId, people, last_call_at: at }) => ({
        clientId,
        people: Number(people),
        lastCallAt: at.getTime(),
      }));
    },
    async prune(before, limit) {
      const { numAffectedRows } = await sql`
        delete from agent_sessions where id in (
          select id from agent_sessions where last_call_at < ${new Date(before)}
           order by last_call_at limit ${limit})`.execute(db);
      return Number(numAffectedRows ?? 0);
    },
  };
}

function toSession(row: SessionRow): AgentSession {
  return {
    id: row.id,
    userId: row.user_id,
    clientId: row.client_id,
    grantId: row.grant_id,
    startedAt: row.started_at.getTime(),
    lastCallAt: row.last_call_at.getTime(),
    endedAt: row.ended_at?.getTime() ?? null,
    calls: row.calls,
  };
}
