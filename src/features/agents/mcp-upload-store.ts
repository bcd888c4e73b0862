import { type Sql, sql } from '../../platform/database/sql.ts';

/** What an agent may upload, and for whom. */
export type UploadOffer = {
  readonly userId: string;
  readonly clientId: string;
  readonly grantId: string;
  /** The approval of the call that requested it. Null: the call needed none. */
  readonly approvalId: string | null;
  /** Null: a new site. */
  readonly siteId: string | null;
  /** The name of a new site. Null: Postern chooses one. */
  readonly name: string | null;
  readonly visibility: 'public' | 'private';
  readonly spa: boolean | null;
  /** Receipt of the live version that it replaces. Null: the site has none. */
  readonly replaces: string | null;
  /** Receipt of the files that must arrive. */
  readonly receipt: string;
  readonly fileCount: number;
  readonly sizeBytes: number;
};

export type McpUpload = UploadOffer & {
  readonly id: string;
  /** Milliseconds. */
  readonly expiresAt: number;
};

type Presented = { readonly id: string; readonly tokenHash: string };

/** The table `mcp_uploads`. Readers never see expired or used rows. */
export type McpUploadStore = {
  insert(upload: McpUpload & { readonly tokenHash: string }): Promise<void>;
  find(token: Presented, now: number): Promise<McpUpload | undefined>;
  /** If several requests use the token at once, only one succeeds. False: another request used it, or it expired. */
  use(token: Presented, now: number): Promise<boolean>;
  /** Resolves with how many were removed. */
  prune(now: number, limit: number): Promise<number>;
};

export function mcpUploadStore(db: Sql): McpUploadStore {
  const columns = sql`id, user_id, client_id, grant_id, approval_id, site_id, name, visibility, spa, replaces, receipt,
    file_count, size_bytes, expires_at`;
  const isOpen = ({ id, tokenHash }: Presented, now: number) =>
    sql`id = ${id} and token_hash = ${tokenHash} and used_at is null and expires_at > ${new Date(now)}`;
  return {
    async insert(upload) {
      const { id, userId, clientId, grantId, approvalId, siteId, name, visibility, spa, replaces } = upload;
      await sql`
        insert into mcp_uploads (${columns}, token_hash)
        values (${id}, ${userId}, ${clientId}, ${grantId}, ${approvalId}, ${siteId}, ${name}, ${visibility}, ${spa},
                ${replaces}, ${upload.receipt}, ${upload.fileCount}, ${upload.sizeBytes},
                ${new Date(upload.expiresAt)}, ${upload.tokenHash})`.run(db);
    },
    async find(token, now) {
      return await sql<McpUpload>`
        select ${columns} from mcp_uploads where ${isOpen(token, now)}`.first(db);
    },
    async use(token, now) {
      const changed = await sql`
        update mcp_uploads set used_at = ${new Date(now)} where ${isOpen(token, now)}`.run(db);
      return changed === 1;
    },
    async prune(now, limit) {
      return await sql`
        delete from mcp_uploads where id in (
          select id from mcp_uploads where expires_at <= ${new Date(now)} limit ${limit})`.run(db);
    },
  };
}
