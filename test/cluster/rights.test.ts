import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { V1Deployment } from '@kubernetes/client-node';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { type Cluster, type Kind, openCluster } from '../../src/features/engine/kubernetes/cluster.ts';
import { openBuildLog } from '../../src/features/engine/build-log.ts';
import { createKubernetesEngine } from '../../src/features/engine/kubernetes/kubernetes-engine.ts';
import { generousLimits } from '../engines/engine-contract.ts';
import { run } from './cluster.ts';

/** The rights that the chart gives the worker: those that the engine needs, and no others. */
const [release, namespace] = ['rights', 'rights-environments'];
const role = `${release}-postern-environments`;
const worker = `--as=system:serviceaccount:${release}:${release}-postern-worker`;
const admin = (...args: readonly string[]) => run('kubectl', ...args);
const inNamespace = (...args: readonly string[]) => admin(`--namespace=${namespace}`, ...args);

type Rule = { readonly apiGroups: [string]; readonly resources: [string]; readonly verbs: readonly string[] };
type Right = { readonly group: string; readonly kind: string; readonly verb: string };
/** For a watch or a log, which do not end by themselves, in ms. */
const watchMs = 3_000;
const folder = mkdtempSync(join(tmpdir(), 'postern-rights-'));
let rules: readonly Rule[];
let engine: Cluster;

async function apply(manifests: string, ...args: readonly string[]): Promise<void> {
  const applied = promisify(execFile)('kubectl', ['apply', ...args, '--filename=-']);
  applied.child.stdin?.end(manifests);
  await applied;
}

beforeAll(async () => {
  for (const name of [release, namespace]) await admin('create', 'namespace', name);
  await admin('label', 'namespace', namespace, 'pod-security.kubernetes.io/enforce=restricted');
  const rendered = await run(
    'helm',
    'template',
    release,
    './chart',
    `--namespace=${release}`,
    '--values=test/cluster/values.yaml',
    '--set=environments.engine=kubernetes',
    `--set=environments.namespace=${namespace}`,
    '--show-only=templates/environments.yaml',
  );
  await apply(rendered);
  const found = parseAllDocuments(rendered)
    // What the chart renders; the API server has just judged it.
    .map((document) => document.toJS() as { kind: string; rules: readonly Rule[] })
    .find(({ kind }) => kind === 'Role');
  rules = found?.rules ?? [];
  engine = await openCluster({ namespace, kubeconfig: await credentialsOfWorker() });
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await admin('delete', 'namespace', release, namespace, '--wait=false');
});

/** A file as KUBECONFIG, with a token as the worker has one. */
async function credentialsOfWorker(): Promise<string> {
  // The output of kubectl about its configuration.
  const own = JSON.parse(await admin('config', 'view', '--raw', '--minify', '--output=json')) as {
    contexts: [{ name: string; context: object }];
    users: unknown;
  };
  const token = await admin('create', 'token', `${release}-postern-worker`, `--namespace=${release}`);
  const [{ name, context }] = own.contexts;
  const contexts = [{ name, context: { ...context, user: 'worker' } }];
  const file = join(folder, 'kubeconfig');
  writeFileSync(file, JSON.stringify({ ...own, contexts, users: [{ name: 'worker', user: { token } }] }));
  return file;
}

const rightsIn = (list: readonly Rule[]): readonly Right[] =>
  list.flatMap(({ apiGroups: [group], resources: [kind], verbs }) =>
    verbs.map((verb) => ({ group, kind, verb })),
  );

/** What the account may do in a namespace, as `kind verbs`, without what every account may do. */
async function listed(place: string): Promise<string[]> {
  const ask = async (account: string) => {
    const list = await admin('auth', 'can-i', '--list', '--no-headers', `--namespace=${place}`, account);
    return list.split('\n').map((line) => line.replaceAll(/ +/g, ' ').trim());
  };
  const everyone = await ask(`--as=system:serviceaccount:${release}:default`);
  const own = (await ask(worker)).filter((line) => !everyone.includes(line));
  return own.map((line) => line.replace(' [] [] [', ' ').replace(/\]$/, '')).toSorted();
}

