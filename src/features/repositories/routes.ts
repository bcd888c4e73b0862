import { z } from 'zod';
import { administratorSession } from '../../core/authorize.ts';
import { callerKinds } from '../../core/caller.ts';
import { timestamp } from '../../core/clock.ts';
import { defineRoute, pagePagination, type Route } from '../../platform/http.ts';
import { pageQuery, plainText } from '../../platform/schemas.ts';
import type { Repositories, Repository } from './repositories.ts';
import {
  credentialSetSchema,
  repositoryChangeSchema,
  repositoryCreateSchema,
  repositoryDeletedSchema,
  repositoryParams,
  repositorySchema,
  webhookSchema,
} from './schemas.ts';

const readers = { callers: callerKinds, scope: 'repos:read', role: 'user', identity: 'people' } as const;
// People need the administrator role besides the scope; a service key got the scope from an administrator.
const writers = {
  callers: callerKinds,
  scope: 'repos:write',
  role: 'admin',
  identity: 'introspected',
} as const;

const example = {
  id: 'repo_7bXk2mQ9sTzLr4VnYc3D',
  fullName: 'acme/website',
  cloneUrl: 'https://git.example.com/acme/website.git',
  defaultBranch: 'main',
  environmentDefaults: null,
  credential: null,
  webhook: null,
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.000Z',
};

