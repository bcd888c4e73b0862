import { afterAll, expect, test } from 'vitest';
import { tell } from '../faults/figures.ts';
import { watch } from '../faults/fleet.ts';
import {
  helm,
  killNodeProgram,
  killProgram,
  kubectl,
  leastProbed,
  objectsOf,
  publicUrl,
  serviceAddress,
  startIngress,
  tagImage,
  throughIngress,
  throughService,
} from './cluster.ts';
import { visit } from './visit.ts';

/** The life of one release in a real cluster, in order: each test starts where the one before it ended. */
const values = ['--values=test/cluster/values.yaml', '--wait', '--timeout=4m'];
let ingress: Awaited<ReturnType<typeof startIngress>> | undefined;
let gateway: string;
let host: string;
afterAll(() => ingress?.stop());

/** The names of its pods, without those that are on their way out: a pod that was replaced answers for seconds yet. */
const podsOf = async (component: string) => {
  const selector = `--selector=app.kubernetes.io/component=${component}`;
  const staying = '{{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}';
  return (await kubectl('get', 'pods', selector, `--output=go-template=${staying}`)).split(' ');
};

const rolledOut = () =>
  Promise.all(
    ['web', 'gateway', 'worker'].map((one) =>
      kubectl('rollout', 'status', `deployment/postern-${one}`, '--timeout=3m'),
    ),
  );

/** What visits of the site got instead of 200 while `work` went on, with the time, by the way they took. */
async function refusedDuring(
  work: () => Promise<unknown>,
): Promise<{ service: string[]; ingress: string[] }> {
  const refused: { service: string[]; ingress: string[] } = { service: [], ingress: [] };
  const visit = (way: keyof typeof refused, ask: () => Promise<number>) => async () => {
    const answer = await ask().catch((error: unknown) => String(error));
    if (answer !== 200) refused[way].push(`${new Date().toISOString()} ${answer}`);
    return Number(answer);
  };
  const service = visit('service', () => throughService(gateway, host));
  const answers = await watch(
    {
      service1: service,
      service2: service,
      service3: service,
      service4: service,
      ingress: visit('ingress', () => throughIngress(host)),
    },
    async () => void (await work()),
  );
  const { ingress = [], ...others } = answers;
  const straight = Object.values(others).flat();
  tell('refused through the Service', `${refused.service.length} of ${straight.length}`);
  tell('refused through the ingress', `${refused.ingress.length} of ${ingress.length}`);
  expect(Math.min(straight.length, ingress.length)).toBeGreaterThan(20);
  return refused;
}

test('a first install of the documented values is ready by itself, and no pod had to start twice', async () => {
  await helm('install', 'postern', './chart', ...values);
  const restarts = await kubectl(
    'get',
    'pods',
    '--output=jsonpath={.items[*].status.containerStatuses[*].restartCount}',
  );
  expect(restarts.split(' ')).toEqual(['0', '0', '0', '0', '0']);
  await helm('test', 'postern', '--timeout=1m');
});

test('a person signs in, publishes a site and opens it through the gateway', async () => {
  gateway = await serviceAddress('postern-gateway');
  ingress = await startIngress();
  host = new URL(await visit(publicUrl)).host;
  expect(await throughService(gateway, host)).toBe(200);
});

test('an upgrade refuses no request', async () => {
  tagImage('localhost/postern:test', 'localhost/postern:next');
  const upgrade = () => helm('upgrade', 'postern', './chart', ...values, '--set=image.tag=next');
  expect(await refusedDuring(upgrade)).toEqual({ service: [], ingress: [] });
});

test('a restart of all pods and the deletion of a gateway refuse no request', async () => {
  const refused = await refusedDuring(async () => {
    await kubectl('rollout', 'restart', 'deployment');
    await rolledOut();
    const [first = ''] = await podsOf('gateway');
    await kubectl('delete', 'pod', first);
    await rolledOut();
  });
  expect(refused).toEqual({ service: [], ingress: [] });
});

test('a gateway that is killed costs no visitor a page if the ingress retries, and is restarted', async () => {
  const refused = await refusedDuring(async () => {
    const [first = ''] = await podsOf('gateway');
    await killProgram(first);
    await kubectl(
      'wait',
      '--for=jsonpath={.status.containerStatuses[0].restartCount}=1',
      `pod/${first}`,
      '--timeout=1m',
    );
    await rolledOut();
  });
  expect(refused.ingress).toEqual([]);
  expect(await throughService(gateway, host)).toBe(200);
});

test('killed webs and workers are restarted, and pages are served meanwhile', async () => {
  const refused = await refusedDuring(async () => {
    for (const pod of [...(await podsOf('web')), ...(await podsOf('worker'))]) {
      await killProgram(pod);
      await kubectl(
        'wait',
        '--for=jsonpath={.status.containerStatuses[0].restartCount}=1',
        `pod/${pod}`,
        '--timeout=1m',
      );
    }
    await rolledOut();
  });
  expect(refused).toEqual({ service: [], ingress: [] });
});

/** Kubernetes makes a gateway in place of one that is deleted, and visitors reach it. */
async function replaceGateway(): Promise<void> {
  await expect.poll(() => kubectl('get', '--raw=/readyz').catch(String)).toBe('ok');
  const [first = ''] = await podsOf('gateway');
  await kubectl('delete', 'pod', first);
  await rolledOut();
}

test.each([
  ['kube-proxy', ['proxy']],
  ['containerd', ['containerd']],
  ['the control plane', ['etcd', 'apiserver', 'controllers', 'scheduler']],
])('killing %s refuses no request, and the pod is replaced afterwards', async (_, names) => {
  const refused = await refusedDuring(async () => {
    for (const name of names) killNodeProgram(name);
    await replaceGateway();
  });
  expect(refused).toEqual({ service: [], ingress: [] });
});

test('a kubelet that is killed ends no pod, and its pods get requests again when it is back', async () => {
  const containers = () =>
    kubectl('get', 'pods', '--output=jsonpath={.items[*].status.containerStatuses[*].containerID}');
  const before = await containers();
  // Until it has probed them it may report all pods of this only node as not ready: refusals are printed, not counted as failures.
  await refusedDuring(async () => {
    killNodeProgram('kubelet');
    await expect.poll(leastProbed).toBeGreaterThan(1);
    await rolledOut();
  });
  expect(await containers()).toBe(before);
  expect(await throughService(gateway, host)).toBe(200);
});

test('a rollback refuses no request', async () => {
  const back = () => helm('rollback', 'postern', '1', '--wait', '--timeout=4m');
  expect(await refusedDuring(back)).toEqual({ service: [], ingress: [] });
  expect(await kubectl('get', 'pods', '--output=jsonpath={.items[*].spec.containers[0].image}')).toContain(
    'postern:test',
  );
});

test('uninstalling a release leaves nothing', async () => {
  expect((await objectsOf('postern')).length).toBeGreaterThan(10);
  await helm('uninstall', 'postern', '--wait', '--timeout=2m');
  await expect.poll(() => objectsOf('postern')).toEqual([]);
});
