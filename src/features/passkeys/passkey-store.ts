import type { Clock } from '../../core/clock.ts';
import { type Sql, sql } from '../../platform/database/sql.ts';

export type Passkey = {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  /** The authenticator keeps a copy elsewhere, such as in the account of its maker. */
  readonly isSynced: boolean;
};

/** What a sign-in is verified with. */
export type Credential = Pick<Passkey, 'id'> & {
  readonly subject: string;
  readonly credentialId: string;
  /** COSE_Key (RFC 9052 section 7). */
  readonly publicKey: Uint8Array;
  readonly transports: readonly string[];
  /** The account's random name at authenticators. */
  readonly handle: string;
};

/** The tables `passkeys`, `passkey_handles` and `passkey_challenges`. */
export type PasskeyStore = {
  /** The oldest first. */
  listOf(subject: string): Promise<Passkey[]>;
  credentialsOf(subject: string): Promise<Pick<Credential, 'credentialId' | 'transports'>[]>;
  findCredential(credentialId: string): Promise<Credential | undefined>;
  /** Rejects with a unique violation when the credential is known. */
  insert(
    passkey: Pick<Passkey, 'id' | 'name' | 'isSynced'> &
      Omit<Credential, 'handle'> & { readonly counter: number },
  ): Promise<void>;
  /**
   * Records a use. False when the counter did not rise, which means that there is a copy of the authenticator; an
   * authenticator that always sends 0 has no counter.
   */
  use(id: string, counter: number): Promise<boolean>;
  rename(subject: string, id: string, name: string): Promise<Passkey | undefined>;
  remove(subject: string, id: string): Promise<boolean>;
  /** Resolves with how many were removed. */
  removeAllOf(subject: string): Promise<number>;
  /** The handle of the account; stores `fresh` when it has none. */
  handleOf(subject: string, fresh: string): Promise<string>;
  addChallenge(challenge: { digest: string; boundTo: string; expiresAt: number }): Promise<void>;
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
        select p.id, p.subject, p.credential_id, p.public_key, p.transports, h.handle
          from passkeys p join passkey_handles h using (subject)
         where p.credential_id = ${credentialId}`.first(db),
    async insert({ id, subject, credentialId, publicKey, counter, transports, name, isSynced }) {
      await sql`
        insert into passkeys (id, subject, credential_id, public_key, counter, transports, name, is_synced, created_at)
        values (${id}, ${subject}, ${credentialId}, ${publicKey}, ${counter}, ${transports}, ${name}, ${isSynced},
                ${now()})`.run(db);
    },
    async use(id, counter) {
      const changed = await sql`
        update passkeys set counter = ${counter}, last_used_at = ${now()}
         where id = ${id} and (counter < ${counter} or (counter = 0 and ${counter} = 0))`.run(db);
      return changed === 1;
    },
    rename: (subject, id, name) =>
      sql<Passkey>`
        update passkeys set name = ${name} where subject = ${subject} and id = ${id} returning ${columns}`.first(
        db,
      ),
    async remove(subject, id) {
      return (await sql`delete from passkeys where subject = ${subject} and id = ${id}`.run(db)) === 1;
    },
    removeAllOf: (subject) => sql`delete from passkeys where subject = ${subject}`.run(db),
    async handleOf(subject, fresh) {
      const row = await sql<{ handle: string }>`
        insert into passkey_handles (subject, handle) values (${subject}, ${fresh})
        on conflict (subject) do update set handle = passkey_handles.handle
        returning handle`.first(db);
      return row?.handle ?? fresh;
    },
    async addChallenge({ digest, boundTo, expiresAt }) {
      await sql`
        insert into passkey_challenges (digest, bound_to, expires_at)
        values (${digest}, ${boundTo}, ${new Date(expiresAt)})`.run(db);
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
