import { type Clock, day, hour } from '../../core/clock.ts';
import type { Tx } from '../../platform/database/database.ts';
import { inBatches } from '../../platform/in-batches.ts';
import type { Log } from '../../platform/log.ts';
import type { ContentStore } from '../sites/sites.ts';
import type { TicketStore } from '../engine/engine.ts';
import type { ArtifactStore } from './artifact-store.ts';
import type { BuildStore } from './build-store.ts';
import type { BuildPolicy } from './run-build.ts';

/** How long an unused artifact is kept for reuse. */
const unusedMs = 14 * day;
/** A deploy records what it uses within this time. Until then no artifact is removed, even from a full repository. */
const recordedMs = hour;
/** How long ended builds and their logs are kept. */
const endedMs = 30 * day;
const ownerOf = (repositoryId: string) => ({ kind: 'repository', id: repositoryId }) as const;
type Owner = ReturnType<typeof ownerOf>;
const artifactsAtOnce = 100;
const buildsAtOnce = 100;

/**
 * Removes artifacts that no living Environment uses, builds that ended long ago, and tickets of ended builds and
 * torn-down Environments. The transaction that removes an artifact releases its bytes; the clean-up of Sites removes bytes that
 * no owner needs.
 */
export function createBuildCleanup(deps: {
  readonly read: { readonly artifacts: ArtifactStore; readonly content: ContentStore };
  readonly tx: Tx<{
    builds: BuildStore;
    artifacts: ArtifactStore;
    content: ContentStore;
    tickets: TicketStore;
  }>;
  readonly policy: () => Promise<Pick<BuildPolicy, 'artifactBytesPerRepository'>>;
  readonly clock: Clock;
  readonly log: Log;
}): { run(): Promise<void> } {
  const { read, tx, policy, clock, log } = deps;

  /** Removes one artifact. A failure must not block other removals. */
  async function remove(owner: Owner, id: string, before: number): Promise<void> {
    try {
      await tx(async ({ artifacts, content }) => {
        // The same order as in keepOutput() prevents a deadlock.
        await content.lockForPublish(owner);
        const digests = await artifacts.holdUnused(id, before);
        if (digests === undefined) return;
        await content.release(owner, digests);
        await artifacts.remove(id);
      });
    } catch (error) {
      log.warn({ err: error, artifact: id }, 'could not remove an unused artifact; the next run retries');
    }
  }

  async function removeUnused(): Promise<void> {
    const before = clock.now() - unusedMs;
    for (const { id, repositoryId } of await read.artifacts.unused(before, artifactsAtOnce))
      await remove(ownerOf(repositoryId), id, before);
  }

  async function removeAbove(bytes: number): Promise<void> {
    const before = clock.now() - recordedMs;
    for (const repositoryId of await read.content.repositoriesAbove(bytes)) {
      const owner = ownerOf(repositoryId);
      for (const { id } of await read.artifacts.unused(before, artifactsAtOnce, repositoryId)) {
        if ((await read.content.bytesOf(owner)) <= bytes) break;
        await remove(owner, id, before);
      }
    }
  }

  return {
    async run() {
      const now = clock.now();
      await tx(({ artifacts }) => artifacts.useServed(now, now - recordedMs));
      await removeUnused();
      await removeAbove((await policy()).artifactBytesPerRepository);
      // A stopped engine did not withdraw its tickets.
      await tx(({ tickets }) => tickets.removeLeft());
      await inBatches(buildsAtOnce, (limit) => tx(({ builds }) => builds.removeEnded(now - endedMs, limit)));
    },
  };
}
