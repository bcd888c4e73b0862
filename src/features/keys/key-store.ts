import type { KeyCaller, KeyType, RepositoryAccess } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import { isNarrowerOrEqual } from '../../core/scopes.ts';
import { isForeignKeyViolation } from '../../platform/database/database.ts';
import { type Sql, sql, type Statement } from '../../platform/database/sql.ts';
import { toDate } from '../../platform/database/values.ts';
import { type Key, type RevokeReason, statusOf } from './key.ts';
import { countOf, type KeyFilter, type KeyOrder, orderOf, whereOf } from './key-list.ts';

/** The SQL of api_keys and the tables that reference it. */
type KeyRow = Omit<Key, 'repositories' | 'repositoryNames' | 'lastUsedFrom'> &
  NonNullable<Key['lastUsedFrom']> & {
    readonly repositoryMode: RepositoryAccess['mode'];
    readonly repositoryIds: readonly string[] | null;
    readonly repositoryNames: readonly string[] | null;
  };

const columns = sql`
  k.id, k.type, k.name, k.scopes, k.repository_mode, k.owner_user_id, k.created_at, k.created_by, k.lifetime_ms,
  k.expires_at, k.expiry_recorded_at, k.revoked_at, k.revoked_by, k.revoke_reason, k.suspended_at, k.replaces,
  k.replaced_by, k.grace_seconds, k.first_used_at, u.last_used_at, u.network, u.program,
  case when k.digest is null then 'federated' else 'value' end as credential,
  case when k.type = 'service' then (select count(*)::int from api_key_trust t where t.key_id = k.id) else 0 end
    as trust_rules,
  r.repository_ids, r.repository_names`;

const tables = sql`
  api_keys k
  join api_key_last_used u on u.key_id = k.id
  left join lateral (
    select jsonb_agg(x.id order by x.full_name_key) as repository_ids,
           jsonb_agg(x.full_name order by x.full_name_key) as repository_names
      from api_key_repositories kr join repositories x on x.id = kr.repository_id
     where kr.key_id = k.id
  ) r on k.repository_mode = 'selected'`;

export type NewKey = Pick<
  Key,
  | 'id'
  | 'type'
  | 'name'
  | 'scopes'
  | 'ownerUserId'
  | 'createdAt'
  | 'createdBy'
  | 'lifetimeMs'
  | 'expiresAt'
  | 'replaces'
> & {
  /** Null: a federated key. */
  readonly digest: string | null;
  readonly repositoryIds: readonly string[] | 'all';
  readonly importedAt?: number;
};

export type KeyChange = Partial<Pick<Key, 'name' | 'scopes' | 'expiresAt' | 'lifetimeMs'>>;

/** Whether some of the owner's active keys are suspended, and some are not. */
export type OwnerOfKeys = {
  readonly userId: string;
  readonly hasUsable: boolean;
  readonly hasSuspended: boolean;
};

