import { sql } from 'kysely';
import { canReachRepository, reachOf } from '../../core/authorize.ts';
import type { AuditContext, Caller, CallerKey } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { newId, type Random } from '../../core/ids.ts';
import type { ChangeFeed, ChangeStore } from '../../platform/database/change-feed.ts';
import { isUniqueViolation, type Sql, type Tx } from '../../platform/database/database.ts';
import { searched } from '../../platform/database/values.ts';
import type { Encryption } from '../../platform/encryption.ts';
import type { GitCredential, GitRemote } from '../../platform/git/git.ts';
import type { AuditWriter } from '../audit/audit.ts';
import { credentialFor, type CredentialInput, encryptCredential, readCredential } from './credential.ts';
import type { CredentialStore } from './credential-store.ts';
import { encryptWebhook, newWebhookSecret, readWebhookSecret } from './webhook.ts';
import type { WebhookStore } from './webhook-store.ts';

/**
 * The registry of the git repositories to which keys can be restricted (contract 4). Keys store ids, so a rename here
 * neither widens nor breaks a key. A caller sees only the repositories within reach; for others the answer is that they
 * do not exist.
 */
export type Repository = {
  readonly id: string;
  readonly fullName: string;
  readonly cloneUrl: string;
  readonly defaultBranch: string;
  readonly environmentDefaults: Readonly<Record<string, unknown>> | null;
  /** Whether Postern has a credential for the git server; never the credential. */
  readonly credential: { readonly kind: GitCredential['kind']; readonly setAt: number } | null;
  /** Whether Postern has a secret for webhooks of the git server; never the secret. */
  readonly webhook: { readonly setAt: number } | null;
  readonly createdAt: number;
  readonly updatedAt: number;
};

export type RepositoryInput = Pick<Repository, 'fullName' | 'cloneUrl' | 'defaultBranch'> & {
  readonly environmentDefaults?: Readonly<Record<string, unknown>> | null | undefined;
};

export type RepositoryChange = {
  readonly [Field in keyof RepositoryInput]?: RepositoryInput[Field] | undefined;
};

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

