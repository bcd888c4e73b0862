import type { Place } from '../../platform/place.ts';
import type { BuildPlace } from './artifact-key.ts';
import type { BuildLog, LogLine } from './build-log.ts';

/**
 * Builds and runs services of Environments. When build() resolves, every process of the build has ended, unless its
 * machine is lost, and only the artifact remains. The caller decides what to build and run, when, and who may see the result.
 */
export type Engine = {
  readonly place: BuildPlace;
  /** Absent: the engine runs no databases. */
  readonly databases?: EngineDatabases;
  /**
   * Runs the build, writes its output to `log` and ends the log. An aborted `signal` cancels the build. Rejects with
   * EngineUnavailable when the engine itself cannot run it, and with the error of `fill` when that rejects.
   */
  build(job: BuildJob, log: BuildLog, signal: AbortSignal): Promise<BuildOutcome>;
  /**
   * Starts, replaces and stops processes of this Environment until they match `desired`. Resolves when it has begun;
   * observe() returns the result. Repeating a call changes nothing. Rejects with EngineUnavailable.
   */
  apply(desired: DesiredProcesses): Promise<void>;
  /** Processes, sorted by service name. Empty: this engine has nothing of the Environment. */
  observe(environmentId: string): Promise<readonly ObservedProcess[]>;
  /** Lines with an id above `after`, oldest first, at most `limit`. Ids of a service only grow. Old lines are removed. */
  logs(environmentId: string, service: string, after: number, limit: number): Promise<readonly LogEntry[]>;
  /**
   * Address at which the gateway and the other services of the Environment reach the service now. Null: it is not ready, or
   * its process has ended.
   */
  address(environmentId: string, service: string): Promise<Address | null>;
  /** Ends every process and removes everything of the Environment before it resolves. */
  remove(environmentId: string): Promise<void>;
  /**
   * Ends and removes every build and Environment that is not known, except builds running in this process. Returns the
   * removed ids. It calls `known` after listing what exists, so that it skips what starts meanwhile.
   */
  sweep(known: () => Promise<Known>): Promise<readonly string[]>;
};

/** Databases in folders of their Environment. The data stays until remove(), whether or not they run. */
export type EngineDatabases = {
  /** Whether the database is complete, so that apply() can run it. */
  isMade(environmentId: string, service: string): Promise<boolean>;
  /**
   * Creates the database unless it is complete. An incomplete one is created again. remove() cancels this.
   * @throws AppError config_invalid when the seed cannot be used; EngineUnavailable
   */
  make(wanted: WantedDatabase): Promise<void>;
};

export type WantedDatabase = {
  readonly environmentId: string;
  readonly service: string;
  /** SQL that fills the database, and its path in the repository. Null: the database is empty. */
  readonly seed: { readonly path: string; readonly text: string } | null;
  /** Maximum resident memory while the seed runs. */
  readonly memoryBytes: number;
};

/** A complete database. Only services of its Environment reach it, at its address and with the password. */
export type DesiredDatabase = Pick<
  DesiredProcess,
  'service' | 'revision' | 'memoryBytes' | 'logBytes' | 'isAsleep'
> & { readonly password: string };

export type Known = { readonly builds: ReadonlySet<string>; readonly environments: ReadonlySet<string> };

export type DesiredProcesses = {
  /** Letters, digits, `_` and `-`. */
  readonly environmentId: string;
  /** One for each service. The engine ends and removes all other processes of the Environment that are not in `kept`. */
  readonly processes: readonly DesiredProcess[];
  /** Absent: none. observe(), logs() and address() include them. */
  readonly databases?: readonly DesiredDatabase[];
  /** Services that stay as they are, whether they run or not. Absent: none. */
  readonly kept?: readonly string[];
};

export type DesiredProcess = {
  /** A DNS label. */
  readonly service: string;
  /** The engine replaces the running process only when this changes. */
  readonly revision: string;
  readonly artifact: Pick<Artifact, 'digest' | 'size'>;
  /** Container image. Null, or an engine without containers: the process runs on the engine's machine. */
  readonly image: string | null;
  /** Shell command (POSIX), run in the tree of the artifact. */
  readonly command: string;
  /** `run.port` of postern.yaml. The engine may choose another port; the variable PORT names the one in use. */
  readonly port: number;
  /** Path that answers 2xx or 3xx when the service is ready. Null: the service is ready when it listens. */
  readonly health: string | null;
  readonly variables: Readonly<Record<string, string>>;
  /** More variables: name → value. They replace variables of the same name. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Values to redact from the log in addition to those of `secrets`. */
  readonly redacted: readonly string[];
  /** Maximum resident memory of all processes together. */
  readonly memoryBytes: number;
  readonly milliCpu: number;
  /** Maximum bytes of the log, which keeps the newest lines. */
  readonly logBytes: number;
  /** True: the process is stopped, and its files stay. */
  readonly isAsleep: boolean;
};

