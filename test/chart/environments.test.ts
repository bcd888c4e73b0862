import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import {
  chartFolder,
  type Component,
  fewest,
  keycloak,
  type Manifest,
  over,
  refusal,
  render,
  type Rendered,
  type Values,
  withEachHelm,
  workloads,
} from './helm.ts';

const namespace = 'branches';
const on = (more: Values = {}) =>
  over(fewest, { environments: { engine: 'kubernetes', namespace, ...more } });
const elsewhere = (rendered: Rendered) =>
  rendered.all.filter(({ metadata }) => namespaceOf(metadata) === namespace);
// Every object that the chart renders names its namespace.
const namespaceOf = (metadata: Manifest['metadata']) => (metadata as { namespace?: string }).namespace;

type Rule = { readonly apiGroups: [string]; readonly resources: [string]; readonly verbs: string[] };

/** Kind → verbs, as the rows of the page have them. */
function rightsOf(role: Manifest): Record<string, string> {
  // The shape of a Role, in which each rule names one kind.
  const { rules } = role as unknown as { rules: readonly Rule[] };
  return Object.fromEntries(
    rules.map(({ apiGroups: [group], resources: [kind], verbs }) => [
      group === '' ? kind : `${kind}.${group}`,
      verbs.join(', '),
    ]),
  );
}

const page = readFileSync(join(chartFolder, '../docs/how-to/environments-on-kubernetes.md'), 'utf8');

function rightsOnPage(): Record<string, string> {
  const rows = page.matchAll(/^\| `([a-z./0-9]+)` \| ([a-z, ]+) \|/gm);
  return Object.fromEntries([...rows].map(([, kind, verbs]) => [kind, verbs]));
}

