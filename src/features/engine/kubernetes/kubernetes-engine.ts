import { stagingFolder } from '../../../platform/staging-folder.ts';
import type { Transfers } from '../transfers/transfers.ts';
import type { BuildLimits, Engine } from '../contract.ts';
import { EngineUnavailable } from '../contract.ts';
import { createBuilds } from './builds.ts';
import { openCluster } from './cluster.ts';
import { doEach } from './do-each.ts';
import type { Place } from './objects.ts';
import { createServiceLogs, type ServiceLogStore } from './service-logs.ts';
import { createServices } from './services.ts';
import { createView } from './view.ts';

export type KubernetesEngine = Engine & {
  /**
   * Loads the credentials and begins to watch the namespace. While Kubernetes is unavailable, every verb rejects with
   * EngineUnavailable. Call it first. Rejects when there are no usable credentials.
   */
  prepare(): Promise<void>;
  /** Services keep running, and the next engine finds them. */
  stop(): Promise<void>;
};

/**
 * Builds and runs Environments in one namespace of Kubernetes: a build as a Job (builds.ts), a service as a Deployment
 * (services.ts). Pods fetch and send files through the web API (operations/pod). Only the worker has this engine.
 */
export function createKubernetesEngine(deps: {
  readonly place: Place;
  /** Path of a file with credentials for the API server. Null: the service account of the pod. */
  readonly kubeconfig: string | null;
  /** Folder for inputs of builds until they are packed. Several engines of this kind may share it, and nothing else. */
  readonly folder: string;
  readonly transfers: Transfers;
  readonly logs: ServiceLogStore;
  /** The limits of files and of the disk apply to services too. The kubelet limits processes for each pod. */
  readonly limits: BuildLimits;
  /** Current time in ms. */
  readonly now: () => number;
  /** Calls `work` once, after `ms`. */
  readonly later: (work: () => void, ms: number) => void;
  /** Receives errors that occur between calls. */
  readonly onDefect: (error: unknown) => void;
}): KubernetesEngine {
  const { place } = deps;
  const staging = stagingFolder(deps.folder, { isShared: true });
  let prepared: Awaited<ReturnType<typeof open>> | undefined;

  async function open() {
    const cluster = await openCluster({ namespace: place.namespace, kubeconfig: deps.kubeconfig });
    const view = createView({ ...deps, cluster });
    const logs = createServiceLogs({ ...deps, cluster, view, store: deps.logs });
    let isStopped = false;
    const looking = async () => {
      while (!isStopped) {
        await view.changed();
        logs.look();
      }
    };
    await view.start();
    looking().catch(deps.onDefect);
    return {
      view,
      logs,
      services: createServices({ ...deps, cluster, view, logs }),
      builds: createBuilds({ ...deps, folder: staging.path, cluster, view }),
      async stop() {
        isStopped = true;
        await logs.stop();
        await view.stop();
      },
    };
  }

  function whenPrepared() {
    if (prepared === undefined) throw new EngineUnavailable('The engine is not prepared.');
    return prepared;
  }

  return {
    place: { engine: 'kubernetes', platform: `${process.platform}-${process.arch}` },

    async prepare() {
      await staging.prepare();
      prepared = await open();
    },

    build: async (...args) => await whenPrepared().builds.build(...args),
    async apply(desired) {
      const { services, logs } = whenPrepared();
      await services.apply(desired);
      logs.look();
    },
    observe: async (id) => await whenPrepared().services.observe(id),
    logs: async (...args) => await deps.logs.read(...args),
    address: async (...args) => await whenPrepared().services.address(...args),
    remove: async (id) => await whenPrepared().services.remove(id),

    async sweep(known) {
      const { services, builds } = whenPrepared();
      const found = { builds: await builds.found(), environments: await services.found() };
      const kept = await known();
      const gone = found.environments.filter((id) => !kept.environments.has(id));
      const ended: string[] = [];
      const endBuilds = async () =>
        void ended.push(...(await builds.sweep(found.builds.filter((id) => !kept.builds.has(id)))));
      await doEach([endBuilds, ...gone.map((id) => () => services.remove(id))], (work) => work());
      return [...ended, ...gone];
    },

    async stop() {
      await prepared?.stop();
    },
  };
}