export type ObservedProcess = {
  readonly service: string;
  readonly revision: string;
  /** `failed`: the engine restarts it after a pause that grows from 1 s to 60 s. */
  readonly state: 'starting' | 'ready' | 'failed' | 'stopped';
  /** Why the process is not ready, as a phrase without a capital or a full stop: "exited with 1 after 3 s". */
  readonly reason: string | null;
  /** Last lines of this revision's output, without secrets. */
  readonly lastLines: readonly string[];
  /** Restarts of this revision. */
  readonly restarts: number;
};

export type LogEntry = LogLine & { readonly id: number };

/** Other services of the Environment use host and port; the gateway uses the relay if there is one. */
export type Address = Place;

export type BuildJob = {
  /** Letters, digits, `_` and `-`; unique among running builds. */
  readonly id: string;
  /** Container image. Null, or an engine without containers: the command runs on the engine's machine. */
  readonly image: string | null;
  /** Shell command (POSIX), run in `directory`. Null: the files themselves are the result. */
  readonly command: string | null;
  /** Path relative to the root of the repository. */
  readonly directory: string;
  /** Path relative to `directory`. */
  readonly output: string;
  readonly variables: Readonly<Record<string, string>>;
  /** Files in the folder that the variable BUILD_SECRETS_DIR names: name → content. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Replace the limits of the engine. */
  readonly limits?: Partial<Pick<BuildLimits, 'timeMs' | 'memoryBytes'>>;
  /** Writes the inputs into an empty folder, the root of the repository. Undefined: success. */
  readonly fill: (folder: string) => Promise<Omit<BuildFailure, 'kind' | 'lastLines'> | undefined>;
};

/**
 * The output of a build as one compressed tar in the blob store. The same files give the same digest. Modes are 755 or 644;
 * links stay inside.
 */
export type Artifact = {
  /** SHA-256 of the tar, in hexadecimal digits. */
  readonly digest: string;
  /** Bytes of the tar. */
  readonly size: number;
  /** Number of files and links, without folders. */
  readonly files: number;
  /** Total bytes of the files. */
  readonly bytes: number;
};

export type BuildOutcome =
  | { readonly kind: 'built'; readonly artifact: Artifact }
  | BuildFailure
  | { readonly kind: 'cancelled' };

/** Messages are for people. `lastLines`: last lines of the output, without secrets. */
export type BuildFailure = {
  readonly kind: 'failed';
  readonly reason: BuildFailureReason;
  readonly message: string;
  readonly fix: string;
  readonly lastLines: readonly string[];
};

export type BuildFailureReason =
  | 'no_source'
  /** postern.yaml names files that cannot be inputs. */
  | 'wrong_inputs'
  /** The build names no image, or its image cannot be pulled. */
  | 'no_image'
  | 'no_directory'
  | 'exited'
  | 'timed_out'
  | 'too_many_processes'
  | 'out_of_memory'
  | 'disk_full'
  | 'no_output'
  | 'unsafe_output'
  | 'output_too_large';

/** Limits of one build. */
export type BuildLimits = {
  readonly timeMs: number;
  readonly processes: number;
  /** Maximum resident memory of all processes together. */
  readonly memoryBytes: number;
  /** Maximum bytes of one file. */
  readonly fileBytes: number;
  /** Maximum bytes of its folder: inputs, output and temporary files. */
  readonly diskBytes: number;
  readonly outputFiles: number;
};

/** The engine cannot run anything: programs are missing, or the machine does not allow them. */
export class EngineUnavailable extends Error {
  /** True: if this error repeats, the build may be its cause. */
  readonly isItsOwn: boolean;
  constructor(
    message: string,
    { isItsOwn = false, ...options }: ErrorOptions & { readonly isItsOwn?: boolean } = {},
  ) {
    super(message, options);
    this.isItsOwn = isItsOwn;
  }
}
