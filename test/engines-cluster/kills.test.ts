import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findPostgres, freePort } from '../../scripts/local-servers.ts';
import { create, nodeAddress, run } from '../cluster/cluster.ts';
import { startRedis } from '../contract/kv-redis-server.ts';
import { Browser } from '../faults/browser.ts';
import { tell } from '../faults/figures.ts';
import { createDice } from '../faults/ledger.ts';
import { startPostgres } from '../faults/postgres-server.ts';
import { administrator, freePorts, type Program, startProgram } from '../faults/program.ts';
import { newRepository } from '../git-repository.ts';
import { image } from './namespace.ts';

/**
 * Web and a worker of their own run Environments in the real cluster. The worker is killed at random moments of each step of a
 * deploy and of a teardown, and its namespace is deleted by hand. FAULT_CYCLES: how many kills, rounded up to whole rounds;
 * FAULT_SEED repeats a run.
 */
const [namespace, ownNamespace] = ['environments-kills', 'kills'];
const kubectl = (...args: readonly string[]) => run('kubectl', `--namespace=${namespace}`, ...args);
const seed = Number(process.env['FAULT_SEED'] ?? Date.now() % 1_000_000);
const dice = createDice(seed);

type Step = { readonly step: string; readonly status: string };
const isRunning = (steps: readonly Step[], name: string) =>
  steps.some(({ step, status }) => step === name && status === 'running');
/** The steps of a deploy in their order, and for how long the worker lives on when it is seen there, at most, in ms. */
const moments = {
  acknowledged: { isAt: () => true, maxMs: 1_000 },
  build: { isAt: (steps: readonly Step[]) => isRunning(steps, 'build'), maxMs: 6_000 },
  start: { isAt: (steps: readonly Step[]) => isRunning(steps, 'start'), maxMs: 4_000 },
  served: { isAt: () => false, maxMs: 2_000 },
};
const names = Object.keys(moments) as (keyof typeof moments)[];
const killsInRound = names.length + 1;
const rounds = Math.ceil(Number(process.env['FAULT_CYCLES'] ?? killsInRound) / killsInRound);

/** A worker takes a build back from one that was silent for a minute. */
const settledMs = 240_000;
/** For two programs, a database and the removal of a namespace. */
const startMs = 300_000;
const folder = mkdtempSync(join(tmpdir(), 'postern-kills-'));
const repository = newRepository();
/** What this file started, in its order. */
const cleanUps: (() => unknown)[] = [
  () => rmSync(folder, { recursive: true, force: true }),
  repository.remove,
];
let worker: Program;
let ada: Browser;
let startWorker: () => Promise<Program>;

const file = `version: 1
services:
  api:
    build: { image: '${image}', command: 'echo builds; sleep 2; mkdir dist; cp server.js dist', output: dist }
    run: { command: exec node server.js, port: 8080 }
`;

function commit(edition: number): void {
  const server = `require('node:http').createServer((q, r) => r.end('api ${edition}')).listen(process.env.PORT, () => console.log('listening ${edition}'));`;
  repository.commit({ 'postern.yaml': file, 'server.js': server });
}

async function createNamespace(): Promise<void> {
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  await create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } });
}

/** A name in the cluster for the files of web, which listens on the loopback addresses of the node. */
async function nameWeb(loopbackPort: number): Promise<void> {
  const relay = createServer((near) => {
    const far = connect(loopbackPort, '127.0.0.1');
    near.pipe(far).pipe(near);
    near.on('error', () => far.destroy());
    far.on('error', () => near.destroy());
  }).listen(0, nodeAddress);
  await once(relay, 'listening');
  cleanUps.push(() => relay.close());
  // It listens on a port.
  const { port } = relay.address() as AddressInfo;
  const metadata = { name: 'web', namespace: ownNamespace };
  await create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: ownNamespace } });
  const ports = [{ name: 'web', port: 80, targetPort: port }];
  await create({ apiVersion: 'v1', kind: 'Service', metadata, spec: { ports } });
  await create({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: 'web', port }],
    endpoints: [{ addresses: [nodeAddress] }],
  });
}

