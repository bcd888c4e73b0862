import { Alert } from '@mantine/core';
import { api, unreachable, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { countOf } from '../../shell/count.ts';
import common from '../admin.module.css';
import type { Current, DocumentApi, Version } from '../documents/document-api.ts';
import type { Tree } from '../documents/values.ts';

/** The MCP policy, read and changed as a document. */
export const mcpPolicyApi: DocumentApi = {
  name: 'mcp',
  async read(signal) {
    return toCurrent(await unwrap(api.GET('/config/mcp', signal === undefined ? {} : { signal })));
  },
  async tryOut(next, etag) {
    const params = { query: { dryRun: true }, header: { 'If-Match': etag } } as const;
    const { data } = await unwrap(api.PUT('/config/mcp', { params, body: toPolicy(next) }));
    return data.dryRun === null ? null : <Impact of={data.dryRun} />;
  },
  async write(next, etag) {
    const params = { header: { 'If-Match': etag } };
    return toCurrent(await unwrap(api.PUT('/config/mcp', { params, body: toPolicy(next) })));
  },
  async history(page, signal) {
    const params = { query: { page, limit: 10 } };
    const { data, metadata } = await unwrap(
      api.GET('/config/mcp/history', { params, ...(signal === undefined ? {} : { signal }) }),
    );
    return { items: data.map(toVersion), pages: metadata.pagination.total };
  },
  async revert(version, etag) {
    const params = { header: { 'If-Match': etag } };
    return toCurrent(await unwrap(api.POST('/config/mcp/revert', { params, body: { version } })));
  },
  async told() {
    // Clients read this before they sign a person in. It exists only while MCP is on.
    const { status } = await fetch('/.well-known/oauth-protected-resource/mcp');
    if (status !== 200 && status !== 404) throw unreachable();
    return { enabled: status === 200 };
  },
  trial: 'Ask one of your agents to list its tools and use one.',
};

/** Tools that agents used in the last 30 days and could no longer use. */
function Impact({ of: { stopped } }: { of: NonNullable<Schemas['McpPolicyChange']['dryRun']> }) {
  if (stopped.length === 0) {
    return (
      <Alert color="green" title="No tool becomes unavailable">
        Every tool that agents used in the last 30 days stays as available as it is.
      </Alert>
    );
  }
  return (
    <Alert color="yellow" title={`${countOf(stopped.length, 'tool')} in use would be refused`}>
      <ul className={common['list']}>
        {stopped.map(({ tool, people, calls }) => (
          <li key={tool}>
            <code>{tool}</code>: {countOf(calls, 'call')} of agents of {countOf(people, 'person', 'people')}{' '}
            in the last 30 days
          </li>
        ))}
      </ul>
    </Alert>
  );
}

function toPolicy(tree: Tree): Schemas['McpPolicy'] {
  // Edited from a policy the server sent; it checks every field again, and what it refuses is shown beside it.
  return tree as Schemas['McpPolicy'];
}

function toVersion({ version, changedAt, changedBy, policy }: Schemas['McpPolicyVersion']): Version {
  return { version, changedAt, changedBy, value: policy };
}

function toCurrent({ data, etag }: { data: Schemas['McpPolicyVersion']; etag: string | null }): Current {
  return { ...toVersion(data), etag: etag ?? '' };
}
