import { afterEach, beforeEach, expect, test } from 'vitest';
import { openBuildLog, type LogLine } from '../../src/features/engine/build-log.ts';
import type { BuildJob, DesiredProcess } from '../../src/features/engine/contract.ts';
import type { KubernetesEngine } from '../../src/features/engine/kubernetes/kubernetes-engine.ts';
import { create, killNodeProgram } from '../cluster/cluster.ts';
import { desire } from '../engines/service-contract.ts';
import { createNamespace, image } from './namespace.ts';

const namespace = 'environments-faults';
const { kubectl, engineWith, left, store } = createNamespace(namespace);
const environmentId = 'env_one';
let engine: KubernetesEngine;

beforeEach(async () => {
  engine = engineWith();
  await engine.prepare();
});
afterEach(async () => {
  await engine.remove(environmentId);
  const found = left();
  await engine.stop();
  if (found.length > 0) throw new Error(`The engine left ${found.join(', ')}.`);
});

async function run(changes: Partial<DesiredProcess> = {}): Promise<void> {
  await engine.apply({ environmentId, processes: [await desire(store, { image, ...changes })] });
}

async function becomes(expected: object): Promise<void> {
  const find = async () => (await engine.observe(environmentId))[0];
  await expect.poll(find).toMatchObject(expected);
}

function build(job: Partial<BuildJob>, onLine: (line: LogLine) => void = () => undefined) {
  const lines: string[] = [];
  const write = (line: LogLine) => {
    lines.push(line.text);
    onLine(line);
  };
  const log = openBuildLog({ secrets: [], maxBytes: 100_000, now: Date.now, write });
  const whole: BuildJob = {
    id: 'job_faults',
    image,
    command: 'true',
    directory: '.',
    output: '.',
    variables: {},
    secrets: {},
    fill: async () => undefined,
    ...job,
  };
  return { lines, outcome: engine.build(whole, log, new AbortController().signal) };
}

const versions = () => {
  const kinds = 'deployments,services,secrets,networkpolicies';
  const columns = 'custom-columns=NAME:.metadata.name,VERSION:.metadata.resourceVersion';
  const ours = '--selector=app.kubernetes.io/managed-by=postern';
  return kubectl('get', kinds, ours, `--output=${columns}`);
};

test('applying the same again changes no object', async () => {
  await run();
  await becomes({ state: 'ready' });
  const before = versions();
  await run();
  expect(versions()).toBe(before);
});

test('a new revision leaves no Secret of the previous one', async () => {
  await run();
  await becomes({ state: 'ready' });
  await run({ revision: 'second' });
  await becomes({ state: 'ready', revision: 'second' });
  expect(kubectl('get', 'secrets', '--output=name').trim().split('\n')).toHaveLength(2);
});

test('objects that are deleted manually are created again', async () => {
  await run();
  await becomes({ state: 'ready' });
  kubectl('delete', 'pods', '--all', '--wait=false');
  await becomes({ state: 'starting' });
  await becomes({ state: 'ready' });
  kubectl('delete', 'services', '--all');
  await expect.poll(() => engine.address(environmentId, 'web')).toBeNull();
  await run();
  await expect.poll(() => engine.address(environmentId, 'web')).not.toBeNull();
  kubectl('delete', 'deployments', '--all', '--cascade=foreground');
  await expect.poll(() => engine.observe(environmentId)).toEqual([]);
  await run();
  await becomes({ state: 'ready' });
});

test('an exhausted quota is the reason of a service, which starts when there is room', async () => {
  await create({
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'small', namespace },
    spec: { hard: { pods: '0' } },
  });
  await run();
  const reason = expect.stringMatching(/^no pod can be made: exceeded quota: small/) as string;
  await becomes({ state: 'starting', reason });
  kubectl('delete', 'resourcequotas', 'small');
  await becomes({ state: 'ready' });
});

test('an image that cannot be pulled is a reason of a service, and ends a build', async () => {
  const missing = 'registry.invalid/missing:1';
  await run({ image: missing });
  const words = (text: string) => expect.stringMatching(new RegExp(text)) as string;
  await becomes({ state: 'failed', reason: words(`^the image ${missing} cannot be pulled: `) });
  const { outcome } = build({ image: missing, limits: { timeMs: 240_000 } });
  expect(await outcome).toMatchObject({
    kind: 'failed',
    reason: 'no_image',
    message: words(`^The image ${missing} cannot be pulled: `),
  });
});

test('a restart of the API server interrupts no build and duplicates no line', async () => {
  const command =
    'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo "line $i"; sleep 1; done';
  const { outcome, lines } = build({ command }, ({ text }) => {
    if (text === 'line 3') killNodeProgram('apiserver');
  });
  expect((await outcome).kind).toBe('built');
  const expected = Array.from({ length: 20 }, (_, at) => `line ${at + 1}`);
  expect(lines.filter((line) => line.startsWith('line'))).toEqual(expected);
});
