import { existsSync } from 'node:fs';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { freeBytesIn } from '../../../platform/free-space.ts';
import { type DesiredProcesses, type Engine, type EngineDatabases, EngineUnavailable } from '../contract.ts';
import { makeDatabase } from './database/make-database.ts';
import { every } from './every.ts';
import { removeFolder } from './folders.ts';
import { readLogFiles } from './log-files.ts';
import { createNetwork, type EnvironmentNetwork } from './network.ts';
import { files } from './recorder/task.ts';
import { createService, type Service } from './service/service.ts';
import type { StartDeps } from './service/start.ts';

/** Runs the process services of Environments, with a folder for each Environment (service/service.ts, network.ts). */
export type Environments = Pick<Engine, 'apply' | 'observe' | 'logs' | 'address' | 'remove'> & {
  /** Adopts services that an earlier process left running, and starts supervising all services. */
  start(): Promise<void>;
  /** Stops supervising. Services keep running. */
  stop(): Promise<void>;
  /** IDs of Environments on this machine. */
  found(): readonly string[];
  readonly databases: EngineDatabases;
};

type Environment = {
  readonly folder: string;
  readonly network: EnvironmentNetwork | undefined;
  readonly services: Map<string, Service>;
  /** Databases that are being created, by service. */
  readonly making: Map<string, { readonly abort: AbortController; readonly work: Promise<void> }>;
};

