import type { UserRef } from '../../../core/caller.ts';
import { type Clock, hour, minute } from '../../../core/clock.ts';
import { type Sql, sql } from '../../../platform/database/sql.ts';

/** A session that was not used for this long no longer works (contract 3). */
export const sessionIdleMs = 12 * hour;

/** Each process writes the last use of sessions every 30 seconds. */
const writtenLateMs = minute;

export type SessionRecord = {
  readonly id: string;
  readonly user: UserRef;
  readonly createdAt: number;
  /** When the person last proved who they are; null = not known. */
  readonly authenticatedAt: number | null;
  readonly lastSeenAt: number;
  /** The absolute end. */
  readonly expiresAt: number;
};

export type ListedSession = {
  readonly id: string;
  readonly agent: string | null;
  readonly address: string | null;
  readonly createdAt: number;
  readonly lastSeenAt: number;
  readonly authenticatedAt: number | null;
  readonly methods: string[] | null;
};

export type EndedSession = {
  readonly id: string;
  readonly userId: string;
  readonly providerSession: string | null;
  /** The provider's tokens, still encrypted. */
  readonly encrypted: string;
};

/** The provider's tokens of a session, still encrypted. */
export type SessionTokens = {
  readonly encrypted: string;
  readonly accessExpiresAt: number;
  readonly sessionExpiresAt: number;
};

/** The table `browser_sessions`. Ended sessions are never returned. */
export type SessionStore = {
  findByDigest(digest: string): Promise<SessionRecord | undefined>;
  insert(session: {
    id: string;
    digest: string;
    userId: string;
    expiresAt: number;
    encryptedTokens: string;
    accessExpiresAt: number;
    authenticatedAt: number | null;
    methods: readonly string[] | null;
    address: string | null;
    agent: string | null;
    providerSession: string | null;
  }): Promise<void>;
  /** Sessions that still work, the one used last first; with `id`, that one alone. */
  listOf(userId: string, limit: number, id?: string): Promise<ListedSession[]>;
  /** Until the transaction ends, no session of this person begins, and none of them ends with the others. */
  hold(userId: string): Promise<void>;
  /** Returns the session, or undefined when it had ended before. */
  end(id: string): Promise<EndedSession | undefined>;
  /** Ends the sessions of a person, without `spared`. */
  endRest(userId: string, spared: string | null): Promise<EndedSession[]>;
  /** From now on, what this session of the provider proved before no longer counts. */
  endAtProvider(providerSession: string): Promise<void>;
  /** When a session of the provider was ended here, in milliseconds; null = never. */
  providerSessionEndedAt(providerSession: string): Promise<number | null>;
  removeEndedAtProvider(before: number, limit: number): Promise<number>;
  /** Returns the ids that were ended. */
  endAllOf(userId: string): Promise<string[]>;
  touch(id: string, lastSeenAt: number): Promise<void>;
  findTokens(id: string): Promise<SessionTokens | undefined>;
  /** Takes the refresh lease, unless another process holds it. */
  lease(id: string, holder: string, until: number): Promise<boolean>;
  /** Stores refreshed tokens and releases the lease; false when the lease was lost meanwhile. */
  storeTokens(
    id: string,
    holder: string,
    tokens: { encrypted: string; accessExpiresAt: number },
  ): Promise<boolean>;
  release(id: string, holder: string): Promise<void>;
  removeEnded(before: number, limit: number): Promise<number>;
  /** Tokens of live sessions that do not begin with `mark`, in the order of the sessions' ids, after `after`. */
  underOtherKeys(mark: string, after: string, limit: number): Promise<{ id: string; encrypted: string }[]>;
  /** Changes nothing when the tokens have changed meanwhile. */
  replaceEncrypted(id: string, was: string, encrypted: string): Promise<void>;
};

type SessionRow = Omit<SessionRecord, 'user'> & Omit<UserRef, 'id'> & { readonly userId: string };

