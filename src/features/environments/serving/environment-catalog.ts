import type { ChangeFeed } from '../../../platform/database/change-feed.ts';
import { createFeedCache } from '../../../platform/database/feed-cache.ts';
import type { ServedContent } from '../../sites/sites.ts';
import { isEnding } from '../environment/environment.ts';
import type { LabelledEnvironment, ServedService, ServingStore, StaticArtifact } from './serving-store.ts';

/**
 * Cache of what each label of an Environment serves. An entry is read from the database once and stays until the change feed
 * reports a change of the Environment. The caller must check that this process has read the change feed recently.
 */
export type EnvironmentCatalog = {
  /**
   * Undefined: no Environment ever had this label.
   * @throws AppError overloaded when too many lookups of this sender wait
   */
  find(
    label: string,
    sender: () => string,
  ): LabelledEnvironment | undefined | Promise<LabelledEnvironment | undefined>;
  /** The files of a static service. Undefined: they were not built, or were removed. @throws errors of find() */
  contentOf(
    environment: LabelledEnvironment,
    service: ServedService,
    sender: () => string,
  ): ServedContent | undefined | Promise<ServedContent | undefined>;
};

/** Maximum files in cached manifests, and maximum services of cached Environments. */
const maxFiles = 250_000;
const maxServicesCached = 100_000;

export function createEnvironmentCatalog(deps: {
  read: ServingStore;
  feed: Pick<ChangeFeed, 'subscribe'>;
  /** Opens the files of a built static service. */
  open: (artifact: StaticArtifact & { readonly spa: boolean }) => Promise<ServedContent>;
}): EnvironmentCatalog {
  const { read, feed, open } = deps;
  const labels = createFeedCache<LabelledEnvironment>({
    feed,
    topic: 'environment',
    subjectOf: ({ id }) => id,
    weightOf: ({ services }) => 1 + services.size,
    maxWeight: maxServicesCached,
    load: read.findLabel,
  });
  const contents = createFeedCache<{ readonly environmentId: string; readonly content: ServedContent }>({
    feed,
    topic: 'environment',
    subjectOf: ({ environmentId }) => environmentId,
    weightOf: ({ content }) => 1 + content.files.size,
    maxWeight: maxFiles,
    async load(name) {
      const [environmentId = '', artifactId = '', spa] = name.split(' ');
      const artifact = await read.staticArtifact(artifactId);
      return artifact && { environmentId, content: await open({ ...artifact, spa: spa === 'spa' }) };
    },
  });
  return {
    find: labels.find,
    contentOf({ id }, { artifactId, spa }, sender) {
      if (artifactId === null) return undefined;
      const found = contents.find(`${id} ${artifactId} ${spa ? 'spa' : 'files'}`, sender);
      return found instanceof Promise ? found.then((entry) => entry?.content) : found?.content;
    },
  };
}

/** Exact to the second: an Environment stops when its lease ends, even before its teardown. */
export function isGone(environment: LabelledEnvironment, now: number): boolean {
  return !environment.isCurrentLabel || isEnding(environment) || environment.expiresAt <= now;
}

/** A service with its own host. */
export function exposedService(
  { services }: Pick<LabelledEnvironment, 'services'>,
  name: string,
): ServedService | undefined {
  const service = services.get(name);
  return service?.isExposed === true && (service.kind === 'static' || isRunning(service))
    ? service
    : undefined;
}

/** Whether a process serves the service. */
export function isRunning({ kind }: Pick<ServedService, 'kind'>): boolean {
  return kind === 'process' || kind === 'image';
}
