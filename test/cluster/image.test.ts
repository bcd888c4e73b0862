import { afterAll, expect, test } from 'vitest';
import { administrator } from '../faults/program.ts';
import { create, run } from './cluster.ts';
import { visit } from './visit.ts';

/** The image that the Containerfile builds, as one process on the embedded database. */
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'all', namespace: 'default' },
  spec: {
    // The loopback addresses of the defaults are then those of this suite, too.
    hostNetwork: true,
    containers: [
      {
        name: 'all',
        image: 'localhost/postern:test',
        imagePullPolicy: 'Never',
        env: Object.entries({
          BOOTSTRAP_ADMIN_EMAIL: administrator.email,
          BOOTSTRAP_ADMIN_PASSWORD: administrator.password,
        }).map(([name, value]) => ({ name, value })),
        readinessProbe: { httpGet: { host: '127.0.0.1', path: '/readyz', port: 9464 }, periodSeconds: 1 },
        resources: { limits: { memory: '768Mi' } },
        securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
        volumeMounts: [
          { name: 'data', mountPath: '/data' },
          { name: 'tmp', mountPath: '/tmp' },
        ],
      },
    ],
    securityContext: { runAsNonRoot: true, fsGroup: 65_532 },
    volumes: [
      { name: 'data', emptyDir: {} },
      { name: 'tmp', emptyDir: {} },
    ],
  },
};
const kubectl = (...args: readonly string[]) => run('kubectl', '--namespace=default', ...args);
afterAll(() => kubectl('delete', 'pod', 'all', '--ignore-not-found'));

test('the built image starts as it is, and a site is published and opened in it', async () => {
  await create(pod);
  await kubectl('wait', '--for=condition=Ready', 'pod/all', '--timeout=2m');
  await visit('http://localhost:3000');
  const status = '{.status.containerStatuses[0].restartCount}';
  expect(await kubectl('get', 'pod', 'all', `--output=jsonpath=${status}`)).toBe('0');
});
