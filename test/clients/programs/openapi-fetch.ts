// Calls the API through openapi-fetch with the types that openapi-typescript made, and prints what it parsed.
import createClient from 'openapi-fetch';
import type { paths } from './schema.js';

const { POSTERN_URL: baseUrl = '', POSTERN_KEY: key = '', POSTERN_SITE: servedId = '' } = process.env;
const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${key}` } });

function parsed<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

const at = (id: string) => ({ params: { path: { id } } });
const caller = parsed(await client.GET('/api/v2/auth/context')).data;
const created = parsed(
  await client.POST('/api/v2/repositories', {
    body: { fullName: 'acme/fetch', cloneUrl: 'https://git.example/acme/fetch.git', defaultBranch: 'main' },
  }),
).data;
const repositories = parsed(
  await client.GET('/api/v2/repositories', { params: { query: { search: 'acme/fetch' } } }),
);
const repository = parsed(
  await client.GET('/api/v2/repositories/{owner}/{name}', {
    params: { path: { owner: 'acme', name: 'fetch' } },
  }),
).data;
const capabilities = parsed(await client.GET('/api/v2/sites/capabilities')).data;
const site = parsed(
  await client.POST('/api/v2/sites', { body: { name: 'from fetch', visibility: 'public' } }),
).data;
const listed = parsed(await client.GET('/api/v2/sites', { params: { query: { search: 'from fetch' } } }));
const got = parsed(await client.GET('/api/v2/sites/{id}', at(site.id))).data;
const versions = parsed(await client.GET('/api/v2/sites/{id}/versions', at(servedId)));
const served = parsed(await client.GET('/api/v2/sites/{id}', at(servedId))).data;
const extended = parsed(await client.POST('/api/v2/sites/{id}/extend', at(site.id))).data;
const deleted = parsed(await client.DELETE('/api/v2/sites/{id}', at(site.id))).data;
const { error } = await client.GET('/api/v2/sites/{id}', at('nothingthere'));

console.log(
  JSON.stringify({
    keyName: caller.keyName,
    created: created.fullName,
    repositories: repositories.metadata.pagination.items,
    environmentDefaults: repository.environmentDefaults,
    maxUploadBytes: capabilities.upload.maxUploadBytes,
    site: [site.name, site.status],
    listed: listed.data[0]?.id === site.id,
    noVersion: got.version === null,
    restorableUntil: got.restorableUntil,
    versions: versions.data[0]?.number,
    served: served.version?.number,
    extended: (extended.expiresAt ?? '') > (site.expiresAt ?? ''),
    deleted: [deleted.status, deleted.restorableUntil !== null],
    failure: [error?.error.code, error?.error.message !== ''],
  }),
);
