import { type Sql, sql } from '../../platform/database/sql.ts';
import type { GitCredential } from '../../platform/git/git.ts';

export type StoredCredential = {
  readonly repositoryId: string;
  readonly kind: GitCredential['kind'];
  /** Scheme, host and port of the clone URL for which it was given. */
  readonly origin: string;
  readonly encrypted: string;
};

export type CredentialStore = {
  find(repositoryId: string): Promise<StoredCredential | undefined>;
  /** Replaces the credential that the repository has. */
  put(credential: StoredCredential & { readonly setAt: number }): Promise<void>;
  /** What was removed; undefined when the repository has none. */
  remove(repositoryId: string): Promise<StoredCredential | undefined>;
  /** Credentials that are not encrypted under the first key, by repository id, after `after`. */
  underOtherKeys(keyMark: string, after: string, limit: number): Promise<StoredCredential[]>;
  /** Does nothing if the credential has changed since it was read. */
  replaceEncrypted(repositoryId: string, before: string, after: string): Promise<void>;
};

export function credentialStore(db: Sql): CredentialStore {
  return {
    async find(repositoryId) {
      return await sql<StoredCredential>`
        select repository_id, kind, origin, encrypted from repository_credentials
         where repository_id = ${repositoryId}`.first(db);
    },
    async put({ repositoryId, kind, origin, encrypted, setAt }) {
      await sql`
        insert into repository_credentials (repository_id, kind, origin, encrypted, set_at)
        values (${repositoryId}, ${kind}, ${origin}, ${encrypted}, ${new Date(setAt)})
        on conflict (repository_id) do update
           set kind = excluded.kind, origin = excluded.origin, encrypted = excluded.encrypted,
               set_at = excluded.set_at`.run(db);
    },
    async remove(repositoryId) {
      return await sql<StoredCredential>`
        delete from repository_credentials where repository_id = ${repositoryId}
        returning repository_id, kind, origin, encrypted`.first(db);
    },
    async underOtherKeys(keyMark, after, limit) {
      return await sql<StoredCredential>`
        select repository_id, kind, origin, encrypted from repository_credentials
         where not starts_with(encrypted, ${keyMark}) and repository_id > ${after}
         order by repository_id limit ${limit}`.all(db);
    },
    async replaceEncrypted(repositoryId, before, after) {
      await sql`
        update repository_credentials set encrypted = ${after}
         where repository_id = ${repositoryId} and encrypted = ${before}`.run(db);
    },
  };
}
