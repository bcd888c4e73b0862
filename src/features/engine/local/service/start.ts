import { realpath } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Blobs } from '../../../../platform/blobs/blobs.ts';
import { listenersOn } from '../../../../platform/listeners.ts';
import { threadsFor } from '../../build-failures.ts';
import { type DesiredDatabase, type DesiredProcess, EngineUnavailable } from '../../contract.ts';
import { unpackTree } from '../../tree.ts';
import { programIn } from '../database/program-in.ts';
import type { EnvironmentNetwork } from '../network.ts';
import { startRecorder } from '../recorder/start-recorder.ts';
import type { ServiceLimits } from './limits.ts';
import { serviceMark, type Started } from '../recorder/task.ts';
import {
  groupOf,
  inSandbox,
  type Isolation,
  makeCommandFolders,
  prepareSandbox,
  sandboxOf,
} from '../sandbox.ts';
import { giveToTenant } from '../tenant.ts';

/** The process of a service: a command in the files of an artifact, or the program of a database with its folder. */
export type Wanted = DesiredProcess | DesiredDatabase;

/** Dependencies of a start, shared by all services of an Environment. */
export type StartDeps = {
  readonly isolation: Isolation;
  readonly limits: Omit<ServiceLimits, 'memoryBytes'>;
  readonly hidden: readonly string[];
  readonly searchPath: string;
  readonly blobs: Pick<Blobs, 'read'>;
  /** Data folder of a database. Other services do not have this folder. */
  readonly dataFolder: string;
  /** Undefined: services use the network of this machine. */
  readonly network: EnvironmentNetwork | undefined;
  /** Maximum bytes of one file. */
  readonly fileBytes: number;
  /** Time from SIGTERM to SIGKILL, in ms. */
  readonly graceMs: number;
  /** Folder for the cached programs of recorders. */
  readonly codeFolder: string;
  /** Whether another service in the same network has this port. */
  readonly isPortGiven: (port: number) => boolean;
};

export function isDatabase(wanted: Wanted): wanted is DesiredDatabase {
  return 'password' in wanted;
}

/** Replaces the files in the folder of the service with those of the artifact. A database has none. */
export async function unpack(desired: Wanted, folder: string, { blobs }: StartDeps): Promise<void> {
  await makeCommandFolders(folder);
  if (isDatabase(desired)) return;
  await unpackTree(await blobs.read(desired.artifact.digest), join(folder, 'work'));
}

/** Path of the data in the sandbox of a database. */
const dataInSandbox = '/data';

function runOf(desired: Wanted, { isolation, dataFolder }: StartDeps) {
  if (!isDatabase(desired)) {
    const { command: text, variables, secrets, redacted } = desired;
    return {
      text,
      given: { ...variables, ...secrets },
      redacted: [...redacted, ...Object.values(secrets)],
      binds: [],
    };
  }
  const { password } = desired;
  const { text, env, binds } = programIn(isolation, 'serve "$DATA_FOLDER"');
  const folder = isolation.kind === 'process' ? dataFolder : dataInSandbox;
  return {
    text,
    given: { ...env, DATA_FOLDER: folder, DATABASE_PASSWORD: password },
    redacted: [password],
    binds: [...binds, { source: dataFolder, place: dataInSandbox, isForWriting: true }],
  };
}

/** Starts the command under a recorder. Rejects with EngineUnavailable. */
export async function startCommand(
  desired: Wanted,
  folder: string,
  place: { readonly port: number; readonly holder: number | null },
  deps: StartDeps,
): Promise<Started> {
  const { isolation, searchPath } = deps;
  const { text, redacted, binds, ...run } = runOf(desired, deps);
  const given = { ...run.given, PORT: String(place.port) };
  const odd = Object.entries({ ...given, command: text }).find((entry) => entry.join('').includes('\0'));
  if (odd !== undefined) throw new EngineUnavailable(`${odd[0]} contains a NUL byte`);
  const common = { mark: serviceMark(folder), text, fileBytes: deps.fileBytes };
  const always = { PATH: searchPath, LANG: 'C.UTF-8' };
  const task = {
    folder,
    redacted,
    logBytes: desired.logBytes,
    graceMs: deps.graceMs,
  };
  if (isolation.kind === 'process') {
    const home = { HOME: join(folder, 'home'), TMPDIR: join(folder, 'tmp') };
    const workingDirectory = await realpath(join(folder, 'work'));
    const command = { ...common, env: { ...always, ...home, ...given }, workingDirectory };
    return await startRecorder({ ...task, command, sandbox: null }, deps.codeFolder);
  }
  const network = place.holder === null ? isolation.network : { holder: place.holder };
  await prepareSandbox(folder, network);
  if (isDatabase(desired)) await giveToTenant(deps.dataFolder);
  const workingDirectory = inSandbox.work;
  const env = { ...always, HOME: inSandbox.home, ...given };
  const sandbox = sandboxOf({ folder, workingDirectory, env, network, binds }, deps.hidden);
  const command = { ...common, env, workingDirectory };
  const limits = { memoryBytes: desired.memoryBytes, threads: threadsFor(deps.limits) };
  const group = groupOf(isolation, folder, limits);
  const whole = { ...task, command, sandbox: { ...sandbox, network, searchPath, group } };
  return await startRecorder(whole, deps.codeFolder);
}

/** Maximum tries to choose a free port, because another process can take each one first. */
const maxChoices = 20;
/** Commands of tenants must not listen on lower ports. */
const minPort = 1_024;

/**
 * Chooses an unused port: `run.port` if the Environment has a network, else `last`, which other services have in their
 * variables, else any. `take` records it immediately, so that no other service chooses it.
 */
export async function choosePort(
  wanted: Wanted,
  { port: last }: { readonly port: number | null },
  holder: number | null,
  { isPortGiven }: StartDeps,
  take: (port: number) => void,
): Promise<number> {
  const isFree = async (port: number) => (await listenersOn(port, holder ?? process.pid))?.length === 0;
  const ofFile = holder === null || isDatabase(wanted) || wanted.port < minPort ? null : wanted.port;
  const known = [ofFile, last];
  for (let choice = 0; choice < known.length + maxChoices; choice++) {
    const port = choice < known.length ? (known[choice] ?? null) : await unusedPort();
    if (port === null || !(await isFree(port)) || isPortGiven(port)) continue;
    take(port);
    return port;
  }
  throw new EngineUnavailable('no port of this machine is free');
}

async function unusedPort(): Promise<number> {
  return await new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' ? (address?.port ?? 0) : 0));
    });
  });
}
