import type { Clock } from '../../core/clock.ts';
import { type Sql, sql, type Statement } from '../../platform/database/sql.ts';
import { toDate } from '../../platform/database/values.ts';
import { inBatches } from '../../platform/in-batches.ts';

/** One record of oidc-provider as stored: ids hashed, payload encrypted. */
export type ProviderRecord = {
  readonly idHash: string;
  readonly payload: string;
  readonly grantId: string | null;
  readonly consumedAt: number | null;
  readonly createdAt: number;
};

export type NewProviderRecord = {
  model: string;
  idHash: string;
  payload: string;
  grantId: string | null;
  uid: string | null;
  userCodeHash: string | null;
  accountId: string | null;
  clientId: string | null;
  /** Milliseconds; null = never. */
  expiresAt: number | null;
};

/** A client that acts for a person beyond their browser session. */
export type Connection = { readonly clientId: string; readonly accountId: string };

/** The table `oidc_records`. Never returns expired rows, even before the sweep removes them. */
export type RecordStore = {
  upsert(record: NewProviderRecord): Promise<void>;
  find(model: string, idHash: string): Promise<ProviderRecord | undefined>;
  findByUid(model: string, uid: string): Promise<ProviderRecord | undefined>;
  findByUserCode(model: string, userCodeHash: string): Promise<ProviderRecord | undefined>;
  /** Compare-and-set: false when the record was already consumed or removed. */
  consume(model: string, idHash: string): Promise<boolean>;
  remove(model: string, idHash: string): Promise<void>;
  /**
   * Ends a grant and all its tokens. Resolves with the client and account that it connected when it had a refresh token,
   * used or not. If several calls run at once, only one gets the connection.
   */
  endGrant(grantId: string): Promise<Connection | undefined>;
  /** Locks a grant against concurrent use or removal until the transaction ends. False when it no longer exists. */
  holdGrant(grantId: string): Promise<boolean>;
  /** Grants of one person that outlive their browser session, with the time a token was last issued. */
  listGrants(
    accountId: string,
  ): Promise<
    { grantId: string; clientId: string; payload: string; createdAt: number; lastUsedAt: number | null }[]
  >;
  /** Every grant of one person, also one whose client is just exchanging its refresh token. */
  liveGrants(accountId: string): Promise<{ grantId: string; clientId: string }[]>;
  /** The provider's own browser sessions of one person; offline grants stay. */
  removeSessionsOf(accountId: string): Promise<void>;
  /** Grants, tokens and provider sessions of one person. */
  removeAllOf(accountId: string): Promise<void>;
  /** Clients that registered themselves and that no person has allowed anything. */
  countUnallowedClients(): Promise<number>;
  /** Clients with a live refresh token. */
  clientsInUse(): Promise<string[]>;
  /** Resolves with how many were removed. */
  removeExpired(limit: number): Promise<number>;
  /** Live records whose payload does not begin with `mark`, in the order of their hashes, after `after`. */
  underOtherKeys(
    mark: string,
    after: string,
    limit: number,
  ): Promise<{ model: string; idHash: string; payload: string }[]>;
  /** Changes nothing when the payload has changed meanwhile. */
  replaceEncrypted(
    record: { model: string; idHash: string; payload: string },
    payload: string,
  ): Promise<void>;
};

