import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { readConfig } from '../../src/config/read.ts';
import { configReference } from '../../src/config/settings.ts';
import { fewest, keycloak, over, render, template, type Values, withEachHelm, workloads } from './helm.ts';

const known = new Set(configReference().map(({ name }) => name));
/** What could be in a Secret. */
function secretOf(name: string): string {
  if (name === 'DATABASE_URL') return 'postgresql://postern@db.example.com/postern';
  if (name === 'KV_URL') return 'rediss://kv.example.com:6379';
  return 'long enough and of no use: 0123456789';
}

withEachHelm((helm) => {
  const rendered = render(helm, fewest);

  test('web, gateway and worker each run on their own', () => {
    for (const component of workloads) {
      expect(rendered.container(component).command).toEqual(['node', 'src/main.ts', component]);
      expect(rendered.container(component).args).toBeUndefined();
      expect(rendered.container(component).image).toBe('registry.example.com/postern:0.1.0');
    }
    expect(rendered.all.filter(({ kind }) => kind === 'Deployment')).toHaveLength(3);
  });

  test('the database is brought up to date before anything of a release is installed or upgraded', () => {
    const { metadata } = rendered.get('Job', 'acme-postern-migrate');
    expect(metadata.annotations).toMatchObject({
      'helm.sh/hook': 'pre-install,pre-upgrade',
      'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
    });
    expect(rendered.container('migrate').command).toEqual(['node', 'src/main.ts', 'migrate']);
    // At a first install no object of the release exists.
    expect(rendered.pod('migrate')['serviceAccountName']).toBeUndefined();
    expect(render(helm, over(fewest, { migrations: { enabled: false } })).has('Job')).toBe(false);
  });

  test('the limits and the reader of the gateway are values, which no other workload gets', () => {
    const set = { gateway: { requestsPerAddress: 250_000, requestsPerHost: 0, fastHttp: false } };
    const names = ['GATEWAY_REQUESTS_PER_ADDRESS', 'GATEWAY_REQUESTS_PER_HOST', 'GATEWAY_FAST_HTTP'];
    const told = (values: Values, component: (typeof workloads)[number]) =>
      names.map((name) => render(helm, values).env(component).get(name)?.value);
    expect(told(fewest, 'gateway')).toEqual(['60000', '600000', 'on']);
    expect(told(over(fewest, set), 'gateway')).toEqual(['250000', '0', 'off']);
    expect(told(over(fewest, set), 'web')).toEqual([undefined, undefined, undefined]);
  });

  test('a migration has time to wait an hour for another, and to take an hour itself', () => {
    const seconds = (values: Values) =>
      render(helm, values).get('Job', 'acme-postern-migrate').spec['activeDeadlineSeconds'];
    expect(seconds(fewest)).toBeGreaterThan(2 * 3_600);
    expect(seconds(over(fewest, { migrations: { timeoutSeconds: 900 } }))).toBe(900);
  });

  test('a migration may have a separate role, and has only the database', () => {
    const own = over(fewest, keycloak, {
      database: { migrations: { existingSecret: 'owner', key: 'address' } },
    });
    const env = render(helm, own).env('migrate');
    expect(env.get('DATABASE_URL')?.valueFrom?.secretKeyRef).toEqual({ name: 'owner', key: 'address' });
    const secrets = [...env.values()].filter(({ valueFrom }) => valueFrom !== undefined);
    expect(secrets.map(({ name }) => name)).toEqual(['DATABASE_URL']);
    expect(rendered.env('migrate').get('DATABASE_URL')?.valueFrom?.secretKeyRef?.name).toBe('db');
  });

  test('SERVICE_UI_URL is the UI application URL, otherwise the global UI domain', () => {
    const both = { global: { uiDomain: 'domain.example.org' } };
    const domain = render(helm, over(fewest, both, { ui: { appUrl: '' } }));
    const url = render(helm, over(fewest, both));
    for (const component of workloads) {
      expect(domain.env(component).get('SERVICE_UI_URL')?.value).toBe('https://domain.example.org');
      expect(url.env(component).get('SERVICE_UI_URL')?.value).toBe('https://postern.example.com');
    }
  });

  test.each(['builtin', 'keycloak'])('every process takes the settings it is given, with %s', (provider) => {
    const values = over(fewest, provider === 'keycloak' ? keycloak : {}, {
      trustedProxies: ['10.0.0.0/8'],
      environments: { engine: 'kubernetes', namespace: 'branches' },
    });
    const all = render(helm, values);
    for (const component of [...workloads, 'migrate'] as const) {
      const names = [...all.env(component).keys()];
      expect(names.filter((name) => !known.has(name) && name !== 'NODE_ENV')).toEqual([]);
      const env = [...all.env(component).values()].map(({ name, value }) => [name, value ?? secretOf(name)]);
      const given = Object.fromEntries(env);
      expect(() => readConfig(given, component)).not.toThrow();
    }
  });

  test('listeners are open to the pod’s network, at the ports that are probed and served', () => {
    for (const component of workloads) {
      const env = rendered.env(component);
      expect(env.get('HOST')?.value).toBe('0.0.0.0');
      const ports = rendered
        .container(component)
        .ports?.map(({ name, containerPort }) => [name, `${containerPort}`]);
      const http = { web: 'PORT', gateway: 'GATEWAY_PORT', worker: undefined }[component];
      expect(ports).toEqual([
        ...(http === undefined ? [] : [['http', env.get(http)?.value]]),
        ['metrics', env.get('METRICS_PORT')?.value],
      ]);
    }
  });

  test.each(workloads)(
    '%s accepts separate variables, volumes, resources, replicas and scheduling',
    (component) => {
      const own = {
        replicas: 7,
        resources: { requests: { cpu: '3', memory: '5Gi' }, limits: { memory: '5Gi' } },
        extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/ca/ca.pem' }],
        extraEnvFrom: [{ configMapRef: { name: 'more' } }],
        extraVolumes: [{ name: 'ca', configMap: { name: 'ca' } }],
        extraVolumeMounts: [{ name: 'ca', mountPath: '/ca', readOnly: true }],
        podAnnotations: { note: 'yes' },
        podLabels: { team: 'web' },
        nodeSelector: { disk: 'fast' },
        tolerations: [{ key: 'dedicated', operator: 'Exists' }],
        affinity: { nodeAffinity: {} },
        topologySpreadConstraints: [
          { maxSkew: 2, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule', labelSelector: {} },
        ],
        priorityClassName: 'high',
      };
      const changed = render(helm, over(fewest, { [component]: own }));
      const { replicas, template: podTemplate } = changed.get('Deployment', `acme-postern-${component}`).spec;
      expect(replicas).toBe(7);
      expect(podTemplate).toMatchObject({
        metadata: { annotations: own.podAnnotations, labels: own.podLabels },
      });
      const pod = changed.pod(component);
      const container = changed.container(component);
      expect(container.resources).toEqual(own.resources);
      expect(container.env).toContainEqual(own.extraEnv[0]);
      expect(container.envFrom).toEqual(own.extraEnvFrom);
      expect(container.volumeMounts).toContainEqual(own.extraVolumeMounts[0]);
      expect(pod.volumes).toContainEqual(own.extraVolumes[0]);
      for (const name of [
        'nodeSelector',
        'tolerations',
        'affinity',
        'topologySpreadConstraints',
        'priorityClassName',
      ] as const)
        expect(pod[name]).toEqual(own[name]);
      for (const other of workloads.filter((one) => one !== component)) {
        expect(changed.get('Deployment', `acme-postern-${other}`)).toEqual(
          rendered.get('Deployment', `acme-postern-${other}`),
        );
      }
    },
  );

  test('your own labels cannot take a pod from its Service', () => {
    const podLabels = { 'app.kubernetes.io/component': 'gateway', 'app.kubernetes.io/instance': 'other' };
    const own = render(helm, over(fewest, { web: { podLabels } }));
    const spec = own.get('Deployment', 'acme-postern-web').spec;
    // The shape of a Deployment.
    const { selector, template: pod } = spec as {
      selector: { matchLabels: Record<string, string> };
      template: { metadata: { labels: Record<string, string> } };
    };
    expect(pod.metadata.labels).toMatchObject(selector.matchLabels);
  });

  test('a Service leads only to the pods of its workload', () => {
    for (const { kind, metadata, spec } of rendered.all) {
      if (kind !== 'Service') continue;
      const component = metadata.name.replace('acme-postern-', '').replace('-metrics', '');
      expect(spec['selector']).toEqual({
        'app.kubernetes.io/name': 'postern',
        'app.kubernetes.io/instance': 'acme',
        'app.kubernetes.io/component': component,
      });
    }
    expect(rendered.has('Service', 'acme-postern-worker')).toBe(false);
  });

  test('a rolling update begins with a new pod, and a leaving one serves until it is known to leave', () => {
    for (const component of workloads) {
      expect(rendered.get('Deployment', `acme-postern-${component}`).spec['strategy']).toEqual({
        type: 'RollingUpdate',
        rollingUpdate: { maxUnavailable: 0, maxSurge: 1 },
      });
    }
    for (const component of ['web', 'gateway'] as const) {
      expect(rendered.container(component).lifecycle).toEqual({ preStop: { sleep: { seconds: 10 } } });
      expect(rendered.pod(component).terminationGracePeriodSeconds).toBeGreaterThanOrEqual(20);
    }
  });

  test('a pod is restarted when its process hangs, and gets no requests while it cannot answer', () => {
    const paths = {
      web: '/readyz?exclude=kv&exclude=blobs',
      gateway: '/readyz?exclude=database&exclude=kv&exclude=blobs',
      worker: '/readyz',
    };
    for (const component of workloads) {
      const { startupProbe, livenessProbe, readinessProbe } = rendered.container(component);
      expect(startupProbe).toMatchObject({ httpGet: { path: '/livez', port: 'metrics' } });
      expect(livenessProbe).toMatchObject({ httpGet: { path: '/livez', port: 'metrics' } });
      expect(readinessProbe).toMatchObject({ httpGet: { path: paths[component], port: 'metrics' } });
    }
  });

  test('an autoscaler replaces the replicas', () => {
    for (const component of workloads) {
      const autoscaling = { enabled: true, minReplicas: 3, maxReplicas: 9, targetCPU: 55 };
      const scaled = render(helm, over(fewest, { [component]: { autoscaling } }));
      const name = `acme-postern-${component}`;
      expect(scaled.get('Deployment', name).spec['replicas']).toBeUndefined();
      expect(scaled.get('HorizontalPodAutoscaler', name).spec).toMatchObject({
        scaleTargetRef: { kind: 'Deployment', name },
        minReplicas: 3,
        maxReplicas: 9,
        metrics: [{ resource: { name: 'cpu', target: { averageUtilization: 55 } } }],
      });
    }
    expect(rendered.has('HorizontalPodAutoscaler')).toBe(false);
  });

  test('a drained node takes one pod of a workload at a time', () => {
    for (const component of workloads) {
      const { spec } = rendered.get('PodDisruptionBudget', `acme-postern-${component}`);
      expect(spec).toMatchObject({
        maxUnavailable: 1,
        selector: { matchLabels: { 'app.kubernetes.io/component': component } },
      });
      const without = over(fewest, { [component]: { podDisruptionBudget: { enabled: false } } });
      expect(render(helm, without).has('PodDisruptionBudget', `acme-postern-${component}`)).toBe(false);
    }
  });

  test('names stay within 63 characters, for any name of the release', () => {
    const long = render(helm, over(fewest, { fullnameOverride: `a${'b'.repeat(80)}` }));
    expect(long.all.filter(({ metadata }) => metadata.name.length > 63)).toEqual([]);
  });

  test('the digest takes precedence, and the registry is a prefix', () => {
    const digest = `sha256:${'a'.repeat(64)}`;
    const pinned = over(fewest, {
      image: { repository: 'team/postern', digest, tag: 'x' },
      global: { imageRegistry: 'registry.example.com:5000' },
    });
    expect(render(helm, pinned).container('web').image).toBe(
      `registry.example.com:5000/team/postern@${digest}`,
    );
  });

  test('your own objects are rendered, also as templates', () => {
    const own = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: '{{ .Release.Name }}-own' } };
    const text = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "{{ .Release.Name }}-text"\n';
    const extra = render(helm, over(fewest, { extraObjects: [own, text] }));
    expect(extra.has('ConfigMap', 'acme-own')).toBe(true);
    expect(extra.has('ConfigMap', 'acme-text')).toBe(true);
  });

  test('helm test passes when every workload is ready, and fails when one is not or does not answer', async () => {
    const command = rendered.container('test').command;
    const program = command.slice(1, command.indexOf('--') + 1);
    const server = createServer((request, response) => {
      response.writeHead(request.url === '/readyz' ? 200 : 503).end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    // Listening on a port, so an object.
    const { port } = server.address() as AddressInfo;
    const ask = async (...addresses: string[]) => {
      const child = spawn(process.execPath, [...program, ...addresses], { stdio: 'ignore' });
      return await new Promise((resolve) => child.once('exit', resolve));
    };
    const [ready, away] = [`http://127.0.0.1:${port}/readyz`, `http://127.0.0.1:${port}/away`];
    expect(await ask(ready, ready)).toBe(0);
    expect(await ask(ready, away)).toBe(1);
    server.close();
    server.closeAllConnections();
    expect(await ask(ready)).toBe(1);
  });

  test('helm test asks every workload whether it is ready', () => {
    expect(rendered.get('Pod', 'acme-postern-test').metadata.annotations).toMatchObject({
      'helm.sh/hook': 'test',
    });
    const asked = rendered.container('test').command.filter((one) => one.startsWith('http'));
    expect(asked).toEqual(workloads.map((one) => `http://acme-postern-${one}-metrics:9464/readyz`));
    for (const component of workloads)
      expect(rendered.has('Service', `acme-postern-${component}-metrics`)).toBe(true);
  });

  test('a cluster that is too old is refused', () => {
    const { status, trouble } = template(helm, fewest, ['--kube-version', '1.29.9']);
    expect({ status, trouble }).toEqual({ status: 1, trouble: expect.stringContaining('1.30') });
  });
});
