import { expect, test } from 'vitest';
import {
  fewest,
  keycloak,
  over,
  refusal,
  render,
  type Rendered,
  type Values,
  withEachHelm,
  workloads,
} from './helm.ts';

type Rule = {
  readonly ports: readonly { readonly port: number }[];
  readonly to?: unknown;
  readonly from?: unknown;
};

function rules(rendered: Rendered, name: string, direction: 'ingress' | 'egress'): readonly Rule[] {
  // The shape of a NetworkPolicy; kubeconform judges it.
  return (rendered.get('NetworkPolicy', `acme-postern-${name}`).spec[direction] ?? []) as readonly Rule[];
}

const ports = (list: readonly Rule[]) =>
  list.flatMap((rule) => [...new Set(rule.ports.map(({ port }) => port))]);

withEachHelm((helm) => {
  const builtin = render(helm, fewest);
  const withKeycloak = render(
    helm,
    over(fewest, keycloak, { networkPolicy: { egress: { identity: { ports: [8443] } } } }),
  );

  test('only named traffic is allowed in or out', () => {
    expect(builtin.get('NetworkPolicy', 'acme-postern-default-deny').spec).toEqual({
      podSelector: {
        matchLabels: { 'app.kubernetes.io/name': 'postern', 'app.kubernetes.io/instance': 'acme' },
      },
      policyTypes: ['Ingress', 'Egress'],
    });
    expect(render(helm, over(fewest, { networkPolicy: { enabled: false } })).has('NetworkPolicy')).toBe(
      false,
    );
  });

  test('a workload reaches DNS, database, key-value store and object store', () => {
    for (const component of ['gateway', 'worker'])
      expect(ports(rules(builtin, component, 'egress'))).toEqual([53, 5432, 6379, 443]);
    // Web reads repositories, over https and ssh.
    expect(ports(rules(builtin, 'web', 'egress'))).toEqual([53, 5432, 6379, 443, 443, 22]);
    expect(ports(rules(builtin, 'migrate', 'egress'))).toEqual([53, 5432]);
    expect(rules(builtin, 'migrate', 'ingress')).toEqual([]);
  });

  test('5.6: web and worker reach Keycloak, the gateway does not', () => {
    for (const component of workloads)
      expect(ports(rules(withKeycloak, component, 'egress')).includes(8443)).toBe(component !== 'gateway');
  });

  test('each part is reached only where its value says', () => {
    const to = (cidr: string) => ({ to: [{ ipBlock: { cidr } }], ports: [7777] });
    const parts = ['dns', 'database', 'kv', 'objectStore', 'identity', 'git'] as const;
    const egress = Object.fromEntries(parts.map((part, index) => [part, to(`10.0.${index}.0/24`)]));
    const narrow = render(helm, over(fewest, keycloak, { networkPolicy: { egress } }));
    const found = rules(narrow, 'web', 'egress');
    expect(found.map(({ to: where }) => where)).toEqual(parts.map((part) => egress[part]?.to));
    expect(new Set(ports(found))).toEqual(new Set([7777]));
  });

  test('only the components you name reach a collector of traces', () => {
    const collector = (port: number) => ({
      to: [{ namespaceSelector: { matchLabels: { name: 'tracing' } } }],
      ports: [{ port, protocol: 'TCP' }],
    });
    const names = { web: 'web', gateway: 'gateway', worker: 'worker', migrate: 'migrations' } as const;
    for (const [component, name] of Object.entries(names)) {
      const extra = { [name]: [collector(4317), collector(4318)] };
      const open = render(helm, over(fewest, { networkPolicy: { egress: { extra } } }));
      for (const other of Object.keys(names)) {
        const before = rules(builtin, other, 'egress');
        const more = other === component ? extra[name] : [];
        expect(rules(open, other, 'egress')).toEqual([...before, ...(more ?? [])]);
      }
    }
  });

  test('a rule that would open everything, or a field that does not exist, is refused', () => {
    for (const rule of [{}, { to: [] }, { port: 4318 }]) {
      const extra = { gateway: [rule] };
      expect(refusal(helm, over(fewest, { networkPolicy: { egress: { extra } } }))).toContain('gateway');
    }
  });

  test('web and gateway have one port each, the worker none, and metrics the port you set', () => {
    expect(ports(rules(builtin, 'web', 'ingress'))).toEqual([3000, 9464, 9464]);
    expect(ports(rules(builtin, 'gateway', 'ingress'))).toEqual([3001, 9464, 9464]);
    expect(ports(rules(builtin, 'worker', 'ingress'))).toEqual([9464, 9464]);
    const peers = (name: string) => [{ namespaceSelector: { matchLabels: { name } } }];
    const ingress = { web: peers('a'), gateway: peers('b'), metrics: peers('c') };
    const narrow = render(helm, over(fewest, { networkPolicy: { ingress } }));
    expect(
      rules(narrow, 'web', 'ingress')
        .slice(0, 2)
        .map(({ from }) => from),
    ).toEqual([ingress.web, ingress.metrics]);
    expect(rules(narrow, 'gateway', 'ingress')[0]?.from).toEqual(ingress.gateway);
  });

  test('the wildcard of the content hosts leads to the gateway, the web app’s host to web', () => {
    const values = over(fewest, {
      ui: { appUrl: 'https://Postern.example.com:8443' },
      trustedProxies: ['10.20.0.0/16'],
      ingress: {
        enabled: true,
        className: 'nginx',
        web: { tlsSecret: 'web-tls', annotations: { size: '100m' } },
        content: { tlsSecret: 'wildcard-tls' },
      },
    });
    const all = render(helm, values);
    const expected: [string, string, Values][] = [
      ['web', 'postern.example.com', { secretName: 'web-tls' }],
      ['gateway', '*.sites.example.net', { secretName: 'wildcard-tls' }],
    ];
    for (const [component, host, tls] of expected) {
      const name = `acme-postern-${component}`;
      expect(all.get('Ingress', name).spec).toEqual({
        ingressClassName: 'nginx',
        tls: [{ hosts: [host], ...tls }],
        rules: [
          {
            host,
            http: {
              paths: [
                { path: '/', pathType: 'Prefix', backend: { service: { name, port: { name: 'http' } } } },
              ],
            },
          },
        ],
      });
    }
    expect(all.get('Ingress', 'acme-postern-web').metadata.annotations).toEqual({ size: '100m' });
    expect(builtin.has('Ingress')).toBe(false);
  });

  test('routes of the Gateway API lead to the same places', () => {
    const parentRefs = (sectionName: string) => [{ name: 'public', namespace: 'gateways', sectionName }];
    const httpRoute = {
      enabled: true,
      web: { parentRefs: parentRefs('ui') },
      content: { parentRefs: parentRefs('sites') },
    };
    const all = render(helm, over(fewest, { httpRoute, trustedProxies: ['10.20.0.0/16'] }));
    const expected = [
      ['web', 'postern.example.com', 'ui'],
      ['gateway', '*.sites.example.net', 'sites'],
    ] as const;
    for (const [component, host, section] of expected) {
      const name = `acme-postern-${component}`;
      expect(all.get('HTTPRoute', name).spec).toMatchObject({
        hostnames: [host],
        parentRefs: parentRefs(section),
        rules: [{ backendRefs: [{ name, port: 80 }] }],
      });
    }
    expect(builtin.has('HTTPRoute')).toBe(false);
  });

  test('Environments at a separate domain have a separate wildcard and certificate at the gateway', () => {
    const parentRefs = ['sites', 'branches'].map((sectionName) => ({ name: 'public', sectionName }));
    const all = render(
      helm,
      over(fewest, {
        environments: { contentUrl: 'https://Branches.example.org:8443/' },
        trustedProxies: ['10.20.0.0/16'],
        ingress: {
          enabled: true,
          content: { tlsSecret: 'sites-tls', environmentsTlsSecret: 'branches-tls' },
        },
        httpRoute: { enabled: true, web: { parentRefs: [{ name: 'public' }] }, content: { parentRefs } },
      }),
    );
    const hosts = ['*.sites.example.net', '*.branches.example.org'];
    const { tls, rules } = all.get('Ingress', 'acme-postern-gateway').spec as Record<string, Values[]>;
    expect(tls).toEqual([
      { hosts: [hosts[0]], secretName: 'sites-tls' },
      { hosts: [hosts[1]], secretName: 'branches-tls' },
    ]);
    expect(rules?.map(({ host }) => host)).toEqual(hosts);
    expect(rules?.[1]).toEqual({ ...rules?.[0], host: hosts[1] });
    expect(all.get('HTTPRoute', 'acme-postern-gateway').spec).toMatchObject({ hostnames: hosts, parentRefs });
    for (const component of ['web', 'gateway', 'worker'] as const) {
      expect(all.env(component).get('ENVIRONMENTS_CONTENT_URL')?.value).toBe(
        'https://Branches.example.org:8443',
      );
      expect(builtin.env(component).has('ENVIRONMENTS_CONTENT_URL')).toBe(false);
    }
  });

  test('the metrics of every workload are scraped, through dedicated Services', () => {
    const all = render(
      helm,
      over(fewest, { serviceMonitor: { enabled: true, labels: { release: 'p' }, interval: '10s' } }),
    );
    const monitor = all.get('ServiceMonitor', 'acme-postern');
    expect(monitor.metadata.labels).toMatchObject({ release: 'p' });
    expect(monitor.spec).toMatchObject({ endpoints: [{ port: 'metrics', interval: '10s' }] });
    const scraped = all.all.filter(
      ({ kind, spec }) => kind === 'Service' && JSON.stringify(spec['ports']).includes('"name":"metrics"'),
    );
    expect(scraped.map(({ metadata }) => metadata.name)).toEqual(
      expect.arrayContaining(workloads.map((one) => `acme-postern-${one}-metrics`)),
    );
    expect(scraped).toHaveLength(3);
    expect(builtin.has('ServiceMonitor')).toBe(false);
  });
});
