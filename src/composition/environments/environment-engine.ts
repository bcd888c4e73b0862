import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError } from '../../config/config-error.ts';
import type { Workload } from '../../config/names.ts';
import type { Config, EnvironmentSettings, KubernetesSettings } from '../../config/read.ts';
import { type Clock, minute } from '../../core/clock.ts';
import { systemRandom } from '../../core/ids.ts';
import { type BuildLimits, EngineUnavailable } from '../../features/engine/contract.ts';
import { serviceLogStore } from '../../features/engine/kubernetes/service-log-store.ts';
import { createLocalEngine } from '../../features/engine/local/local-engine.ts';
import type { Isolation } from '../../features/engine/local/sandbox.ts';
import type { IsolationInForce } from '../../features/environments/policy/environment-policy.ts';
import type { Blobs } from '../../platform/blobs/blobs.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Log } from '../../platform/log.ts';
import type { AppBackends } from '../app-settings.ts';
import { createTransfersOn } from './transfers.ts';

export type OpenEngine = {
  readonly engine: NonNullable<AppBackends['engine']>;
  readonly isolation: IsolationInForce;
  stop(): Promise<void>;
};

/** The machine that the process runs on. */
type Machine = {
  readonly platform: string /** Undefined where users have no numbers. */;
  readonly uid: number | undefined;
};

const gib = 1024 ** 3;

/** The policy sets the time and the memory of each build. */
const limits: BuildLimits = {
  timeMs: 30 * minute,
  processes: 1_000,
  memoryBytes: gib,
  fileBytes: 2 * gib,
  diskBytes: 10 * gib,
  outputFiles: 200_000,
};

const thisMachine = (): Machine => ({ platform: process.platform, uid: process.getuid?.() });

/** Before anything is created. @throws ConfigError when this machine or this user must not run the engine */
export function requireMachine(
  { engine, isolation }: EnvironmentSettings,
  machine: Machine = thisMachine(),
): void {
  if (engine !== 'local') return;
  if (machine.platform !== 'linux')
    throw refused(
      'ENVIRONMENTS_ENGINE',
      `is local, which works on Linux only; this is ${machine.platform}`,
      'Set ENVIRONMENTS_ENGINE=off, or run Postern on Linux.',
    );
  if (machine.uid === 0 && isolation === 'process')
    throw refused(
      'ENVIRONMENTS_ISOLATION',
      'is process, and this process runs as root: whoever can push to a registered repository would control this machine',
      'Run Postern as another user, or install bubblewrap and set ENVIRONMENTS_ISOLATION=bwrap.',
    );
}

type EngineConfig = Pick<Config, 'environments' | 'dataDir' | 'git' | 'encryptionKeys'>;

type EngineDeps = {
  readonly database: Database;
  readonly blobs: Blobs;
  readonly clock: Clock;
  readonly log: Log;
};

/**
 * Opens the engine that the configuration names for this workload. Null: off.
 * @throws ConfigError when this machine cannot run it
 */
export async function openEnvironmentEngine(
  config: EngineConfig,
  { workload, ...deps }: EngineDeps & { readonly workload: Exclude<Workload, 'gateway'> },
  machine: Machine = thisMachine(),
): Promise<OpenEngine | null> {
  const { engine, kubernetes } = config.environments;
  if (engine === 'off') return null;
  if (kubernetes === null) return await openLocal(config, deps, machine);
  return workload === 'web'
    ? { engine: 'elsewhere', isolation: inPods, stop: async () => undefined }
    : await openKubernetes(kubernetes, config, deps);
}

