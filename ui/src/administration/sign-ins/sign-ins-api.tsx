import { Alert } from '@mantine/core';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { countOf } from '../../shell/count.ts';
import type { Current, DocumentApi, Version } from '../documents/document-api.ts';
import type { Tree } from '../documents/values.ts';

/** The access configuration, read and changed as a document. */
export const signInsApi: DocumentApi = {
  name: 'access',
  async read(signal) {
    return toCurrent(await unwrap(api.GET('/config/access', signal === undefined ? {} : { signal })));
  },
  async tryOut(next, etag) {
    const params = { query: { dryRun: true }, header: { 'If-Match': etag } } as const;
    const { data } = await unwrap(api.PUT('/config/access', { params, body: toConfig(next) }));
    return data.dryRun === null ? null : <Impact of={data.dryRun} />;
  },
  async write(next, etag) {
    const params = { header: { 'If-Match': etag } };
    return toCurrent(await unwrap(api.PUT('/config/access', { params, body: toConfig(next) })));
  },
  async history(page, signal) {
    const params = { query: { page, limit: 10 } };
    const { data, metadata } = await unwrap(
      api.GET('/config/access/history', { params, ...(signal === undefined ? {} : { signal }) }),
    );
    return { items: data.map(toVersion), pages: metadata.pagination.total };
  },
  async revert(version, etag) {
    const params = { header: { 'If-Match': etag } };
    return toCurrent(await unwrap(api.POST('/config/access/revert', { params, body: { version } })));
  },
  trial: 'Sign in with a private window, which uses no session that you have.',
};

function Impact({ of: impact }: { of: NonNullable<Schemas['AccessConfigChange']['dryRun']> }) {
  const { addressesOverLimit, mostFromOneAddress } = impact;
  const most = `Highest number in the last 24 hours: ${mostFromOneAddress.toLocaleString()} from one address in one minute.`;
  return addressesOverLimit === 0 ? (
    <Alert color="green" title="No address exceeded this limit">
      {most}
    </Alert>
  ) : (
    <Alert
      color="yellow"
      title={`${countOf(addressesOverLimit, 'address', 'addresses')} exceeded this limit`}
    >
      {most}
    </Alert>
  );
}

function toConfig(tree: Tree): Schemas['AccessConfig'] {
  // Edited from a configuration the server sent; it checks every field again, and what it refuses is shown beside it.
  return tree as Schemas['AccessConfig'];
}

function toVersion({ version, changedAt, changedBy, config }: Schemas['AccessConfigVersion']): Version {
  return { version, changedAt, changedBy, value: config };
}

function toCurrent({ data, etag }: { data: Schemas['AccessConfigVersion']; etag: string | null }): Current {
  return { ...toVersion(data), etag: etag ?? '' };
}
