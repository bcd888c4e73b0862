import { createHash } from 'node:crypto';
import { AppError } from '../../../core/errors.ts';
import { textOf } from '../../../platform/place.ts';
import {
  type DesiredEnvironment,
  type DesiredService,
  type Reference,
  secretNamesOf,
} from '../../configuration-file/configuration-file.ts';
import type { DatabaseAddress } from '../databases/databases.ts';
import type { DeployStep, PlannedDeploy } from '../deploys/deploy.ts';
import type {
  Address,
  DesiredDatabase,
  DesiredProcess,
  Engine,
  ObservedProcess,
} from '../../engine/engine.ts';
import type { Environment } from '../environment/environment.ts';
import { gitErrorOf, secretsRefused } from '../../builds/builds.ts';
import type { ReconcilerDeps } from './deps.ts';
import { filledVariables, valuesOf } from './values.ts';

type Process = Extract<DesiredService, { kind: 'process' }>;

const isRun = ({ kind }: DesiredService) => kind === 'process' || kind === 'postgres';

/** Desired and actual processes of a deploy. */
export type Running = {
  readonly desired: readonly DesiredProcess[];
  /** Services that wait for required services or for the address of another service. */
  readonly waiting: readonly string[];
  /** Names of the services that are databases. The gateway has no address for them. */
  readonly databases: readonly string[];
  /** Processes of the wanted revision, by service. */
  readonly observed: ReadonlyMap<string, ObservedProcess>;
  /** `host:port` of ready processes, by service. */
  readonly addresses: ReadonlyMap<string, string>;
};

/** A database of the deploy. */
type Placed = {
  /** Null: the database is not ready. */
  readonly address: DatabaseAddress | null;
  /** Available before the address, so that a restart of the database changes no service. */
  readonly password: string | null;
  /** The database as the engine runs it. Null: it is on a server, or is being created. */
  readonly desired: DesiredDatabase | null;
};

class NoAddress extends Error {}

function orNoAddress(error: unknown): undefined {
  if (!(error instanceof NoAddress)) throw error;
}

/**
 * Creates the databases of a deploy, starts its processes in the order of their dependencies, and checks them. Repeating a
 * call changes nothing.
 */
