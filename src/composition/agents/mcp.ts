import {
  type AgentModels,
  agentModelsName,
  agentModelsSchema,
  defaultAgentModels,
  namedOutside,
  requireNoneNamed,
} from '../../features/agents/agent-models.ts';
import type { AgentDefinitionStore } from '../../features/agents/definition-store.ts';
import { defaultMcpPolicy, type McpPolicy, parseStoredMcpPolicy } from '../../features/agents/mcp-policy.ts';
import {
  type ConfigDocument,
  type ConfigDocumentDeps,
  createDocument,
  type DocumentStores,
} from '../../features/settings/document.ts';

/** The configuration document `/config/mcp`: whether agents may use `/mcp`, and for what. */
export function createMcpPolicy(
  deps: Pick<ConfigDocumentDeps<McpPolicy, DocumentStores>, 'read' | 'tx' | 'feed' | 'isFresh' | 'clock'>,
): ConfigDocument<McpPolicy> {
  const { read, tx, feed, isFresh, clock } = deps;
  return createDocument<McpPolicy, DocumentStores>({
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
}

type ModelStores = DocumentStores & { readonly agentDefinitions: Pick<AgentDefinitionStore, 'hold'> };

/** The configuration document `/config/agents/models`. A model that a definition names stays in it. */
export function createAgentModels(
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
