import type { DesiredEnvironment } from '../configuration-file/plan.ts';
import type { Deploy, DeployStep } from '../deploys/deploy.ts';
import type { EnvironmentService } from '../environment.ts';
import type { ReconcilerDeps, StepOutcome } from './deps.ts';
import { waiting } from './fetch-step.ts';
import { done, newStep, recording } from './record.ts';

/** The last step of a deploy: the gateway serves what was built, all services at once. */
export function serveStep(deps: ReconcilerDeps) {
  const record = recording(deps);
  return async (
    deploy: Deploy & { readonly plan: DesiredEnvironment },
    steps: readonly DeployStep[],
  ): Promise<StepOutcome> => {
    const artifacts = new Map(steps.map(({ service, artifactId }) => [service, artifactId]));
    await record(deploy, async (rows, stores, now) => {
      const services = Object.entries(deploy.plan.services).map(
        ([name, service]): EnvironmentService => ({
          ...waiting(name, service),
          status: 'ready',
          artifactId: artifacts.get(name) ?? null,
        }),
      );
      await stores.environments.putServices(deploy.environmentId, services);
      await stores.deploys.putStep(deploy.id, done(newStep('', 'route'), now));
      return {
        deploy: { ...rows.deploy, status: 'deployed', message: null, fix: null, endedAt: now },
        environment: {
          ...rows.environment,
          status: 'deployed',
          statusMessage: null,
          liveDeployId: deploy.id,
        },
      };
    });
    return 'waiting';
  };
}
