// Calls the API through the functions that @hey-api/openapi-ts made, and prints what it parsed.
import * as api from './sdk/index.js';
import { client } from './sdk/client.gen.js';

const { POSTERN_URL: baseUrl = '', POSTERN_KEY: key = '', POSTERN_SITE: servedId = '' } = process.env;
client.setConfig({ baseUrl, auth: ({ scheme }) => (scheme === 'bearer' ? key : undefined) });

function parsed<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

const at = (id: string) => ({ path: { id } });
const caller = parsed(await api.readAuthContext()).data;
const created = parsed(
  await api.createRepository({
    body: { fullName: 'acme/hey', cloneUrl: 'https://git.example/acme/hey.git' },
  }),
).data;
const repositories = parsed(await api.listRepositories({ query: { search: 'acme/hey' } }));
const repository = parsed(await api.getRepository({ path: { owner: 'acme', name: 'hey' } })).data;
const capabilities = parsed(await api.readSiteCapabilities()).data;
const site = parsed(await api.createSite({ body: { name: 'from hey', visibility: 'public' } })).data;
const listed = parsed(await api.listSites({ query: { search: 'from hey' } }));
const got = parsed(await api.getSite(at(site.id))).data;
const versions = parsed(await api.listSiteVersions(at(servedId)));
const served = parsed(await api.getSite(at(servedId))).data;
const extended = parsed(await api.extendSite(at(site.id))).data;
const deleted = parsed(await api.deleteSite(at(site.id))).data;
const { error } = await api.getSite(at('nothingthere'));

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
