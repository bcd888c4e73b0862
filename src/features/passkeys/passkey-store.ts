import type { Clock } from '../../core/clock.ts';
import { type Sql, sql } from '../../platform/database/sql.ts';
import { inBatches } from '../../platform/in-batches.ts';

export type Passkey = {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  /** The authenticator keeps a copy elsewhere, such as in the account of its maker. */
  readonly isSynced: boolean;
};

/** What a sign-in is verified with. */
export type Credential = Pick<Passkey, 'id' | 'name'> & {
  readonly subject: string;
  readonly credentialId: string;
  /** COSE_Key (RFC 9052 section 7). */
  readonly publicKey: Uint8Array;
  readonly transports: readonly string[];
  /** The account's random name at authenticators. */
  readonly handle: string;
  readonly userId: string;
  readonly isEnabled: boolean;
};

/** The tables `passkeys`, `passkey_handles`, `passkey_challenges` and `recovery_codes`. */
export type PasskeyStore = {
  /** The oldest first. */
  listOf(subject: string): Promise<Passkey[]>;
  credentialsOf(subject: string): Promise<Pick<Credential, 'credentialId' | 'transports'>[]>;
  findCredential(credentialId: string): Promise<Credential | undefined>;
  /** Rejects with a unique violation when the credential is known. */
  insert(
    passkey: Pick<Passkey, 'id' | 'name' | 'isSynced'> &
      Omit<Credential, 'handle' | 'userId' | 'isEnabled'> & { readonly counter: number },
  ): Promise<Passkey>;
  /**
   * Records a use. `went_back`: the counter did not rise, which means that there is a copy of the authenticator. An
   * authenticator that always sends 0 has no counter. `removed`: the passkey was removed meanwhile.
   */
  use(
    id: string,
    proved: { readonly counter: number; readonly isSynced: boolean },
  ): Promise<'used' | 'went_back' | 'removed'>;
  rename(subject: string, id: string, name: string): Promise<Passkey | undefined>;
  /** Resolves with its name. */
  remove(subject: string, id: string): Promise<string | undefined>;
  /**
   * Removes the passkeys and recovery codes of the account. The handle stays, because it identifies the account and proves
   * nothing. Resolves with the number of passkeys.
   */
  removeAllOf(subject: string): Promise<number>;
  /** Registrations of the account that have begun are no longer accepted. */
  removeChallengesOf(subject: string): Promise<void>;
  /** The handle of the account; stores `fresh` when it has none. */
  handleOf(subject: string, fresh: string): Promise<string>;
  /** `subject`: the account of a registration; null for a sign-in. In a sign-in, a challenge replaces the one before it. */
  addChallenge(challenge: {
    digest: string;
    boundTo: string;
    subject: string | null;
    expiresAt: number;
  }): Promise<void>;
  /** True once for each challenge that has not expired. */
  takeChallenge(digest: string, boundTo: string): Promise<boolean>;
  removeExpiredChallenges(limit: number): Promise<number>;
};

export function passkeyStore(db: Sql, clock: Clock): PasskeyStore {
  const now = () => new Date(clock.now());
  const columns = sql`id, name, created_at, last_used_at, is_synced`;
  return {
    listOf: (subject) =>
      sql<Passkey>`select ${columns} from passkeys where subject = ${subject} order by created_at, id`.all(
        db,
      ),
    credentialsOf: (subject) =>
      sql<Pick<Credential, 'credentialId' | 'transports'>>`
        select credential_id, transports from passkeys where subject = ${subject}`.all(db),
    findCredential: (credentialId) =>
      sql<Credential>`
        select p.id, p.name, p.subject, p.credential_id, p.public_key, p.transports, h.handle, a.user_id,
               a.enabled as is_enabled
          from passkeys p join passkey_handles h using (subject) join accounts a using (subject)
         where p.credential_id = ${credentialId}`.first(db),
    async insert({ id, subject, credentialId, publicKey, counter, transports, name, isSynced }) {
      const created = new Date(clock.now());
      await sql`
        insert into passkeys (id, subject, credential_id, public_key, counter, transports, name, is_synced, created_at)
        values (${id}, ${subject}, ${credentialId}, ${publicKey}, ${counter}, ${transports}, ${name}, ${isSynced},
                ${created})`.run(db);
      return { id, name, createdAt: created.getTime(), lastUsedAt: null, isSynced };
    },
    async use(id, { counter, isSynced }) {
      const changed = await sql`
        update passkeys set counter = ${counter}, is_synced = ${isSynced}, last_used_at = ${now()}
         where id = ${id} and (counter < ${counter} or (counter = 0 and ${counter} = 0))`.run(db);
      if (changed === 1) return 'used';
      const row = await sql`select 1 from passkeys where id = ${id}`.first(db);
      return row === undefined ? 'removed' : 'went_back';
    },
    rename: (subject, id, name) =>
      sql<Passkey>`
        update passkeys set name = ${name} where subject = ${subject} and id = ${id} returning ${columns}`.first(
        db,
      ),
    async remove(subject, id) {
      const row = await sql<{ name: string }>`
        delete from passkeys where subject = ${subject} and id = ${id} returning name`.first(db);
      return row?.name;
    },
    async removeAllOf(subject) {
      await sql`delete from recovery_codes where subject = ${subject}`.run(db);
      return await sql`delete from passkeys where subject = ${subject}`.run(db);
    },
    async removeChallengesOf(subject) {
      await sql`delete from passkey_challenges where subject = ${subject}`.run(db);
    },
    async handleOf(subject, fresh) {
      const row = await sql<{ handle: string }>`
        insert into passkey_handles (subject, handle) values (${subject}, ${fresh})
        on conflict (subject) do update set handle = passkey_handles.handle
        returning handle`.first(db);
      return row?.handle ?? fresh;
    },
    async addChallenge({ digest, boundTo, subject, expiresAt }) {
      if (boundTo.startsWith('interaction:'))
        await sql`delete from passkey_challenges where bound_to = ${boundTo}`.run(db);
      await sql`
        insert into passkey_challenges (digest, bound_to, subject, expires_at)
        values (${digest}, ${boundTo}, ${subject}, ${new Date(expiresAt)})`.run(db);
    },
    async takeChallenge(digest, boundTo) {
      const taken = await sql`
        delete from passkey_challenges
         where digest = ${digest} and bound_to = ${boundTo} and expires_at > ${now()}`.run(db);
      return taken === 1;
    },
    removeExpiredChallenges: (limit) =>
      sql`
        delete from passkey_challenges where digest in (
          select digest from passkey_challenges where expires_at <= ${now()} limit ${limit})`.run(db),
  };
}

/** Removes challenges that were not answered in time. */
export async function sweepChallenges(read: Pick<PasskeyStore, 'removeExpiredChallenges'>): Promise<void> {
  await inBatches(5_000, read.removeExpiredChallenges);
}
