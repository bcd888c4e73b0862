import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** The tools that make clients of the document. What they need is fetched once into node_modules/.cache. */
const cache = join(import.meta.dirname, '../../node_modules/.cache/clients');
const typescript = join(import.meta.dirname, 'typescript');

const version = '7.14.0';
const jar = join(cache, `openapi-generator-cli-${version}.jar`);
const pom = `<project><modelVersion>4.0.0</modelVersion><groupId>postern</groupId><artifactId>tools</artifactId>
<version>1</version><packaging>pom</packaging></project>\n`;

const start = promisify(execFile);

/** Runs a program to its end. @throws Error with what it printed, where it fails */
export async function run(
  program: string,
  args: readonly string[],
  cwd: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  const options = { cwd, env: { ...process.env, ...environment }, maxBuffer: 64 * 1024 * 1024 };
  return await start(program, args, options).then(
    ({ stdout }) => stdout,
    (error: { stdout: string; stderr: string }) => {
      throw new Error(`${program} failed:\n${error.stdout.slice(-4_000)}\n${error.stderr.slice(-4_000)}`);
    },
  );
}

/** Makes the client in the folder from document.json beside it. */
export async function openapiGenerator(language: 'go' | 'python', folder: string): Promise<void> {
  fetchGenerator();
  const names = '--additional-properties=packageName=postern,packageVersion=0.1.0';
  const options = ['-i', '../document.json', '-g', language, '-o', '.', names];
  await run('java', ['-jar', jar, 'generate', ...options], folder);
}

/** From the registry that Maven is set up with. The file appears whole or not at all. */
function fetchGenerator(): void {
  if (existsSync(jar)) return;
  mkdirSync(cache, { recursive: true });
  const staging = mkdtempSync(join(cache, 'fetching-'));
  try {
    // A separate project in an empty folder: Maven must not read the folders above it.
    writeFileSync(join(staging, 'pom.xml'), pom);
    const artifact = `-Dartifact=org.openapitools:openapi-generator-cli:${version}`;
    execFileSync('mvn', ['-B', '-q', 'dependency:copy', artifact, '-DoutputDirectory=.'], {
      cwd: staging,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    renameSync(join(staging, `openapi-generator-cli-${version}.jar`), jar);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/** The packages of test/clients/typescript, never part of the project. */
export const packages = join(typescript, 'node_modules');

/** Installs them without a lock file: package.json fixes their versions, and the suite accepts any of what they depend on. */
export function installPackages(): void {
  const installed = join(packages, '.package-lock.json');
  const isCurrent = () => statSync(installed).mtimeMs >= statSync(join(typescript, 'package.json')).mtimeMs;
  if (existsSync(installed) && isCurrent()) return;
  const options = ['--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync('npm', ['install', ...options], { cwd: typescript, stdio: 'inherit' });
}

export async function runPackage(
  path: string,
  args: readonly string[],
  folder: string,
  environment?: Readonly<Record<string, string>>,
): Promise<string> {
  return await run(process.execPath, [join(packages, path), ...args], folder, environment);
}
