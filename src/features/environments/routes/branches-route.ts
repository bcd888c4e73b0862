import { z } from 'zod';
import { callerKinds } from '../../../core/caller.ts';
import { defineRoute, type Route } from '../../../platform/http.ts';
import { plainText } from '../../../platform/schemas.ts';
import type { Branches } from '../preview/branches.ts';
import { repositoryName } from './configuration-schemas.ts';

/** Maximum branches in one response; a search finds the rest. */
const maxBranches = 100;

export function branchesRoute(branches: Branches): Route {
  return defineRoute({
    method: 'GET',
    path: '/environments/branches',
    operationId: 'listBranches',
    tag: 'Environments',
    summary: 'List the branches of a repository',
    description: `Asks the git server. Returns at most ${maxBranches} branches, the default branch first.`,
    policy: { callers: callerKinds, scope: 'env:read', role: 'user', identity: 'people' },
    query: z.strictObject({
      repository: repositoryName,
      search: plainText(200).optional().describe('Part of the name of the branch'),
    }),
    errors: ['repo_not_onboarded', 'invalid_repository', 'git_unavailable'],
    success: {
      status: 200,
      data: z.array(
        z
          .strictObject({
            name: z.string(),
            sha: z.string().describe('The newest commit'),
            isDefault: z.boolean(),
          })
          .meta({ id: 'Branch' }),
      ),
    },
    example: {
      data: [{ name: 'main', sha: '8c36b1a0f2d94b5e7c6a1f3b8d2e4c5a6b7f8091', isDefault: true }],
    },
    async handle({ caller, query }) {
      const found = await branches.list(caller, query.repository, query.search);
      return { data: found.slice(0, maxBranches) };
    },
  });
}
