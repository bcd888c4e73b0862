import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Browser } from '../faults/browser.ts';
import { administrator } from '../faults/program.ts';
import { newRepository } from '../git-repository.ts';
import { runBackend } from '../git-servers.ts';
import { installVite, shopFile, shopFiles } from '../shop-example.ts';
import { create, helm, nodeAddress, publicUrl, run, startIngress, state } from './cluster.ts';

/**
 * The life of one Environment that the Postern of the chart builds and runs in the real cluster, in order: each test starts
 * where the one before it ended. The cluster cannot enforce a NetworkPolicy: those are compared with golden files.
 */
const namespace = 'environments';
const kubectl = (...args: readonly string[]) => run('kubectl', `--namespace=${namespace}`, ...args);
const shop = newRepository();
const gitPort = 8443;
const git = createServer(
  { key: readFileSync(join(state, 'pki/edge.key')), cert: readFileSync(join(state, 'pki/edge.crt')) },
  (request, response) => runBackend(shop.folder, request, response),
);
const ada = new Browser(publicUrl);
let ingress: Awaited<ReturnType<typeof startIngress>> | undefined;
let pageUrl: string;

/** A name in the cluster for the git server of this test. */
async function nameGitServer(): Promise<void> {
  const metadata = { name: 'git', namespace: 'backing' };
  const ports = [{ name: 'git', port: 443, targetPort: gitPort }];
  await create({ apiVersion: 'v1', kind: 'Service', metadata, spec: { ports } });
  await create({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'git' } },
    addressType: 'IPv4',
    ports: [{ name: 'git', port: gitPort }],
    endpoints: [{ addresses: [nodeAddress] }],
  });
}

async function done(answer: ReturnType<Browser['api']>, status: number): Promise<void> {
  const { status: found, text } = await answer;
  if (found !== status) throw new Error(`${found}: ${text}`);
}

beforeAll(async () => {
  git.listen(gitPort, nodeAddress);
  await once(git, 'listening');
  await nameGitServer();
  installVite(join(shop.folder, 'web/node_modules'));
  shop.commit({
    'postern.yaml': shopFile('localhost/base-node:test'),
    ...shopFiles({ words: 'Shop', stock: 12 }),
  });
  await run('kubectl', 'create', 'namespace', namespace);
  await run('kubectl', 'label', 'namespace', namespace, 'pod-security.kubernetes.io/enforce=restricted');
  const settings = [
    { name: 'NODE_EXTRA_CA_CERTS', value: '/etc/backing/ca.crt' },
    { name: 'OUTBOUND_CA_FILE', value: '/etc/backing/ca.crt' },
    { name: 'OUTBOUND_ALLOW_PRIVATE', value: 'true' },
  ];
  await helm(
    'install',
    'postern',
    './chart',
    '--values=test/cluster/values.yaml',
    '--wait',
    '--timeout=4m',
    '--set=environments.engine=kubernetes',
    `--set=environments.namespace=${namespace}`,
    ...['web', 'worker'].map((workload) => `--set-json=${workload}.extraEnv=${JSON.stringify(settings)}`),
  );
  ingress = await startIngress();
  await ada.signIn(administrator.email, administrator.password);
  const policy = await ada.api('GET', '/config/api-environments');
  const wanted = { ...policy.data.policy, enabled: true, sleepAfterMinutes: 1 };
  const headers = { 'if-match': String(policy.headers['etag']) };
  await done(ada.api('PUT', '/config/api-environments', wanted, headers), 200);
  const cloneUrl = 'https://git.backing.svc.cluster.local/.git';
  const registered = { fullName: 'acme/shop', cloneUrl, defaultBranch: 'main' };
  await done(ada.api('POST', '/repositories', registered), 201);
});
afterAll(async () => {
  ada.disconnect();
  git.closeAllConnections();
  git.close();
  shop.remove();
  await ingress?.stop();
  await helm('uninstall', 'postern', '--wait', '--timeout=2m', '--ignore-not-found');
  await run('kubectl', 'delete', 'namespace', namespace, '--ignore-not-found');
  await run(
    'kubectl',
    '--namespace=backing',
    'delete',
    'service/git',
    'endpointslice/git',
    '--ignore-not-found',
  );
});

