import { setTimeout as wait } from 'node:timers/promises';
import { hour, minute } from '../../core/clock.ts';
import type { UserRef } from '../../core/caller.ts';
import {
  type AgentModels,
  agentModelsName,
  agentModelsSchema,
  defaultAgentModels,
  namedOutside,
  requireNoneNamed,
} from '../../features/agents/agent-models.ts';
import { agentModelRoutes } from '../../features/agents/agent-model-routes.ts';
import { createAgentSessions } from '../../features/agents/agents.ts';
import { agentApprovalRoutes } from '../../features/agents/approval-routes.ts';
import { agentApprovalStore } from '../../features/agents/approval-store.ts';
import { createAgentApprovals } from '../../features/agents/approvals.ts';
import { agentDefinitionRoutes } from '../../features/agents/definition-routes.ts';
import { agentDefinitionStore } from '../../features/agents/definition-store.ts';
import { createAgentDefinitions } from '../../features/agents/definitions.ts';
import { agentExportRoutes } from '../../features/agents/export-routes.ts';
import { grantDefinitionRoutes } from '../../features/agents/grant-definition-routes.ts';
import type { GrantDefinitions } from '../../features/agents/grant-definitions.ts';
import type { ClientsOfProvider, McpClients } from '../../features/agents/mcp-clients.ts';
import type { McpPolicy } from '../../features/agents/mcp-policy.ts';
import { mcpUploadStore } from '../../features/agents/mcp-upload-store.ts';
import { createMcpUploads } from '../../features/agents/mcp-uploads.ts';
import { agentSessionRoutes } from '../../features/agents/session-routes.ts';
import { agentSessionStore } from '../../features/agents/session-store.ts';
import type { AuditWriter } from '../../features/audit/audit.ts';
import type { KeyFormat } from '../../features/keys/keys.ts';
import type { ConnectedClients } from '../../features/people/people.ts';
import type { RateLimiter } from '../../features/rate-limit/rate-limit.ts';
import type { RepositoryStore } from '../../features/repositories/repositories.ts';
import {
  type ConfigDocument,
  type ConfigDocumentDeps,
  createDocument,
  type DocumentStores,
} from '../../features/settings/document.ts';
import { anything, publishing } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { StoresOf } from '../../platform/database/stores.ts';
import type { Encryption } from '../../platform/encryption.ts';
import { createConfirmations } from '../../surfaces/mcp/confirmations.ts';
import { mcpPath } from '../../surfaces/mcp/agent-steps.ts';
import { type McpPageDeps, mcpPages } from '../../surfaces/mcp/mcp-page.ts';
import { tools } from '../../surfaces/mcp/tools.ts';
import { uploadPage } from '../../surfaces/mcp/upload-page.ts';
import type { RefuseBadCredential } from '../../surfaces/web/bad-credentials.ts';
import type { PageSteps, Process } from '../part.ts';

export const agentStores = {
  agentApprovals: agentApprovalStore,
  agentDefinitions: agentDefinitionStore,
  agentSessions: agentSessionStore,
  mcpUploads: mcpUploadStore,
};

type Stores = StoresOf<typeof agentStores> &
  DocumentStores & { readonly repositories: RepositoryStore; readonly audit: AuditWriter };