test('the API server allows the worker what the page lists, and nothing more, in no other namespace', async () => {
  const expected = rules.map(
    ({ apiGroups: [group], resources: [kind], verbs }) =>
      `${kind}${group === '' ? '' : `.${group}`} ${verbs.join(' ')}`,
  );
  expect(expected).toHaveLength(8);
  await expect.poll(() => listed(namespace)).toEqual(expected.toSorted());
  for (const other of ['default', 'kube-system', release]) expect(await listed(other)).toEqual([]);
});

const labels = { 'app.kubernetes.io/managed-by': 'postern' };
const pod = {
  metadata: { labels: { ...labels, 'postern.dev/service': 'pause' } },
  spec: {
    automountServiceAccountToken: false,
    securityContext: { runAsNonRoot: true, runAsUser: 65_532, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'main',
        image: 'localhost/pause:1',
        imagePullPolicy: 'Never',
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      },
    ],
  },
};
const ports = [{ port: 80 }];
/** An object of each kind that the engine makes, as small as the API server takes it. */
const specs: Readonly<Record<string, Partial<{ apiVersion: string; kind: string; content: object }>>> = {
  deployments: {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    content: { spec: { selector: { matchLabels: labels }, template: pod } },
  },
  jobs: {
    apiVersion: 'batch/v1',
    kind: 'Job',
    content: {
      spec: { suspend: true, template: { ...pod, spec: { ...pod.spec, restartPolicy: 'Never' } } },
    },
  },
  services: { apiVersion: 'v1', kind: 'Service', content: { spec: { selector: labels, ports } } },
  secrets: { apiVersion: 'v1', kind: 'Secret', content: { stringData: { NAME: 'value' } } },
  networkpolicies: {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    content: { spec: { podSelector: { matchLabels: labels } } },
  },
};

let made = 0;
/** A manifest named `name` or, without it, with an unused name. */
function objectOf(kinds: string, name = `made-${made++}`): V1Deployment {
  const { apiVersion, kind, content } = specs[kinds] ?? {};
  // Some object of the list above; what is different about the kinds does not matter here.
  return { apiVersion, kind, metadata: { name, namespace, labels }, ...content } as V1Deployment;
}

/** The operation of the engine that needs the right. Rejects with the words of the API server. */
async function use({ kind, verb }: Right): Promise<void> {
  const none = 'postern.dev/service=none';
  // The kinds of the Role: a kind that the engine does not know fails.
  const known = kind as Kind;
  if (verb === 'create') await engine.apply(objectOf(kind));
  else if (verb === 'patch') await engine.apply(objectOf(kind, 'kept'));
  else if (verb === 'list') await engine.list(known, kind === 'events' ? undefined : none);
  else if (verb === 'watch') {
    const { version } = await engine.list(known);
    await engine.watch(known, version, AbortSignal.timeout(watchMs), () => undefined);
  } else if (verb === 'deletecollection') await engine.deleteAll(known as 'deployments' | 'jobs', none);
  else if (verb === 'delete') {
    const secret = await engine.apply(objectOf(kind));
    await engine.delete(known as 'secrets', secret.metadata?.name ?? '');
  } else if (kind === 'pods/log' && verb === 'get') {
    const all = { since: undefined, lastLines: undefined };
    const source = { pod: await readyPod(), container: 'main', isPrevious: false, ...all };
    await engine.log(source, async () => true, AbortSignal.timeout(watchMs));
  } else throw new Error(`No operation of the engine needs ${verb} of ${kind}: take it out of the Role.`);
}

async function readyPod(): Promise<string> {
  await inNamespace('wait', '--for=condition=Ready', 'pod', '--selector=postern.dev/service=pause');
  const selector = '--selector=postern.dev/service=pause';
  return await inNamespace('get', 'pods', selector, '--output=jsonpath={.items[0].metadata.name}');
}

