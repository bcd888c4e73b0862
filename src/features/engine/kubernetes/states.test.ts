import type { CoreV1Event, V1ContainerStatus, V1Deployment, V1Pod } from '@kubernetes/client-node';
import { expect, test } from 'vitest';
import { limitAnnotations, revisionAnnotation } from './objects.ts';
import { currentPods, seen } from './states.ts';

const at = (second: number) => new Date(1_000 * second);
const annotations = {
  [revisionAnnotation]: 'first',
  [limitAnnotations.memory]: '64000000',
  [limitAnnotations.disk]: '20000000',
};
const deploymentWith = (replicas: number, its?: V1Deployment['status']): V1Deployment => ({
  metadata: { annotations: { [revisionAnnotation]: 'first' } },
  spec: { replicas, selector: {}, template: {} },
  ...(its && { status: its }),
});
const deployment = deploymentWith(1);
const status = (changes: Partial<V1ContainerStatus>): V1ContainerStatus => ({
  name: 'service',
  image: 'node:24',
  imageID: '',
  ready: false,
  restartCount: 0,
  ...changes,
});
const pod = (main: Partial<V1ContainerStatus>, changes: Partial<V1Pod['status']> = {}): V1Pod => ({
  metadata: { uid: 'one', annotations, creationTimestamp: at(1) },
  spec: { containers: [{ name: 'service', readinessProbe: { httpGet: { path: '/healthz', port: 8080 } } }] },
  status: { phase: 'Running', containerStatuses: [status(main)], ...changes },
});
const ended = (exitCode: number, reason = 'Error') => ({
  terminated: { exitCode, reason, startedAt: at(10), finishedAt: at(12), containerID: 'a' },
});
const running = { running: { startedAt: at(20) } };
const unhealthy = (message: string, second = 21) =>
  ({
    reason: 'Unhealthy',
    involvedObject: { uid: 'one' },
    message,
    lastTimestamp: at(second),
    metadata: {},
  }) as CoreV1Event;

test.each<[state: string, reason: string | null, pods: V1Pod[], events?: CoreV1Event[]]>([
  ['starting', null, []],
  ['ready', null, [pod({ state: running }, { conditions: [{ type: 'Ready', status: 'True' }] })]],
  ['failed', 'exited with 3 after 2 s', [pod({ state: ended(3) })]],
  [
    'failed',
    'exited with 3 after 2 s',
    [pod({ state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: ended(3) })],
  ],
  ['starting', 'exited with 3 after 2 s', [pod({ state: running, lastState: ended(3) })]],
  [
    'failed',
    'used more than 64000000 bytes of memory, so Postern ended it',
    [pod({ state: ended(137, 'OOMKilled') })],
  ],
  [
    'starting',
    'answers 500 to GET /healthz',
    [pod({ state: running })],
    [
      unhealthy('Readiness probe failed: HTTP probe failed with statuscode: 500'),
      unhealthy('Readiness probe failed: dial tcp: connection refused', 20),
    ],
  ],
  [
    'starting',
    'does not listen on port 8080, which the variable PORT names',
    [pod({ state: running })],
    [unhealthy('Readiness probe failed: dial tcp 10.0.0.1:8080: connect: connection refused')],
  ],
  [
    'starting',
    null,
    [pod({ state: running })],
    [unhealthy('Readiness probe failed: of the container before', 19)],
  ],
  [
    'failed',
    'the image node:24 cannot be pulled: not found',
    [pod({ state: { waiting: { reason: 'ErrImagePull', message: 'not found.' } } })],
  ],
  [
    'failed',
    'wrote more than 20000000 bytes, so Postern ended it',
    [
      pod({ state: { waiting: { reason: 'PodInitializing' } } }),
      pod(
        {},
        {
          phase: 'Failed',
          reason: 'Evicted',
          message: 'Usage of EmptyDir volume "files" exceeds the limit "20M".',
        },
      ),
    ],
  ],
  [
    'starting',
    'waits for a node: 0/1 nodes are available: 1 Insufficient memory',
    [
      pod(
        {},
        {
          phase: 'Pending',
          conditions: [
            {
              type: 'PodScheduled',
              status: 'False',
              message: '0/1 nodes are available: 1 Insufficient memory.',
            },
          ],
        },
      ),
    ],
  ],
  [
    'failed',
    'cannot be started: the ticket is not valid',
    [
      pod(
        {},
        {
          initContainerStatuses: [
            status({
              name: 'fetch',
              state: {
                terminated: {
                  exitCode: 1,
                  message:
                    '{"reason":"no_source","message":"The ticket is not valid.","fix":"Deploy again."}',
                },
              },
            }),
          ],
        },
      ),
    ],
  ],
])('%s: %s', (state, reason, pods, events = []) => {
  expect(seen(deployment, pods, events)).toMatchObject({ state, reason });
});

test('a quota is the reason why no pod can be made', () => {
  const message =
    'pods "env-1" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2';
  const refused = { conditions: [{ type: 'ReplicaFailure', status: 'True', message }] };
  expect(seen(deploymentWith(1, refused), [], [])).toEqual({
    state: 'starting',
    reason: 'no pod can be made: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2',
    restarts: 0,
  });
});

test('starts of every pod of the revision count, and pods of another revision do not', () => {
  const evicted = pod({ restartCount: 2 }, { phase: 'Failed', reason: 'Evicted' });
  const now = pod({ restartCount: 1, state: running });
  const other: V1Pod = { metadata: { annotations: { [revisionAnnotation]: 'other' } } };
  const pods = currentPods(deployment, [other, evicted, now]);
  expect(pods).toHaveLength(2);
  expect(seen(deployment, pods, []).restarts).toBe(4);
});

test('a service that sleeps is stopped, whatever its pods still do', () => {
  expect(seen(deploymentWith(0), [pod({ state: ended(0) })], [])).toMatchObject({
    state: 'stopped',
    reason: null,
  });
});
