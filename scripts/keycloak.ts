import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from './local-servers.ts';

/**
 * A local Keycloak: Maven downloads its distribution once into node_modules/.cache/tools. It runs on loopback, with
 * everything in memory.
 */
const version = '26.7.5';
const root = join(import.meta.dirname, '..');
const tools = join(root, 'node_modules/.cache/tools');
const home = join(tools, `keycloak-${version}`);

export const administrator = { username: 'admin', password: 'administrator-of-the-tests' };

/** What must be installed first; null when nothing is missing. */
export function missingForKeycloak(): string | null {
  const missing = [
    ...(answers('java', '-version') ? [] : ['Java 17 or newer (openjdk-17-jre-headless)']),
    ...(existsSync(home) || answers('mvn', '--version') ? [] : ['Maven (maven)']),
    ...(existsSync(home) || answers('unzip', '-v') ? [] : ['unzip']),
  ];
  return missing.length === 0 ? null : `Keycloak needs ${missing.join(', ')}.`;
}

export type RunningKeycloak = {
  /** Without a slash at the end. */
  readonly url: string;
  stop(): Promise<void>;
};

/** `environment`: values for the placeholders in deploy/keycloak/postern-realm.json, which is imported at startup. */
export async function startKeycloak(environment: Record<string, string>): Promise<RunningKeycloak> {
  await install();
  const imports = join(home, 'data/import');
  mkdirSync(imports, { recursive: true });
  copyFileSync(join(root, 'deploy/keycloak/postern-realm.json'), join(imports, 'postern-realm.json'));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(
    join(home, 'bin/kc.sh'),
    [
      'start-dev',
      '--import-realm',
      '--db=dev-mem',
      '--http-host=127.0.0.1',
      `--http-port=${port}`,
      `--hostname=${url}`,
      '--log-level=warn',
    ],
    {
      // The script starts Java as a child; both must end together.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        ...environment,
        KC_BOOTSTRAP_ADMIN_USERNAME: administrator.username,
        KC_BOOTSTRAP_ADMIN_PASSWORD: administrator.password,
        JAVA_OPTS_KC_HEAP: '-Xms128m -Xmx768m',
      },
    },
  );
  let said = '';
  const listen = (text: Buffer) => (said = `${said}${text.toString()}`.slice(-4_000));
  child.stdout.on('data', listen);
  child.stderr.on('data', listen);
  const stop = () => end(child);
  try {
    await answering(url, child);
  } catch (error) {
    await stop();
    throw new Error(`Keycloak did not start: ${said}`, { cause: error });
  }
  return { url, stop };
}

/** Downloads from the registry that Maven is configured with. The folder appears complete or not at all. */
async function install(): Promise<void> {
  if (existsSync(home)) return;
  const missing = missingForKeycloak();
  if (missing !== null) throw new Error(missing);
  mkdirSync(tools, { recursive: true });
  const staging = mkdtempSync(join(tools, 'keycloak-'));
  try {
    // A project in an empty folder, so that Maven reads no configuration from a parent folder.
    writeFileSync(join(staging, 'pom.xml'), project);
    run(
      'mvn',
      staging,
      '-B',
      '-q',
      'dependency:copy',
      `-Dartifact=${artifact}:${version}:zip`,
      '-DoutputDirectory=.',
    );
    run('unzip', staging, '-q', `keycloak-quarkus-dist-${version}.zip`);
    renameSync(join(staging, `keycloak-${version}`), home);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

const artifact = 'org.keycloak:keycloak-quarkus-dist';
const project = `<project><modelVersion>4.0.0</modelVersion><groupId>postern</groupId><artifactId>tools</artifactId>
<version>1</version><packaging>pom</packaging></project>\n`;

function run(program: string, cwd: string, ...args: string[]): void {
  execFileSync(program, args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
}

function answers(program: string, argument: string): boolean {
  try {
    execFileSync(program, [argument], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** On the first start on a machine Keycloak builds itself, which takes minutes on two busy cores. */
async function answering(url: string, child: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt += 1) {
    if (!isRunning(child)) throw new Error('It ended.');
    const answer = await fetch(`${url}/realms/postern`).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer?.ok) return;
    await wait(500);
  }
  throw new Error('It did not answer within five minutes.');
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

async function end(child: ChildProcess): Promise<void> {
  if (!isRunning(child) || child.pid === undefined) return;
  const ended = once(child, 'exit');
  // The whole process group that `detached` created.
  process.kill(-child.pid, 'SIGKILL');
  await ended;
}
