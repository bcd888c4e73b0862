import { createRepositories, repositoryStore } from '../features/repositories/repositories.ts';
import { credentialStore } from '../features/repositories/credential-store.ts';
import { repositoryRoutes } from '../features/repositories/routes.ts';
import { createWebhookDeliveries } from '../features/repositories/webhook-deliveries.ts';
import { webhookRoute } from '../features/repositories/webhook-routes.ts';
import { webhookStore } from '../features/repositories/webhook-store.ts';
import type { ChangeFeed } from '../platform/database/change-feed.ts';
import type { Git } from '../platform/git/git.ts';
import type { Log } from '../platform/log.ts';
import type { Part } from './part.ts';

export const repositoryStores = {
  repositories: repositoryStore,
  repositoryCredentials: credentialStore,
  repositoryWebhooks: webhookStore,
};

type DeliveryDeps = Parameters<typeof createWebhookDeliveries>[0];

/** Registered repositories, their mirrors, and the webhooks of their hosts. */
export function createRepositoriesPart(
  deps: Parameters<typeof createRepositories>[0] &
    Pick<DeliveryDeps, 'kv' | 'refuse'> & {
      readonly feed: Pick<ChangeFeed, 'subscribe'>;
      readonly git: Pick<Git, 'forget'>;
      readonly uiUrl: string;
      readonly log: Log;
    },
) {
  const { read, tx, encryption, allowsFiles, clock, random, kv, refuse, log } = deps;
  const repositories = createRepositories({ read, tx, encryption, allowsFiles, clock, random });
  const webhookDeliveries = createWebhookDeliveries({ repositories, kv, tx, refuse, random });
  // The mirror is a cache of this process, and may hold what its credential no longer opens.
  deps.feed.subscribe(({ topic, subject }) => {
    if (topic !== 'repository') return;
    deps.git
      .forget(subject)
      .catch((error: unknown) =>
        log.warn(
          { err: error, repository: subject },
          'could not remove the mirror of a repository; the next start does it',
        ),
      );
  });
  return {
    services: { repositories },
    routes: [...repositoryRoutes(repositories, { uiUrl: deps.uiUrl }), webhookRoute(webhookDeliveries)],
  } satisfies Part;
}
