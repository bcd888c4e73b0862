import type { Clock } from '../../core/clock.ts';
import type { ChangeFeed, ChangeStore } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { EncodingQueue } from '../sites/sites.ts';
import type { ArtifactStore } from './artifact-store.ts';

/** Artifacts of static files that have no compressed forms yet. */
export function artifactsToEncode(deps: {
  readonly read: { readonly artifacts: ArtifactStore };
  readonly tx: Tx<{ artifacts: ArtifactStore; changes: ChangeStore }>;
  readonly feed: Pick<ChangeFeed, 'announce'>;
  readonly clock: Clock;
}): EncodingQueue {
  const { read, tx, feed, clock } = deps;
  return {
    async waiting(but, limit) {
      const artifacts = await read.artifacts.waitingForForms(but, limit);
      return artifacts.map(({ id, repositoryId }) => ({
        name: id,
        owner: `repository:${repositoryId}`,
        files: () => read.artifacts.manifest(id),
        encodedBefore: () => read.artifacts.manifestEncodedBefore(id),
        async markEncoded(hasForms) {
          const changes = await tx(async (stores) => {
            await stores.artifacts.markEncoded(id, clock.now());
            const served = hasForms ? await stores.artifacts.servedBy(id) : [];
            const announced = served.map((subject) => ({ topic: 'environment', subject }) as const);
            for (const change of announced) await stores.changes.publish(change);
            return announced;
          });
          for (const change of changes) feed.announce(change);
        },
      }));
    },
  };
}