withEachHelm((helm) => {
  const off = render(helm, fewest);
  const rendered = render(helm, on());

  test('the worker has the rights of the page, only in the namespace of Environments', () => {
    const role = rendered.get('Role', 'acme-postern-environments');
    expect(rightsOf(role)).toEqual(rightsOnPage());
    expect(Object.keys(rightsOnPage())).toHaveLength(8);
    expect(namespaceOf(role.metadata)).toBe(namespace);
    const binding = rendered.get('RoleBinding', 'acme-postern-environments');
    expect(binding).toMatchObject({
      metadata: { namespace },
      roleRef: { kind: 'Role', name: 'acme-postern-environments' },
      subjects: [{ kind: 'ServiceAccount', name: 'acme-postern-worker', namespace: 'prod' }],
    });
    expect(rendered.all.filter(({ kind }) => kind === 'Role')).toHaveLength(1);
    expect(rendered.text).not.toContain('kind: ClusterRole');
  });

  test('the values of the page render, with their quota, limits and secrets', () => {
    const samples = [...page.matchAll(/^```yaml\n([^]*?)^```$/gm)];
    // Values, as the page shows them; Helm judges them.
    const values = samples.map(([, text = '']) => parse(text) as Values);
    const all = render(helm, over(fewest, ...values));
    const kinds = all.all.map(({ kind }) => kind);
    expect(kinds).toEqual(expect.arrayContaining(['Role', 'ResourceQuota', 'LimitRange']));
    expect(all.env('worker').has('SECRETS_DIR')).toBe(true);
  });

  test('only the worker has a token', () => {
    const components: readonly Component[] = [...workloads, 'migrate', 'test'];
    const accounts = components.map((one) => [
      one,
      rendered.pod(one).automountServiceAccountToken,
      rendered.pod(one)['serviceAccountName'],
    ]);
    expect(accounts).toEqual([
      ['web', false, 'acme-postern'],
      ['gateway', false, 'acme-postern'],
      ['worker', true, 'acme-postern-worker'],
      ['migrate', false, undefined],
      ['test', false, undefined],
    ]);
    expect(rendered.get('ServiceAccount', 'acme-postern-worker')).toMatchObject({
      automountServiceAccountToken: false,
    });
  });

  test('without an engine there is no account, no right and nothing in another namespace', () => {
    for (const kind of ['Role', 'RoleBinding', 'ResourceQuota', 'LimitRange'])
      expect(off.has(kind)).toBe(false);
    expect(off.has('ServiceAccount', 'acme-postern-worker')).toBe(false);
    expect(off.pod('worker')['serviceAccountName']).toBe('acme-postern');
    expect([...new Set(off.all.map(({ metadata }) => namespaceOf(metadata)))]).toEqual(['prod']);
    for (const component of workloads)
      expect([...off.env(component).keys()].filter((name) => /^ENVIRONMENTS|SECRETS_DIR/.test(name))).toEqual(
        [],
      );
  });

  test('web and worker know where Environments run, and with which image; the gateway does not', () => {
    const told = (component: Component) =>
      [...rendered.env(component).values()].filter(({ name }) => name.startsWith('ENVIRONMENTS_'));
    const expected = [
      { name: 'ENVIRONMENTS_ENGINE', value: 'kubernetes' },
      { name: 'ENVIRONMENTS_NAMESPACE', value: namespace },
      { name: 'ENVIRONMENTS_POD_IMAGE', value: rendered.container('worker').image },
      { name: 'ENVIRONMENTS_PORT', value: '3002' },
      { name: 'ENVIRONMENTS_WEB_URL', value: 'http://acme-postern-web-files.prod.svc:80' },
    ];
    expect(told('web')).toEqual(expected);
    expect(told('worker')).toEqual(expected);
    expect(told('gateway')).toEqual([]);
    expect(rendered.get('Service', 'acme-postern-web').spec['ports']).toMatchObject([{ targetPort: 'http' }]);
    expect(rendered.get('Service', 'acme-postern-web-files').spec).toMatchObject({
      type: 'ClusterIP',
      selector: { 'app.kubernetes.io/component': 'web', 'app.kubernetes.io/instance': 'acme' },
      ports: [{ port: 80, targetPort: 'files' }],
    });
    expect(rendered.container('web').ports).toContainEqual({ name: 'files', containerPort: 3002 });
    expect(off.has('Service', 'acme-postern-web-files')).toBe(false);
    expect(JSON.stringify(off.pod('web'))).not.toContain('3002');
  });

  test('only the worker gets the address of their databases', () => {
    const database = { existingSecret: 'environments-database', key: 'address' };
    const all = render(helm, on({ database }));
    const told = (component: Component) => all.env(component).get('ENVIRONMENTS_DATABASE_URL');
    expect(told('worker')?.valueFrom?.secretKeyRef).toEqual({
      name: 'environments-database',
      key: 'address',
    });
    expect([told('web'), told('gateway'), told('migrate')]).toEqual([undefined, undefined, undefined]);
    const secrets = [{ repository: 'repo_1', existingSecret: 'environments-database' }];
    expect(refusal(helm, on({ database, secrets }))).toContain('which holds a credential of Postern');
  });

  test('pods of Environments reach DNS and web, and the gateway reaches their services: nothing else is open', () => {
    const egress = [{ to: [{ ipBlock: { cidr: '10.9.0.0/24' } }], ports: [{ port: 5432 }] }];
    const policies = elsewhere(render(helm, on({ egress }))).filter(({ kind }) => kind === 'NetworkPolicy');
    const peer = (component: string) => ({
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'prod' } },
      podSelector: {
        matchLabels: {
          'app.kubernetes.io/name': 'postern',
          'app.kubernetes.io/instance': 'acme',
          'app.kubernetes.io/component': component,
        },
      },
    });
    expect(policies.map(({ spec }) => spec)).toEqual([
      {
        podSelector: {},
        policyTypes: ['Ingress', 'Egress'],
        egress: [
          {
            ports: ['TCP', 'UDP'].map((protocol) => ({ port: 53, protocol })),
            to: [{ namespaceSelector: {} }, { ipBlock: { cidr: '169.254.20.10/32' } }],
          },
          { to: [peer('web')], ports: [{ port: 3002 }] },
          ...egress,
        ],
      },
      {
        podSelector: { matchExpressions: [{ key: 'postern.dev/service', operator: 'Exists' }] },
        policyTypes: ['Ingress'],
        ingress: [{ from: [peer('gateway')] }],
      },
    ]);
    const dns = { to: [{ ipBlock: { cidr: '10.96.0.10/32' } }], ports: [5353] };
    const [narrow] = elsewhere(render(helm, over(on(), { networkPolicy: { egress: { dns } } }))).filter(
      ({ kind }) => kind === 'NetworkPolicy',
    );
    expect(narrow?.spec['egress']).toContainEqual({
      ports: ['TCP', 'UDP'].map((protocol) => ({ port: 5353, protocol })),
      to: dns.to,
    });
    // The code of repositories stays shut in where the operator protects Postern in another way.
    const open = render(helm, over(on(), { networkPolicy: { enabled: false } }));
    expect(open.all.filter(({ kind }) => kind === 'NetworkPolicy')).toHaveLength(2);
  });

  test('the worker reaches git and the API server, web is reached by Environments, and the gateway reaches them', () => {
    type Policy = Record<'ingress' | 'egress', readonly { to?: unknown; from?: unknown }[]>;
    // The shape of a NetworkPolicy.
    const policyOf = (all: Rendered, name: string) =>
      all.get('NetworkPolicy', `acme-postern-${name}`).spec as unknown as Policy;
    const added = (name: string, direction: keyof Policy) => {
      const before = policyOf(off, name)[direction].map((rule) => JSON.stringify(rule));
      return policyOf(rendered, name)[direction].filter((rule) => !before.includes(JSON.stringify(rule)));
    };
    const environments = {
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
      podSelector: { matchLabels: { 'app.kubernetes.io/managed-by': 'postern' } },
    };
    const ports = (...list: number[]) => ({ ports: list.map((port) => ({ port, protocol: 'TCP' })) });
    expect(added('worker', 'egress')).toEqual([ports(443, 22), ports(443, 6443)]);
    expect(added('worker', 'ingress')).toEqual([]);
    expect(added('web', 'ingress')).toEqual([{ from: [environments], ports: [{ port: 3002 }] }]);
    expect(added('web', 'egress')).toEqual([]);
    expect(added('gateway', 'egress')).toEqual([{ to: [environments] }]);
    expect(added('gateway', 'ingress')).toEqual([]);
  });

  test('a quota and limits are set only with figures', () => {
    expect(rendered.has('ResourceQuota')).toBe(false);
    expect(rendered.has('LimitRange')).toBe(false);
    const quota = { pods: 10, 'limits.memory': '8Gi' };
    const limitRange = [{ type: 'Container', max: { memory: '2Gi' } }];
    const limited = render(helm, on({ quota, limitRange }));
    expect(limited.get('ResourceQuota', 'acme-postern-environments').spec).toEqual({ hard: quota });
    expect(limited.get('LimitRange', 'acme-postern-environments').spec).toEqual({ limits: limitRange });
    expect(elsewhere(limited).map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['ResourceQuota', 'LimitRange']),
    );
  });

  test('secrets of repositories are folders of the worker, and of no other workload', () => {
    const secrets = [
      { repository: 'repo_1', existingSecret: 'website' },
      { repository: 'repo_2', existingSecret: 'shop' },
    ];
    const all = render(helm, on({ secrets }));
    expect(all.env('worker').get('SECRETS_DIR')?.value).toBe('/secrets');
    expect(all.container('worker').volumeMounts.slice(2)).toEqual([
      { name: 'environment-secrets-0', mountPath: '/secrets/repo_1', readOnly: true },
      { name: 'environment-secrets-1', mountPath: '/secrets/repo_2', readOnly: true },
    ]);
    expect(all.pod('worker').volumes.slice(2)).toEqual([
      { name: 'environment-secrets-0', secret: { secretName: 'website' } },
      { name: 'environment-secrets-1', secret: { secretName: 'shop' } },
    ]);
    for (const component of ['web', 'gateway', 'migrate'] as const) {
      expect(JSON.stringify(all.pod(component))).not.toContain('environment-secrets');
      expect(all.env(component).has('SECRETS_DIR')).toBe(false);
    }
    expect(rendered.env('worker').has('SECRETS_DIR')).toBe(false);
  });

  test('contradictory values are refused, each with its fix', () => {
    const problems: [Values, string][] = [
      [over(fewest, { environments: { engine: 'kubernetes' } }), 'environments.namespace: is missing'],
      [on({ namespace: 'prod' }), 'environments.namespace: is the namespace of the release'],
      [
        over(on(), { serviceAccount: { name: 'acme-postern-worker' } }),
        'serviceAccount.name: is the account',
      ],
      [
        on({
          secrets: ['website', 'more'].map((existingSecret) => ({ repository: 'repo_1', existingSecret })),
        }),
        'environments.secrets: names the repository repo_1 twice',
      ],
      [over(on(), { worker: { extraEnv: [{ name: 'SECRETS_DIR', valueFrom: {} }] } }), 'sets SECRETS_DIR'],
      [
        over(on(), { web: { extraEnv: [{ name: 'ENVIRONMENTS_NAMESPACE', value: 'x' }] } }),
        'sets ENVIRONMENTS_NAMESPACE',
      ],
      [
        over(on(), { worker: { extraVolumes: [{ name: 'environment-secrets-0', emptyDir: {} }] } }),
        'has a volume environment-secrets-0',
      ],
    ];
    for (const [name, value] of Object.entries({
      namespace,
      secrets: [{ repository: 'repo_1', existingSecret: 'website' }],
      egress: [{ ports: [{ port: 1 }] }],
      quota: { pods: 1 },
      limitRange: [{ type: 'Container' }],
      database: { existingSecret: 'environments-database' },
    }))
      problems.push([
        over(fewest, { environments: { [name]: value } }),
        `environments.${name}: is set while environments.engine is empty`,
      ]);
    for (const [values, words] of problems) {
      const trouble = refusal(helm, values);
      expect(trouble).toContain(words);
      expect(trouble).toContain(': 1 value(s) need fixing');
    }
    expect(refusal(helm, on({ engine: 'docker' }))).toContain('engine');
    const path = [{ repository: '../repo_1', existingSecret: 'website' }];
    expect(refusal(helm, on({ secrets: path }))).toContain('repository');
  });

  test('5.8: a Secret with a credential of Postern is never given to a repository', () => {
    const generated = { secrets: { generate: true, session: { existingSecret: '' } } };
    const own = [
      'db',
      'db-gateway',
      'kv',
      'store',
      'session',
      'encryption',
      'grant',
      'login',
      'principal-sync',
    ];
    for (const existingSecret of [...own, 'management', 'acme-postern-generated']) {
      const secrets = [{ repository: 'repo_1', existingSecret }];
      const values = over(on({ secrets }), keycloak, existingSecret.endsWith('generated') ? generated : {});
      expect(refusal(helm, values)).toContain(
        `environments.secrets: gives ${existingSecret}, which holds a credential of Postern`,
      );
    }
  });
});