export function createProcesses(deps: ReconcilerDeps, engine: Engine) {
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

  /** Values to redact from the Environment's logs. None for a branch that may not use them: it could guess them from redacted lines. */
  async function redactedIn({ repositoryId, branch, plan }: PlannedDeploy): Promise<readonly string[]> {
    const names = secretNamesOf(Object.values(plan.services));
    const repository = names.length === 0 ? undefined : await deps.repositories.find(repositoryId);
    if (repository === undefined || !deps.maySecrets(repository, branch)) return [];
    return await deps.secrets.readStored(repositoryId, names);
  }

  async function readSeed({ repositoryId, branch, sha }: PlannedDeploy, path: string): Promise<string> {
    const remote = await deps.repositories.remoteOf(repositoryId);
    if (remote === undefined) throw new AppError('repo_not_onboarded');
    const found = await deps.git.readFile(remote, branch, path, sha);
    const hint = 'Correct postgres.seed in postern.yaml.';
    if (found.kind === 'ok') {
      if (found.value.text !== null) return found.value.text;
      throw new AppError('config_invalid', { message: `The commit has no file ${path}.`, hint });
    }
    if (found.reason === 'too_large')
      throw new AppError('config_invalid', { message: `${path} is larger than 1 MiB.`, hint });
    throw gitErrorOf(found.reason, path);
  }

  /** Databases by service, without databases on a server while the Environment is asleep and nothing uses them. */
  async function databasesOf(
    environment: Environment,
    deploy: PlannedDeploy,
    running: readonly ObservedProcess[],
  ): Promise<ReadonlyMap<string, Placed>> {
    const found = new Map<string, Placed>();
    const { id: environmentId } = environment;
    const { repositoryId, plan, sha } = deploy;
    const isAsleep = environment.status === 'asleep';
    for (const [service, planned] of Object.entries(plan.services)) {
      if (planned.kind !== 'postgres' || (isAsleep && deps.databases?.kind !== 'engine')) continue;
      if (deps.databases === null)
        throw new AppError('engine_unavailable', {
          message: `${service} is a database, and ENVIRONMENTS_DATABASE_URL is not set any more.`,
        });
      const { seed: path } = planned;
      const seed = path === null ? null : { path, sha: sha ?? '', read: () => readSeed(deploy, path) };
      const wanted = { environmentId, service, repositoryId, seed };
      if (deps.databases.kind === 'server') {
        const address = await deps.databases.ensure(wanted);
        found.set(service, { address, password: address?.password ?? null, desired: null });
        continue;
      }
      const { resources, logBytes } = await deps.policy();
      const { maxMemoryBytes: memoryBytes } = resources;
      const desired = deps.databases.desired(environmentId, { service, memoryBytes, logBytes, isAsleep });
      const { password } = desired;
      if (!isAsleep && !(await deps.databases.ensure({ ...wanted, memoryBytes }))) {
        found.set(service, { address: null, password, desired: null });
        continue;
      }
      const seen = running.find((one) => one.service === service && one.revision === desired.revision);
      const at = seen?.state === 'ready' ? await engine.address(environmentId, service) : null;
      found.set(service, {
        address: at && deps.databases.addressOf(environmentId, service, at),
        password,
        desired,
      });
    }
    return found;
  }

  /** `asleep`: the process is stopped, whatever its variables are. `redacted`: see redactedIn(). */
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
    // The schema requires a command for a built service.
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
    /** Whether the plan has processes or databases. */
    has: (plan: DesiredEnvironment) => Object.values(plan.services).some(isRun),

    /** @throws EngineUnavailable; AppError when a secret or a seed cannot be used, or the databases are unavailable */
    async bring(
      environment: Environment,
      deploy: PlannedDeploy,
      steps: readonly DeployStep[],
    ): Promise<Running> {
      const names = Object.entries(deploy.plan.services).filter(
        (entry): entry is [string, Process] => entry[1].kind === 'process',
      );
      const places = new Map<string, Address>();
      for (const [name] of names) {
        const address = await engine.address(environment.id, name);
        if (address !== null) places.set(name, address);
      }
      const isAsleep = environment.status === 'asleep';
      const running = await engine.observe(environment.id);
      const databases = await databasesOf(environment, deploy, running);
      const internal = (service: string) => {
        const database = databases.get(service)?.address;
        if (database) return database;
        const place = places.get(service);
        if (place === undefined) throw new NoAddress();
        return place;
      };
      const valueOf = isAsleep
        ? 'asleep'
        : valuesOf(environment, deploy.sha ?? '', deploy.plan, deps.addresses, internal);
      const passwords = [...databases.values()].flatMap(({ password }) => password ?? []);
      const redacted = isAsleep ? [] : [...(await redactedIn(deploy)), ...passwords];
      const desired: DesiredProcess[] = [];
      const waiting: string[] = [];
      // Each level starts when all processes of earlier levels are ready. Running processes are not stopped meanwhile.
      let isOpen = true;
      for (const level of deploy.plan.levels) {
        const states: (ObservedProcess['state'] | undefined)[] = level
          .filter((name) => databases.has(name))
          .map((name) => (databases.get(name)?.address ? 'ready' : 'starting'));
        for (const [name, service] of names.filter(([one]) => level.includes(one))) {
          const one = await processOf(name, service, deploy, steps, valueOf, redacted).catch(orNoAddress);
          const seen = running.find((each) => each.service === name && each.revision === one?.revision);
          states.push(seen?.state);
          if (one !== undefined && (isOpen || isAsleep || seen !== undefined)) desired.push(one);
          else waiting.push(name);
        }
        isOpen &&= states.every((state) => state === 'ready');
      }
      // Waiting services keep running unchanged.
      const own = [...databases.values()].flatMap((one) => one.desired ?? []);
      await engine.apply({
        environmentId: environment.id,
        processes: desired,
        databases: own,
        kept: waiting,
      });
      const wanted = new Map([...own, ...desired].map(({ service, revision }) => [service, revision]));
      const observed = (await engine.observe(environment.id)).filter(
        ({ service, revision }) => wanted.get(service) === revision,
      );
      return {
        desired,
        waiting,
        databases: isAsleep ? [] : [...databases.keys()],
        observed: new Map([
          ...[...databases].map(([name, database]) => [name, observedDatabase(name, database)] as const),
          ...observed.map((one) => [one.service, one] as const),
        ]),
        addresses: new Map([...places].map(([name, place]) => [name, textOf(place)])),
      };
    },

    /** The actual state as one text that changes with it. Reads only the engine. */
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

    /** Names of the engine's services, in any state. */
    async found(environmentId: string): Promise<ReadonlySet<string>> {
      return new Set((await engine.observe(environmentId)).map(({ service }) => service));
    },

    remove: (environmentId: string): Promise<void> => engine.remove(environmentId),
  };
}

/** State of a database that the engine does not report. */
function observedDatabase(service: string, { address }: Placed): ObservedProcess {
  const [state, reason] = address
    ? (['ready', null] as const)
    : (['starting', 'its database is being made'] as const);
  return { service, revision: '', state, reason, lastLines: [], restarts: 0 };
}

export type Processes = ReturnType<typeof createProcesses>;
