import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { unpackProgram } from './kubectl-layer.ts';

/**
 * The tools that test the chart, put once into node_modules/.cache: Helm 3 and 4, kubeconform (test/chart/tools/go.mod pins
 * it and its dependencies), the schemas of the oldest and the newest supported Kubernetes, and those of the custom
 * resources that the chart can create. Every version is exact, and every download is verified against its checksum. Needs
 * Go 1.26, npm and python3 with venv. Does nothing more until a version changes.
 */
const root = join(import.meta.dirname, '..');
const folder = join(root, 'node_modules/.cache/chart-tools');
const sources = join(root, 'test/chart/tools');

/** The oldest version that Chart.yaml allows, and the newest one with schemas. */
export const kubernetesVersions = ['1.30.0', '1.37.0'] as const;

export const chartTools = {
  helm3: join(folder, 'helm3'),
  helm4: join(folder, 'helm4'),
  kubeconform: join(folder, 'kubeconform'),
  /** `v1.37.0-local-strict/deployment-apps-v1.json` below it. */
  schemas: join(folder, 'kubernetes_validate/kubernetes-json-schema'),
  /** `httproute-v1.json` below it. */
  customSchemas: join(folder, 'custom'),
};

/** A package with the schemas that Kubernetes validators share. */
const schemasPackage =
  'kubernetes-validate==1.37.0 --hash=sha256:85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9';

const customResources = [
  {
    module: 'sigs.k8s.io/gateway-api@v1.6.3',
    sum: 'h1:lKpJa5bGlraC/QeACvCpsHLdmO6y0iKfzVl6gzaFEYc=',
    files: ['config/crd/standard/gateway.networking.k8s.io_httproutes.yaml'],
  },
  {
    module: 'github.com/prometheus-operator/prometheus-operator@v0.85.0',
    sum: 'h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=',
    files: ['servicemonitors', 'prometheusrules'].map(
      (name) => `example/prometheus-operator-crd/monitoring.coreos.com_${name}.yaml`,
    ),
  },
];

/** Vitest calls it before the suite; `node scripts/chart-tools.ts` does the same alone. */
export default function installChartTools(): void {
  const stamp = join(folder, 'stamp');
  const layer = join(import.meta.dirname, 'kubectl-layer.ts');
  const wanted = [join(sources, 'go.mod'), join(sources, 'go.sum'), import.meta.filename, layer]
    .map((path) => createHash('sha256').update(readFileSync(path)).digest('hex'))
    .join('\n');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  console.log('chart tools: installing Helm 3, Helm 4 and kubeconform, once …');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(chartTools.customSchemas, { recursive: true });
  unpackProgram('v33', 'helm', chartTools.helm3);
  unpackProgram('v34', 'helm', chartTools.helm4);
  buildKubeconform();
  unpackSchemas();
  for (const one of customResources) writeCustomSchemas(one);
  writeFileSync(stamp, wanted);
}

function buildKubeconform(): void {
  const options = ['-trimpath', '-buildvcs=false', '-mod=readonly', '-ldflags=-s -w'];
  const source = 'github.com/yannh/kubeconform/cmd/kubeconform';
  const env = { CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOFLAGS: '' };
  run('go', ['build', ...options, '-o', chartTools.kubeconform, source], env);
}

function unpackSchemas(): void {
  const requirements = join(folder, 'requirements.txt');
  const environment = join(folder, 'venv');
  writeFileSync(requirements, `${schemasPackage}\n`);
  run('python3', ['-m', 'venv', environment]);
  const download = ['download', '--quiet', '--no-deps', '--require-hashes', '--dest', folder];
  run(join(environment, 'bin/pip'), [...download, '--requirement', requirements]);
  const unpack = `
import json, os, sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
wanted = tuple('kubernetes_validate/kubernetes-json-schema/v%s-local-strict/' % one for one in sys.argv[3:])
for name in archive.namelist():
    if not name.startswith(wanted): continue
    path = os.path.join(sys.argv[2], name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    # Their shared definitions are next to them, without their ids: ids are addresses, which a validator would fetch.
    schema = json.loads(archive.read(name).replace(b'"/api/_definitions.json', b'"_definitions.json'))
    schema.pop('$id', None)
    with open(path, 'w') as file: json.dump(schema, file)
`;
  const wheel = join(folder, 'kubernetes_validate-1.37.0-py3-none-any.whl');
  run('python3', ['-c', unpack, wheel, folder, ...kubernetesVersions]);
  rmSync(environment, { recursive: true });
  rmSync(wheel);
}

type CustomResource = (typeof customResources)[number];

type Definition = {
  readonly spec: {
    readonly names: { readonly kind: string };
    readonly versions: readonly { readonly name: string; readonly schema: { openAPIV3Schema: unknown } }[];
  };
};

function writeCustomSchemas({ module, sum, files }: CustomResource): void {
  const answer = run('go', ['mod', 'download', '-json', module], { GOTOOLCHAIN: 'local', GOFLAGS: '' });
  // The output of `go mod download -json`.
  const { Dir, Sum } = JSON.parse(answer) as { Dir: string; Sum: string };
  if (Sum !== sum) throw new Error(`${module} has the sum ${Sum}, and not ${sum}.`);
  for (const file of files) {
    // A CustomResourceDefinition, from an archive whose checksum was verified.
    const { spec } = parse(readFileSync(join(Dir, file), 'utf8')) as Definition;
    for (const { name, schema } of spec.versions) {
      const path = join(chartTools.customSchemas, `${spec.names.kind.toLowerCase()}-${name}.json`);
      writeFileSync(path, JSON.stringify(strict(schema.openAPIV3Schema)));
    }
  }
}

/**
 * Makes the schema as strict as the API server: an object with named properties has no others, and a number may be text
 * only where the schema says so.
 */
function strict(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(strict);
  if (typeof node !== 'object' || node === null) return node;
  const copy: Record<string, unknown> = Object.fromEntries(
    Object.entries(node).map(([name, value]) => [name, strict(value)]),
  );
  if (copy['x-kubernetes-int-or-string'] === true) delete copy['type'];
  const isOpen = copy['x-kubernetes-preserve-unknown-fields'] === true || 'additionalProperties' in copy;
  if (copy['type'] === 'object' && 'properties' in copy && !isOpen) copy['additionalProperties'] = false;
  return copy;
}

/** @throws Error with all output of the program */
function run(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  const done = spawnSync(program, args, {
    cwd: sources,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  if (done.error !== undefined) {
    throw new Error(`The chart is tested with ${program}, which is not installed: see README.md.`);
  }
  if (done.status !== 0)
    throw new Error(`${program} ${args.join(' ')} failed:\n${done.stdout}\n${done.stderr}`);
  return done.stdout;
}

if (import.meta.main) installChartTools();