export function recordStore(db: Sql, clock: Clock): RecordStore {
  const columns = sql`id_hash, payload, grant_id, consumed_at, created_at`;
  const live = () => sql`(expires_at is null or expires_at > ${new Date(clock.now())})`;
  const one = async (where: Statement) => {
    return await sql<ProviderRecord>`
      select ${columns} from oidc_records where ${where} and ${live()}
       order by created_at desc limit 1`.first(db);
  };
  /**
   * Takes one advisory lock for each grant, in one order, before any row is changed. Ending a grant deletes many rows, so
   * two transactions could otherwise deadlock.
   */
  async function lockGrants(grants: Statement): Promise<void> {
    await sql`select pg_advisory_xact_lock(7263011, hashtext(g.grant_id)) from (${grants}) g`.run(db);
  }

  return {
    async upsert(record) {
      const expires = toDate(record.expiresAt);
      await sql`
        insert into oidc_records (model, id_hash, payload, grant_id, uid, user_code_hash, account_id, client_id,
                                  created_at, expires_at)
        values (${record.model}, ${record.idHash}, ${record.payload}, ${record.grantId}, ${record.uid},
                ${record.userCodeHash}, ${record.accountId}, ${record.clientId}, ${new Date(clock.now())}, ${expires})
        on conflict (model, id_hash) do update
          set payload = excluded.payload, grant_id = excluded.grant_id, uid = excluded.uid,
              user_code_hash = excluded.user_code_hash, account_id = excluded.account_id,
              client_id = excluded.client_id, expires_at = excluded.expires_at`.run(db);
    },
    find: (model, idHash) => one(sql`model = ${model} and id_hash = ${idHash}`),
    findByUid: (model, uid) => one(sql`model = ${model} and uid = ${uid}`),
    findByUserCode: (model, userCodeHash) => one(sql`model = ${model} and user_code_hash = ${userCodeHash}`),
    async consume(model, idHash) {
      const changed = await sql`
        update oidc_records set consumed_at = ${new Date(clock.now())}
         where model = ${model} and id_hash = ${idHash} and consumed_at is null`.run(db);
      return changed === 1;
    },
    async remove(model, idHash) {
      await sql`delete from oidc_records where model = ${model} and id_hash = ${idHash}`.run(db);
    },
    async holdGrant(grantId) {
      await lockGrants(sql`select ${grantId}::text as grant_id`);
      const held = await sql`
        select 1 from oidc_records where grant_id = ${grantId} and model = 'Grant' and ${live()}`.first(db);
      return held !== undefined;
    },
    async endGrant(grantId) {
      // Lock first: a concurrent call waits here, and then finds nothing left to end.
      await lockGrants(sql`select ${grantId}::text as grant_id`);
      const connection = await sql<Connection>`
        select client_id, account_id from oidc_records
         where grant_id = ${grantId} and model = 'RefreshToken' and ${live()} limit 1`.first(db);
      await sql`delete from oidc_records where grant_id = ${grantId}`.run(db);
      return connection;
    },
    async liveGrants(accountId) {
      return await sql<{ grantId: string; clientId: string }>`
        select grant_id, client_id from oidc_records
         where model = 'Grant' and account_id = ${accountId} and ${live()}`.all(db);
    },
    async listGrants(accountId) {
      return await sql<{
        grantId: string;
        clientId: string;
        payload: string;
        createdAt: number;
        lastUsedAt: number | null;
      }>`
        select g.grant_id, g.client_id, g.payload, g.created_at, max(t.created_at) as last_used_at
          from oidc_records g
          join oidc_records t on t.grant_id = g.grant_id and t.model in ('AccessToken', 'RefreshToken')
         where g.model = 'Grant' and g.account_id = ${accountId} and g.expires_at > ${new Date(clock.now())}
           and exists (select 1 from oidc_records r where r.grant_id = g.grant_id and r.model = 'RefreshToken'
                          and r.consumed_at is null and r.expires_at > ${new Date(clock.now())})
         group by g.grant_id, g.client_id, g.payload, g.created_at
         order by g.created_at`.all(db);
    },
    async removeSessionsOf(accountId) {
      await sql`delete from oidc_records where account_id = ${accountId} and model = 'Session'`.run(db);
    },
    async removeAllOf(accountId) {
      await lockGrants(sql`
        select distinct grant_id from oidc_records
         where account_id = ${accountId} and grant_id is not null order by grant_id`);
      await sql`delete from oidc_records where account_id = ${accountId}`.run(db);
    },
    async countUnallowedClients() {
      const row = await sql<{ count: number }>`
        select count(*) from oidc_records
         where model = 'Client' and expires_at > ${new Date(clock.now())}`.first(db);
      return row?.count ?? 0;
    },
    async clientsInUse() {
      const rows = await sql<{ clientId: string }>`
        select distinct client_id from oidc_records
         where model = 'RefreshToken' and client_id is not null and ${live()}`.all(db);
      return rows.map((row) => row.clientId);
    },
    async removeExpired(limit) {
      return await sql`
        delete from oidc_records where (model, id_hash) in (
          select model, id_hash from oidc_records where expires_at <= ${new Date(clock.now())}
           order by expires_at limit ${limit})`.run(db);
    },
    async underOtherKeys(mark, after, limit) {
      return await sql<{ model: string; idHash: string; payload: string }>`
        select model, id_hash, payload from oidc_records
         where id_hash > ${after} and ${live()} and not starts_with(payload, ${mark})
         order by id_hash limit ${limit}`.all(db);
    },
    async replaceEncrypted({ model, idHash, payload: was }, payload) {
      await sql`
        update oidc_records set payload = ${payload}
         where model = ${model} and id_hash = ${idHash} and payload = ${was}`.run(db);
    },
  };
}

/** Removes expired records in batches until none is left. */
export async function sweepRecords(records: Pick<RecordStore, 'removeExpired'>): Promise<void> {
  await inBatches(5_000, records.removeExpired);
}