const removeNamespaces = () =>
  run('kubectl', 'delete', 'namespace', namespace, ownNamespace, '--ignore-not-found');

async function accepted(asked: ReturnType<Browser['api']>) {
  const { status, text, data } = await asked;
  if (status >= 300) throw new Error(`Answered ${status}: ${text}`);
  return data;
}

beforeAll(async () => {
  await removeNamespaces();
  cleanUps.push(removeNamespaces);
  await createNamespace();
  commit(0);
  const redis = await startRedis();
  cleanUps.push(redis.stop);
  const postgres = await startPostgres(findPostgres() ?? '');
  cleanUps.push(postgres.stop);
  const ports = await freePorts();
  const filesPort = await freePort();
  await nameWeb(filesPort);
  const settings = {
    KV_URL: redis.url,
    SERVICE_UI_URL: `http://localhost:${ports.web}`,
    SITES_CONTENT_URL: `http://sites.localhost:${ports.gateway}`,
    ENVIRONMENTS_ENGINE: 'kubernetes',
    ENVIRONMENTS_NAMESPACE: namespace,
    ENVIRONMENTS_POD_IMAGE: 'localhost/postern:test',
    ENVIRONMENTS_PORT: String(filesPort),
    ENVIRONMENTS_WEB_URL: `http://web.${ownNamespace}.svc:80`,
    ENVIRONMENTS_ALLOW_FILE_REPOSITORIES: 'true',
    KUBECONFIG: process.env['KUBECONFIG'] ?? '',
  };
  const shared = { dataDir: folder, databaseUrl: postgres.url, settings };
  const web = await startProgram({ ...shared, ports }, 'web');
  cleanUps.push(() => web.end('SIGTERM'));
  const ofWorker = { ...shared, ports: await freePorts() };
  startWorker = () => startProgram(ofWorker, 'worker');
  worker = await startWorker();
  cleanUps.push(() => worker.end('SIGTERM'));
  ada = new Browser(web.origin);
  await ada.signIn(administrator.email, administrator.password);
  const { data } = await ada.api('GET', '/config/api-environments');
  await accepted(
    ada.api('PUT', '/config/api-environments', { ...data.policy, enabled: true }, { 'if-match': '*' }),
  );
  await accepted(ada.api('POST', '/repositories', { fullName: 'acme/shop', cloneUrl: repository.url }));
}, startMs);
afterAll(async () => {
  for (const cleanUp of cleanUps.toReversed()) await cleanUp();
}, startMs);

async function newEnvironment(): Promise<{ readonly id: string; readonly uuid: string }> {
  const wanted = { repository: 'acme/shop', branch: 'main', autoTrack: false };
  return await accepted(ada.api('POST', '/environments', wanted));
}

/** Until it has this status, and nothing to say. */
async function becomes(id: string, status: string): Promise<void> {
  const find = async () => {
    const { data } = await ada.api('GET', `/environments/${id}`);
    return [data.status, data.statusMessage];
  };
  await expect.poll(find, { timeout: settledMs, interval: 200 }).toEqual([status, null]);
}

/** Kinds of the existing objects of Environments. A Deployment keeps ReplicaSets of earlier revisions, without pods. */
async function objects(): Promise<string[]> {
  const output = '--output=go-template={{range .items}}{{.kind}}{{"\\n"}}{{end}}';
  const kinds = 'deployments,jobs,pods,services,secrets,networkpolicies';
  const found = await kubectl('get', kinds, '--selector=app.kubernetes.io/managed-by=postern', output);
  return found
    .split('\n')
    .filter((kind) => kind !== '')
    .toSorted();
}

const ofService = ['Deployment', 'NetworkPolicy', 'Pod', 'Secret', 'Secret', 'Service'];

/** What the service of an Environment answers inside the cluster. */
async function answer(id: string): Promise<string> {
  const byId = `--selector=postern.dev/environment=${id}`;
  const address = await kubectl('get', 'services', byId, '--output=jsonpath={.items[*].spec.clusterIP}');
  return await fetch(`http://${address}:8080`).then((response) => response.text(), String);
}

