import { createHash } from 'node:crypto';
import { AppError } from '../../../core/errors.ts';
import { type DesiredEnvironment, type DesiredService, secretNamesOf } from '../configuration-file/plan.ts';
import type { Reference } from '../configuration-file/references.ts';
import type { DeployStep, PlannedDeploy } from '../deploys/deploy.ts';
import type { DesiredProcess, Engine, ObservedProcess } from '../engine/engine.ts';
import type { Environment } from '../environment.ts';
import { secretsRefused } from '../secrets.ts';
import type { ReconcilerDeps } from './deps.ts';
import { filledVariables, valuesOf } from './values.ts';

type Process = Extract<DesiredService, { kind: 'process' }>;

/** What runs of a deploy, and what runs now. */
export type Running = {
  readonly desired: readonly DesiredProcess[];
  /** Services that wait for those that they require, or for the address of another one. */
  readonly waiting: readonly string[];
  /** Of the wanted revision, by service. */
  readonly observed: ReadonlyMap<string, ObservedProcess>;
  /** `host:port` of those that are ready, by service. */
  readonly addresses: ReadonlyMap<string, string>;
};

class NoAddress extends Error {}

function orNoAddress(error: unknown): undefined {
  if (!(error instanceof NoAddress)) throw error;
}

/**
 * Starts the processes of a deploy, in the order of their needs, and looks at them. Twice changes nothing.
 */
