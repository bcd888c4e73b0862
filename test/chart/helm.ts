import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { chartTools, kubernetesVersions } from '../../scripts/chart-tools.ts';

/** Renders the chart with a real Helm, and reads what comes out by name. */
export const chartFolder = join(import.meta.dirname, '../../chart');
export const productionExample = join(chartFolder, 'examples/production.yaml');

export type Values = { readonly [name: string]: unknown };
export type Helm = keyof Pick<typeof chartTools, 'helm3' | 'helm4'>;

export type EnvVar = {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef?: { readonly name: string; readonly key: string } };
};

export type Container = {
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly EnvVar[];
  readonly envFrom?: readonly unknown[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly resources: { readonly requests: Values; readonly limits: Values };
  readonly securityContext: Values;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly lifecycle?: unknown;
} & { readonly [probe in 'startupProbe' | 'livenessProbe' | 'readinessProbe']?: Values };

export type Pod = {
  readonly containers: readonly [Container];
  readonly initContainers?: readonly Container[];
  readonly volumes: readonly ({ readonly name: string } & Values)[];
  readonly securityContext: Values;
  readonly automountServiceAccountToken: boolean;
  readonly terminationGracePeriodSeconds?: number;
} & Values;

export type Manifest = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: Values;
  readonly data?: Readonly<Record<string, string>>;
};

/** The fewest values that a rendering takes. */
export const fewest: Values = {
  image: { repository: 'registry.example.com/postern' },
  ui: { appUrl: 'https://postern.example.com' },
  sites: { contentUrl: 'https://sites.example.net' },
  database: { existingSecret: 'db', gateway: { existingSecret: 'db-gateway' } },
  kv: { existingSecret: 'kv' },
  objectStore: {
    url: 's3://bucket?endpoint=https://s3.example.com&region=eu-central-1',
    accessKey: { existingSecret: 'store' },
    secretKey: { existingSecret: 'store' },
  },
  secrets: {
    session: { existingSecret: 'session' },
    encryption: { existingSecret: 'encryption' },
    grant: { existingSecret: 'grant' },
  },
};

export const keycloak: Values = {
  identity: {
    provider: 'keycloak',
    issuer: 'https://id.example.com/realms/postern',
    clients: {
      login: { clientId: 'postern-web', existingSecret: 'login' },
      principalSync: { clientId: 'postern-principal-sync', existingSecret: 'principal-sync' },
      management: { clientId: 'provisioning', existingSecret: 'management' },
    },
  },
};

/** Objects are laid over one another, as Helm does; everything else is replaced. */
export function over(...layers: readonly Values[]): Values {
  return layers.reduce<Values>((below, layer) => {
    const merged: Record<string, unknown> = { ...below };
    for (const [name, value] of Object.entries(layer)) {
      const beneath = merged[name];
      merged[name] = isObject(beneath) && isObject(value) ? over(beneath, value) : value;
    }
    return merged;
  }, {});
}

function isObject(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Both Helms make the same promise. */
export function withEachHelm(body: (helm: Helm) => void): void {
  describe.each(['helm3', 'helm4'] as const)('%s', (helm) => {
    body(helm);
  });
}

export type Answer = { readonly status: number | null; readonly output: string; readonly trouble: string };

export function runHelm(helm: Helm, args: readonly string[], input = ''): Answer {
  const { status, stdout, stderr, error } = spawnSync(chartTools[helm], args, {
    input,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  if (error !== undefined) throw error;
  return { status, output: stdout, trouble: stderr };
}

export function template(helm: Helm, values: Values, more: readonly string[] = []): Answer {
  const fixed = ['--namespace', 'prod', '--kube-version', kubernetesVersions[1], '--values', '-'];
  return runHelm(helm, ['template', 'acme', chartFolder, ...fixed, ...more], JSON.stringify(values));
}

/** @throws with Helm's words when it refuses */
export function render(helm: Helm, values: Values, more: readonly string[] = []): Rendered {
  const { status, output, trouble } = template(helm, values, more);
  if (status !== 0) throw new Error(trouble);
  return readManifests(output);
}

/** Helm's words. @throws when it renders */
export function refusal(helm: Helm, values: Values): string {
  const { status, trouble } = template(helm, values);
  if (status === 0) throw new Error('It rendered.');
  return trouble;
}

export type Rendered = {
  readonly text: string;
  readonly all: readonly Manifest[];
  /** @throws when there is none */
  get(kind: string, name: string): Manifest;
  has(kind: string, name?: string): boolean;
  pod(component: Component): Pod;
  container(component: Component): Container;
  env(component: Component): ReadonlyMap<string, EnvVar>;
};

export const workloads = ['web', 'gateway', 'worker'] as const;
export type Component = (typeof workloads)[number] | 'migrate' | 'test';

export function readManifests(text: string): Rendered {
  const all = parseAllDocuments(text)
    // What Helm renders has these; kubeconform judges the rest.
    .map((document) => document.toJS() as Manifest | null)
    .filter((one) => one !== null);
  const has = (kind: string, name?: string) =>
    all.some((one) => one.kind === kind && (name === undefined || one.metadata.name === name));
  const get = (kind: string, name: string) => {
    const found = all.find((one) => one.kind === kind && one.metadata.name === name);
    if (found === undefined) throw new Error(`There is no ${kind} ${name}.`);
    return found;
  };
  const pod = (component: Component): Pod => {
    const kind = component === 'migrate' ? 'Job' : component === 'test' ? 'Pod' : 'Deployment';
    const { spec } = get(kind, `acme-postern-${component}`);
    // A Deployment and a Job hold their pod in a template.
    return (kind === 'Pod' ? spec : (spec['template'] as { spec: unknown }).spec) as Pod;
  };
  const container = (component: Component) => pod(component).containers[0];
  return {
    text,
    all,
    has,
    get,
    pod,
    container,
    env: (component) => new Map((container(component).env ?? []).map((one) => [one.name, one])),
  };
}