type Row = {
  id: string;
  full_name: string;
  clone_url: string;
  default_branch: string;
  environment_defaults: Record<string, unknown> | null;
  credential_kind: GitCredential['kind'] | null;
  credential_set_at: Date | null;
  webhook_set_at: Date | null;
  created_at: Date;
  updated_at: Date;
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
      const { rows } = await sql<Row>`${selected} where r.id = ${id}`.execute(db);
      return rows[0] && toRepository(rows[0]);
    },
    async find(fullName) {
      const { rows } = await sql<Row>`
        ${selected} where r.full_name_key = ${fullName.toLowerCase()}`.execute(db);
      return rows[0] && toRepository(rows[0]);
    },
    async hold(fullName) {
      const { rows } = await sql<Row>`
        ${selected} where r.full_name_key = ${fullName.toLowerCase()} for update of r`.execute(db);
      return rows[0] && toRepository(rows[0]);
    },
    async findAll(fullNames) {
      const keys = JSON.stringify(fullNames.map((name) => name.toLowerCase()));
      const { rows } = await sql<Row>`
        ${selected}
         where r.full_name_key in (select jsonb_array_elements_text(${keys}::jsonb)) order by r.full_name_key`.execute(
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
      const { rows } = await sql<Row>`
        ${selected} where ${where}
         order by r.full_name_key limit ${limit} offset ${(page - 1) * limit}`.execute(db);
      const count = await sql<{
        total: number;
      }>`select count(*)::int as total from repositories r where ${where}`.execute(db);
      return { items: rows.map(toRepository), total: count.rows[0]?.total ?? 0 };
    },
    async insert(repository) {
      await guardName(
        sql`insert into repositories (id, full_name, full_name_key, clone_url, default_branch, environment_defaults, created_at, updated_at)
            values (${repository.id}, ${repository.fullName}, ${repository.fullName.toLowerCase()}, ${repository.cloneUrl},
                    ${repository.defaultBranch}, ${toJson(repository.environmentDefaults)}::jsonb,
                    ${new Date(repository.createdAt)}, ${new Date(repository.updatedAt)})`.execute(db),
      );
    },
    async update(repository) {
      const { rows } = await guardName(
        sql`update repositories
               set full_name = ${repository.fullName}, full_name_key = ${repository.fullName.toLowerCase()},
                   clone_url = ${repository.cloneUrl}, default_branch = ${repository.defaultBranch},
                   environment_defaults = ${toJson(repository.environmentDefaults)}::jsonb,
                   updated_at = ${new Date(repository.updatedAt)}
             where id = ${repository.id} returning id`.execute(db),
      );
      if (rows.length === 0) throw new AppError('repo_not_onboarded');
    },
    async remove(id) {
      const { rows } = await sql`delete from repositories where id = ${id} returning id`.execute(db);
      if (rows.length === 0) throw new AppError('repo_not_onboarded');
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

export type Repositories = {
  list(
    caller: Caller,
    search: string | undefined,
    page: number,
    limit: number,
  ): Promise<{ items: Repository[]; total: number }>;
  get(caller: Caller, fullName: string): Promise<Repository>;
  create(caller: Caller, auditContext: AuditContext, input: RepositoryInput): Promise<Repository>;
  change(
    caller: Caller,
    auditContext: AuditContext,
    fullName: string,
    change: RepositoryChange,
  ): Promise<Repository>;
  remove(caller: Caller, auditContext: AuditContext, fullName: string): Promise<Repository>;
  /** Replaces the credential for the git server. @throws AppError invalid_body when it does not fit the clone URL */
  setCredential(
    caller: Caller,
    auditContext: AuditContext,
    fullName: string,
    input: CredentialInput,
  ): Promise<Repository>;
  removeCredential(caller: Caller, auditContext: AuditContext, fullName: string): Promise<Repository>;
  /** Generates a secret for webhooks of the git server; it replaces the one before. The secret is in no later answer. */
  newWebhook(
    caller: Caller,
    auditContext: AuditContext,
    fullName: string,
  ): Promise<{ repository: Repository; secret: string }>;
  removeWebhook(caller: Caller, auditContext: AuditContext, fullName: string): Promise<Repository>;
  /** For work of Postern itself, which no caller asked for just now. Undefined when it is not registered any more. */
  find(id: string): Promise<Repository | undefined>;
  /** Where git finds it, with its credential; undefined when it is not registered. No caller may see the credential. */
  remoteOf(repositoryId: string): Promise<GitRemote | undefined>;
  /** For git alone: no caller may see it. */
  credentialOf(repositoryId: string): Promise<GitCredential | null>;
  /** For the verification of webhooks alone: no caller may see it. Undefined when the repository has none. */
  webhookSecretOf(repositoryId: string): Promise<string | undefined>;
};

export type RepositoryDeps = {
  read: {
    repositories: RepositoryStore;
    repositoryCredentials: CredentialStore;
    repositoryWebhooks: WebhookStore;
  };
  encryption: Encryption;
  /** True: clone URLs may begin with file://. */
  allowsFiles: boolean;
  tx: Tx<{
    repositories: RepositoryStore;
    repositoryCredentials: CredentialStore;
    repositoryWebhooks: WebhookStore;
    audit: AuditWriter;
    changes: ChangeStore;
    /** A write by a key commits only while the key is valid (contract 4). */
    keys: { holdLive(id: string, now: number, asked: CallerKey): Promise<void> };
  }>;
  feed: Pick<ChangeFeed, 'announce'>;
  clock: Clock;
  random: Random;
};

export function createRepositories({
  read,
  encryption,
  allowsFiles,
  tx,
  feed,
  clock,
  random,
}: RepositoryDeps): Repositories {
  type Stores = Parameters<Parameters<typeof tx>[0]>[0];

  async function write<T extends Repository>(
    caller: Caller,
    work: (stores: Stores) => Promise<T>,
  ): Promise<T> {
    const result = await tx(async (stores) => {
      if ('key' in caller) await stores.keys.holdLive(caller.key.id, clock.now(), caller.key);
      const written = await work(stores);
      await stores.changes.publish({ topic: 'repository', subject: written.id });
      return written;
    });
    feed.announce({ topic: 'repository', subject: result.id });
    return result;
  }

  async function reach(caller: Caller, finding: Promise<Repository | undefined>): Promise<Repository> {
    const repository = await finding;
    // Same answer for a repository that is out of reach and one that does not exist.
    if (!repository || !canReachRepository(caller, repository.id)) throw new AppError('repo_not_onboarded');
    return repository;
  }

  return {
    async list(caller, search, page, limit) {
      return await read.repositories.list(reachOf(caller), search, page, limit);
    },
    get: (caller, fullName) => reach(caller, read.repositories.find(fullName)),
    async create(caller, auditContext, input) {
      refuseSelected(caller);
      refuseFile(input.cloneUrl);
      if (secretBranchesOf(input) !== undefined) requireSession(caller, 'secretBranches');
      const now = clock.now();
      const repository: Repository = {
        id: newId(random, 'repo'),
        fullName: input.fullName,
        cloneUrl: input.cloneUrl,
        defaultBranch: input.defaultBranch,
        environmentDefaults: input.environmentDefaults ?? null,
        credential: null,
        webhook: null,
        createdAt: now,
        updatedAt: now,
      };
      return await write(caller, async (stores) => {
        await stores.repositories.insert(repository);
        await stores.audit.append({
          event: 'repository.created',
          auditContext,
          target: { kind: 'repository', id: repository.id },
          outcome: 'success',
          details: { after: facts(repository) },
        });
        return repository;
      });
    },
    async change(caller, auditContext, fullName, change) {
      refuseFile(change.cloneUrl);
      return await write(caller, async (stores) => {
        const before = await reach(caller, stores.repositories.hold(fullName));
        if (change.fullName !== undefined && change.fullName !== before.fullName) refuseSelected(caller);
        const after: Repository = {
          ...before,
          fullName: change.fullName ?? before.fullName,
          cloneUrl: change.cloneUrl ?? before.cloneUrl,
          defaultBranch: change.defaultBranch ?? before.defaultBranch,
          environmentDefaults:
            change.environmentDefaults === undefined
              ? before.environmentDefaults
              : change.environmentDefaults,
          updatedAt: clock.now(),
        };
        for (const [field, of] of decidingCode) if (of(after) !== of(before)) requireSession(caller, field);
        await stores.repositories.update(after);
        await stores.audit.append({
          event: 'repository.changed',
          auditContext,
          target: { kind: 'repository', id: before.id },
          outcome: 'success',
          details: { before: facts(before), after: facts(after) },
        });
        if (after.cloneUrl === before.cloneUrl) return after;
        // It was given for the earlier address. Otherwise a new address could be chosen to receive it.
        return await dropCredential(stores, auditContext, after, 'clone_url_changed');
      });
    },
    async remove(caller, auditContext, fullName) {
      return await write(caller, async (stores) => {
        const repository = await reach(caller, stores.repositories.hold(fullName));
        await dropCredential(stores, auditContext, repository, 'repository_deleted');
        await dropWebhook(stores, auditContext, repository, 'repository_deleted');
        await stores.repositories.remove(repository.id);
        await stores.audit.append({
          event: 'repository.deleted',
          auditContext,
          target: { kind: 'repository', id: repository.id },
          outcome: 'success',
          details: { before: facts(repository) },
        });
        return repository;
      });
    },
    async setCredential(caller, auditContext, fullName, input) {
      return await write(caller, async (stores) => {
        const repository = await reach(caller, stores.repositories.hold(fullName));
        const credential = credentialFor(repository.cloneUrl, input);
        const setAt = clock.now();
        await stores.repositoryCredentials.put({
          ...encryptCredential(encryption, repository.id, credential),
          setAt,
        });
        await stores.audit.append({
          event: 'repository.credential_set',
          auditContext,
          target: { kind: 'repository', id: repository.id },
          outcome: 'success',
          details: { kind: credential.kind, origin: credential.origin },
        });
        return { ...repository, credential: { kind: credential.kind, setAt } };
      });
    },
    async removeCredential(caller, auditContext, fullName) {
      return await write(caller, async (stores) => {
        const repository = await reach(caller, stores.repositories.hold(fullName));
        return await dropCredential(stores, auditContext, repository, 'removed');
      });
    },
    async newWebhook(caller, auditContext, fullName) {
      const secret = newWebhookSecret(random);
      const repository = await write(caller, async (stores) => {
        const before = await reach(caller, stores.repositories.hold(fullName));
        const setAt = clock.now();
        await stores.repositoryWebhooks.put({ ...encryptWebhook(encryption, before.id, secret), setAt });
        await stores.audit.append({
          event: 'repository.webhook_set',
          auditContext,
          target: { kind: 'repository', id: before.id },
          outcome: 'success',
        });
        return { ...before, webhook: { setAt } };
      });
      return { repository, secret };
    },
    async removeWebhook(caller, auditContext, fullName) {
      return await write(caller, async (stores) => {
        const repository = await reach(caller, stores.repositories.hold(fullName));
        return await dropWebhook(stores, auditContext, repository, 'removed');
      });
    },
    find: read.repositories.findById,
    async remoteOf(repositoryId) {
      const found = await read.repositories.findById(repositoryId);
      if (found === undefined) return undefined;
      const credential = await readCredential(read.repositoryCredentials, encryption, repositoryId);
      return { id: repositoryId, cloneUrl: found.cloneUrl, credential };
    },
    credentialOf: (repositoryId) => readCredential(read.repositoryCredentials, encryption, repositoryId),
    webhookSecretOf: (repositoryId) => readWebhookSecret(read.repositoryWebhooks, encryption, repositoryId),
  };

  function refuseFile(cloneUrl: string | undefined): void {
    if (allowsFiles || !cloneUrl?.startsWith('file:')) return;
    throw new AppError('invalid_body', {
      message: 'cloneUrl begins with file://, which is not allowed here.',
      hint: 'Send an https or ssh address. For trials on one machine, an operator can set ENVIRONMENTS_ALLOW_FILE_REPOSITORIES=true.',
    });
  }

  async function dropCredential(
    stores: Stores,
    auditContext: AuditContext,
    repository: Repository,
    reason: 'removed' | 'clone_url_changed' | 'repository_deleted',
  ): Promise<Repository> {
    const removed = await stores.repositoryCredentials.remove(repository.id);
    if (removed === undefined) return repository;
    await stores.audit.append({
      event: 'repository.credential_removed',
      auditContext,
      target: { kind: 'repository', id: repository.id },
      outcome: 'success',
      reason,
      details: { kind: removed.kind, origin: removed.origin },
    });
    return { ...repository, credential: null };
  }

  async function dropWebhook(
    stores: Stores,
    auditContext: AuditContext,
    repository: Repository,
    reason: 'removed' | 'repository_deleted',
  ): Promise<Repository> {
    if (!(await stores.repositoryWebhooks.remove(repository.id))) return repository;
    await stores.audit.append({
      event: 'repository.webhook_removed',
      auditContext,
      target: { kind: 'repository', id: repository.id },
      outcome: 'success',
      reason,
    });
    return { ...repository, webhook: null };
  }
}

/** Names are unique over all repositories, so a conflict would reveal to a restricted caller a repository that it may not see. */
function refuseSelected(caller: Caller): void {
  if (reachOf(caller) === 'all') return;
  throw new AppError('forbidden_repository', {
    message: 'A credential with a repository selection cannot register or rename repositories.',
  });
}

const secretBranchesOf = ({ environmentDefaults }: Pick<RepositoryInput, 'environmentDefaults'>) =>
  environmentDefaults?.['secretBranches'];

/** What decides which code gets the secrets of the repository, by field. */
const decidingCode: readonly (readonly [string, (repository: Repository) => unknown])[] = [
  ['cloneUrl', ({ cloneUrl }) => cloneUrl],
  ['defaultBranch', ({ defaultBranch }) => defaultBranch],
  ['secretBranches', secretBranchesOf],
];

/** Without this check, a thief of a key with repos:write could run any code with the secrets (decision 0083). */
function requireSession(caller: Caller, field: string): void {
  if (caller.kind === 'session') return;
  throw new AppError('interactive_auth_required', {
    message: `A key or token cannot change ${field}: it decides which code gets the secrets of the repository.`,
    hint: 'Make the change with the session of an administrator.',
  });
}

function facts(repository: Repository) {
  const { fullName, cloneUrl, defaultBranch, environmentDefaults } = repository;
  return { fullName, cloneUrl, defaultBranch, environmentDefaults };
}

function toJson(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

function toRepository(row: Row): Repository {
  return {
    id: row.id,
    fullName: row.full_name,
    cloneUrl: row.clone_url,
    defaultBranch: row.default_branch,
    environmentDefaults: row.environment_defaults,
    credential:
      row.credential_kind === null || row.credential_set_at === null
        ? null
        : { kind: row.credential_kind, setAt: row.credential_set_at.getTime() },
    webhook: row.webhook_set_at === null ? null : { setAt: row.webhook_set_at.getTime() },
    createdAt: row.created_at.getTime(),
    updatedAt: row.updated_at.getTime(),
  };
}
