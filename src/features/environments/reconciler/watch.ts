import { keepLastUsed } from '../../../platform/last-used.ts';
import { isPlanned } from '../deploys/deploy.ts';
import { EngineUnavailable } from '../../engine/engine.ts';
import {
  type Environment,
  type EnvironmentService,
  hasProcess,
  isEnding,
} from '../environment/environment.ts';
import type { ReconcilerDeps } from './deps.ts';
import type { Processes, Running } from './processes.ts';

/**
 * Keeps the processes of a deployed Environment running, even while a newer deploy builds, and gives their addresses to the
 * gateway. After a failed deploy, which replaced them, it restores the processes of the previous deploy. It stops those of a
 * failed first deploy; their logs stay.
 */
export function watching(deps: ReconcilerDeps, processes: Processes | null) {
  const { read, tx } = deps;
  /** Actual state at the last comparison with the rows. Reading the rows of 200 Environments costs 1,000 queries a second. */
  const compared = keepLastUsed<string>(10_000);

  /** False: a database is being created again, and no change of a process signals its completion. */
  async function bring(environment: Environment, known: Processes): Promise<boolean> {
    const { id, liveDeployId } = environment;
    const deploy = await (liveDeployId === null
      ? read.deploys.newestOf(id)
      : read.deploys.find(liveDeployId));
    if (deploy === undefined || !isPlanned(deploy) || !known.has(deploy.plan)) return true;
    const steps = (await read.deploys.steps([deploy.id])).get(deploy.id) ?? [];
    if (liveDeployId === null) {
      const hasStarted = steps.some(({ step }) => step === 'start');
      if (hasStarted) await known.bring({ ...environment, status: 'asleep' }, deploy, steps);
      return true;
    }
    const running = await known.bring(environment, deploy, steps).catch(async (error: unknown) => {
      if (error instanceof EngineUnavailable && environment.status !== 'asleep')
        await writeLost(environment, await known.found(id), error.message);
      throw error;
    });
    if (environment.status === 'asleep') return true;
    const isWhole = running.databases.every((name) => running.observed.get(name)?.state === 'ready');
    await write(environment, (services) => seenNow(services, running));
    return isWhole;
  }

  /** Records services that the engine lost and cannot restart now. A service that it only cannot observe is still served. */
  async function writeLost(
    environment: Environment,
    found: ReadonlySet<string>,
    reason: string,
  ): Promise<void> {
    const isLost = (service: EnvironmentService) => hasProcess(service) && !found.has(service.name);
    const withdrawn = { status: 'starting', reason, address: null } as const;
    await write(environment, (services) =>
      services.map((service) => (isLost(service) ? { ...service, ...withdrawn } : service)),
    );
  }

  async function write(
    { id, liveDeployId }: Environment,
    now: (services: readonly EnvironmentService[]) => readonly EnvironmentService[],
  ): Promise<void> {
    const before = (await read.environments.services([id])).get(id) ?? [];
    if (JSON.stringify(before) === JSON.stringify(now(before))) return;
    await tx(async (stores) => {
      const held = await stores.environments.hold(id);
      if (held === undefined || isEnding(held) || held.liveDeployId !== liveDeployId) return;
      // The Environment fell asleep meanwhile: an address written now would never be withdrawn.
      if (held.status === 'asleep') return;
      const services = (await stores.environments.services([id])).get(id) ?? [];
      await stores.environments.putServices(id, now(services));
      await stores.changes.publish({ topic: 'environment', subject: id });
    });
  }

  type Known = Pick<Environment, 'id' | 'revision'>;
  const seenOf = async (known: Processes, { id, revision }: Known) => `${revision} ${await known.look(id)}`;

  return {
    async watch(environment: Environment): Promise<void> {
      if (processes === null) return;
      const before = await seenOf(processes, environment);
      if (compared.get(environment.id) === before) return;
      const isWhole = await bring(environment, processes);
      // The next round compares what changed meanwhile.
      if (isWhole && (await seenOf(processes, environment)) === before) compared.set(environment.id, before);
    },

    /** False: watch() would change nothing. Reads no row. */
    async hasChanged(environment: Known): Promise<boolean> {
      if (processes === null) return false;
      return compared.get(environment.id) !== (await seenOf(processes, environment));
    },
  };
}

function seenNow(
  services: readonly EnvironmentService[],
  { desired, waiting, observed, addresses }: Running,
): EnvironmentService[] {
  // A running deploy may have rows of other services.
  const served = new Set([...desired.map(({ service }) => service), ...waiting]);
  return services.map((service) => {
    const seen = observed.get(service.name);
    const isDatabase = service.kind === 'postgres' && seen !== undefined;
    const isProcess = hasProcess(service) && served.has(service.name);
    if (!isProcess && !isDatabase) return service;
    const address = addresses.get(service.name) ?? null;
    if (seen?.state === 'ready' && (address !== null || isDatabase))
      return { ...service, status: 'ready', reason: null, address };
    // Requests that wait for the service continue to wait.
    if (service.status === 'asleep' && seen?.state !== 'failed') return service;
    const status = seen?.state === 'failed' ? 'failed' : 'starting';
    return { ...service, status, reason: seen?.reason ?? null, address: null };
  });
}
