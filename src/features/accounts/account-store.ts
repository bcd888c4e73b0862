import type { Role } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { type Sql, sql } from '../../platform/database/sql.ts';
import { containing } from '../../platform/database/values.ts';
import { canonicalEmail } from './email.ts';

/** An account of the built-in provider together with its row in `users`. Never its password hash. */
export type Account = {
  readonly userId: string;
  readonly subject: string;
  readonly email: string;
  readonly name: string;
  readonly isEnabled: boolean;
  readonly roles: readonly Role[];
  readonly groupIds: readonly string[];
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly lastLoginAt: number | null;
};

export type NewAccount = {
  userId: string;
  subject: string;
  email: string;
  name: string;
  passwordHash: string;
  isEnabled: boolean;
  roles: readonly Role[];
};

/** The tables `accounts` and `account_tombstones`. */
export type AccountStore = {
  findByUserId(userId: string, options?: { forUpdate: boolean }): Promise<Account | undefined>;
  findBySubject(subject: string): Promise<Account | undefined>;
  /** Whether this subject had an account that was deleted. */
  wasDeleted(subject: string): Promise<boolean>;
  /** For signing in: the only method that returns the password hash. */
  findLogin(
    email: string,
  ): Promise<{ userId: string; subject: string; passwordHash: string; isEnabled: boolean } | undefined>;
  list(filter: { search?: string | undefined; offset: number; limit: number }): Promise<{
    accounts: Account[];
    total: number;
  }>;
  /** Rejects with a unique violation when the e-mail is taken. */
  insert(account: NewAccount): Promise<void>;
  update(
    subject: string,
    change: { email: string; name: string; isEnabled: boolean; roles: readonly Role[] },
  ): Promise<void>;
  setPassword(subject: string, passwordHash: string): Promise<void>;
  /** Invalidates every sign-in that this account completed before now. */
  signOut(subject: string): Promise<void>;
  /**
   * When the account was last signed out everywhere, in milliseconds; null = never; Infinity = no such account. `hold`:
   * no sign-out commits before the transaction ends.
   */
  signedOutAt(subject: string, options?: { hold: boolean }): Promise<number | null>;
  /** Leaves a tombstone. */
  remove(subject: string): Promise<void>;
  /** Everything that the last-administrator rule needs. The caller must hold lock(). */
  listForRoles(): Promise<
    { subject: string; isEnabled: boolean; roles: readonly Role[]; groupIds: string[] }[]
  >;
  /** Sets this issuer for all accounts. It is the installation's address; when that changes, people keep their identity. */
  adoptIssuer(issuer: string): Promise<void>;
  /** Serialises changes of accounts and groups until the transaction ends. */
  lock(): Promise<void>;
};

/** Advisory lock that serialises all changes that affect who is an administrator. */
const accountsLock = 7_263_010;

export function accountStore(db: Sql, clock: Clock): AccountStore {
  const columns = sql`
    u.id as user_id, a.subject, a.email, a.name, a.enabled as is_enabled, a.roles, a.created_at, a.updated_at, u.last_login_at,
    coalesce((select jsonb_agg(m.group_id order by m.group_id) from account_group_members m
               where m.subject = a.subject), '[]'::jsonb) as group_ids`;
  const source = sql`accounts a join users u on u.id = a.user_id`;

  return {
    async findByUserId(userId, options) {
      return await sql<Account>`
        select ${columns} from ${source} where u.id = ${userId}
        ${options?.forUpdate ? sql`for update of a` : sql``}`.first(db);
    },
    async findBySubject(subject) {
      return await sql<Account>`
        select ${columns} from ${source} where a.subject = ${subject}`.first(db);
    },
    async wasDeleted(subject) {
      const row = await sql`select 1 from account_tombstones where subject = ${subject}`.first(db);
      return row !== undefined;
    },
    async findLogin(email) {
      return await sql<{ userId: string; subject: string; passwordHash: string; isEnabled: boolean }>`
        select user_id, subject, password_hash, enabled as is_enabled from accounts
         where lower(email collate "C") = ${canonicalEmail(email)}`.first(db);
    },
    async list({ search, offset, limit }) {
      const like = search === undefined ? null : containing(search);
      const matches = sql`(${like}::text is null or a.name ilike ${like} or a.email ilike ${like})`;
      const rows = await sql<Account>`
        select ${columns} from ${source} where ${matches}
         order by lower(a.name), a.subject limit ${limit} offset ${offset}`.all(db);
      const counted = await sql<{ total: number }>`
        select count(*)::int as total from ${source} where ${matches}`.first(db);
      return { accounts: rows, total: counted?.total ?? 0 };
    },
    async insert({ userId, subject, email, name, passwordHash, isEnabled, roles }) {
      const now = new Date(clock.now());
      await sql`
        insert into accounts (subject, user_id, email, name, password_hash, enabled, roles, created_at, updated_at)
        values (${subject}, ${userId}, ${email}, ${name}, ${passwordHash}, ${isEnabled}, ${JSON.stringify(roles)}::jsonb,
                ${now}, ${now})`.run(db);
    },
    async update(subject, { email, name, isEnabled, roles }) {
      await sql`
        update accounts set email = ${email}, name = ${name}, enabled = ${isEnabled},
               roles = ${JSON.stringify(roles)}::jsonb, updated_at = ${new Date(clock.now())}
         where subject = ${subject}`.run(db);
    },
    async setPassword(subject, passwordHash) {
      await sql`
        update accounts set password_hash = ${passwordHash}, updated_at = ${new Date(clock.now())}
         where subject = ${subject}`.run(db);
    },
    async signOut(subject) {
      await sql`
        update accounts set signed_out_at = ${new Date(clock.now())} where subject = ${subject}`.run(db);
    },
    async signedOutAt(subject, options) {
      const row = await sql<{ signedOutAt: number | null }>`
        select signed_out_at from accounts where subject = ${subject}
        ${options?.hold ? sql`for share` : sql``}`.first(db);
      return row === undefined ? Number.POSITIVE_INFINITY : row.signedOutAt;
    },
    async remove(subject) {
      await sql`
        with gone as (delete from accounts where subject = ${subject} returning subject)
        insert into account_tombstones (subject, deleted_at)
        select subject, ${new Date(clock.now())}::timestamptz from gone
        on conflict (subject) do nothing`.run(db);
    },
    async listForRoles() {
      return await sql<{ subject: string; isEnabled: boolean; roles: Role[]; groupIds: string[] }>`
        select a.subject, a.enabled as is_enabled, a.roles,
               coalesce((select jsonb_agg(m.group_id) from account_group_members m
                          where m.subject = a.subject), '[]'::jsonb) as group_ids
          from accounts a`.all(db);
    },
    async adoptIssuer(issuer) {
      await sql`
        update users set issuer = ${issuer} from accounts
         where users.id = accounts.user_id and users.issuer <> ${issuer}`.run(db);
    },
    async lock() {
      await sql`select pg_advisory_xact_lock(${accountsLock})`.run(db);
    },
  };
}
