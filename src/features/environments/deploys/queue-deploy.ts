import type { AuditContext } from '../../../core/caller.ts';
import { newId, type Random } from '../../../core/ids.ts';
import type { Creator, Environment } from '../environment/environment.ts';
import type { EnvironmentStores } from './environments-deps.ts';
import type { Deploy, DeployTrigger } from './deploy.ts';

/**
 * Queues a deploy. It supersedes earlier deploys that have not ended, because people want the newest one. Returns the new
 * deploy, and the Environment for the caller to update in the same transaction.
 */
export async function queueDeploy(
  stores: EnvironmentStores,
  auditContext: AuditContext,
  environment: Environment,
  {
    trigger,
    creator,
    sha = environment.pinnedSha,
  }: {
    readonly trigger: DeployTrigger;
    /** Null: Postern itself. */
    readonly creator: Creator | null;
    /** Null: the newest commit of the branch. */
    readonly sha?: string | null;
  },
  { random, now }: { readonly random: Random; readonly now: number },
): Promise<{ readonly deploy: Deploy; readonly environment: Environment }> {
  await stores.deploys.endAll(environment.id, 'superseded', 'A newer deploy took its place.', now);
  const deploy: Deploy = {
    id: newId(random, 'bld'),
    environmentId: environment.id,
    repositoryId: environment.repositoryId,
    branch: environment.branch,
    sha,
    commitSubject: null,
    trigger,
    status: 'queued',
    message: null,
    fix: null,
    problems: [],
    plan: null,
    creator,
    createdAt: now,
    startedAt: null,
    endedAt: null,
  };
  await stores.deploys.insert(deploy);
  await stores.audit.append({
    event: 'build.created',
    auditContext,
    target: { kind: 'environment', id: environment.id },
    outcome: 'success',
    reason: trigger,
    details: { build: deploy.id, branch: deploy.branch, sha },
  });
  return { deploy, environment: { ...environment, status: 'queued', statusMessage: null, updatedAt: now } };
}