/** Waits for the end of the newest deploy; when it failed, the error shows the Environment and its log. */
async function deployed(): Promise<void> {
  await expect
    .poll(async () => (await ada.api('GET', '/environments/shop')).data.status, {
      timeout: 240_000,
      interval: 500,
    })
    .toMatch(/^(deployed|error|config_error)$/);
  const { data } = await ada.api('GET', '/environments/shop');
  const [deploy] = (await ada.api('GET', '/builds?environment=shop')).data;
  const log = (await ada.api('GET', `/builds/${deploy.id}/logs?limit=50`)).data;
  expect([data.status, data.statusMessage, log]).toEqual(['deployed', null, expect.anything()]);
}

/** What the page and its API answer a person who is signed in. */
async function shown(): Promise<readonly string[]> {
  const page = await ada.open(pageUrl);
  const stock = await ada.open(new URL('/api/stock', pageUrl).href);
  return [page.text.match(/<title>(.*)<\/title>/)?.[1] ?? page.text, stock.text];
}

/** Each object of Environments with its version: `kind/name version`. */
async function versions(): Promise<string[]> {
  const output =
    '--output=go-template={{range .items}}{{.kind}}/{{.metadata.name}} {{.metadata.resourceVersion}}{{"\\n"}}{{end}}';
  const kinds = 'deployments,services,secrets,networkpolicies,jobs,pods';
  const found = await kubectl('get', kinds, '--selector=app.kubernetes.io/managed-by=postern', output);
  return found.split('\n').filter((line) => line !== '');
}

test('the shop is built in pods, runs, and opens through the gateway for a person who is signed in', async () => {
  const wanted = { repository: 'acme/shop', branch: 'main', name: 'shop' };
  const made = await ada.api('POST', '/environments', wanted);
  expect([made.status, made.error]).toEqual([202, null]);
  await deployed();
  const { data } = await ada.api('GET', '/environments/shop');
  pageUrl = data.services.find(({ name }: { name: string }) => name === 'web').url;
  expect(await shown()).toEqual(['Shop', '12 left']);
  expect((await new Browser(publicUrl).open(pageUrl)).text).not.toContain('<title>Shop');
  const lines = (await ada.api('GET', '/environments/shop/logs')).data as { text: string }[];
  expect(lines.map(({ text }) => text)).toContain('the stock is 12');
});

test('the same commit deployed again changes no object', async () => {
  const before = await versions();
  expect(before.length).toBeGreaterThan(4);
  expect((await ada.api('POST', '/environments/shop/deploy')).status).toBe(202);
  await deployed();
  expect(await versions()).toEqual(before);
});

test('a new commit replaces only the changed objects', async () => {
  shop.commit(shopFiles({ words: 'Shop', stock: 13 }));
  expect((await ada.api('POST', '/environments/shop/deploy')).status).toBe(202);
  await deployed();
  expect(await shown()).toEqual(['Shop', '13 left']);
});

test('an unused Environment falls asleep, and a request wakes it', async () => {
  await expect
    .poll(async () => (await ada.api('GET', '/environments/shop')).data.status, {
      timeout: 240_000,
      interval: 1_000,
    })
    .toBe('asleep');
  await expect.poll(() => kubectl('get', 'pods', '--output=name', '--ignore-not-found')).toBe('');
  expect(await shown()).toEqual(['Shop', '13 left']);
});

test('a teardown leaves nothing', async () => {
  expect((await ada.api('DELETE', '/environments/shop')).status).toBe(202);
  await expect.poll(async () => (await ada.api('GET', '/environments/shop')).status).toBe(404);
  expect(await versions()).toEqual([]);
});
