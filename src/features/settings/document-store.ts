import { createHash } from 'node:crypto';
import { AppError } from '../../core/errors.ts';
import { isUniqueViolation } from '../../platform/database/database.ts';
import { type Sql, sql } from '../../platform/database/sql.ts';

export type DocumentVersion = {
  readonly version: number;
  readonly value: unknown;
  readonly changedAt: number;
  readonly changedBy: string | null;
};

export type DocumentStore = {
  /** The newest version, or undefined while the default is unchanged. */
  current(name: string): Promise<DocumentVersion | undefined>;
  at(name: string, version: number): Promise<DocumentVersion | undefined>;
  /** Newest first. */
  history(name: string, page: number, limit: number): Promise<{ items: DocumentVersion[]; total: number }>;
  /** The newest version whose field `enabled` is false; 0 when there is none. */
  lastDisabled(name: string): Promise<number>;
  /** Throws `precondition_failed` when another change took this version number. */
  add(name: string, document: DocumentVersion): Promise<void>;
};

export function documentStore(db: Sql): DocumentStore {
  return {
    async current(name) {
      return await sql<DocumentVersion>`
        select version, value, changed_at, changed_by from config_documents
         where name = ${name} order by version desc limit 1`.first(db);
    },
    async at(name, version) {
      return await sql<DocumentVersion>`
        select version, value, changed_at, changed_by from config_documents
         where name = ${name} and version = ${version}`.first(db);
    },
    async history(name, page, limit) {
      const rows = await sql<DocumentVersion>`
        select version, value, changed_at, changed_by from config_documents
         where name = ${name} order by version desc limit ${limit} offset ${(page - 1) * limit}`.all(db);
      const count = await sql<{ total: number }>`
        select count(*)::int as total from config_documents where name = ${name}`.first(db);
      return { items: rows, total: count?.total ?? 0 };
    },
    async lastDisabled(name) {
      const row = await sql<{ version: number }>`
        select coalesce(max(version), 0)::int as version from config_documents
         where name = ${name} and value->>'enabled' = 'false'`.first(db);
      return row?.version ?? 0;
    },
    async add(name, document) {
      try {
        await sql`
          insert into config_documents (name, version, value, changed_at, changed_by)
          values (${name}, ${document.version}, ${JSON.stringify(document.value)}::jsonb,
                  ${new Date(document.changedAt)}, ${document.changedBy})`.run(db);
      } catch (error) {
        if (isUniqueViolation(error)) throw new AppError('precondition_failed');
        throw error;
      }
    },
  };
}

/** Strong ETag of a document version. Version 0 is the built-in default. */
export function documentEtag(name: string, version: number, value: unknown): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([name, version, value]))
    .digest('base64url');
  return `"${version}-${digest.slice(0, 16)}"`;
}

/** Refuses a change that is based on an older version (RFC 9110 section 13.1.1). */
export function requireMatch(ifMatch: string | undefined, etag: string): void {
  if (ifMatch === undefined) throw new AppError('precondition_required');
  const sent = ifMatch.split(',').map((part) => part.trim());
  if (!sent.includes(etag) && !sent.includes('*')) throw new AppError('precondition_failed');
}
