import { api, dataOf, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import type { Current, DocumentApi, Version } from '../documents/document-api.ts';
import { at, type Tree, withAt } from '../documents/values.ts';
import { issuersOf, sentIssuer } from './issuers.ts';
import { PolicyImpact } from './policy-impact.tsx';

/** The key policy, read and changed as a document. */
export const policyApi: DocumentApi = {
  name: 'policy',
  async read(signal) {
    return toCurrent(await unwrap(api.GET('/config/api-keys', signal === undefined ? {} : { signal })));
  },
  async tryOut(next, etag) {
    const params = { query: { dryRun: true }, header: { 'If-Match': etag } } as const;
    const { data } = await unwrap(api.PUT('/config/api-keys', { params, body: toPolicy(next) }));
    return data.dryRun === null ? null : <PolicyImpact of={data.dryRun} />;
  },
  async write(next, etag) {
    const params = { header: { 'If-Match': etag } };
    return toCurrent(await unwrap(api.PUT('/config/api-keys', { params, body: toPolicy(next) })));
  },
  async history(page, signal) {
    const params = { query: { page, limit: 10 } };
    const { data, metadata } = await unwrap(
      api.GET('/config/api-keys/history', { params, ...(signal === undefined ? {} : { signal }) }),
    );
    return { items: data.map(toVersion), pages: metadata.pagination.total };
  },
  async revert(version, etag) {
    const params = { header: { 'If-Match': etag } };
    return toCurrent(await unwrap(api.POST('/config/api-keys/revert', { params, body: { version } })));
  },
  async told() {
    const mine = await dataOf(api.GET('/me/tokens/policy'));
    return {
      'issuance.personal': mine.reasons.every(({ code }) => code !== 'issuance_disabled'),
      'scopes.personal': mine.allowedScopes,
      'repositories.personal.allowAll': mine.repositories.allowAll,
      'repositories.maxSelected': mine.repositories.maxSelected,
      'lifetime.personal.defaultTtlHours': mine.lifetime.defaultTtlHours,
      'lifetime.personal.maxTtlHours': mine.lifetime.maxTtlHours,
      'lifetime.personal.offeredTtlHours': mine.lifetime.offeredTtlHours,
      'lifetime.personal.allowNoExpiry': mine.lifetime.allowNoExpiry,
      maxActivePersonalKeysPerUser: mine.activeKeys.limit,
      rateLimitPerMinute: mine.rateLimit.requestsPerMinute,
    };
  },
  trial: 'Create a key, or send one request with a key of the type that you changed.',
};

function toPolicy(tree: Tree): Schemas['KeyPolicyInput'] {
  const path = 'federation.issuers';
  // Edited from a policy the server sent; it checks every field again, and what it refuses is shown beside it.
  return withAt(tree, path, issuersOf(at(tree, path)).map(sentIssuer)) as Schemas['KeyPolicyInput'];
}

function toVersion({ version, changedAt, changedBy, policy }: Schemas['KeyPolicyVersion']): Version {
  return { version, changedAt, changedBy, value: policy };
}

function toCurrent({ data, etag }: { data: Schemas['KeyPolicyVersion']; etag: string | null }): Current {
  return { ...toVersion(data), etag: etag ?? '' };
}
