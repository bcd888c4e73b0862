import { canReachRepository, reachOf } from '../../core/authorize.ts';
import type { AuditContext, Caller, KeyCaller } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { newId, type Random } from '../../core/ids.ts';
import type { ChangeStore } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Encryption } from '../../platform/encryption.ts';
import type { GitCredential, GitRemote } from '../../platform/git/git.ts';
import type { AuditEntry, AuditWriter } from '../audit/audit.ts';
import { credentialFor, type CredentialInput, encryptCredential, readCredential } from './credential.ts';
import type { CredentialStore } from './credential-store.ts';
import type { Repository, RepositoryChange, RepositoryInput } from './repository.ts';
import {
  decidingCode,
  facts,
  refuseFile,
  refuseSelected,
  requireSession,
  secretBranchesOf,
} from './repository-rules.ts';
import type { RepositoryStore } from './repository-store.ts';
import { encryptWebhook, newWebhookSecret, readWebhookSecret } from './webhook.ts';
import type { WebhookStore } from './webhook-store.ts';

export type { Repository } from './repository.ts';
export { type RepositoryStore, repositoryStore } from './repository-store.ts';

/**
 * The registry of the git repositories to which keys can be restricted (contract 4). Keys store ids, so a rename here
 * neither widens nor breaks a key. A caller sees only the repositories within reach; for others the answer is that they
 * do not exist.
 */
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
    keys: { holdLive(caller: KeyCaller, now: number): Promise<void> };
  }>;
  clock: Clock;
  random: Random;
};

export function createRepositories({
  read,
  encryption,
  allowsFiles,
  tx,
  clock,
  random,
}: RepositoryDeps): Repositories {
  type Stores = Parameters<Parameters<typeof tx>[0]>[0];

  async function write<T extends Repository>(
    caller: Caller,
    work: (stores: Stores) => Promise<T>,
  ): Promise<T> {
    return await tx(async (stores) => {
      if ('key' in caller) await stores.keys.holdLive(caller, clock.now());
      const written = await work(stores);
      await stores.changes.publish({ topic: 'repository', subject: written.id });
      return written;
    });
  }

  /** Records a change in the transaction that makes it. */
  async function record(
    stores: Stores,
    auditContext: AuditContext,
    id: string,
    entry: Pick<AuditEntry, 'event' | 'reason' | 'details'>,
  ): Promise<void> {
    const target = { kind: 'repository', id } as const;
    await stores.audit.append({ ...entry, auditContext, target, outcome: 'success' });
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
      refuseFile(input.cloneUrl, allowsFiles);
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
        await record(stores, auditContext, repository.id, {
          event: 'repository.created',
          details: { after: facts(repository) },
        });
        return repository;
      });
    },
    async change(caller, auditContext, fullName, change) {
      refuseFile(change.cloneUrl, allowsFiles);
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
        await record(stores, auditContext, before.id, {
          event: 'repository.changed',
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
        await record(stores, auditContext, repository.id, {
          event: 'repository.deleted',
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
        await record(stores, auditContext, repository.id, {
          event: 'repository.credential_set',
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
        await record(stores, auditContext, before.id, { event: 'repository.webhook_set' });
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

  async function dropCredential(
    stores: Stores,
    auditContext: AuditContext,
    repository: Repository,
    reason: 'removed' | 'clone_url_changed' | 'repository_deleted',
  ): Promise<Repository> {
    const removed = await stores.repositoryCredentials.remove(repository.id);
    if (removed === undefined) return repository;
    await record(stores, auditContext, repository.id, {
      event: 'repository.credential_removed',
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
    await record(stores, auditContext, repository.id, { event: 'repository.webhook_removed', reason });
    return { ...repository, webhook: null };
  }
}
