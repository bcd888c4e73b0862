import { systemAuditContext } from '../../../core/caller.ts';
import type { Deploy, DeployStep } from '../deploys/deploy.ts';
import { hasEnded } from '../deploys/deploy.ts';
import { deployNotice } from '../deploys/deploy-notice.ts';
import { type Environment, type EnvironmentService, isEnding } from '../environment/environment.ts';
import type { EnvironmentStores } from '../deploys/environments-deps.ts';
import type { ReconcilerDeps } from './deps.ts';

type Rows = { readonly environment: Environment; readonly deploy: Deploy };

/**
 * Writes the result of a step. If the deploy has ended meanwhile (cancelled, superseded or torn down), it writes nothing and
 * returns false.
 */
export function recording({ tx, clock }: Pick<ReconcilerDeps, 'tx' | 'clock'>) {
  return async (
    deploy: Deploy,
    work: (rows: Rows, stores: EnvironmentStores, now: number) => Promise<Rows> | Rows,
  ): Promise<boolean> => {
    return await tx(async (stores) => {
      const environment = await stores.environments.hold(deploy.environmentId);
      const current = await stores.deploys.hold(deploy.id);
      if (environment === undefined || current === undefined) return false;
      if (hasEnded(current) || isEnding(environment)) return false;
      const now = clock.now();
      const after = await work({ environment, deploy: current }, stores, now);
      if (hasEnded(after.deploy)) await recordOutcome(after, stores);
      await stores.deploys.update(after.deploy);
      await stores.environments.update({ ...after.environment, updatedAt: now });
      await stores.changes.publish({ topic: 'environment', subject: environment.id });
      return true;
    });
  };
}

/** Writes the outcome to the audit log, and notifies the creator of a failure. */
async function recordOutcome(
  { environment, deploy }: Rows,
  { audit, notices }: Pick<EnvironmentStores, 'audit' | 'notices'>,
): Promise<void> {
  const { id, sha, status, trigger } = deploy;
  const isDeployed = status === 'deployed';
  await audit.append({
    event: isDeployed ? 'build.deployed' : 'build.failed',
    auditContext: systemAuditContext,
    target: { kind: 'environment', id: environment.id },
    outcome: isDeployed ? 'success' : 'failure',
    reason: isDeployed ? trigger : status,
    details: { build: id, sha },
  });
  if (isDeployed) return;
  const reason = deploy.problems.length === 1 ? deploy.problems[0]?.message : undefined;
  await notices.add(deployNotice(environment, deploy, reason ?? deploy.message ?? 'It failed.'));
}

export type Failure = {
  readonly status: 'error' | 'config_error';
  readonly message: string;
  /** Details, visible only to callers that may read the deploy. */
  readonly detail?: string;
  readonly fix: string | null;
  readonly problems?: Deploy['problems'];
  /** The failed step. Null: postern.yaml is the cause. */
  readonly at: Pick<DeployStep, 'service' | 'step'> | null;
};

/** Ends a failed deploy and its steps. The previous deploy stays live; without one, no service runs. */
export async function failed(
  stores: Pick<EnvironmentStores, 'deploys' | 'environments'>,
  { environment, deploy }: Rows,
  { status, message, detail, fix, problems = [], at }: Failure,
  now: number,
): Promise<Rows> {
  await stores.deploys.endSteps(deploy.id, at === null ? null : { ...at, message }, now);
  if (environment.liveDeployId === null) {
    const services = (await stores.environments.services([environment.id])).get(environment.id) ?? [];
    await stores.environments.putServices(
      environment.id,
      services.map((one) => atRest(one, at, message)),
    );
  }
  const statusMessage =
    environment.liveDeployId === null
      ? message
      : `The newest deploy failed; the previous deploy is still live. ${message}`;
  const whole = detail === undefined ? message : `${message} ${detail}`;
  return {
    deploy: { ...deploy, status, message: whole, fix, problems, endedAt: now },
    environment: { ...environment, status, statusMessage },
  };
}

/** State of a service after a failed first deploy: nothing is served, and no step is running. */
function atRest(service: EnvironmentService, at: Failure['at'], message: string): EnvironmentService {
  if (service.status === 'inactive' || service.kind === 'external') return service;
  if (service.name === at?.service) return { ...service, status: 'failed', reason: message, address: null };
  return { ...service, status: 'waiting', reason: 'The deploy failed.', address: null };
}

export function newStep(
  service: string,
  step: DeployStep['step'],
  rest: Partial<DeployStep> = {},
): DeployStep {
  return {
    service,
    step,
    status: 'waiting',
    startedAt: null,
    endedAt: null,
    reused: false,
    message: null,
    buildJobId: null,
    artifactId: null,
    ...rest,
  };
}

export function done(step: DeployStep, now: number, rest: Partial<DeployStep> = {}): DeployStep {
  return { ...step, status: 'done', startedAt: step.startedAt ?? now, endedAt: now, ...rest };
}
