import { type NewEnvironmentNotice, recipientOf } from '../../notices/notices.ts';
import type { Environment } from '../environment.ts';
import type { Deploy } from './deploy.ts';

/** Of a sentence that another program may have written in part. */
const maxReason = 300;

/** Tells the creator of the Environment that a deploy failed: once for each commit, however often it is tried again. */
export function deployNotice(
  { id, uuid, creator, liveDeployId }: Environment,
  deploy: Deploy,
  reason: string,
): NewEnvironmentNotice {
  return {
    recipient: recipientOf(creator),
    kind: 'environment_deploy_failed',
    environmentId: id,
    occasion: deploy.sha ?? deploy.id,
    fields: {
      environmentName: uuid,
      branch: deploy.branch,
      ...(deploy.sha === null ? {} : { sha: deploy.sha.slice(0, 12) }),
      reason: reason.slice(0, maxReason),
      isServed: liveDeployId !== null,
    },
  };
}
