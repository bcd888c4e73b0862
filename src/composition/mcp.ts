import { defaultMcpPolicy, type McpPolicy, parseStoredMcpPolicy } from '../features/agents/mcp-policy.ts';
import {
  type ConfigDocument,
  type ConfigDocumentDeps,
  createDocument,
  type DocumentStores,
} from '../features/settings/document.ts';

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
