import { z } from 'zod';
import { callerKinds, type RequestOrigin } from '../../../core/caller.ts';
import { defineRoute, type Route } from '../../../platform/http.ts';
import type { Branches } from '../preview/branches.ts';
import type { EnvironmentPolicy } from '../policy/environment-policy.ts';
import { type PlannedEnvironment, previewOf } from '../preview/preview.ts';
import { configurationPreviewSchema, repositoryName } from './configuration-schemas.ts';
import { branchName } from '../../../platform/schemas.ts';

export function previewRoute({
  branches,
  policy,
  reportKeys,
}: {
  readonly branches: Pick<Branches, 'configurationFile'>;
  /** The policy in force. */
  readonly policy: () => Promise<EnvironmentPolicy>;
  /** Notifies the owners of live keys in the text. */
  readonly reportKeys: (text: string, origin: RequestOrigin) => void;
}): Route {
  return defineRoute({
    method: 'GET',
    path: '/environments/config-preview',
    operationId: 'previewConfiguration',
    tag: 'Environments',
    summary: 'Preview an Environment of a branch',
    description:
      'Reads postern.yaml at the newest commit of the branch from the git server. Returns its problems, or what an Environment of it would be under the policy in force. Starts nothing.',
    policy: { callers: callerKinds, scope: 'env:read', role: 'user', identity: 'people' },
    query: z.strictObject({
      repository: repositoryName,
      branch: branchName.optional().describe('Default: the default branch of the repository'),
    }),
    errors: ['repo_not_onboarded', 'invalid_repository', 'invalid_branch', 'git_unavailable'],
    success: { status: 200, data: configurationPreviewSchema },
    example: {
      data: {
        branch: 'main',
        sha: '8c36b1a0f2d94b5e7c6a1f3b8d2e4c5a6b7f8091',
        valid: true,
        problems: [],
        planned: {
          access: 'members',
          ttlHours: 72,
          autoTrack: true,
          services: [
            { name: 'api', kind: 'process', isExposed: false, routes: {} },
            { name: 'web', kind: 'static', isExposed: true, routes: { '/api': 'api' } },
          ],
          levels: [['api'], ['web']],
        },
      },
    },
    async handle({ caller, query, origin }) {
      const file = await branches.configurationFile(caller, query.repository, query.branch);
      const { text, sha, branch } = file;
      const commit = { branch, sha };
      if (text === null)
        return { data: { ...commit, valid: false, problems: [file.missing], planned: null } };
      reportKeys(text, origin);
      const preview = previewOf(text, commit, await policy());
      return {
        data:
          preview.kind === 'problems'
            ? { ...commit, valid: false, problems: [...preview.problems], planned: null }
            : { ...commit, valid: true, problems: [], planned: toResponse(preview.planned) },
      };
    },
  });
}

function toResponse({ access, ttlHours, autoTrack, services, levels }: PlannedEnvironment) {
  return {
    access,
    ttlHours,
    autoTrack,
    services: services.map((service) => ({ ...service })),
    levels: levels.map((names) => [...names]),
  };
}