const setRules = (list: readonly Rule[]) =>
  inNamespace('patch', 'role', role, '--type=merge', `--patch=${JSON.stringify({ rules: list })}`);

test('each right is needed: with it, an operation of the engine works; without it, the API server refuses it', async () => {
  for (const right of rightsIn(rules)) await use(right);
  for (const right of rightsIn(rules)) {
    const without = rules.map((rule) =>
      rule.apiGroups[0] === right.group && rule.resources[0] === right.kind
        ? { ...rule, verbs: rule.verbs.filter((verb) => verb !== right.verb) }
        : rule,
    );
    await setRules(without.filter(({ verbs }) => verbs.length > 0));
    const refused = () => use(right).then(() => 'allowed', String);
    await expect.poll(refused, { message: `${right.verb} ${right.kind}` }).toContain('is forbidden');
  }
  await setRules(rules);
});

test('a build and a service need no right that the page does not list', async () => {
  const defects: unknown[] = [];
  const nothing = async () => undefined;
  const ticket = async () => 'ticket';
  const kubernetes = createKubernetesEngine({
    place: {
      namespace,
      podImage: 'localhost/postern:test',
      // Nothing answers there, so that pods wait.
      transferUrl: 'http://10.77.0.1:9',
    },
    kubeconfig: join(folder, 'kubeconfig'),
    folder: join(folder, 'engine'),
    transfers: {
      offerSource: ticket,
      expectOutput: ticket,
      outputOf: nothing,
      closeBuild: nothing,
      offerTree: ticket,
      closeEnvironment: nothing,
    },
    logs: { append: nothing, read: async () => [], trim: nothing, remove: nothing },
    limits: generousLimits,
    now: Date.now,
    later: (work, ms) => void setTimeout(work, ms),
    onDefect: (error) => void defects.push(error),
  });
  await kubernetes.prepare();
  onTestFinished(() => kubernetes.stop());

  const service = {
    service: 'api',
    artifact: { digest: '0'.repeat(64), size: 1 },
    image: 'localhost/pause:1',
    command: 'true',
    port: 8_080,
    health: null,
    variables: {},
    secrets: { KEY: 'value' },
    redacted: [],
    memoryBytes: 64 * 1024 ** 2,
    milliCpu: 100,
    logBytes: 1_000,
    isAsleep: false,
  };
  for (const revision of ['one', 'two'])
    await kubernetes.apply({ environmentId: 'env_1', processes: [{ ...service, revision }] });
  await expect
    .poll(() => kubernetes.observe('env_1'))
    .toMatchObject([{ service: 'api', revision: 'two', state: 'starting' }]);
  expect(await kubernetes.address('env_1', 'api')).toBeNull();

  const cancelling = new AbortController();
  const log = openBuildLog({ secrets: [], maxBytes: 1_000, now: Date.now, write: () => undefined });
  const build = {
    image: service.image,
    command: 'true',
    directory: '.',
    output: '.',
    variables: {},
    secrets: {},
  };
  const built = kubernetes.build({ id: 'build_1', ...build, fill: nothing }, log, cancelling.signal);
  const pods = () => inNamespace('get', 'pods', '--selector=postern.dev/build', '--output=name');
  await expect.poll(pods).toContain('pod/build-');
  cancelling.abort();
  expect(await built).toEqual({ kind: 'cancelled' });

  const known = async () => ({ builds: new Set<string>(), environments: new Set<string>() });
  expect(await kubernetes.sweep(known)).toEqual(['env_1']);
  await kubernetes.remove('env_1');
  expect(await kubernetes.observe('env_1')).toEqual([]);
  expect(defects).toEqual([]);
});

test('the label of the page makes Kubernetes refuse a pod that is not restricted', async () => {
  const open = { ...pod.spec, hostNetwork: true };
  const refused = apply(
    JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'open', namespace }, spec: open }),
  );
  await expect(refused).rejects.toThrow('violates PodSecurity "restricted:latest"');
});
