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

export function agentApprovalStore(db: Sql): AgentApprovalStore {
  const columns = sql`id, user_id, client_id, grant_id, tool, status, requested_at, expires_at`;
  const isAlive = (now: number) => sql`expires_at > ${new Date(now)}`;
  return {
    async hold({ userId, clientId }) {
      await sql`select pg_advisory_xact_lock(7263025, hashtext(${`${userId} ${clientId}`}))`.run(db);
    },
    async findOpen({ userId, clientId, tool, digests }, now) {
      return await sql<AgentApproval>`
        select ${columns} from agent_approvals
         where user_id = ${userId} and client_id = ${clientId} and tool = ${tool} and status <> 'used'
           and digest in (${sql.join(digests)}) and ${isAlive(now)}
         limit 1`.first(db);
    },
    async waiting(userId, clientId, now) {
      const ofClient = clientId === null ? sql`true` : sql`client_id = ${clientId}`;
      return await sql<AgentApproval>`
        select ${columns} from agent_approvals
         where user_id = ${userId} and ${ofClient} and status = 'waiting' and ${isAlive(now)}
         order by requested_at desc, id limit 100`.all(db);
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
        insert into agent_approvals (${columns}, digest, arguments)
        values (${id}, ${userId}, ${clientId}, ${grantId}, ${tool}, ${status}, ${new Date(approval.requestedAt)},
                ${new Date(approval.expiresAt)}, ${digest}, ${encryptedArguments})`.run(db);
    },
    async find(id, now) {
      return await sql<StoredApproval>`
        select ${columns}, digest, arguments as encrypted_arguments from agent_approvals
         where id = ${id} and ${isAlive(now)}`.first(db);
    },
    async move(id, from, to, now) {
      return await sql<AgentApproval>`
        update agent_approvals set status = ${to}, arguments = null
         where id = ${id} and status = ${from} and ${isAlive(now)}
        returning ${columns}`.first(db);
    },
    async prune(now, limit) {
      return await sql`
        delete from agent_approvals where id in (
          select id from agent_approvals where expires_at <= ${new Date(now)} limit ${limit})`.run(db);
    },
  };
}