/** `uiUrl`: the public address of Postern, at which git servers reach it. */
export function repositoryRoutes(repositories: Repositories, { uiUrl }: { uiUrl: string }): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/repositories',
      operationId: 'listRepositories',
      tag: 'Repositories',
      summary: 'List repositories',
      description: 'A key with a repository selection sees only the selected ones.',
      policy: readers,
      query: z.strictObject({
        ...pageQuery,
        search: plainText(200)
          .optional()
          .describe(
            'Part of the full name. Fewer than three letters or digits in a row find only names that begin with them',
          ),
      }),
      success: { status: 200, data: z.array(repositorySchema), pagination: 'page' },
      example: { data: [example] },
      async handle({ caller, query }) {
        const { items, total } = await repositories.list(caller, query.search, query.page, query.limit);
        return { data: items.map(toResponse), pagination: pagePagination(query.page, query.limit, total) };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/repositories',
      operationId: 'createRepository',
      tag: 'Repositories',
      summary: 'Register a repository',
      description:
        'Only an administrator in the web app can send `secretBranches` in `environmentDefaults`: it decides which branches get the secrets of the repository.',
      policy: writers,
      body: repositoryCreateSchema,
      errors: ['name_conflict', 'forbidden_repository', 'interactive_auth_required'],
      success: { status: 201, data: repositorySchema },
      example: {
        body: { fullName: example.fullName, cloneUrl: example.cloneUrl, defaultBranch: 'main' },
        data: example,
      },
      async handle({ caller, auditContext, body }) {
        return { data: toResponse(await repositories.create(caller, auditContext, body)) };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/repositories/{owner}/{name}',
      operationId: 'getRepository',
      tag: 'Repositories',
      summary: 'Read a repository',
      policy: readers,
      params: repositoryParams,
      errors: ['repo_not_onboarded'],
      success: { status: 200, data: repositorySchema },
      example: { data: example },
      async handle({ caller, params }) {
        return { data: toResponse(await repositories.get(caller, nameOf(params))) };
      },
    }),
    defineRoute({
      method: 'PATCH',
      path: '/repositories/{owner}/{name}',
      operationId: 'changeRepository',
      tag: 'Repositories',
      summary: 'Rename or change a repository',
      description:
        'Keys are bound to the repository, not to its name: a rename neither widens nor breaks them. A key with a repository selection cannot rename. Only an administrator in the web app can change what decides which code gets the secrets of the repository: `cloneUrl`, `defaultBranch`, and `secretBranches` in `environmentDefaults`.',
      policy: writers,
      params: repositoryParams,
      body: repositoryChangeSchema,
      errors: ['repo_not_onboarded', 'name_conflict', 'forbidden_repository', 'interactive_auth_required'],
      success: { status: 200, data: repositorySchema },
      example: { body: { fullName: 'acme/web' }, data: { ...example, fullName: 'acme/web' } },
      async handle({ caller, auditContext, params, body }) {
        return { data: toResponse(await repositories.change(caller, auditContext, nameOf(params), body)) };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/repositories/{owner}/{name}',
      operationId: 'deleteRepository',
      tag: 'Repositories',
      summary: 'Remove a repository from the registry',
      description:
        'Removes the repository from the selection of every key. A key with an empty selection may use no repository.',
      policy: writers,
      params: repositoryParams,
      errors: ['repo_not_onboarded'],
      success: { status: 200, data: repositoryDeletedSchema },
      example: { data: { id: example.id, fullName: example.fullName } },
      async handle({ caller, auditContext, params }) {
        const { id, fullName } = await repositories.remove(caller, auditContext, nameOf(params));
        return { data: { id, fullName } };
      },
    }),
    defineRoute({
      method: 'PUT',
      path: '/repositories/{owner}/{name}/credential',
      operationId: 'setRepositoryCredential',
      tag: 'Repositories',
      summary: 'Set the credential for the git server',
      description:
        'With it Postern reads a repository that is not public. It is stored encrypted and never shown. It is sent only to the host of the clone URL, and removed when the clone URL changes.',
      policy: { ...administratorSession, freshProof: 'always' },
      params: repositoryParams,
      body: credentialSetSchema,
      errors: ['repo_not_onboarded'],
      success: { status: 200, data: repositorySchema },
      example: {
        body: { token: 'glpat-…' },
        data: { ...example, credential: { kind: 'token', setAt: example.createdAt } },
      },
      async handle({ caller, auditContext, params, body }) {
        return {
          data: toResponse(await repositories.setCredential(caller, auditContext, nameOf(params), body)),
        };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/repositories/{owner}/{name}/credential',
      operationId: 'removeRepositoryCredential',
      tag: 'Repositories',
      summary: 'Remove the credential for the git server',
      policy: administratorSession,
      params: repositoryParams,
      errors: ['repo_not_onboarded'],
      success: { status: 200, data: repositorySchema },
      example: { data: example },
      async handle({ caller, auditContext, params }) {
        return {
          data: toResponse(await repositories.removeCredential(caller, auditContext, nameOf(params))),
        };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/repositories/{owner}/{name}/webhook',
      operationId: 'createRepositoryWebhook',
      tag: 'Repositories',
      summary: 'Create or replace the secret of the webhook',
      description:
        'With a webhook, Postern knows of a push at once. Store both values in the settings of the repository at GitHub or GitLab. The secret is stored encrypted and shown once. It replaces the one before, which is refused from then on.',
      policy: writers,
      params: repositoryParams,
      errors: ['repo_not_onboarded'],
      success: { status: 201, data: webhookSchema },
      example: {
        data: { url: `https://postern.example.com/api/v2/webhooks/git/${example.id}`, secret: 'Zk3…' },
      },
      async handle({ caller, auditContext, params }) {
        const { repository, secret } = await repositories.newWebhook(caller, auditContext, nameOf(params));
        return { data: { url: `${uiUrl}/api/v2/webhooks/git/${repository.id}`, secret } };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/repositories/{owner}/{name}/webhook',
      operationId: 'removeRepositoryWebhook',
      tag: 'Repositories',
      summary: 'Remove the secret of the webhook',
      description: 'Webhooks of the repository are refused from then on.',
      policy: writers,
      params: repositoryParams,
      errors: ['repo_not_onboarded'],
      success: { status: 200, data: repositorySchema },
      example: { data: example },
      async handle({ caller, auditContext, params }) {
        return { data: toResponse(await repositories.removeWebhook(caller, auditContext, nameOf(params))) };
      },
    }),
  ];
}

function nameOf({ owner, name }: { owner: string; name: string }): string {
  return `${owner}/${name}`;
}

function toResponse(repository: Repository) {
  return {
    ...repository,
    credential:
      repository.credential === null
        ? null
        : { kind: repository.credential.kind, setAt: timestamp(repository.credential.setAt) },
    webhook: repository.webhook === null ? null : { setAt: timestamp(repository.webhook.setAt) },
    createdAt: timestamp(repository.createdAt),
    updatedAt: timestamp(repository.updatedAt),
  };
}
