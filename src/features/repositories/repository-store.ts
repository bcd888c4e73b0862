import { AppError } from '../../core/errors.ts';
import { isUniqueViolation } from '../../platform/database/database.ts';
import { type Sql, sql } from '../../platform/database/sql.ts';
import { searched } from '../../platform/database/values.ts';
import type { GitCredential } from '../../platform/git/git.ts';
import type { Repository } from './repository.ts';

/** SQL of the table of repositories. Credentials and webhooks have separate stores. */
export type RepositoryStore = {
  findById(id: string): Promise<Repository | undefined>;
  find(fullName: string): Promise<Repository | undefined>;
  /** The same, and locks the row until the transaction ends. */
  hold(fullName: string): Promise<Repository | undefined>;
  /** Repositories by name, case-folded; names that are not registered are absent from the answer. */
  findAll(fullNames: readonly string[]): Promise<Repository[]>;
  list(
    reach: readonly string[] | 'all',
    search: string | undefined,
    page: number,
    limit: number,
  ): Promise<{ items: Repository[]; total: number }>;
  insert(repository: Repository): Promise<void>;
  /** @throws AppError repo_not_onboarded when it is gone; so does remove */
  update(repository: Repository): Promise<void>;
  remove(id: string): Promise<void>;
};

type Row = Omit<Repository, 'credential' | 'webhook'> & {
  readonly credentialKind: GitCredential['kind'] | null;
  readonly credentialSetAt: number | null;
  readonly webhookSetAt: number | null;
};

const selected = sql`
  select r.id, r.full_name, r.clone_url, r.default_branch, r.environment_defaults, r.created_at, r.updated_at,
         c.kind as credential_kind, c.set_at as credential_set_at, w.set_at as webhook_set_at
    from repositories r
    left join repository_credentials c on c.repository_id = r.id
    left join repository_webhooks w on w.repository_id = r.id`;

export function repositoryStore(db: Sql): RepositoryStore {
  return {
    async findById(id) {
      const row = await sql<Row>`${selected} where r.id = ${id}`.first(db);
      return row && toRepository(row);
    },
    async find(fullName) {
      const row = await sql<Row>`
        ${selected} where r.full_name_key = ${fullName.toLowerCase()}`.first(db);
      return row && toRepository(row);
    },
    async hold(fullName) {
      const row = await sql<Row>`
        ${selected} where r.full_name_key = ${fullName.toLowerCase()} for update of r`.first(db);
      return row && toRepository(row);
    },
    async findAll(fullNames) {
      const keys = JSON.stringify(fullNames.map((name) => name.toLowerCase()));
      const rows = await sql<Row>`
        ${selected}
         where r.full_name_key in (select jsonb_array_elements_text(${keys}::jsonb)) order by r.full_name_key`.all(
        db,
      );
      return rows.map(toRepository);
    },
    async list(reach, search, page, limit) {
      const within =
        reach === 'all'
          ? sql`true`
          : sql`r.id in (select jsonb_array_elements_text(${JSON.stringify(reach)}::jsonb))`;
      const where =
        search === undefined ? within : sql`${within} and r.full_name_key like ${searched(search)}`;
      const rows = await sql<Row>`
        ${selected} where ${where}
         order by r.full_name_key limit ${limit} offset ${(page - 1) * limit}`.all(db);
      const count = await sql<{
        total: number;
      }>`select count(*)::int as total from repositories r where ${where}`.first(db);
      return { items: rows.map(toRepository), total: count?.total ?? 0 };
    },
    async insert(repository) {
      await guardName(
        sql`insert into repositories (id, full_name, full_name_key, clone_url, default_branch, environment_defaults, created_at, updated_at)
            values (${repository.id}, ${repository.fullName}, ${repository.fullName.toLowerCase()}, ${repository.cloneUrl},
                    ${repository.defaultBranch}, ${toJson(repository.environmentDefaults)}::jsonb,
                    ${new Date(repository.createdAt)}, ${new Date(repository.updatedAt)})`.run(db),
      );
    },
    async update(repository) {
      const changed = await guardName(
        sql`update repositories
               set full_name = ${repository.fullName}, full_name_key = ${repository.fullName.toLowerCase()},
                   clone_url = ${repository.cloneUrl}, default_branch = ${repository.defaultBranch},
                   environment_defaults = ${toJson(repository.environmentDefaults)}::jsonb,
                   updated_at = ${new Date(repository.updatedAt)}
             where id = ${repository.id}`.run(db),
      );
      if (changed === 0) throw new AppError('repo_not_onboarded');
    },
    async remove(id) {
      const removed = await sql`delete from repositories where id = ${id}`.run(db);
      if (removed === 0) throw new AppError('repo_not_onboarded');
    },
  };
}

async function guardName<T>(statement: Promise<T>): Promise<T> {
  try {
    return await statement;
  } catch (error) {
    if (isUniqueViolation(error))
      throw new AppError('name_conflict', { message: 'A repository with this name is already registered.' });
    throw error;
  }
}

function toJson(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

function toRepository({ credentialKind: kind, credentialSetAt, webhookSetAt, ...row }: Row): Repository {
  return {
    ...row,
    credential: kind === null || credentialSetAt === null ? null : { kind, setAt: credentialSetAt },
    webhook: webhookSetAt === null ? null : { setAt: webhookSetAt },
  };
}
