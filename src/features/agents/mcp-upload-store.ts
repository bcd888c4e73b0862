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

type Row = {
  id: string;
  user_id: string;
  client_id: string;
  grant_id: string;
  approval_id: string | null;
  site_id: string | null;
  name: string | null;
  visibility: UploadOffer['visibility'];
  spa: boolean | null;
  replaces: string | null;
  receipt: string;
  file_count: number;
  size_bytes: string;
  expires_at: Date;
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
      const row = await sql<Row>`
        select ${columns} from mcp_uploads where ${isOpen(token, now)}`.first(db);
      return row && toUpload(row);
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

function toUpload(row: Row): McpUpload {
  return {
    id: row.id,
    userId: row.user_id,
    clientId: row.client_id,
    grantId: row.grant_id,
    approvalId: row.approval_id,
    siteId: row.site_id,
    name: row.name,
    visibility: row.visibility,
    spa: row.spa,
    replaces: row.replaces,
    receipt: row.receipt,
    fileCount: row.file_count,
    sizeBytes: Number(row.size_bytes),
    expiresAt: row.expires_at.getTime(),
  };
}