export type KeyStore = {
  insert(key: NewKey): Promise<void>;
  get(id: string): Promise<Key | undefined>;
  /** The same, and locks the row until the transaction ends. */
  getForUpdate(id: string): Promise<Key | undefined>;
  findByDigest(digest: string): Promise<Key | undefined>;
  /** Whether an imported value with this digest was erased. */
  isErasedImport(digest: string): Promise<boolean>;
  list(
    filter: KeyFilter,
    order: KeyOrder,
    page: number,
    limit: number,
    now: number,
  ): Promise<{ items: Key[]; total: number }>;
  /** The keys that exist among `ids`, in no particular order. */
  withIds(ids: readonly string[]): Promise<Key[]>;
  /** Serializes transactions that count or change the keys of one owner. */
  lockOwner(ownerUserId: string): Promise<void>;
  /** A rotation pair counts once (contract 4). */
  countActive(ownerUserId: string, now: number): Promise<number>;
  change(id: string, change: KeyChange): Promise<void>;
  setRepositories(id: string, repositoryIds: readonly string[] | 'all'): Promise<void>;
  /** Makes it a federated key. No value of it is accepted again. */
  eraseValue(id: string): Promise<void>;
  revoke(id: string, at: number, by: string | null, reason: RevokeReason): Promise<void>;
  linkSuccessor(id: string, successorId: string, expiresAt: number, graceSeconds: number): Promise<void>;
  recordFirstUse(id: string, at: number): Promise<boolean>;
  setSuspended(id: string, at: number | null): Promise<void>;
  /**
   * Fails unless the key is usable now, by the credential of the request, with at least the rights that it had when the request
   * was authorized. Locks the key and the exchanged token until the transaction ends, so that a write by a key commits only if
   * its credential is valid at commit (contract 4).
   */
  holdLive(caller: KeyCaller, now: number): Promise<void>;
  /** True while the key, or a key that replaced it by rotation, is active. */
  isInUse(id: string, now: number): Promise<boolean>;
  /** Names of keys by id, whatever their status. */
  namesOf(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  activeOfOwner(ownerUserId: string, now: number): Promise<Key[]>;
  /** Owners of active keys in id order, for the sweep. */
  ownersAfter(userId: string | null, limit: number, now: number): Promise<OwnerOfKeys[]>;
  /** Expired keys whose event is not written yet. */
  expiredUnrecorded(now: number, limit: number): Promise<Key[]>;
  /** False when the expiry was already recorded. */
  markExpiryRecorded(id: string, at: number): Promise<boolean>;
  /** Active keys that expire in the window, for notices. */
  expiringBetween(from: number, to: number, after: string | null, limit: number): Promise<Key[]>;
  /** How many active keys of each type expire on each day (UTC), from now until `to`. Days without any are left out. */
  endingByDay(now: number, to: number): Promise<{ day: number; type: KeyType; keys: number }[]>;
  /** Active keys in id order, for dry runs of the policy. */
  activeAfter(id: string | null, limit: number, now: number): Promise<Key[]>;
};

export function keyStore(db: Sql): KeyStore {
  async function many(query: Statement<KeyRow>): Promise<Key[]> {
    const rows = await query.all(db);
    return rows.map(toKey);
  }
  const one = async (query: Statement<KeyRow>) => (await many(query))[0];
  const isActive = (now: number) =>
    sql`k.revoked_at is null and k.expiry_recorded_at is null
        and (k.expires_at is null or k.expires_at > ${new Date(now)})`;

  return {
    async insert(key) {
      await sql`
        insert into api_keys (id, digest, type, name, scopes, repository_mode, owner_user_id, created_at, created_by,
                              lifetime_ms, expires_at, replaces, imported_at)
        values (${key.id}, decode(${key.digest}::text, 'hex'), ${key.type}, ${key.name}, ${JSON.stringify(key.scopes)}::jsonb,
                ${key.repositoryIds === 'all' ? 'all' : 'selected'}, ${key.ownerUserId}, ${new Date(key.createdAt)},
                ${key.createdBy}, ${key.lifetimeMs}, ${toDate(key.expiresAt)}, ${key.replaces},
                ${toDate(key.importedAt ?? null)})`.run(db);
      if (key.repositoryIds !== 'all') await addRepositories(db, key.id, key.repositoryIds);
    },
    get: (id) => one(sql<KeyRow>`select ${columns} from ${tables} where k.id = ${id}`),
    async getForUpdate(id) {
      // Lock first, then read. After waiting for the lock, a new statement sees the current row and its repositories.
      await sql`select 1 from api_keys where id = ${id} for update`.run(db);
      return await one(sql<KeyRow>`select ${columns} from ${tables} where k.id = ${id}`);
    },
    findByDigest: (digest) =>
      one(sql<KeyRow>`select ${columns} from ${tables} where k.digest = decode(${digest}, 'hex')`),
    async isErasedImport(digest) {
      const erased = await sql`
        select 1 from api_keys where erased_import = sha256(decode(${digest}, 'hex'))`.first(db);
      return erased !== undefined;
    },
    async list(filter, order, page, limit, now) {
      const where = whereOf(filter, now);
      const items = await many(sql<KeyRow>`
        select ${columns} from ${tables} where ${where}
         order by ${orderOf(order)} limit ${limit} offset ${(page - 1) * limit}`);
      return { items, total: await countOf(db, filter, where) };
    },
    withIds: (ids) =>
      many(sql<KeyRow>`
        select ${columns} from ${tables}
         where k.id in (select jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb))`),
    async lockOwner(ownerUserId) {
      await sql`select pg_advisory_xact_lock(7263002, hashtext(${ownerUserId}))`.run(db);
    },
    async countActive(ownerUserId, now) {
      const row = await sql<{ slots: number }>`
        select count(*)::int as slots from api_keys k
         where k.owner_user_id = ${ownerUserId} and ${isActive(now)}
           and not exists (select 1 from api_keys p where p.id = k.replaces and p.revoked_at is null
                              and p.expiry_recorded_at is null
                              and (p.expires_at is null or p.expires_at > ${new Date(now)}))`.first(db);
      return row?.slots ?? 0;
    },
    async change(id, change) {
      const sets = [
        ...(change.name === undefined ? [] : [sql`name = ${change.name}`]),
        ...(change.scopes === undefined ? [] : [sql`scopes = ${JSON.stringify(change.scopes)}::jsonb`]),
        ...(change.expiresAt === undefined ? [] : [sql`expires_at = ${toDate(change.expiresAt)}`]),
        ...(change.lifetimeMs === undefined ? [] : [sql`lifetime_ms = ${change.lifetimeMs}`]),
      ];
      if (sets.length > 0) await sql`update api_keys set ${sql.join(sets)} where id = ${id}`.run(db);
    },
    async setRepositories(id, repositoryIds) {
      await sql`update api_keys set repository_mode = ${repositoryIds === 'all' ? 'all' : 'selected'} where id = ${id}`.run(
        db,
      );
      await sql`delete from api_key_repositories where key_id = ${id}`.run(db);
      if (repositoryIds !== 'all') await addRepositories(db, id, repositoryIds);
    },
    async eraseValue(id) {
      await sql`
        update api_keys
           set erased_import = case when imported_at is null then erased_import else sha256(digest) end, digest = null
         where id = ${id}`.run(db);
    },
    async revoke(id, at, by, reason) {
      await sql`
        update api_keys set revoked_at = ${new Date(at)}, revoked_by = ${by}, revoke_reason = ${reason}
         where id = ${id} and revoked_at is null`.run(db);
    },
    async linkSuccessor(id, successorId, expiresAt, graceSeconds) {
      await sql`
        update api_keys set replaced_by = ${successorId}, expires_at = ${new Date(expiresAt)}, grace_seconds = ${graceSeconds}
         where id = ${id}`.run(db);
    },
    async recordFirstUse(id, at) {
      const changed = await sql`
        update api_keys set first_used_at = ${new Date(at)} where id = ${id} and first_used_at is null`.run(
        db,
      );
      return changed > 0;
    },
    async setSuspended(id, at) {
      await sql`update api_keys set suspended_at = ${toDate(at)} where id = ${id}`.run(db);
    },
    async holdLive(caller, now) {
      const { id, ...asked } = caller.key;
      const held = await sql`select 1 from api_keys where id = ${id} for share`.first(db);
      const key =
        held === undefined
          ? undefined
          : await one(sql<KeyRow>`select ${columns} from ${tables} where k.id = ${id}`);
      if (key === undefined || statusOf(key, now) !== 'active') throw new AppError('invalid_credential');
      if (!(await holdCredential(db, caller, key, now))) throw new AppError('invalid_credential');
      if (key.suspendedAt !== null) throw new AppError('user_disabled');
      const isAsBefore =
        isNarrowerOrEqual(asked.scopes, key.scopes) && reachesAll(key.repositories, asked.repositories);
      if (!isAsBefore)
        throw new AppError('forbidden_scope', {
          message: 'The key lost this scope or repository during the request.',
        });
    },
    async isInUse(id, now) {
      const inUse = await sql`
        with recursive line (id) as (
          select ${id}::text
          union
          select p.replaced_by from api_keys p join line on p.id = line.id where p.replaced_by is not null)
        select 1 from api_keys k join line on line.id = k.id where ${isActive(now)} limit 1`.first(db);
      return inUse !== undefined;
    },
    async namesOf(ids) {
      const rows = await sql<{ id: string; name: string }>`
        select id, name from api_keys where id in (select jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb))`.all(
        db,
      );
      return new Map(rows.map(({ id, name }) => [id, name]));
    },
    activeOfOwner: (ownerUserId, now) =>
      many(
        sql<KeyRow>`select ${columns} from ${tables} where k.owner_user_id = ${ownerUserId} and ${isActive(now)} order by k.id`,
      ),
    async ownersAfter(userId, limit, now) {
      return await sql<OwnerOfKeys>`
        select k.owner_user_id as user_id, bool_or(k.suspended_at is null) as has_usable,
               bool_or(k.suspended_at is not null) as has_suspended
          from api_keys k
         where k.owner_user_id is not null and ${isActive(now)} and k.owner_user_id > ${userId ?? ''}
         group by k.owner_user_id order by k.owner_user_id limit ${limit}`.all(db);
    },
    expiredUnrecorded: (now, limit) =>
      many(sql<KeyRow>`
        select ${columns} from ${tables}
         where k.expires_at is not null and k.revoked_at is null and k.expiry_recorded_at is null
           and k.expires_at <= ${new Date(now)} order by k.expires_at limit ${limit}`),
    async markExpiryRecorded(id, at) {
      const changed = await sql`
        update api_keys set expiry_recorded_at = ${new Date(at)} where id = ${id} and expiry_recorded_at is null`.run(
        db,
      );
      return changed > 0;
    },
    expiringBetween: (from, to, after, limit) =>
      many(sql<KeyRow>`
        select ${columns} from ${tables}
         where k.revoked_at is null and k.expiry_recorded_at is null
           and k.expires_at > ${new Date(from)} and k.expires_at <= ${new Date(to)} and k.id > ${after ?? ''}
         order by k.id limit ${limit}`),
    async endingByDay(now, to) {
      return await sql<{ day: number; type: KeyType; keys: number }>`
        select date_bin('1 day', k.expires_at, timestamptz '2000-01-01 00:00:00+00') as day, k.type,
               count(*)::int as keys
          from (select expires_at, type from api_keys
                 where expires_at is not null and revoked_at is null and expiry_recorded_at is null
                   and expires_at > ${new Date(now)} and expires_at <= ${new Date(to)}
                 order by expires_at limit ${maxEnding}) k
         group by 1, 2 order by 1, 2`.all(db);
    },
    activeAfter: (id, limit, now) =>
      many(
        sql<KeyRow>`select ${columns} from ${tables} where ${isActive(now)} and k.id > ${id ?? ''} order by k.id limit ${limit}`,
      ),
  };
}

/** A query for the ids of a key and of the keys that it replaced by rotations, for the stores of other features. */
export function keyAndPredecessors(id: string): Statement {
  return sql`
    with recursive line (id, replaces) as (
      select k.id, k.replaces from api_keys k where k.id = ${id}
      union
      select k.id, k.replaces from api_keys k join line on k.id = line.replaces)
    select id from line`;
}

/** Bounds the rows that are counted, soonest expiry first: a chart of more keys would show nothing new. */
const maxEnding = 100_000;

async function addRepositories(db: Sql, keyId: string, repositoryIds: readonly string[]): Promise<void> {
  if (repositoryIds.length === 0) return;
  try {
    await sql`
      insert into api_key_repositories (key_id, repository_id)
      select ${keyId}, id from jsonb_array_elements_text(${JSON.stringify(repositoryIds)}::jsonb) as id`.run(
      db,
    );
  } catch (error) {
    if (!isForeignKeyViolation(error)) throw error;
    throw new AppError('repo_not_found', {
      message: 'A selected repository was removed from the registry during the request.',
    });
  }
}

/** False: the value was erased, or the exchanged token has ended, since the request was authenticated. */
async function holdCredential(db: Sql, caller: KeyCaller, key: Key, now: number): Promise<boolean> {
  const exchange = caller.kind === 'service_key' ? caller.exchange : undefined;
  if (exchange === undefined) return key.credential === 'value';
  const token = await sql`
    select 1 from exchanged_tokens where id = ${exchange.tokenId} and expires_at > ${new Date(now)} for share`.first(
    db,
  );
  return token !== undefined;
}

function reachesAll(now: RepositoryAccess, asked: RepositoryAccess): boolean {
  if (now.mode === 'all') return true;
  return asked.mode === 'selected' && asked.repositoryIds.every((id) => now.repositoryIds.includes(id));
}

function toKey({ repositoryMode, repositoryIds, network, program, ...row }: KeyRow): Key {
  return {
    ...row,
    // A string also has includes(), and its text could contain a scope's name: anything but a list grants nothing.
    scopes: Array.isArray(row.scopes) ? row.scopes : [],
    repositories:
      repositoryMode === 'all' ? { mode: 'all' } : { mode: 'selected', repositoryIds: repositoryIds ?? [] },
    repositoryNames: row.repositoryNames ?? [],
    lastUsedFrom: network === null && program === null ? null : { network, program },
  };
}
