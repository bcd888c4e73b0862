import { Alert } from '@mantine/core';
import { api, dataOf, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { countOf } from '../../shell/count.ts';
import type { Current, DocumentApi, Version } from '../documents/document-api.ts';
import type { Tree } from '../documents/values.ts';

/** The Sites configuration, read and changed as a document. */
export const sitesApi: DocumentApi = {
  name: 'sites',
  async read(signal) {
    return toCurrent(await unwrap(api.GET('/config/sites', signal === undefined ? {} : { signal })));
  },
  async tryOut(next, etag) {
    const params = { query: { dryRun: true }, header: { 'If-Match': etag } } as const;
    const { data } = await unwrap(api.PUT('/config/sites', { params, body: toConfig(next) }));
    return data.dryRun === null ? null : <Impact of={data.dryRun} />;
  },
  async write(next, etag) {
    const params = { header: { 'If-Match': etag } };
    return toCurrent(await unwrap(api.PUT('/config/sites', { params, body: toConfig(next) })));
  },
  async history(page, signal) {
    const params = { query: { page, limit: 10 } };
    const { data, metadata } = await unwrap(
      api.GET('/config/sites/history', { params, ...(signal === undefined ? {} : { signal }) }),
    );
    return { items: data.map(toVersion), pages: metadata.pagination.total };
  },
  async revert(version, etag) {
    const params = { header: { 'If-Match': etag } };
    return toCurrent(await unwrap(api.POST('/config/sites/revert', { params, body: { version } })));
  },
  async told() {
    const { enabled, upload, ttl, quotas } = await dataOf(api.GET('/sites/capabilities'));
    return {
      enabled,
      'upload.maxUploadBytes': upload.maxUploadBytes,
      'upload.maxExtractedBytes': upload.maxExtractedBytes,
      'upload.maxFiles': upload.maxFiles,
      'upload.maxFileBytes': upload.maxFileBytes,
      'upload.allowedExtensions': upload.allowedExtensions,
      'upload.forbiddenExtensions': upload.forbiddenExtensions,
      'ttl.enabled': ttl.enabled,
      'ttl.defaultDays': ttl.defaultHours / 24,
      'ttl.extensionDays': ttl.extensionHours / 24,
      'ttl.maxDays': ttl.maxHours / 24,
      'quotas.sitesPerOwner': quotas.sitesPerOwner,
      'quotas.bytesPerOwner': quotas.bytesPerOwner,
    };
  },
  trial: 'Publish a small site, and open it.',
};

function Impact({ of: impact }: { of: NonNullable<Schemas['SitesConfigChange']['dryRun']> }) {
  const { sitesOffline, ownersOverQuota } = impact;
  if (sitesOffline === 0 && ownersOverQuota === 0) {
    return (
      <Alert color="green" title="No sites go offline">
        No owner exceeds the quota.
      </Alert>
    );
  }
  return (
    <Alert
      color="yellow"
      title={sitesOffline > 0 ? `${countOf(sitesOffline, 'site goes', 'sites go')} offline` : 'Quota'}
    >
      {sitesOffline > 0 &&
        'Every content address answers 404 within a second, and uploads are refused. Nothing is deleted. '}
      {ownersOverQuota > 0 &&
        `${countOf(ownersOverQuota, 'owner exceeds', 'owners exceed')} the quota. Existing versions stay, and new versions are refused.`}
    </Alert>
  );
}

function toConfig(tree: Tree): Schemas['SitesConfig'] {
  // Edited from a configuration the server sent; it checks every field again, and what it refuses is shown beside it.
  return tree as Schemas['SitesConfig'];
}

function toVersion({ version, changedAt, changedBy, config }: Schemas['SitesConfigVersion']): Version {
  return { version, changedAt, changedBy, value: config };
}

function toCurrent({ data, etag }: { data: Schemas['SitesConfigVersion']; etag: string | null }): Current {
  return { ...toVersion(data), etag: etag ?? '' };
}
