import { api, dataOf, unwrap } from '../../api/client.ts';
import { queryClient } from '../../api/queries.ts';
import { environmentPolicy } from '../../shell/environment-policy.ts';
import type { Schemas } from '../../api/contract.ts';
import type { Current, DocumentApi, Version } from '../documents/document-api.ts';
import type { Tree } from '../documents/values.ts';

/** The Environment policy, read and changed as a document. */
export const environmentPolicyApi: DocumentApi = {
  name: 'environments',
  async read(signal) {
    return toCurrent(
      await unwrap(api.GET('/config/api-environments', signal === undefined ? {} : { signal })),
    );
  },
  async tryOut(next, etag) {
    const params = { query: { dryRun: true }, header: { 'If-Match': etag } } as const;
    await unwrap(api.PUT('/config/api-environments', { params, body: toPolicy(next) }));
    // It finds errors. The page already shows what would change.
    return null;
  },
  async write(next, etag) {
    const params = { header: { 'If-Match': etag } };
    const saved = await unwrap(api.PUT('/config/api-environments', { params, body: toPolicy(next) }));
    await refreshNavigation();
    return toCurrent(saved);
  },
  async history(page, signal) {
    const params = { query: { page, limit: 10 } };
    const { data, metadata } = await unwrap(
      api.GET('/config/api-environments/history', { params, ...(signal === undefined ? {} : { signal }) }),
    );
    return { items: data.map(toVersion), pages: metadata.pagination.total };
  },
  async revert(version, etag) {
    const params = { header: { 'If-Match': etag } };
    const reverted = await unwrap(api.POST('/config/api-environments/revert', { params, body: { version } }));
    await refreshNavigation();
    return toCurrent(reverted);
  },
  async told() {
    const {
      isolation: _isolation,
      serverTime: _serverTime,
      resources,
      ...told
    } = await dataOf(api.GET('/environments/policy'));
    const { maxMilliCpu, maxMemoryBytes } = resources;
    return { ...told, 'resources.maxMilliCpu': maxMilliCpu, 'resources.maxMemoryBytes': maxMemoryBytes };
  },
  trial: 'Deploy a branch, and follow its build.',
};

/** The switch of the policy decides whether Environments are listed there. */
async function refreshNavigation(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: environmentPolicy.queryKey });
}

function toPolicy(tree: Tree): Schemas['EnvironmentPolicy'] {
  // Edited from a policy the server sent; it checks every field again, and what it refuses is shown beside it.
  return tree as Schemas['EnvironmentPolicy'];
}

function toVersion({ version, changedAt, changedBy, policy }: Schemas['EnvironmentPolicyVersion']): Version {
  return { version, changedAt, changedBy, value: policy };
}

function toCurrent(read: { data: Schemas['EnvironmentPolicyVersion']; etag: string | null }): Current {
  return { ...toVersion(read.data), etag: read.etag ?? '' };
}
