import type { AppBackends, AppSettings } from '../app-settings.ts';
import { type Clock, second } from '../../core/clock.ts';
import type { AuditWriter } from '../../features/audit/audit.ts';
import type { ConnectionStore } from '../../features/connections/connection-store.ts';
import { createConnections } from '../../features/connections/connections.ts';
import { createExternalClient } from '../../features/connections/external-client.ts';
import { createExternalOAuth } from '../../features/connections/oauth.ts';
import { createRevocations } from '../../features/connections/revocations.ts';
import type { McpServerStore } from '../../features/connections/server-store.ts';
import { createMcpServers } from '../../features/connections/servers.ts';
import { createExternalSignIns } from '../../features/connections/sign-ins.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Encryption } from '../../platform/encryption.ts';
import type { Fetch } from '../../platform/fetch.ts';

type Stores = { readonly mcpServers: McpServerStore; readonly mcpConnections: ConnectionStore };

/** External MCP servers, and the accounts of people there. */
export function createConnectionServices({
  settings: { uiUrl, externalServerMs, externalLookMs = 2 * second },
  backends: { random, log },
  fetch,
  read,
  tx,
  encryption,
  clock,
  holder,
  pause,
  isEnabled,
  isDeleted,
}: {
  readonly settings: Pick<AppSettings, 'uiUrl' | 'externalServerMs' | 'externalLookMs'>;
  readonly backends: Pick<AppBackends, 'random' | 'log'>;
  /** Reaches external servers. */
  readonly fetch: Fetch;
  readonly read: Stores;
  readonly tx: Tx<Stores & { readonly audit: AuditWriter }>;
  readonly encryption: Encryption;
  readonly clock: Clock;
  readonly holder: string;
  readonly pause: (ms: number) => Promise<void>;
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
    pause,
    lookEveryMs: externalLookMs,
    encryption,
    clock,
    random,
    log,
  });
  return { mcpServers, connections };
}
