import { AppError } from '../../../core/errors.ts';
import { type DesiredBuild, secretNamesOf } from '../../configuration-file/configuration-file.ts';
import type { DeployStep, PlannedDeploy } from '../deploys/deploy.ts';
import type { Environment } from '../environment/environment.ts';
import type { ReconcilerDeps, StepOutcome } from './deps.ts';
import { done, type Failure, failed, recording } from './record.ts';
import { filledVariables, valuesOf } from './values.ts';

type Looked = { readonly step: DeployStep; readonly failure?: Failure };

/** The second step of a deploy: gets the artifact of every built service from an earlier or a new build. */
export function buildStep(deps: ReconcilerDeps) {
  const { builds, clock } = deps;
  const record = recording(deps);

  async function request(environment: Environment, deploy: PlannedDeploy, service: string) {
    const repository = await deps.repositories.find(deploy.repositoryId);
    const planned = deploy.plan.services[service];
    const remote = await deps.repositories.remoteOf(deploy.repositoryId);
    if (repository === undefined || remote === undefined || planned === undefined || !('build' in planned))
      throw new AppError('repo_not_onboarded');
    const sha = deploy.sha ?? '';
    const { branch } = deploy;
    const maySecrets = deps.maySecrets(repository, branch);
    const valueOf = valuesOf(environment, sha, deploy.plan, deps.addresses, noInternalAddress);
    const build: DesiredBuild = planned.build;
    return await builds.request({
      repositoryId: repository.id,
      remote,
      branch,
      sha,
      kind: planned.kind,
      build,
      variables: filledVariables(build.variables, valueOf),
      maySecrets,
      // Otherwise a branch without the right to a secret could guess its value from redacted lines.
      redactedSecrets: maySecrets ? secretNamesOf(Object.values(deploy.plan.services)) : [],
    });
  }

  async function look(environment: Environment, deploy: PlannedDeploy, step: DeployStep): Promise<Looked> {
    const { service } = step;
    const now = clock.now();
    if (step.buildJobId === null) {
      const requested = await request(environment, deploy, service);
      if (requested.kind === 'built')
        return { step: done(step, now, { reused: true, artifactId: requested.artifactId }) };
      if (requested.kind === 'building')
        return { step: { ...step, status: 'running', startedAt: now, buildJobId: requested.jobId } };
      return failedLook(step, requested, now);
    }
    const job = await builds.job(step.buildJobId);
    if (job === undefined || job.status === 'cancelled')
      return { step: { ...step, status: 'waiting', buildJobId: null } };
    if (job.status === 'built') return { step: done(step, now, { artifactId: job.artifactId }) };
    if (job.status === 'failed') return failedLook(step, job, now);
    return { step: { ...step, message: job.message } };
  }

  return async (
    environment: Environment,
    deploy: PlannedDeploy,
    steps: readonly DeployStep[],
  ): Promise<StepOutcome> => {
    const open = steps.filter(({ step, status }) => step === 'build' && status !== 'done');
    const looked: Looked[] = [];
    for (const step of open) {
      const found = await look(environment, deploy, step);
      looked.push(found);
      if (found.failure !== undefined) break;
      // Recorded immediately: a build without a deploy is cancelled soon.
      if (found.step.buildJobId !== step.buildJobId)
        await record(deploy, async (rows, stores) => {
          await stores.deploys.putStep(deploy.id, found.step);
          return rows;
        });
    }
    const failure = looked.find((one) => one.failure !== undefined)?.failure;
    const isBuilt = failure === undefined && looked.every(({ step }) => step.status === 'done');
    const changed = looked.filter(({ step }) => !open.includes(step) && !isSame(step, open));
    if (changed.length === 0 && !isBuilt) return 'waiting';
    const isWritten = await record(deploy, async (rows, stores, now) => {
      for (const { step } of changed) await stores.deploys.putStep(deploy.id, step);
      if (failure !== undefined) return await failed(stores, rows, failure, now);
      const status = isBuilt ? ('built' as const) : ('building' as const);
      return {
        deploy: { ...rows.deploy, status },
        environment: { ...rows.environment, status, statusMessage: null },
      };
    });
    return isWritten && isBuilt ? 'again' : 'waiting';
  };
}

function failedLook(
  step: DeployStep,
  why: { readonly reason: string | null; readonly message: string | null; readonly fix: string | null },
  now: number,
): Looked {
  const { service } = step;
  const failure: Failure = {
    status: why.reason === 'wrong_inputs' ? 'config_error' : 'error',
    message: `${service}: ${why.message ?? 'The build failed.'}`,
    fix: why.fix,
    at: { service, step: 'build' },
  };
  return { step: { ...step, status: 'failed', endedAt: now, message: failure.message }, failure };
}

function isSame(step: DeployStep, open: readonly DeployStep[]): boolean {
  const before = open.find(({ service }) => service === step.service);
  return (
    before !== undefined &&
    before.status === step.status &&
    before.buildJobId === step.buildJobId &&
    before.message === step.message
  );
}

/** A build cannot reach a process: the reader of the file refuses such a reference in a static service. */
function noInternalAddress(service: string): never {
  throw new AppError('config_invalid', {
    message: `A build cannot use the internal address of the service ${service}.`,
  });
}