export function sessionStore(db: Sql, clock: Clock): SessionStore {
  const now = () => new Date(clock.now());
  const ended = sql`id, user_id, provider_session, tokens_sealed as encrypted`;
  return {
    async findByDigest(digest) {
      const row = await sql<SessionRow>`
        select s.id, s.created_at, s.authenticated_at, s.last_seen_at, s.expires_at, u.id as user_id, u.issuer,
               u.subject, u.name
          from browser_sessions s join users u on u.id = s.user_id
         where s.digest = ${digest} and s.ended_at is null`.first(db);
      if (row === undefined) return undefined;
      const { userId, issuer, subject, name, ...session } = row;
      return { ...session, user: { id: userId, issuer, subject, name } };
    },
    async insert({ id, digest, userId, expiresAt, encryptedTokens, accessExpiresAt, ...signIn }) {
      const { authenticatedAt, methods, address, agent, providerSession } = signIn;
      await sql`
        insert into browser_sessions (id, digest, user_id, created_at, last_seen_at, expires_at, tokens_sealed,
                                      access_expires_at, authenticated_at, methods, address, agent,
                                      provider_session)
        values (${id}, ${digest}, ${userId}, ${now()}, ${now()}, ${new Date(expiresAt)}, ${encryptedTokens},
                ${new Date(accessExpiresAt)}, ${authenticatedAt === null ? null : new Date(authenticatedAt)},
                ${methods}, ${address}, ${agent}, ${providerSession})`.run(db);
    },
    listOf: (userId, limit, id) =>
      sql<ListedSession>`
        select id, agent, address, created_at, last_seen_at, authenticated_at, methods from browser_sessions
         where user_id = ${userId} and ended_at is null and expires_at > ${now()}
           and last_seen_at > ${new Date(clock.now() - sessionIdleMs - writtenLateMs)}
           and (${id ?? null}::text is null or id = ${id ?? null})
         order by last_seen_at desc, id limit ${limit}`.all(db),
    async hold(userId) {
      await sql`select 1 from users where id = ${userId} for no key update`.run(db);
    },
    end: (id) =>
      sql<EndedSession>`
        update browser_sessions set ended_at = ${now()} where id = ${id} and ended_at is null
        returning ${ended}`.first(db),
    endRest: (userId, spared) =>
      sql<EndedSession>`
        update browser_sessions set ended_at = ${now()}
         where user_id = ${userId} and ended_at is null and expires_at > ${now()} and id is distinct from ${spared}
        returning ${ended}`.all(db),
    async endAtProvider(providerSession) {
      await sql`
        insert into ended_provider_sessions (id, ended_at) values (${providerSession}, ${now()})
        on conflict (id) do update set ended_at = greatest(ended_provider_sessions.ended_at, excluded.ended_at)`.run(
        db,
      );
    },
    async providerSessionEndedAt(providerSession) {
      const row = await sql<{ endedAt: number }>`
        select ended_at from ended_provider_sessions where id = ${providerSession}`.first(db);
      return row?.endedAt ?? null;
    },
    removeEndedAtProvider: (before, limit) =>
      sql`
        delete from ended_provider_sessions where id in (
          select id from ended_provider_sessions where ended_at < ${new Date(before)} limit ${limit})`.run(
        db,
      ),
    async endAllOf(userId) {
      const rows = await sql<{ id: string }>`
        update browser_sessions set ended_at = ${now()} where user_id = ${userId} and ended_at is null
        returning id`.all(db);
      return rows.map(({ id }) => id);
    },
    async touch(id, lastSeenAt) {
      await sql`
        update browser_sessions set last_seen_at = greatest(last_seen_at, ${new Date(lastSeenAt)})
         where id = ${id} and ended_at is null`.run(db);
    },
    async findTokens(id) {
      return await sql<SessionTokens>`
        select tokens_sealed as encrypted, access_expires_at, expires_at as session_expires_at from browser_sessions
         where id = ${id} and ended_at is null and expires_at > ${now()}`.first(db);
    },
    async lease(id, holder, until) {
      const changed = await sql`
        update browser_sessions set refresh_holder = ${holder}, refresh_until = ${new Date(until)}
         where id = ${id} and ended_at is null and (refresh_until is null or refresh_until <= ${now()})`.run(
        db,
      );
      return changed === 1;
    },
    async storeTokens(id, holder, { encrypted, accessExpiresAt }) {
      const changed = await sql`
        update browser_sessions
           set tokens_sealed = ${encrypted}, access_expires_at = ${new Date(accessExpiresAt)},
               refresh_holder = null, refresh_until = null
         where id = ${id} and refresh_holder = ${holder} and ended_at is null`.run(db);
      return changed === 1;
    },
    async release(id, holder) {
      await sql`
        update browser_sessions set refresh_holder = null, refresh_until = null
         where id = ${id} and refresh_holder = ${holder}`.run(db);
    },
    async removeEnded(before, limit) {
      return await sql`
        delete from browser_sessions where id in (
          select id from browser_sessions
           where expires_at < ${new Date(before)} or ended_at < ${new Date(before)} limit ${limit})`.run(db);
    },
    async underOtherKeys(mark, after, limit) {
      return await sql<{ id: string; encrypted: string }>`
        select id, tokens_sealed as encrypted from browser_sessions
         where id > ${after} and ended_at is null and expires_at > ${now()} and not starts_with(tokens_sealed, ${mark})
         order by id limit ${limit}`.all(db);
    },
    async replaceEncrypted(id, was, encrypted) {
      await sql`update browser_sessions set tokens_sealed = ${encrypted} where id = ${id} and tokens_sealed = ${was}`.run(
        db,
      );
    },
  };
}
