import { reachOf } from '../../../core/authorize.ts';
import { ownerOf } from '../../../core/caller.ts';
import { AppError } from '../../../core/errors.ts';
import type { Builds } from '../../builds/builds.ts';
import type { Environment } from '../environment/environment.ts';
import type { Asked, EnvironmentDeps } from './environments-deps.ts';
import { changeable, holdCredential, requireEnabled, seen } from '../environment/rights.ts';
import { cancelDeploys } from './cancel-deploys.ts';
import { type Deploy, type DeployStatus, type DeployStep, hasEnded } from './deploy.ts';
import type { ServiceLog } from './log.ts';
import type { LogSource } from './log-tail.ts';
import { queueDeploy } from './queue-deploy.ts';

export type DeployWithSteps = {
  readonly deploy: Deploy;
  readonly steps: readonly DeployStep[];
  readonly environment: Environment;
};

export type Deploys = ReturnType<typeof deploying>;

/** Verbs for deploys, which clients know as builds. */
export function deploying(deps: EnvironmentDeps & { readonly builds: Pick<Builds, 'log'> }) {
  const { read, tx, builds, clock, random } = deps;

  /** Finds a deploy. A caller that may see the Environment may see it. @throws AppError build_not_found */
  async function find(
    caller: Asked['caller'],
    id: string,
  ): Promise<{ deploy: Deploy; environment: Environment }> {
    const deploy = await read.deploys.find(id);
    if (deploy === undefined) throw new AppError('build_not_found');
    const environment = await read.environments.find(deploy.environmentId);
    return { deploy, environment: seenWithBuild(caller, environment) };
  }

  async function withSteps(deploys: readonly Deploy[]): Promise<DeployWithSteps[]> {
    const steps = await read.deploys.steps(deploys.map(({ id }) => id));
    const environments = new Map<string, Environment>();
    for (const id of new Set(deploys.map(({ environmentId }) => environmentId))) {
      const environment = await read.environments.find(id);
      if (environment !== undefined) environments.set(id, environment);
    }
    return deploys.flatMap((deploy) => {
      const environment = environments.get(deploy.environmentId);
      return environment === undefined ? [] : [{ deploy, steps: steps.get(deploy.id) ?? [], environment }];
    });
  }

  return {
    async get(caller: Asked['caller'], id: string): Promise<DeployWithSteps> {
      const { deploy, environment } = await find(caller, id);
      const steps = await read.deploys.steps([id]);
      return { deploy, environment, steps: steps.get(id) ?? [] };
    },

    /** Lists deploys, newest first. */
    async list(
      caller: Asked['caller'],
      filter: { environmentId?: string | undefined; status?: DeployStatus | undefined },
      page: number,
      limit: number,
    ): Promise<{ items: DeployWithSteps[]; total: number }> {
      const whole = { ...filter, repositories: reachOf(caller), viewer: ownerOf(caller) };
      const { items, total } = await read.deploys.list(whole, page, limit);
      return { items: await withSteps(items), total };
    },

    /** Logs of the deploy's builds. @throws AppError build_not_found */
    async logs(caller: Asked['caller'], id: string): Promise<LogSource> {
      await find(caller, id);
      return {
        id,
        async look() {
          const deploy = await read.deploys.find(id);
          const environment =
            deploy === undefined ? undefined : await read.environments.find(deploy.environmentId);
          const steps = (await read.deploys.steps([id])).get(id) ?? [];
          const logs = steps.flatMap(({ service, buildJobId }): ServiceLog[] =>
            buildJobId === null
              ? []
              : [
                  {
                    service,
                    step: 'build',
                    buildJobId,
                    read: (after, limit) => builds.log(buildJobId, after, limit),
                  },
                ],
          );
          return { environment, logs, hasEnded: deploy === undefined || hasEnded(deploy) };
        },
        check: (environment) => void seenWithBuild(caller, environment),
      };
    },

    /** @throws AppError state_conflict when the deploy has ended */
    async cancel({ caller, auditContext }: Asked, id: string): Promise<Deploy> {
      const { environment } = await find(caller, id);
      const cancelled = await tx(async (stores) => {
        const now = clock.now();
        await holdCredential(stores, caller, now);
        const held = changeable(caller, await stores.environments.hold(environment.id));
        const deploy = await stores.deploys.hold(id);
        if (deploy === undefined || hasEnded(deploy))
          throw new AppError('state_conflict', {
            message: 'The deploy has ended already.',
            hint: 'There is nothing to cancel.',
          });
        const after = await cancelDeploys(stores, held, 'It was cancelled.', now);
        await stores.environments.update({ ...after, updatedAt: now });
        await stores.audit.append({
          event: 'build.cancelled',
          auditContext,
          target: { kind: 'environment', id: held.id },
          outcome: 'success',
          details: { build: id },
        });
        await stores.changes.publish({ topic: 'environment', subject: held.id });
        return { ...deploy, status: 'cancelled', endedAt: now } as const;
      });
      return cancelled;
    },

    /** Deploys the same commit again. @throws AppError state_conflict while the deploy is running, deploy_disabled */
    async retry(
      { caller, auditContext }: Asked,
      id: string,
    ): Promise<{ environment: Environment; deploy: Deploy }> {
      requireEnabled(await deps.policy(), deps.hasEngine);
      const { environment } = await find(caller, id);
      const queued = await tx(async (stores) => {
        const now = clock.now();
        await holdCredential(stores, caller, now);
        const held = changeable(caller, await stores.environments.hold(environment.id));
        const earlier = await stores.deploys.hold(id);
        if (earlier === undefined || !hasEnded(earlier))
          throw new AppError('state_conflict', {
            message: 'The deploy is still under way.',
            hint: 'Cancel it first, or wait for its end.',
          });
        if (!held.deployEnabled) throw new AppError('deploy_disabled');
        const how = { trigger: 'retry', creator: ownerOf(caller), sha: earlier.sha } as const;
        const next = await queueDeploy(stores, auditContext, held, how, { random, now });
        await stores.environments.update(next.environment);
        await stores.changes.publish({ topic: 'environment', subject: held.id });
        return next;
      });
      return queued;
    },
  };
}

function seenWithBuild(caller: Asked['caller'], environment: Environment | undefined): Environment {
  try {
    return seen(caller, environment);
  } catch (error) {
    if (error instanceof AppError && error.code === 'env_not_found') throw new AppError('build_not_found');
    throw error;
  }
}
