import { type Sql, sql } from '../../platform/database/sql.ts';

export type StoredWebhook = { readonly repositoryId: string; readonly encrypted: string };

export type WebhookStore = {
  find(repositoryId: string): Promise<StoredWebhook | undefined>;
  /** Replaces the secret that the repository has. */
  put(webhook: StoredWebhook & { readonly setAt: number }): Promise<void>;
  /** False when the repository has none. */
  remove(repositoryId: string): Promise<boolean>;
  /** Secrets that are not encrypted under the first key, by repository id, after `after`. */
  underOtherKeys(keyMark: string, after: string, limit: number): Promise<StoredWebhook[]>;
  /** Does nothing if the secret has changed since it was read. */
  replaceEncrypted(repositoryId: string, before: string, after: string): Promise<void>;
};

export function webhookStore(db: Sql): WebhookStore {
  return {
    async find(repositoryId) {
      return await sql<StoredWebhook>`
        select repository_id, encrypted from repository_webhooks where repository_id = ${repositoryId}`.first(
        db,
      );
    },
    async put({ repositoryId, encrypted, setAt }) {
      await sql`
        insert into repository_webhooks (repository_id, encrypted, set_at)
        values (${repositoryId}, ${encrypted}, ${new Date(setAt)})
        on conflict (repository_id) do update
           set encrypted = excluded.encrypted, set_at = excluded.set_at`.run(db);
    },
    async remove(repositoryId) {
      const changed = await sql`
        delete from repository_webhooks where repository_id = ${repositoryId}`.run(db);
      return changed > 0;
    },
    async underOtherKeys(keyMark, after, limit) {
      return await sql<StoredWebhook>`
        select repository_id, encrypted from repository_webhooks
         where not starts_with(encrypted, ${keyMark}) and repository_id > ${after}
         order by repository_id limit ${limit}`.all(db);
    },
    async replaceEncrypted(repositoryId, before, after) {
      await sql`
        update repository_webhooks set encrypted = ${after}
         where repository_id = ${repositoryId} and encrypted = ${before}`.run(db);
    },
  };
}