async function killWorker(afterMs: number): Promise<void> {
  await wait(dice.below(afterMs));
  await worker.end('SIGKILL');
  worker = await startWorker();
}

/** Kills the worker in this step of the deploy, or in a later one when the step is over. */
async function killAt(name: keyof typeof moments, deployId: string): Promise<keyof typeof moments> {
  const later = names.slice(names.indexOf(name));
  for (;;) {
    const { status, steps, message } = (await ada.api('GET', `/builds/${deployId}`)).data;
    if (/error/.test(status)) throw new Error(`The deploy ended: ${message}`);
    const seen = status === 'deployed' ? 'served' : later.find((one) => moments[one].isAt(steps));
    if (seen !== undefined) {
      await killWorker(moments[seen].maxMs);
      return seen;
    }
    await wait(20);
  }
}

const kills = rounds * killsInRound;
test(`a worker that is killed ${kills} times, in every step of deploys and teardowns, continues them and leaves nothing`, {
  timeout: 300_000 + rounds * 300_000,
}, async () => {
  const { id } = await newEnvironment();
  await becomes(id, 'deployed');
  const counts = new Map(names.map((name) => [name, 0]));
  try {
    for (let edition = 1; edition <= rounds; edition += 1) {
      commit(edition);
      const { deployId } = await accepted(ada.api('POST', `/environments/${id}/deploy`, {}));
      const other = await newEnvironment();
      for (const name of names) {
        const seen = await killAt(name, deployId);
        counts.set(seen, (counts.get(seen) ?? 0) + 1);
      }
      for (const one of [id, other.id]) {
        await becomes(one, 'deployed');
        await expect.poll(() => answer(one)).toBe(`api ${edition}`);
      }
      const two = [...ofService, ...ofService].toSorted();
      await expect.poll(objects, { interval: 500 }).toEqual(two);
      const lines = async () => {
        const { data } = await ada.api('GET', `/environments/${id}/logs?limit=1000`);
        return (data as { text: string }[]).filter(({ text }) => text === `listening ${edition}`).length;
      };
      await expect.poll(lines).toBe(1);

      await accepted(ada.api('DELETE', `/environments/${other.id}`));
      await killWorker(3_000);
      await becomes(other.id, 'torn_down');
      await expect.poll(objects, { interval: 500 }).toEqual(ofService);
    }
    await accepted(ada.api('DELETE', `/environments/${id}`));
    await becomes(id, 'torn_down');
    expect(await objects()).toEqual([]);
  } catch (error) {
    throw new Error(`FAULT_SEED=${seed}`, { cause: error });
  }
  for (const [name, count] of counts) tell(`kills of the worker: ${name}`, String(count));
  const { data: builds } = await ada.api('GET', '/builds?limit=100');
  expect(new Set(builds.map(({ status }: { status: string }) => status))).toEqual(new Set(['deployed']));
});

test('a namespace that is deleted manually is the reason of its services, and everything comes back with it', async () => {
  const { id } = await newEnvironment();
  await becomes(id, 'deployed');
  await kubectl('delete', 'namespace', namespace);
  const service = async () => (await ada.api('GET', `/environments/${id}`)).data.services[0];
  const reason = expect.stringMatching(/Kubernetes answers: .*namespaces? "?environments-kills/) as string;
  await expect.poll(service).toMatchObject({ status: 'starting', reason });

  commit(1_000);
  await accepted(ada.api('POST', `/environments/${id}/deploy`, {}));
  const said = async () => (await ada.api('GET', `/environments/${id}/why`)).text;
  await expect.poll(said).toContain('Kubernetes answers: ');

  await createNamespace();
  await becomes(id, 'deployed');
  await expect.poll(() => answer(id)).toBe('api 1000');
  await kubectl('delete', 'namespace', namespace);
  // No object of it exists, and none can be created.
  await accepted(ada.api('DELETE', `/environments/${id}`));
  await becomes(id, 'torn_down');
});
