import { type Sql, sql } from '../../platform/database/sql.ts';

export const approvalStatuses = ['waiting', 'approved', 'refused', 'used'] as const;

/** A request of an agent to make one call. Times in milliseconds. */
export type AgentApproval = {
  readonly id: string;
  readonly userId: string;
  readonly clientId: string;
  /** The consent under which the agent asked. Null: it is not known. */
  readonly grantId: string | null;
  readonly tool: string;
  readonly status: (typeof approvalStatuses)[number];
  readonly requestedAt: number;
  readonly expiresAt: number;
};

export type StoredApproval = AgentApproval & {
  readonly digest: string;
  /** Null once the person decided. */
  readonly encryptedArguments: string | null;
};

type OfClient = { readonly userId: string; readonly clientId: string };

/** The table `agent_approvals`. Readers never see expired rows. */
export type AgentApprovalStore = {
  /** Makes other requests of this person and client wait until the transaction ends. */
  hold(client: OfClient): Promise<void>;
  /** The request for exactly this call, unless it was used. */
  findOpen(
    call: OfClient & { readonly tool: string; readonly digests: readonly string[] },
    now: number,
  ): Promise<AgentApproval | undefined>;
  /** Newest first. `clientId` null: of every client. */
  waiting(userId: string, clientId: string | null, now: number): Promise<AgentApproval[]>;
  /** Number of waiting requests of all people. */
  countWaiting(now: number): Promise<number>;
  insert(approval: StoredApproval): Promise<void>;
  find(id: string, now: number): Promise<StoredApproval | undefined>;
  /** Removes the arguments too. Undefined: the approval has expired, or its status has changed. */
  move(
    id: string,
    from: AgentApproval['status'],
    to: AgentApproval['status'],
    now: number,
  ): Promise<AgentApproval | undefined>;
  /** Resolves with how many were removed. */
  prune(now: number, limit: number): Promise<number>;
};

type Row = {
  id: string;
  user_id: string;
  client_id: string;
  grant_id: string | null;
  tool: string;
  digest: string;
  arguments: string | null;
  status: AgentApproval['status'];
  requested_at: Date;
  expires_at: Date;
};

export function agentApprovalStore(db: Sql): AgentApprovalStore {
  const columns = sql`id, user_id, client_id, grant_id, tool, digest, arguments, status, requested_at, expires_at`;
  const isAlive = (now: number) => sql`expires_at > ${new Date(now)}`;
  return {
    async hold({ userId, clientId }) {
      await sql`select pg_advisory_xact_lock(7263025, hashtext(${`${userId} ${clientId}`}))`.run(db);
    },
    async findOpen({ userId, clientId, tool, digests }, now) {
      const row = await sql<Row>`
        select ${columns} from agent_approvals
         where user_id = ${userId} and client_id = ${clientId} and tool = ${tool} and status <> 'used'
           and digest in (${sql.join(digests)}) and ${isAlive(now)}
         limit 1`.first(db);
      return row && toApproval(row);
    },
    async waiting(userId, clientId, now) {
      const ofClient = clientId === null ? sql`true` : sql`client_id = ${clientId}`;
      const rows = await sql<Row>`
        select ${columns} from agent_approvals
         where user_id = ${userId} and ${ofClient} and status = 'waiting' and ${isAlive(now)}
         order by requested_at desc, id limit 100`.all(db);
      return rows.map(toApproval);
    },
    async countWaiting(now) {
      const row = await sql<{ total: number }>`
        select count(*)::int as total from agent_approvals where status = 'waiting' and ${isAlive(now)}`.first(
        db,
      );
      return row?.total ?? 0;
    },
    async insert(approval) {
      const { id, userId, clientId, grantId, tool, digest, encryptedArguments, status } = approval;
      await sql`
        insert into agent_approvals (${columns})
        values (${id}, ${userId}, ${clientId}, ${grantId}, ${tool}, ${digest}, ${encryptedArguments}, ${status},
                ${new Date(approval.requestedAt)}, ${new Date(approval.expiresAt)})`.run(db);
    },
    async find(id, now) {
      const row = await sql<Row>`
        select ${columns} from agent_approvals where id = ${id} and ${isAlive(now)}`.first(db);
      return row && { ...toApproval(row), digest: row.digest, encryptedArguments: row.arguments };
    },
    async move(id, from, to, now) {
      const row = await sql<Row>`
        update agent_approvals set status = ${to}, arguments = null
         where id = ${id} and status = ${from} and ${isAlive(now)}
        returning ${columns}`.first(db);
      return row && toApproval(row);
    },
    async prune(now, limit) {
      return await sql`
        delete from agent_approvals where id in (
          select id from agent_approvals where expires_at <= ${new Date(now)} limit ${limit})`.run(db);
    },
  };
}

function toApproval(row: Row): AgentApproval {
  return {
    id: row.id,
    userId: row.user_id,
    clientId: row.client_id,
    grantId: row.grant_id,
    tool: row.tool,
    status: row.status,
    requestedAt: row.requested_at.getTime(),
    expiresAt: row.expires_at.getTime(),
  };
}
