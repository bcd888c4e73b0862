import { day } from '../../core/clock.ts';
import type { AgentDefinitionStore } from '../../features/agents/definition-store.ts';
import { createGrantDefinitions } from '../../features/agents/grant-definitions.ts';
import { mcpClientRoutes } from '../../features/agents/mcp-client-routes.ts';
import { type McpClientStore, mcpClientStore } from '../../features/agents/mcp-client-store.ts';
import { createMcpClients } from '../../features/agents/mcp-clients.ts';
import {
  allowsDocumentsOf,
  allowsRegistration,
  defaultMcpPolicy,
  type McpPolicy,
  parseStoredMcpPolicy,
} from '../../features/agents/mcp-policy.ts';
import { mcpPolicyRoutes } from '../../features/agents/policy-routes.ts';
import type { AgentSessionStore } from '../../features/agents/session-store.ts';
import type { ToolUsage } from '../../features/agents/agents.ts';
import { mcpClientId } from '../../features/oidc-provider/clients.ts';
import type { McpResource } from '../../features/oidc-provider/hardened-provider.ts';
import {
  type ConfigDocumentDeps,
  createDocument,
  type DocumentStores,
} from '../../features/settings/document.ts';
import { anything, publishing } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import { createGuardedFetch } from '../../platform/guarded-fetch.ts';
import { createOutbound } from '../../platform/outbound.ts';
import { documentReader, type ReadDocument } from '../../platform/public-document.ts';
import { mcpPath } from '../../surfaces/mcp/agent-steps.ts';

type ClientDocuments = McpResource['documents'];

/** The largest metadata document of an MCP client. */
const maxDocumentBytes = 16_384;

export const mcpStores = { mcpClients: mcpClientStore };

type Stores = DocumentStores & {
  readonly mcpClients: McpClientStore;
  readonly agentDefinitions: AgentDefinitionStore;
  readonly agentSessions: AgentSessionStore;
};

/** What agents may do: the policy, the clients they use, and the definition that each consent has. */
export function createMcpPart({
  uiUrl,
  isBuiltinProvider,
  mayFetchDocument,
  readDocument,
  usage,
  read,
  tx,
  feed,
  isFresh,
  clock,
}: {
  readonly uiUrl: string;
  /** False: another identity provider keeps the clients. */
  readonly isBuiltinProvider: boolean;
  readonly mayFetchDocument: ClientDocuments['mayFetch'];
  /** Null: over the network. */
  readonly readDocument: ReadDocument | null;
  readonly usage: () => Promise<ToolUsage[]>;
  readonly read: Pick<Stores, 'documents' | 'mcpClients' | 'agentDefinitions' | 'agentSessions'>;
  readonly tx: Tx<Stores>;
} & Pick<ConfigDocumentDeps<McpPolicy, DocumentStores>, 'feed' | 'isFresh' | 'clock'>) {
  const mcpPolicy = createDocument<McpPolicy, DocumentStores>({
    name: 'mcp',
    initial: defaultMcpPolicy,
    parse: parseStoredMcpPolicy,
    topic: 'config',
    eventOf: () => ({ event: 'config.mcp.changed', target: { kind: 'config', id: 'mcp' } }),
    read,
    tx,
    feed,
    isFresh,
    clock,
  });
  const policy = async () => (await mcpPolicy.inForce()).value;
  const changeAgents = publishing(tx, { topic: 'agents', subject: anything });
  const mcpClients = createMcpClients({
    read,
    tx: changeAgents,
    policy,
    builtin: isBuiltinProvider ? [mcpClientId] : [],
    clock,
  });
  const grantDefinitions = createGrantDefinitions({ read, tx: changeAgents, feed, isFresh, clock });
  const isEnabled = async () => (await policy()).enabled;
  return {
    services: { mcpPolicy, mcpClients, grantDefinitions },
    policy,
    isEnabled,
    /** What the identity provider needs to let people allow MCP clients something. */
    resource: {
      address: uiUrl + mcpPath,
      isEnabled,
      allowsRegistration: async () => allowsRegistration(await policy()),
      registered: mcpClients.registered,
      confirmed: mcpClients.confirmed,
      documentAllowed: mcpClients.documentAllowed,
      nameOf: mcpClients.nameOf,
      documents: {
        allowsHost: async (host: string) => allowsDocumentsOf(await policy(), host),
        async allowsAny() {
          const value = await policy();
          return value.clients.metadataHosts.some((host) => allowsDocumentsOf(value, host));
        },
        mayFetch: mayFetchDocument,
        // Whatever OUTBOUND_ALLOW_PRIVATE says: a client chose the address, not an administrator.
        read: readDocument ?? documentReader(publicFetch(maxDocumentBytes)),
      },
      async definitionsFor(clientId: string) {
        const { pinned, offered } = await grantDefinitions.choicesFor(clientId);
        return { pinned: pinned ?? null, offered };
      },
      chooseAtConsent: grantDefinitions.chooseAtConsent,
    },
    routes: [...mcpPolicyRoutes({ policy: mcpPolicy, usage }), ...mcpClientRoutes(mcpClients)],
    jobs: [{ name: 'agent-choices', everyMs: day, leased: true, run: grantDefinitions.prune }],
  };
}

/** Reaches public addresses only. */
export const publicFetch = (maxBytes: number) =>
  createGuardedFetch({ outbound: createOutbound({ allowsPrivate: false }), maxBytes });
