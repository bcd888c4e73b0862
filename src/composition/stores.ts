import { documentStores } from './access-config.ts';
import { agentStores } from './agents/agents.ts';
import { connectionStores } from './agents/connections.ts';
import { mcpStores } from './agents/mcp.ts';
import { auditStores } from './audit.ts';
import { buildStores } from './environments/builds.ts';
import { environmentGrantStores } from './environments/environment-grants.ts';
import { environmentStores } from './environments/environments.ts';
import { federationStores } from './federation.ts';
import { identityStores } from './identity/identity-stores.ts';
import { keyStores } from './keys.ts';
import { noticeStores } from './notices.ts';
import { repositoryStores } from './repositories.ts';
import { sitesStores } from './sites/sites.ts';
import { second } from '../core/clock.ts';
import { announcing, createChangeFeed } from '../platform/database/change-feed.ts';
import type { Database } from '../platform/database/database.ts';
import { lazyStores } from '../platform/database/stores.ts';
import type { Process } from './part.ts';

/** The stores of every part: `read` outside a transaction, `tx` inside one. */
export function createStores({
  database,
  clock,
  random,
  log,
  isOnlyProcess,
}: Pick<Process, 'clock' | 'random' | 'log'> & {
  readonly database: Database;
  readonly isOnlyProcess: boolean;
}) {
  const feed = createChangeFeed({ database, clock });
  const storesOn = lazyStores({
    ...auditStores({ clock, random }),
    ...noticeStores({ clock, random, log }),
    ...documentStores,
    ...identityStores(clock),
    ...keyStores,
    ...federationStores,
    ...repositoryStores,
    ...mcpStores,
    ...connectionStores,
    ...agentStores,
    ...sitesStores,
    ...environmentStores,
    ...buildStores,
    ...environmentGrantStores,
  });
  return {
    feed,
    read: storesOn(database.sql),
    tx: announcing({ database, storesOn, feed, clock }),
    /** False: this process may have missed a change. */
    isFresh: () => isOnlyProcess || Math.abs(clock.now() - feed.lastReadAt()) <= second,
  };
}
