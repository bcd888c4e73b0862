import { setTimeout as wait } from 'node:timers/promises';
import type { AppSettings } from '../app-settings.ts';
import { hour, second } from '../../core/clock.ts';
import type { AuditWriter } from '../../features/audit/audit.ts';
import { connectionStore } from '../../features/connections/connection-store.ts';
import { connectionRoutes } from '../../features/connections/connection-routes.ts';
import { mcpServerRoutes } from '../../features/connections/server-routes.ts';
import { createConnections } from '../../features/connections/connections.ts';
import { createExternalClient } from '../../features/connections/external-client.ts';
import { createExternalOAuth } from '../../features/connections/oauth.ts';
import { createRevocations } from '../../features/connections/revocations.ts';
import { mcpServerStore } from '../../features/connections/server-store.ts';
import { createMcpServers } from '../../features/connections/servers.ts';
import { createExternalSignIns } from '../../features/connections/sign-ins.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Encryption } from '../../platform/encryption.ts';
import type { Fetch } from '../../platform/fetch.ts';
import type { StoresOf } from '../../platform/database/stores.ts';
import type { People } from '../../features/people/people.ts';
import { connectionPages } from '../../surfaces/web/pages/connection-routes.ts';
import type { PageSteps, Process } from '../part.ts';

export const connectionStores = { mcpServers: mcpServerStore, mcpConnections: connectionStore };

type Stores = StoresOf<typeof connectionStores>;

/** External MCP servers, and the accounts of people there. */
export function createConnectionsPart({
  settings: { uiUrl, externalServerMs, externalLookMs = 2 * second },
  random,
  log,
  fetch,
  read,
  tx,
  encryption,
  clock,
  holder,
  sessions,
  isEnabled,
  isDeleted,
}: Pick<Process, 'clock' | 'random' | 'log' | 'holder'> & {
  readonly settings: Pick<AppSettings, 'uiUrl' | 'externalServerMs' | 'externalLookMs'>;
  readonly sessions: People['sessions'];
  /** Reaches external servers. */
  readonly fetch: Fetch;
  readonly read: Stores;
  readonly tx: Tx<Stores & { readonly audit: AuditWriter }>;
  readonly encryption: Encryption;
  readonly isEnabled: () => Promise<boolean>;
  readonly isDeleted: (userId: string) => Promise<boolean>;
}) {
  const client = createExternalClient({
    fetch,
    ...(externalServerMs === undefined ? {} : { listMs: externalServerMs, callMs: externalServerMs }),
  });
  const oauth = createExternalOAuth({ fetch, clock });
  const revocations = createRevocations({ oauth, encryption, log });
  const mcpServers = createMcpServers({ read, tx, revocations, encryption, uiOrigin: uiUrl, clock });
  const signIns = createExternalSignIns({
    read,
    tx,
    servers: mcpServers,
    oauth,
    encryption,
    uiOrigin: uiUrl,
    clock,
    random,
  });
  const connections = createConnections({
    read,
    tx,
    servers: mcpServers,
    isEnabled,
    isDeleted,
    client,
    oauth,
    revocations,
    signIns,
    holder,
    pause: (ms) => wait(ms, undefined, { ref: false }),
    lookEveryMs: externalLookMs,
    encryption,
    clock,
    random,
    log,
  });
  return {
    services: { mcpServers, connections },
    routes: [...mcpServerRoutes(mcpServers), ...connectionRoutes(connections)],
    jobs: [{ name: 'mcp-connections', everyMs: hour, leased: true, run: connections.prune }],
    pages: (steps: PageSteps) => [connectionPages({ ...steps, connections, sessions, uiOrigin: uiUrl })],
    settled: connections.settled,
  };
}