export function createProcesses(deps: ReconcilerDeps, engine: Engine) {
  /** What was applied last, by Environment. */
  const last = new Map<string, readonly DesiredProcess[]>();

  /** Values of the stored secrets: variable → value. @throws AppError override_not_allowed when they may not be used */
  async function secretsOf(
    deploy: PlannedDeploy,
    references: Readonly<Record<string, string>>,
  ): Promise<Readonly<Record<string, string>>> {
    if (Object.keys(references).length === 0) return {};
    const repository = await deps.repositories.find(deploy.repositoryId);
    if (repository === undefined || !deps.maySecrets(repository, deploy.branch)) {
      const { message, fix: hint } = secretsRefused(deploy.branch, references);
      throw new AppError('override_not_allowed', { message, hint });
    }
    const found = await deps.secrets.read(deploy.repositoryId, references);
    if (found.kind === 'read') return found.values;
    throw new AppError('override_not_allowed', { message: found.message, hint: found.fix });
  }

  /** Values that no log of the Environment shows. None for a branch that may not use them: it could find them by guessing. */
  async function redactedIn({ repositoryId, branch, plan }: PlannedDeploy): Promise<readonly string[]> {
    const names = secretNamesOf(Object.values(plan.services));
    const repository = names.length === 0 ? undefined : await deps.repositories.find(repositoryId);
    if (repository === undefined || !deps.maySecrets(repository, branch)) return [];
    return await deps.secrets.readStored(repositoryId, names);
  }

  /** `asleep`: it is stopped, whatever its variables are. `redacted`: see redactedIn(). */
  async function processOf(
    name: string,
    service: Process,
    deploy: PlannedDeploy,
    steps: readonly DeployStep[],
    valueOf: ((reference: Reference) => string) | 'asleep',
    redacted: readonly string[],
  ): Promise<DesiredProcess> {
    const isAsleep = valueOf === 'asleep';
    const variables = isAsleep ? {} : filledVariables(service.variables, valueOf);
    const secrets = isAsleep ? {} : await secretsOf(deploy, service.secrets);
    const artifactId = steps.find(({ service: of, step }) => of === name && step === 'build')?.artifactId;
    const artifact = await deps.artifacts.tar(artifactId ?? '');
    if (artifact === undefined) throw new Error(`The artifact of ${name} is gone.`);
    const { command, port, health, memoryBytes, milliCpu } = service.run;
    // The schema requires a command of a service that is built.
    if (command === null) throw new Error(`${name} has no command.`);
    const { resources, logBytes } = await deps.policy();
    const whole = {
      service: name,
      artifact,
      image: service.build.image,
      command,
      port,
      health,
      variables,
      secrets,
      redacted,
      memoryBytes: memoryBytes ?? resources.maxMemoryBytes,
      milliCpu: milliCpu ?? resources.maxMilliCpu,
      isAsleep,
    };
    const revision = createHash('sha256').update(JSON.stringify(whole)).digest('hex').slice(0, 32);
    return { ...whole, revision, logBytes };
  }

  return {
    /** True: the deploy has processes. */
    has: (plan: DesiredEnvironment) => Object.values(plan.services).some(({ kind }) => kind === 'process'),

    /** @throws EngineUnavailable; AppError when a secret cannot be used */
    async bring(
      environment: Environment,
      deploy: PlannedDeploy,
      steps: readonly DeployStep[],
    ): Promise<Running> {
      const names = Object.entries(deploy.plan.services).filter(
        (entry): entry is [string, Process] => entry[1].kind === 'process',
      );
      const addresses = new Map<string, string>();
      for (const [name] of names) {
        const address = await engine.address(environment.id, name);
        if (address !== null) addresses.set(name, `${address.host}:${address.port}`);
      }
      const internal = (service: string) => {
        const text = addresses.get(service);
        if (text === undefined) throw new NoAddress();
        const { hostname: host, port } = new URL(`http://${text}`);
        return { host, port: Number(port) };
      };
      const isAsleep = environment.status === 'asleep';
      const valueOf = isAsleep
        ? 'asleep'
        : valuesOf(environment, deploy.sha ?? '', deploy.plan, deps.addresses, internal);
      const redacted = isAsleep ? [] : await redactedIn(deploy);
      const desired: DesiredProcess[] = [];
      const waiting: string[] = [];
      const before = last.get(environment.id) ?? [];
      const running = await engine.observe(environment.id);
      // Each level starts when the processes of the levels before are ready. What runs already is not stopped for them.
      let isOpen = true;
      for (const level of deploy.plan.levels) {
        const states: (ObservedProcess['state'] | undefined)[] = [];
        for (const [name, service] of names.filter(([one]) => level.includes(one))) {
          const one = await processOf(name, service, deploy, steps, valueOf, redacted).catch(orNoAddress);
          const seen = running.find((each) => each.service === name && each.revision === one?.revision);
          states.push(seen?.state);
          if (one !== undefined && (isOpen || isAsleep || seen !== undefined)) desired.push(one);
          else waiting.push(name);
        }
        isOpen &&= states.every((state) => state === 'ready');
      }
      // What waits keeps running as it is.
      const kept = before.filter(({ service }) => waiting.includes(service));
      last.set(environment.id, [...desired, ...kept]);
      await engine.apply({ environmentId: environment.id, processes: [...desired, ...kept] });
      const wanted = new Map(desired.map(({ service, revision }) => [service, revision]));
      const observed = (await engine.observe(environment.id)).filter(
        ({ service, revision }) => wanted.get(service) === revision,
      );
      return {
        desired,
        waiting,
        observed: new Map(observed.map((one) => [one.service, one])),
        addresses,
      };
    },

    /** What runs now, as one text that changes when anything of it does. Asks the engine alone. */
    async look(environmentId: string): Promise<string> {
      const observed = await engine.observe(environmentId);
      const addresses = await Promise.all(
        observed.map(({ service }) => engine.address(environmentId, service)),
      );
      const facts = observed.map(({ service, revision, state, reason }) => [
        service,
        revision,
        state,
        reason,
      ]);
      return JSON.stringify([facts, addresses]);
    },

    async remove(environmentId: string): Promise<void> {
      last.delete(environmentId);
      await engine.remove(environmentId);
    },
  };
}

export type Processes = ReturnType<typeof createProcesses>;
