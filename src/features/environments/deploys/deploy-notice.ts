import { type NewEnvironmentNotice, recipientOf } from '../../notices/notices.ts';
import type { Environment } from '../environment/environment.ts';
import type { Deploy } from './deploy.ts';

/** Maximum characters of the reason, which may quote another program. */
const maxReason = 300;

/** Notifies the creator of the Environment of a failed deploy: once for each commit, or for each reason why the branch cannot be read. */
export function deployNotice(
  { id, uuid, creator, liveDeployId }: Environment,
  deploy: Deploy,
  reason: string,
): NewEnvironmentNotice {
  // PostgreSQL does not store half of a surrogate pair as JSON.
  const text = reason.slice(0, maxReason).toWellFormed();
  return {
    recipient: recipientOf(creator),
    kind: 'environment_deploy_failed',
    environmentId: id,
    occasion: deploy.sha ?? text,
    fields: {
      environmentName: uuid,
      branch: deploy.branch,
      ...(deploy.sha === null ? {} : { sha: deploy.sha.slice(0, 12) }),
      reason: text,
      isServed: liveDeployId !== null,
    },
  };
}
