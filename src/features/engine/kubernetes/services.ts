import { setTimeout as wait } from 'node:timers/promises';
import type { V1Deployment, V1OwnerReference } from '@kubernetes/client-node';
import type { Transfers } from '../transfers/transfers.ts';
import { type BuildLimits, type DesiredProcess, type Engine, EngineUnavailable } from '../contract.ts';
import type { Cluster, Kind } from './cluster.ts';
import {
  environmentSelector,
  labels,
  type Place,
  revisionAnnotation,
  serviceNameOf,
  serviceObjects,
} from './objects.ts';
import type { ServiceLogs } from './service-logs.ts';
import { currentPods, isReady, seen } from './states.ts';
import type { View } from './view.ts';

/** Runs each process service of an Environment as a Deployment, which owns all other objects of the service. */
export type Services = Pick<Engine, 'apply' | 'observe' | 'address' | 'remove'> & {
  /** IDs of Environments in the namespace, read from Kubernetes now. */
  found(): Promise<readonly string[]>;
};

/** Kinds of objects of an Environment. Events expire without help. */
const kinds = ['deployments', 'pods', 'services', 'secrets', 'networkpolicies'] as const satisfies Kind[];
/** Interval of the checks that everything was removed, and their maximum duration, in ms. */
const [lookMs, removeMs] = [250, 25_000];

export function createServices(deps: {
  readonly cluster: Cluster;
  readonly view: View;
  readonly logs: ServiceLogs;
  readonly place: Place;
  readonly transfers: Pick<Transfers, 'offerTree' | 'closeEnvironment'>;
  readonly limits: Pick<BuildLimits, 'diskBytes' | 'fileBytes'>;
  /** Current time in ms. */
  readonly now: () => number;
}): Services {
  const { cluster, view, logs, place, transfers, limits } = deps;

  async function applyOne(
    environmentId: string,
    process: DesiredProcess,
    before: V1Deployment | undefined,
  ): Promise<void> {
    const { image } = process;
    if (image === null) throw new Error(`The service ${process.service} names no image.`);
    if (before?.metadata?.deletionTimestamp !== undefined)
      throw new EngineUnavailable(`Kubernetes still removes the service ${process.service} of before.`);
    logs.know(environmentId, process);
    const ticket = await transfers.offerTree(environmentId, process.artifact.digest);
    const { deployment, owned, secretName } = serviceObjects(
      environmentId,
      process,
      image,
      ticket,
      limits,
      place,
    );
    const isCurrent = revisionOf(before) === process.revision;
    const replicas = process.isAsleep ? 0 : 1;
    // The Deployment first has no replicas, because pods need the Secrets, and Secrets need their owner.
    const owner = before ?? (await cluster.apply(deployment(0)));
    for (const one of owned(ownerOf(owner, 'apps/v1', 'Deployment'))) await cluster.apply(one);
    // Pods of the same revision stay, whatever else changed.
    if (!isCurrent) await cluster.apply(deployment(replicas));
    else if (before?.spec?.replicas !== replicas)
      await cluster.merge('deployments', serviceNameOf(environmentId, process.service), {
        spec: { replicas },
      });
    if (!isCurrent && before !== undefined) await removeSecrets(environmentId, process.service, secretName);
  }

  /** Removes the Secrets of earlier revisions. */
  async function removeSecrets(environmentId: string, service: string, kept: string): Promise<void> {
    const selector = `${environmentSelector(environmentId)},${labels.service}=${service}`;
    const { items } = await cluster.list('secrets', selector);
    for (const { metadata } of items)
      if (metadata?.name !== undefined && !metadata.name.startsWith(kept))
        await cluster.delete('secrets', metadata.name);
  }

  async function isGone(environmentId: string): Promise<boolean> {
    const selector = environmentSelector(environmentId);
    for (const kind of kinds) if ((await cluster.list(kind, selector)).items.length > 0) return false;
    return viewed(environmentId, 'deployments').length === 0 && viewed(environmentId, 'pods').length === 0;
  }

  function viewed<K extends 'deployments' | 'pods' | 'services'>(environmentId: string, kind: K) {
    return view.all(kind).filter(({ metadata }) => metadata?.labels?.[labels.environment] === environmentId);
  }

  function podsOf(environmentId: string, service: string) {
    return viewed(environmentId, 'pods').filter(
      ({ metadata }) => metadata?.labels?.[labels.service] === service,
    );
  }

  return {
    async apply({ environmentId, processes, kept = [] }) {
      const { items } = await cluster.list('deployments', environmentSelector(environmentId));
      const before = new Map(items.map((one) => [one.metadata?.labels?.[labels.service] ?? '', one]));
      for (const service of before.keys())
        if (!kept.includes(service) && !processes.some((one) => one.service === service))
          await cluster.deleteAll(
            'deployments',
            `${environmentSelector(environmentId)},${labels.service}=${service}`,
          );
      for (const process of processes) await applyOne(environmentId, process, before.get(process.service));
    },

    async observe(environmentId) {
      const deployments = viewed(environmentId, 'deployments').filter(
        ({ metadata }) => metadata?.deletionTimestamp === undefined,
      );
      const events = view.all('events');
      const found = await Promise.all(
        deployments.map(async (deployment) => {
          const service = deployment.metadata?.labels?.[labels.service] ?? '';
          const revision = revisionOf(deployment) ?? '';
          const pods = currentPods(deployment, podsOf(environmentId, service));
          const lastLines = await logs.lastLines(environmentId, service, revision);
          return { service, revision, ...seen(deployment, pods, events), lastLines };
        }),
      );
      return found.toSorted((one, other) => (one.service < other.service ? -1 : 1));
    },

    async address(environmentId, service) {
      const name = serviceNameOf(environmentId, service);
      const byName = ({ metadata }: { metadata?: { name?: string } }) => metadata?.name === name;
      const deployment = view.all('deployments').find(byName);
      const { clusterIP, ports } = view.all('services').find(byName)?.spec ?? {};
      const port = ports?.[0]?.port;
      if (deployment === undefined || clusterIP === undefined || port === undefined) return null;
      const pods = currentPods(deployment, podsOf(environmentId, service));
      return pods.some(isReady) ? { host: clusterIP, port } : null;
    },

    async remove(environmentId) {
      await transfers.closeEnvironment(environmentId);
      await cluster.deleteAll('deployments', environmentSelector(environmentId));
      const until = deps.now() + removeMs;
      while (!(await isGone(environmentId))) {
        if (deps.now() > until)
          throw new EngineUnavailable(
            'Kubernetes still has objects of the Environment that it was told to delete.',
          );
        await wait(lookMs);
      }
      await logs.remove(environmentId);
    },

    async found() {
      const { items } = await cluster.list('deployments', environmentSelector());
      return [...new Set(items.map(({ metadata }) => metadata?.labels?.[labels.environment] ?? ''))];
    },
  };
}

function revisionOf(deployment: V1Deployment | undefined): string | undefined {
  return deployment?.metadata?.annotations?.[revisionAnnotation];
}

export function ownerOf(
  { metadata }: { readonly metadata?: { readonly name?: string; readonly uid?: string } },
  apiVersion: string,
  kind: string,
): V1OwnerReference {
  return { apiVersion, kind, name: metadata?.name ?? '', uid: metadata?.uid ?? '' };
}
