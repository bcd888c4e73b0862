import { sql } from 'kysely';
import type { Sql } from '../../platform/database/database.ts';

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

type Row = { repository_id: string; encrypted: string };

export function webhookStore(db: Sql): WebhookStore {
  return {
    async find(repositoryId) {
      const { rows } = await sql<Row>`
        select repository_id, encrypted from repository_webhooks where repository_id = ${repositoryId}`.execute(
        db,
      );
      return rows[0] && toWebhook(rows[0]);
    },
    async put({ repositoryId, encrypted, setAt }) {
      await sql`
        insert into repository_webhooks (repository_id, encrypted, set_at)
        values (${repositoryId}, ${encrypted}, ${new Date(setAt)})
        on conflict (repository_id) do update
           set encrypted = excluded.encrypted, set_at = excluded.set_at`.execute(db);
    },
    async remove(repositoryId) {
      const { rows } = await sql`
        delete from repository_webhooks where repository_id = ${repositoryId} returning repository_id`.execute(
        db,
      );
      return rows.length > 0;
    },
    async underOtherKeys(keyMark, after, limit) {
      const { rows } = await sql<Row>`
        select repository_id, encrypted from repository_webhooks
         where not starts_with(encrypted, ${keyMark}) and repository_id > ${after}
         order by repository_id limit ${limit}`.execute(db);
      return rows.map(toWebhook);
    },
    async replaceEncrypted(repositoryId, before, after) {
      await sql`
        update repository_webhooks set encrypted = ${after}
         where repository_id = ${repositoryId} and encrypted = ${before}`.execute(db);
    },
  };
}

function toWebhook({ repository_id: repositoryId, encrypted }: Row): StoredWebhook {
  return { repositoryId, encrypted };
}
