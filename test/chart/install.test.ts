import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { chartTools } from '../../scripts/chart-tools.ts';
import { startCluster } from './cluster.ts';
import {
  chartFolder,
  fewest,
  type Helm,
  over,
  readManifests,
  refusal,
  type Values,
  withEachHelm,
} from './helm.ts';

/** What an installation does that a rendering alone does not show: it looks at the cluster, and tells what comes next. */
const folder = mkdtempSync(join(tmpdir(), 'postern-chart-'));
afterAll(() => rmSync(folder, { recursive: true }));

const namespace = { 'namespaces/prod/configmaps/kube-root-ca.crt': object('ConfigMap', 'kube-root-ca.crt') };
const generated = over(fewest, {
  secrets: { generate: true, session: { existingSecret: '' }, encryption: { existingSecret: '' } },
});

function object(kind: string, name: string, data: Readonly<Record<string, string>> = {}) {
  return { apiVersion: 'v1', kind, metadata: { name, namespace: 'prod' }, data };
}

type Release = {
  readonly manifest: string;
  readonly hooks?: readonly { readonly manifest: string }[];
  readonly info: { readonly notes: string };
};

/** @throws with Helm's words when it refuses */
async function install(
  helm: Helm,
  values: Values,
  there: Readonly<Record<string, unknown>>,
): Promise<Release> {
  const cluster = await startCluster(there);
  const file = join(folder, `${helm}.json`);
  writeFileSync(file, JSON.stringify(values));
  // It must not run inside this process’s own turn: the cluster answers from here.
  const child = spawn(chartTools[helm], [
    'install',
    'acme',
    chartFolder,
    '--namespace',
    'prod',
    '--values',
    file,
    '--output',
    'json',
    '--dry-run=server',
    '--disable-openapi-validation',
    '--kube-apiserver',
    cluster.url,
  ]);
  let output = '';
  let trouble = '';
  child.stdout.on('data', (part: Buffer) => (output += part.toString()));
  child.stderr.on('data', (part: Buffer) => (trouble += part.toString()));
  const status = await new Promise((resolve) => child.once('close', resolve));
  await cluster.stop();
  if (status !== 0) throw new Error(trouble);
  // What Helm prints of a release.
  return JSON.parse(output) as Release;
}

withEachHelm((helm) => {
  test('secrets are generated before the migration, each with 32 random bytes', async () => {
    const made = async () => {
      const { hooks = [] } = await install(helm, generated, namespace);
      return readManifests(hooks.map(({ manifest }) => manifest).join('\n---\n'));
    };
    const [one, two] = [await made(), await made()];
    const secret = one.get('Secret', 'acme-postern-generated');
    expect(secret.metadata.annotations).toEqual({
      'helm.sh/hook': 'pre-install,pre-upgrade',
      'helm.sh/hook-weight': '-10',
    });
    const values = Object.values(secret.data ?? {});
    expect(Object.keys(secret.data ?? {})).toEqual(['session-secret', 'encryption-secret', 'grant-secret']);
    for (const value of values) expect(Buffer.from(value, 'base64').toString()).toMatch(/^[\x20-\x7e]{44}$/);
    const others = Object.values(two.get('Secret', 'acme-postern-generated').data ?? {});
    expect(new Set([...values, ...others]).size).toBe(6);
  });

  test('generated secrets are kept: an upgrade finds them and changes none', async () => {
    const there = object('Secret', 'acme-postern-generated', {
      'session-secret': 'eA==',
      'encryption-secret': 'eA==',
      'grant-secret': 'eA==',
    });
    const release = await install(helm, generated, {
      ...namespace,
      'namespaces/prod/secrets/acme-postern-generated': there,
    });
    const all = readManifests(
      [release.manifest, ...(release.hooks ?? []).map(({ manifest }) => manifest)].join('\n---\n'),
    );
    expect(all.has('Secret')).toBe(false);
    const session = all.env('web').get('SESSION_SECRET')?.valueFrom?.secretKeyRef;
    expect(session).toEqual({ name: 'acme-postern-generated', key: 'session-secret' });
    // Named by a value, so not the generated one.
    expect(all.env('web').get('GRANT_SECRET')?.valueFrom?.secretKeyRef?.name).toBe('grant');
    expect(all.env('gateway').has('SESSION_SECRET')).toBe(false);
  });

  test('if one generated secret is missing, the others are not overwritten', async () => {
    const there = object('Secret', 'acme-postern-generated', {
      'session-secret': 'eA==',
      'grant-secret': 'eA==',
    });
    await expect(
      install(helm, generated, { ...namespace, 'namespaces/prod/secrets/acme-postern-generated': there }),
    ).rejects.toThrow('finds the Secret acme-postern-generated without encryption-secret');
  });

  test('no secret is generated if existing ones cannot be read: each rendering would create new ones', () => {
    expect(refusal(helm, generated)).toContain('secrets.generate: cannot see the cluster');
  });

  test('the notes name both content hosts where Environments have their own', async () => {
    const own = over(generated, { environments: { contentUrl: 'https://branches.example.org' } });
    const { info } = await install(helm, own, namespace);
    for (const line of [
      'content hosts    *.sites.example.net\n  content hosts    *.branches.example.org',
      '*.sites.example.net  →  acme-postern-gateway:80\n  *.branches.example.org  →  acme-postern-gateway:80',
    ])
      expect(info.notes).toContain(line);
  });

  test('the notes say how Kubernetes refuses pods of Environments that are not restricted', async () => {
    const on = over(generated, { environments: { engine: 'kubernetes', namespace: 'branches' } });
    const { info } = await install(helm, on, namespace);
    const label = 'kubectl label namespace branches pod-security.kubernetes.io/enforce=restricted';
    expect(info.notes).toContain(label);
    expect((await install(helm, generated, namespace)).info.notes).not.toContain('pod-security');
  });

  test('the notes have the address, how the first administrator signs in, and the remaining steps', async () => {
    const { info } = await install(helm, generated, namespace);
    for (const line of [
      'web app and API  https://postern.example.com',
      'content hosts    *.sites.example.net',
      '*.sites.example.net  →  acme-postern-gateway:80',
      'kubectl -n prod exec deploy/acme-postern-web -- node src/main.ts admin login-link',
      'acme-postern-generated was made for you',
      'trustedProxies is empty',
      'database.gateway.role is empty',
      'helm test acme -n prod',
    ])
      expect(info.notes).toContain(line);
  });
});