/** Agents: their definitions, sessions, approvals and uploads, and the pages that they call. */
export function createAgentsPart(
  deps: Pick<Process, 'clock' | 'random' | 'log'> & {
    readonly uiUrl: string;
    readonly sessionSecrets: readonly string[];
    readonly read: StoresOf<typeof agentStores> & Pick<Stores, 'documents'>;
    readonly tx: Tx<Stores>;
    readonly policy: () => Promise<McpPolicy>;
    readonly clients: Pick<McpClients, 'prune'>;
    readonly grantDefinitions: GrantDefinitions;
    readonly identity: {
      readonly issuer: string;
      readonly findUser: (id: string) => Promise<UserRef | undefined>;
      readonly connectedClients: ConnectedClients;
    };
    /** Null: another identity provider keeps the clients. */
    readonly provider: ClientsOfProvider | null;
    readonly names: Parameters<typeof agentSessionRoutes>[0]['names'];
    readonly external: McpPageDeps['external'];
    readonly limiter: RateLimiter;
    readonly refuse: RefuseBadCredential;
    readonly format: KeyFormat;
    readonly encryption: Encryption;
    readonly count: McpPageDeps['count'];
  } & Pick<ConfigDocumentDeps<AgentModels, DocumentStores>, 'feed' | 'isFresh'>,
) {
  const { read, tx, policy, grantDefinitions, identity, provider, encryption, clock, random, log } = deps;
  const { isGrantLive, endGrant } = identity.connectedClients;
  const changeAgents = publishing(tx, { topic: 'agents', subject: anything });
  const services = {
    agentSessions: createAgentSessions({
      read,
      tx,
      changeAgents,
      policy,
      revokeGrant: endGrant,
      clock,
      random,
    }),
    agentApprovals: createAgentApprovals({
      read,
      tx,
      async hasAccess({ userId, clientId, grantId }) {
        const user = await identity.findUser(userId);
        if (user === undefined) return false;
        const { isEnded, clientStatus } = await grantDefinitions.standingOf(user, { clientId, grantId });
        if (isEnded || clientStatus !== 'allowed') return false;
        // Null: only the call itself can find out, and it checks again.
        return (await isGrantLive({ userId, clientId, grantId })) !== false;
      },
      encryption,
      secrets: deps.sessionSecrets,
      clock,
      random,
    }),
    mcpUploads: createMcpUploads({ read, format: deps.format, isGrantLive, clock, random }),
    agentDefinitions: createAgentDefinitions({ read, tx: changeAgents, random }),
    agentModels: createAgentModels({ read, tx, feed: deps.feed, isFresh: deps.isFresh, clock }),
  };
  const { agentSessions, agentApprovals, mcpUploads, agentDefinitions, agentModels } = services;
  return {
    services,
    routes: [
      ...agentDefinitionRoutes(agentDefinitions),
      ...grantDefinitionRoutes(grantDefinitions),
      ...agentModelRoutes({ models: agentModels, definitions: agentDefinitions }),
      ...agentExportRoutes({ definitions: agentDefinitions, address: deps.uiUrl + mcpPath }),
      ...agentSessionRoutes({ sessions: agentSessions, names: deps.names }),
      ...agentApprovalRoutes({
        approvals: agentApprovals,
        isEnabled: async () => (await policy()).enabled,
      }),
    ],
    jobs: [
      { name: 'agent-approvals', everyMs: minute, leased: true, run: agentApprovals.prune },
      { name: 'mcp-uploads', everyMs: minute, leased: true, run: mcpUploads.prune },
      {
        name: 'mcp-clients',
        everyMs: hour,
        leased: true,
        async run() {
          if (provider !== null) await deps.clients.prune(provider);
        },
      },
      { name: 'agent-sessions', everyMs: hour, leased: true, run: agentSessions.prune },
    ],
    pages({ authentication, authorization, callRoute }: PageSteps) {
      const common = {
        uiOrigin: deps.uiUrl,
        policy,
        definitions: grantDefinitions,
        authorization,
        limiter: deps.limiter,
        callRoute,
        sessions: agentSessions,
        uploads: mcpUploads,
        count: deps.count,
        clock,
        log,
      };
      return [
        mcpPages({
          ...common,
          issuer: identity.issuer,
          tools,
          external: deps.external,
          authentication,
          confirmations: createConfirmations({ secrets: deps.sessionSecrets, clock }),
          approvals: agentApprovals,
          pause: (ms) => wait(ms, undefined, { ref: false }),
        }),
        uploadPage({ ...common, findUser: identity.findUser, isGrantLive, refuse: deps.refuse }),
      ];
    },
  };
}

type ModelStores = DocumentStores & Pick<Stores, 'agentDefinitions'>;

/** The configuration document `/config/agents/models`. A model that a definition names stays in it. */
function createAgentModels(
  deps: Pick<ConfigDocumentDeps<AgentModels, ModelStores>, 'read' | 'tx' | 'feed' | 'isFresh' | 'clock'>,
): ConfigDocument<AgentModels> {
  const { read, tx, feed, isFresh, clock } = deps;
  return createDocument<AgentModels, ModelStores>({
    name: agentModelsName,
    initial: defaultAgentModels,
    parse: (value) => agentModelsSchema.parse(value),
    topic: 'config',
    eventOf: () => ({ event: 'config.agents.changed', target: { kind: 'config', id: agentModelsName } }),
    // Definitions read the document while they hold this lock, so neither misses the other.
    alongside: async ({ agentDefinitions }, _before, after) =>
      requireNoneNamed(namedOutside(after, await agentDefinitions.hold())),
    read,
    tx,
    feed,
    isFresh,
    clock,
  });
}