async function openLocal(
  { environments, dataDir, git: { searchPath } }: EngineConfig,
  { blobs, clock, log }: EngineDeps,
  machine: Machine,
): Promise<OpenEngine> {
  const isRoot = machine.uid === 0;
  const { isolation, secretsDir, home } = environments;
  const places = [dataDir, secretsDir, home].filter((place) => place !== null);
  const engine = createLocalEngine({
    folder: join(dataDir, 'environments'),
    isolation,
    // SECRETS_DIR need not exist yet.
    hidden: await Promise.all(places.map((place) => realpath(place).catch(() => place))),
    searchPath,
    blobs,
    limits,
    now: () => clock.now(),
    onDefect: onDefect(log),
  });
  try {
    const isolation = await engine.prepare();
    return {
      engine,
      isolation: { kind: isolation.kind, isComplete: isComplete(isolation), message: meaningOf(isolation) },
      stop: engine.stop,
    };
  } catch (error) {
    if (!(error instanceof EngineUnavailable)) throw error;
    throw refused(
      'ENVIRONMENTS_ENGINE',
      `is local, but ${isRoot ? 'this process runs as root and ' : ''}builds cannot be isolated (${error.message})`,
      isRoot
        ? 'Install bubblewrap, or run Postern as another user than root.'
        : 'Install bubblewrap. To run the code of repositories without isolation, set ENVIRONMENTS_ISOLATION=process.',
    );
  }
}

/** The API server may be away: Environments wait for it. @throws ConfigError without credentials */
async function openKubernetes(
  { namespace, podImage, webUrl, kubeconfig }: KubernetesSettings,
  { dataDir, encryptionKeys }: EngineConfig,
  { database, blobs, clock, log }: EngineDeps,
): Promise<OpenEngine> {
  // Loaded here: web has no use for it.
  const { createKubernetesEngine } = await import('../../features/engine/kubernetes/kubernetes-engine.ts');
  const engine = createKubernetesEngine({
    place: { namespace, podImage, transferUrl: `${webUrl}/api/v2/environment-files` },
    kubeconfig,
    // Not that of the local engine, whose services may still run.
    folder: join(dataDir, 'environment-sources'),
    transfers: createTransfersOn(database, { blobs, encryptionKeys, clock, random: systemRandom }),
    logs: serviceLogStore(database.sql),
    limits,
    now: () => clock.now(),
    later: (work, ms) => void setTimeout(work, ms).unref(),
    onDefect: onDefect(log),
  });
  try {
    await engine.prepare();
  } catch {
    // Without the message of the error, which can repeat what is in the file.
    throw refused(
      'KUBECONFIG',
      kubeconfig === null
        ? 'is not set, and this process has no service account of a pod'
        : 'names a file without usable credentials for the API server',
      'Run the worker in a pod with a service account, or set it to a file that kubectl can use.',
    );
  }
  return { engine, isolation: inPods, stop: engine.stop };
}

function onDefect(log: Log): (error: unknown) => void {
  return (error) => log.error({ err: error }, 'the engine of Environments failed between two requests');
}

const inPods: IsolationInForce = {
  kind: 'kubernetes',
  isComplete: true,
  message:
    'Environments run in restricted pods. Outside its Environment, code reaches only public addresses, DNS and Postern, unless the kernel has a flaw. This needs a network plugin that enforces NetworkPolicy.',
};

/** What running the code of repositories means here, for operators and for everyone who uses the pages. */
function meaningOf(isolation: Isolation): string {
  return `${reachOf(isolation)} ${limitsOf(isolation)}`;
}

function reachOf(isolation: Isolation): string {
  if (isolation.kind === 'process')
    return 'Environments run without isolation: everyone who can push to a registered repository controls Postern and all that its user may do.';
  return isolation.network === 'own'
    ? 'Environments run in a sandbox: code reaches other machines, but no file, process or loopback address of this one without a flaw in the kernel.'
    : 'Environments run in a sandbox that shares the network of this machine. Their code can reach loopback addresses and other Environments, and every user of this machine can reach their processes without signing in. Install slirp4netns to prevent both.';
}

/** Whether the sandbox has its own network, and the kernel limits its memory. */
function isComplete(isolation: Isolation): boolean {
  return isolation.kind === 'bwrap' && isolation.network === 'own' && isolation.groups !== null;
}

function limitsOf(isolation: Isolation): string {
  return isolation.kind === 'bwrap' && isolation.groups !== null
    ? 'The kernel limits their memory. It does not limit their disk: Postern ends what uses too much within seconds.'
    : 'The kernel limits neither their memory nor their disk: Postern ends what uses too much within seconds, and does not see memory that belongs to no process.';
}

function refused(setting: string, problem: string, fix: string): ConfigError {
  return new ConfigError([{ setting, problem, fix }]);
}
