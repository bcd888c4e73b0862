import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError } from '../config/config-error.ts';
import type { Config, EnvironmentSettings } from '../config/read.ts';
import { type Clock, minute } from '../core/clock.ts';
import { type BuildLimits, EngineUnavailable } from '../features/environments/engine/engine.ts';
import { createLocalEngine, type LocalEngine } from '../features/environments/engine/local/local-engine.ts';
import type { Isolation } from '../features/environments/engine/local/sandbox.ts';
import type { IsolationInForce } from '../features/environments/policy/environment-policy.ts';
import type { Blobs } from '../platform/blobs/blobs.ts';
import type { Log } from '../platform/log.ts';

export type OpenEngine = { readonly engine: LocalEngine; readonly isolation: IsolationInForce };

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
  if (engine === 'off') return;
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

/**
 * Opens the engine that the configuration names, and tries it out. Null: off.
 * @throws ConfigError when this machine cannot run it
 */
export async function openEnvironmentEngine(
  { environments, dataDir, git: { searchPath } }: Pick<Config, 'environments' | 'dataDir' | 'git'>,
  {
    blobs,
    clock,
    log,
  }: { readonly blobs: Pick<Blobs, 'read' | 'write'>; readonly clock: Clock; readonly log: Log },
  machine: Machine = thisMachine(),
): Promise<OpenEngine | null> {
  if (environments.engine === 'off') return null;
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
    onDefect: (error) => log.error({ err: error }, 'the engine of Environments failed between two requests'),
  });
  try {
    const isolation = await engine.prepare();
    return { engine, isolation: { kind: isolation.kind, message: meaningOf(isolation) } };
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

/** What running the code of repositories means here, in one sentence for operators and for everyone who uses the pages. */
function meaningOf(isolation: Isolation): string {
  if (isolation.kind === 'process')
    return 'Environments run without isolation: everyone who can push to a registered repository controls Postern and all that its user may do.';
  return isolation.network === 'own'
    ? 'Environments run in a sandbox: code reaches other machines, but no file, process or loopback address of this one without a flaw in the kernel.'
    : 'Environments run in a sandbox without a network of its own: code can reach loopback addresses and other Environments until slirp4netns is installed.';
}

function refused(setting: string, problem: string, fix: string): ConfigError {
  return new ConfigError([{ setting, problem, fix }]);
}
