import type { DesiredEnvironment } from '../configuration-file/plan.ts';
import type { Deploy, DeployStep } from '../deploys/deploy.ts';
import { type Environment, type EnvironmentService, isEnding } from '../environment.ts';
import type { ReconcilerDeps } from './deps.ts';
import type { Processes, Running } from './processes.ts';

/**
 * Keeps the processes of a deployed Environment running, and tells the gateway where they are. A deploy that failed has
 * replaced them: this brings those of the deploy before back.
 */
export function watching(deps: ReconcilerDeps, processes: Processes | null) {
  const { read, tx, feed } = deps;
  return async (environment: Environment): Promise<void> => {
    const { id, liveDeployId } = environment;
    const deploy = liveDeployId === null ? undefined : await read.deploys.find(liveDeployId);
    if (processes === null || deploy === undefined || !isPlanned(deploy) || !processes.has(deploy.plan))
      return;
    const steps = (await read.deploys.steps([deploy.id])).get(deploy.id) ?? [];
    const running = await processes.bring(environment, deploy, steps as readonly DeployStep[]);
    const before = (await read.environments.services([id])).get(id) ?? [];
    if (JSON.stringify(before) === JSON.stringify(seenNow(before, running))) return;
    const isWritten = await tx(async (stores) => {
      const held = await stores.environments.hold(id);
      if (held === undefined || isEnding(held) || held.liveDeployId !== liveDeployId) return false;
      const services = (await stores.environments.services([id])).get(id) ?? [];
      await stores.environments.putServices(id, seenNow(services, running));
      await stores.changes.publish({ topic: 'environment', subject: id });
      return true;
    });
    if (isWritten) feed.announce({ topic: 'environment', subject: id });
  };
}

function seenNow(
  services: readonly EnvironmentService[],
  { observed, addresses }: Running,
): EnvironmentService[] {
  return services.map((service) => {
    if (service.kind !== 'process') return service;
    const seen = observed.get(service.name);
    const address = addresses.get(service.name) ?? null;
    if (seen?.state === 'ready' && address !== null)
      return { ...service, status: 'ready', reason: null, address };
    const status = seen?.state === 'failed' ? 'failed' : 'starting';
    return { ...service, status, reason: seen?.reason ?? null, address: null };
  });
}

function isPlanned(deploy: Deploy): deploy is Deploy & { readonly plan: DesiredEnvironment } {
  return deploy.plan !== null;
}
