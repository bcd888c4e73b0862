import { createServer } from 'node:http';
import { once } from 'node:events';

/** The part of the Kubernetes API that Helm needs before an installation: known kinds and existing objects. */
export type Cluster = { readonly url: string; stop(): Promise<void> };

const kinds: Readonly<Record<string, readonly string[]>> = {
  v1: ['Secret', 'ConfigMap', 'Service', 'ServiceAccount', 'Pod'],
  'apps/v1': ['Deployment'],
  'batch/v1': ['Job'],
  'policy/v1': ['PodDisruptionBudget'],
  'networking.k8s.io/v1': ['NetworkPolicy', 'Ingress'],
  'rbac.authorization.k8s.io/v1': ['Role', 'RoleBinding'],
};

const plural = (kind: string) =>
  kind.endsWith('y') ? `${kind.slice(0, -1).toLowerCase()}ies` : `${kind.toLowerCase()}s`;

/** `there`: objects by path below `/api/v1`, such as `namespaces/prod/secrets/one`; everything else is not found. */
export async function startCluster(there: Readonly<Record<string, unknown>>): Promise<Cluster> {
  const known: Record<string, unknown> = {
    '/version': { major: '1', minor: '37', gitVersion: 'v1.37.0' },
    '/api': { kind: 'APIVersions', versions: ['v1'] },
    '/apis': {
      kind: 'APIGroupList',
      apiVersion: 'v1',
      groups: Object.keys(kinds)
        .filter((one) => one.includes('/'))
        .map((groupVersion) => {
          const [name, version] = groupVersion.split('/');
          return { name, versions: [{ groupVersion, version }], preferredVersion: { groupVersion, version } };
        }),
    },
  };
  for (const [groupVersion, names] of Object.entries(kinds)) {
    known[`${groupVersion.includes('/') ? '/apis' : '/api'}/${groupVersion}`] = {
      kind: 'APIResourceList',
      groupVersion,
      resources: names.map((kind) => ({
        name: plural(kind),
        kind,
        singularName: kind.toLowerCase(),
        namespaced: true,
        verbs: ['get', 'list', 'create'],
      })),
    };
  }
  for (const [path, object] of Object.entries(there)) known[`/api/v1/${path}`] = object;
  const server = createServer((request, response) => {
    const found = known[(request.url ?? '').split('?', 1)[0] ?? ''];
    const missing = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 };
    response.writeHead(found === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(found ?? missing));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The cluster has no port.');
  return {
    url: `http://127.0.0.1:${address.port}`,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