/** Interval between checks of all services, in ms. */
const lookMs = 250;
const environmentShape = /^[A-Za-z0-9_-]{1,100}$/;
/** A DNS label (RFC 1035 section 2.3.1). */
const serviceShape = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export function createEnvironments(
  deps: Omit<StartDeps, 'network' | 'isPortGiven' | 'dataFolder'> & {
    /** Folder that holds only Environments. */
    readonly folder: string;
    /** Current time in ms. */
    readonly now: () => number;
    readonly onDefect: (error: unknown) => void;
  },
): Environments {
  const { isolation } = deps;
  const environments = new Map<string, Environment>();
  /** Last changing call of each Environment. The next such call waits for it. */
  const turns = new Map<string, Promise<void>>();
  let freeBytes = Number.POSITIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;

  async function inTurn(id: string, work: () => Promise<void>): Promise<void> {
    // The caller of that work got the failure.
    const turn = (turns.get(id) ?? Promise.resolve()).catch(() => undefined).then(work);
    turns.set(id, turn);
    try {
      await turn;
    } finally {
      if (turns.get(id) === turn) turns.delete(id);
    }
  }

  function environmentOf(id: string): Environment {
    if (!environmentShape.test(id))
      throw new Error('The id of an Environment has only letters, digits, _ and -.');
    const known = environments.get(id);
    if (known !== undefined) return known;
    const folder = join(deps.folder, id);
    const hasNetwork = isolation.kind === 'bwrap' && isolation.network === 'own';
    const network = hasNetwork
      ? createNetwork({ folder: join(folder, 'network'), searchPath: deps.searchPath })
      : undefined;
    const made: Environment = { folder, network, services: new Map(), making: new Map() };
    environments.set(id, made);
    return made;
  }

  /** Outside the folder of the service, so that a commit without the service does not delete the data. */
  function dataFolderOf({ folder }: Environment, name: string): string {
    if (!serviceShape.test(name)) throw new Error('The name of a service is a DNS label.');
    return join(folder, 'databases', name);
  }

  function serviceOf(environment: Environment, name: string): Service {
    const { folder, network, services } = environment;
    const dataFolder = dataFolderOf(environment, name);
    const known = services.get(name);
    if (known !== undefined) return known;
    const place = join(folder, 'services', name);
    const isPortGiven = (port: number) =>
      (network === undefined ? servicesOfAll() : [...services.values()]).some(
        (service) => service !== made && service.port === port,
      );
    const made: Service = createService({
      ...deps,
      name,
      folder: place,
      dataFolder,
      network,
      isPortGiven,
      freeBytes: () => freeBytes,
    });
    services.set(name, made);
    return made;
  }

  function servicesOfAll(): Service[] {
    return [...environments.values()].flatMap(({ services }) => [...services.values()]);
  }

  async function look(): Promise<void> {
    const services = servicesOfAll();
    // If the file system does not answer, the last known value stays.
    if (services.length > 0) freeBytes = await freeBytesIn(deps.folder).catch(() => freeBytes);
    if (isStopped) return;
    for (const service of services) service.look();
  }

  async function remove(id: string): Promise<void> {
    const environment = environments.get(id);
    if (environment === undefined) return;
    const { folder, network, services, making } = environment;
    for (const { abort } of making.values()) abort.abort();
    // The caller of make() gets the failure.
    await Promise.allSettled([...making.values()].map(({ work }) => work));
    for (const service of services.values()) service.want(null);
    await Promise.all([...services.values()].map((service) => service.settled()));
    await network?.close();
    await removeFolder(folder);
    environments.delete(id);
  }

  async function apply({
    environmentId,
    processes,
    databases = [],
    kept = [],
  }: DesiredProcesses): Promise<void> {
    const environment = environmentOf(environmentId);
    const wanted = [...databases, ...processes];
    if (wanted.some(({ isAsleep }) => !isAsleep)) await environment.network?.open();
    const names = new Set([...kept, ...wanted.map(({ service }) => service)]);
    for (const [name, service] of environment.services) {
      if (service.isGone) environment.services.delete(name);
      else if (!names.has(name)) service.want(null);
    }
    for (const one of wanted) serviceOf(environment, one.service).want(one);
  }

  const databases: EngineDatabases = {
    async isMade(environmentId, service) {
      return existsSync(dataFolderOf(environmentOf(environmentId), service));
    },

    async make(wanted) {
      if (isStopped) throw new EngineUnavailable('The engine was stopped.');
      const environment = environmentOf(wanted.environmentId);
      const { making } = environment;
      const folder = dataFolderOf(environment, wanted.service);
      const known = making.get(wanted.service);
      if (known !== undefined) return await known.work;
      if (existsSync(folder)) return;
      const abort = new AbortController();
      const work = makeDatabase(wanted, folder, deps, abort.signal).finally(() =>
        making.delete(wanted.service),
      );
      making.set(wanted.service, { abort, work });
      await work;
    },
  };

  return {
    databases,

    async start() {
      await mkdir(deps.folder, { recursive: true, mode: 0o700 });
      for (const id of await readdir(deps.folder)) {
        // For example lost+found.
        if (!environmentShape.test(id)) continue;
        const environment = environmentOf(id);
        await environment.network?.adopt();
        const names = await readdir(join(environment.folder, 'services')).catch(() => []);
        await Promise.all(names.map((name) => serviceOf(environment, name).adopt()));
      }
      freeBytes = await freeBytesIn(deps.folder).catch(() => freeBytes);
      timer = every(lookMs, look).unref();
    },

    async stop() {
      isStopped = true;
      clearInterval(timer);
      for (const { making } of environments.values())
        for (const { abort, work } of making.values()) {
          abort.abort();
          await work.catch(() => undefined);
        }
      await Promise.allSettled(servicesOfAll().map((service) => service.settled()));
    },

    async apply(desired) {
      if (isStopped) throw new EngineUnavailable('The engine was stopped.');
      await inTurn(desired.environmentId, () => apply(desired));
    },

    async observe(environmentId) {
      const services = [...(environments.get(environmentId)?.services ?? [])];
      const found = await Promise.all(services.map(([, service]) => service.observe()));
      return found
        .filter((one) => one !== undefined)
        .toSorted((one, other) => (one.service < other.service ? -1 : 1));
    },

    async logs(environmentId, service, after, limit) {
      const environment = environments.get(environmentId);
      if (environment?.services.has(service) !== true) return [];
      return await readLogFiles(join(environment.folder, 'services', service, files.log), after, limit);
    },

    async address(environmentId, service) {
      return (await environments.get(environmentId)?.services.get(service)?.address()) ?? null;
    },

    remove: async (id) => await inTurn(id, () => remove(id)),

    found: () => [...environments.keys()],
  };
}
