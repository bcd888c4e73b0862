import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { chartTools, kubernetesVersions } from '../../scripts/chart-tools.ts';
import { version } from '../../src/platform/version.ts';
import {
  chartFolder,
  fewest,
  keycloak,
  over,
  productionExample,
  readManifests,
  render,
  runHelm,
  template,
  type Values,
  withEachHelm,
  workloads,
} from './helm.ts';

type Groups = { readonly groups: readonly { rules: readonly { alert: string; expr: string }[] }[] };

const parents = { parentRefs: [{ name: 'public', sectionName: 'https' }] };
/** Every object and every field that the chart can make. */
const everything: Values = over(
  fewest,
  keycloak,
  {
    global: { imagePullSecrets: [{ name: 'pull' }] },
    trustedProxies: ['10.0.0.0/8'],
    serviceAccount: { annotations: { note: 'yes' } },
    environments: {
      contentUrl: 'https://branches.example.org',
      engine: 'kubernetes',
      namespace: 'branches',
      secrets: [{ repository: 'repo_1', existingSecret: 'website' }],
      egress: [{ to: [{ ipBlock: { cidr: '10.9.0.0/24' } }], ports: [{ port: 5432 }] }],
      quota: { pods: 100, 'limits.memory': '64Gi' },
      limitRange: [{ type: 'Container', max: { memory: '8Gi' } }],
    },
    ingress: {
      enabled: true,
      className: 'nginx',
      web: { tlsSecret: 'a' },
      content: { tlsSecret: 'b', environmentsTlsSecret: 'c' },
    },
    httpRoute: { enabled: true, web: parents, content: parents },
    serviceMonitor: { enabled: true },
    grafanaDashboard: { enabled: true },
    prometheusRule: { enabled: true, additionalRules: [{ alert: 'Mine', expr: 'vector(1)' }] },
    migrations: {
      tolerations: [{ operator: 'Exists' }],
      podAnnotations: { note: 'yes' },
      nodeSelector: { a: 'b' },
    },
  },
  ...workloads.map((component) => ({
    [component]: {
      autoscaling: { enabled: true, behavior: { scaleDown: { stabilizationWindowSeconds: 600 } } },
      extraEnv: [
        { name: 'SITES_ALLOW_SHARED_APEX', value: 'true' },
        { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
      ],
      extraEnvFrom: [{ configMapRef: { name: 'more' } }],
      extraVolumes: [{ name: 'ca', configMap: { name: 'ca' } }],
      extraVolumeMounts: [{ name: 'ca', mountPath: '/ca' }],
      podAnnotations: { note: 'yes' },
      tolerations: [{ operator: 'Exists' }],
      priorityClassName: 'high',
      affinity: { nodeAffinity: {} },
    },
  })),
);

function kubeconform(manifests: string, kubernetes: string): { status: number | null; output: string } {
  const schemas = join(chartTools.schemas, '{{.NormalizedKubernetesVersion}}-local-strict');
  const { status, stdout, stderr } = spawnSync(
    chartTools.kubeconform,
    [
      '-strict',
      '-summary',
      '-output',
      'text',
      '-kubernetes-version',
      kubernetes,
      '-schema-location',
      join(schemas, '{{.ResourceKind}}{{.KindSuffix}}.json'),

      '-schema-location',
      join(chartTools.customSchemas, '{{.ResourceKind}}-{{.ResourceAPIVersion}}.json'),
    ],
    { input: manifests, encoding: 'utf8' },
  );
  return { status, output: stdout + stderr };
}

withEachHelm((helm) => {
  test.each(kubernetesVersions)('Kubernetes %s accepts every object, with any values', (kubernetes) => {
    const production = runHelm(helm, [
      'template',
      'acme',
      chartFolder,
      '--namespace',
      'prod',
      '--kube-version',
      kubernetes,
      '--values',
      productionExample,
    ]);
    expect(production.trouble).toBe('');
    const texts = [fewest, everything].map((values) => render(helm, values).text);
    const { status, output } = kubeconform([...texts, production.output].join('\n---\n'), kubernetes);
    expect({ status, output }).toEqual({
      status: 0,
      output: expect.stringMatching(/Invalid: 0, Errors: 0, Skipped: 0/),
    });
  });

  test('helm lint has no complaint', () => {
    const { status, output, trouble } = runHelm(helm, [
      'lint',
      '--strict',
      chartFolder,
      '--values',
      productionExample,
      '--kube-version',
      kubernetesVersions[1],
    ]);
    expect({ status, trouble, text: output.match(/\[(?:WARNING|ERROR)\].*/g) }).toEqual({
      status: 0,
      trouble: '',
      text: null,
    });
  });

  test('the production example renders unchanged, and has what it promises', () => {
    const { status, output, trouble } = template(helm, {}, ['--values', productionExample]);
    expect({ status, trouble }).toEqual({ status: 0, trouble: '' });
    const rendered = readManifests(output);
    for (const kind of ['HTTPRoute', 'HorizontalPodAutoscaler', 'PodDisruptionBudget', 'NetworkPolicy'])
      expect(rendered.has(kind)).toBe(true);
    for (const kind of ['ServiceMonitor', 'PrometheusRule']) expect(rendered.has(kind)).toBe(true);
    expect(rendered.has('Secret')).toBe(false);
    expect(rendered.env('gateway').get('DATABASE_URL')?.valueFrom?.secretKeyRef?.name).toBe(
      'postern-database-gateway',
    );
    expect(rendered.env('gateway').get('OBJECT_STORE_SECRET_KEY')?.valueFrom?.secretKeyRef?.name).toBe(
      'postern-gateway-object-store',
    );
  });

  test('the page of the installation makes every Secret of the production example, and no other', () => {
    const page = readFileSync(join(chartFolder, '../docs/how-to/install-on-kubernetes.md'), 'utf8');
    const made = [...page.matchAll(/\bsecret (postern-[a-z-]+) ([a-z-]+)/g)].map(
      ([, name, key]) => `${name} ${key}`,
    );
    const rendered = readManifests(template(helm, {}, ['--values', productionExample]).output);
    const used = [...workloads, 'migrate' as const]
      .flatMap((component) => [...rendered.env(component).values()])
      .flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? [])
      .map(({ name, key }) => `${name} ${key}`);
    expect(made.toSorted()).toEqual([...new Set(used)].toSorted());
  });

  test('alerts and dashboard are those of the program, and your own rules can be added', () => {
    const all = render(helm, everything);
    // The shape of a PrometheusRule, and of a file of rules.
    const { groups } = all.get('PrometheusRule', 'acme-postern').spec as unknown as Groups;
    const ours = parse(readFileSync(join(chartFolder, '../deploy/prometheus/alerts.yaml'), 'utf8')) as Groups;
    expect(groups.slice(0, -1)).toEqual(ours.groups);
    const others = groups.at(-1)?.rules.map(({ alert, expr }) => [alert, expr]) ?? [];
    expect(others).toEqual([
      ...workloads.map((one) => [
        'PosternGone',
        `absent(up{namespace="prod",job="acme-postern-${one}-metrics"} == 1)`,
      ]),
      ['Mine', 'vector(1)'],
    ]);
    const dashboard = all.get('ConfigMap', 'acme-postern-dashboard');
    expect(dashboard.metadata.labels).toMatchObject({ grafana_dashboard: '1' });
    const text = readFileSync(join(chartFolder, '../deploy/grafana/postern.json'), 'utf8');
    expect(dashboard.data).toEqual({ 'acme-postern.json': text });
  });
});

test('kubeconform finds what is wrong: a field that does not exist, and a kind without a schema', () => {
  const { text } = render('helm4', everything);
  for (const [from, to] of [
    ['automountServiceAccountToken', 'automountToken'],
    ['hostnames:', 'hostNames:'],
    ['kind: ServiceMonitor', 'kind: ServiceWatcher'],
  ] as const) {
    expect(text).toContain(from);
    expect(kubeconform(text.replaceAll(from, to), kubernetesVersions[1]).status).toBe(1);
  }
});

test('chart and program have one version', () => {
  const chart = parse(readFileSync(join(chartFolder, 'Chart.yaml'), 'utf8')) as { appVersion: string };
  expect(chart.appVersion).toBe(version);
});
