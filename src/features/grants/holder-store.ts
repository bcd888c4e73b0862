import { type Sql, sql } from '../../platform/database/sql.ts';
import { inBatches } from '../../platform/in-batches.ts';

/** A grant of an Environment that a browser may hold now. It never contains the grant's secret. */
export type HeldGrant = {
  readonly id: string;
  /** Its name in the key-value store. */
  readonly storeKey: string;
  readonly environmentId: string;
  readonly userId: string;
  readonly sessionId: string;
  /** Milliseconds. */
  readonly endsAt: number;
};

/** SQL of the grants of Environments. */
export type HolderStore = {
  insert(grant: HeldGrant): Promise<void>;
  ofUser(userId: string, now: number): Promise<HeldGrant[]>;
  ofSession(sessionId: string, now: number): Promise<HeldGrant[]>;
  /** People and sessions with a grant. */
  holders(now: number): Promise<{ readonly userId: string; readonly sessionId: string }[]>;
  remove(ids: readonly string[]): Promise<void>;
  prune(endedBefore: number): Promise<void>;
};

const columns = sql`id, store_key, environment_id, user_id, session_id, ends_at`;

export function holderStore(db: Sql): HolderStore {
  return {
    async insert({ id, storeKey, environmentId, userId, sessionId, endsAt }) {
      await sql`
        insert into environment_grants (id, store_key, environment_id, user_id, session_id, ends_at)
        values (${id}, ${storeKey}, ${environmentId}, ${userId}, ${sessionId}, ${new Date(endsAt)})`.run(db);
    },
    async ofUser(userId, now) {
      return await sql<HeldGrant>`
        select ${columns} from environment_grants
         where user_id = ${userId} and ends_at > ${new Date(now)}`.all(db);
    },
    async ofSession(sessionId, now) {
      return await sql<HeldGrant>`
        select ${columns} from environment_grants
         where session_id = ${sessionId} and ends_at > ${new Date(now)}`.all(db);
    },
    async holders(now) {
      return await sql<{ userId: string; sessionId: string }>`
        select distinct user_id, session_id from environment_grants where ends_at > ${new Date(now)}`.all(db);
    },
    async remove(ids) {
      await sql`
        delete from environment_grants
         where id in (select jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb))`.run(db);
    },
    async prune(endedBefore) {
      await inBatches(5_000, async (limit) => {
        return await sql`
          delete from environment_grants where id in (
            select id from environment_grants where ends_at < ${new Date(endedBefore)}
             order by ends_at limit ${limit})`.run(db);
      });
    },
  };
}
