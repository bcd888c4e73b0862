import type { Place } from '../../platform/place.ts';
import type { BuildPlace } from './artifact-key.ts';
import type { BuildLog, LogLine } from './build-log.ts';

/**
 * Builds and runs services of Environments. When build() resolves, every process of the build has ended, unless its
 * machine is lost, and only the artifact is left. The caller decides what is built and run, when, and who may see the result.
 */
export type Engine = {
  readonly place: BuildPlace;
  /** Absent: it runs no databases. */
  readonly databases?: EngineDatabases;
  /**
   * Runs the build, writes its output to `log` and ends the log. An aborted `signal` cancels the build. Rejects with
   * EngineUnavailable when the engine itself cannot run it, and with the error of `fill` when that rejects.
   */
  build(job: BuildJob, log: BuildLog, signal: AbortSignal): Promise<BuildOutcome>;
  /**
   * Makes what runs of this Environment equal to `desired`: starts, replaces and stops. Resolves when it has begun, and
   * observe() tells the result. The same again changes nothing. Rejects with EngineUnavailable.
   */
  apply(desired: DesiredProcesses): Promise<void>;
  /** In the order of their names. Empty: nothing of the Environment is here. */
  observe(environmentId: string): Promise<readonly ObservedProcess[]>;
  /** Lines with an id above `after`, oldest first, at most `limit`. Ids of a service only grow. Old lines are removed. */
  logs(environmentId: string, service: string, after: number, limit: number): Promise<readonly LogEntry[]>;
  /**
   * Where the gateway, and the other services of the Environment, reach it now. Null: it is not ready, or its process has
   * ended.
   */
  address(environmentId: string, service: string): Promise<Address | null>;
  /** Ends every process and removes everything of the Environment. When it resolves, nothing is left. */
  remove(environmentId: string): Promise<void>;
  /**
   * Ends and removes every build and Environment that is not known; builds under way here stay. Returns the ids of what it
   * removed. Calls `known` after it has looked at what is here, so that it leaves alone what begins meanwhile.
   */
  sweep(known: () => Promise<Known>): Promise<readonly string[]>;
};

/** Databases in folders of their Environment. The data stays until remove(), whatever runs. */
export type EngineDatabases = {
  /** Whether it is complete, so that apply() can run it. */
  isMade(environmentId: string, service: string): Promise<boolean>;
  /**
   * Makes it, unless it is complete. What was half made before is made again. remove() ends this.
   * @throws AppError config_invalid when the seed cannot be used; EngineUnavailable
   */
  make(wanted: WantedDatabase): Promise<void>;
};

export type WantedDatabase = {
  readonly environmentId: string;
  readonly service: string;
  /** SQL that fills it, and where the repository has it. Null: it is empty. */
  readonly seed: { readonly path: string; readonly text: string } | null;
  /** Resident memory while it is filled. */
  readonly memoryBytes: number;
};

/** A database that is complete. Only services of its Environment reach it, with the password, at its address. */
export type DesiredDatabase = Pick<
  DesiredProcess,
  'service' | 'revision' | 'memoryBytes' | 'logBytes' | 'isAsleep'
> & { readonly password: string };

export type Known = { readonly builds: ReadonlySet<string>; readonly environments: ReadonlySet<string> };

export type DesiredProcesses = {
  /** Letters, digits, `_` and `-`. */
  readonly environmentId: string;
  /** No two have the same service. The engine ends and removes all others of the Environment that are not in `kept`. */
  readonly processes: readonly DesiredProcess[];
  /** Absent: none. observe(), logs() and address() are about them too. */
  readonly databases?: readonly DesiredDatabase[];
  /** Services that stay as they are, whether they run or not. Absent: none. */
  readonly kept?: readonly string[];
};

export type DesiredProcess = {
  /** A DNS label. */
  readonly service: string;
  /** The engine replaces what runs exactly when this changes. */
  readonly revision: string;
  readonly artifact: Pick<Artifact, 'digest' | 'size'>;
  /** Container image in which it runs. Null, or an engine without containers: on the machine of the engine. */
  readonly image: string | null;
  /** Runs in a POSIX shell in the tree of the artifact. */
  readonly command: string;
  /** `run.port` of postern.yaml. The engine may choose another port; the variable PORT names the one in use. */
  readonly port: number;
  /** Path of a page that answers 2xx or 3xx when the service is ready. Null: it is ready when it listens. */
  readonly health: string | null;
  readonly variables: Readonly<Record<string, string>>;
  /** More variables: name → value. They replace variables of the same name. */
  readonly secrets: Readonly<Record<string, string>>;
  /** More values that no line of the log shows, beside those of `secrets`. */
  readonly redacted: readonly string[];
  /** Resident memory of its processes together. */
  readonly memoryBytes: number;
  readonly milliCpu: number;
  /** Of its log, in which the newest lines stay. */
  readonly logBytes: number;
  /** True: it is stopped, and its files stay. */
  readonly isAsleep: boolean;
};

export type ObservedProcess = {
  readonly service: string;
  readonly revision: string;
  /** `failed`: it starts again by itself, after a pause that grows from 1 s to 60 s. */
  readonly state: 'starting' | 'ready' | 'failed' | 'stopped';
  /** Why it is not ready, in words without a capital or a full stop: "exited with 1 after 3 s". */
  readonly reason: string | null;
  /** Of the output of this revision, without secrets. */
  readonly lastLines: readonly string[];
  /** Starts of this revision after the first. */
  readonly restarts: number;
};

export type LogEntry = LogLine & { readonly id: number };

/** The other services of its Environment reach it at host and port, the gateway through the relay where there is one. */
export type Address = Place;

export type BuildJob = {
  /** Letters, digits, `_` and `-`. No two builds under way have the same. */
  readonly id: string;
  /** Container image in which the command runs. Null, or an engine without containers: on the machine of the engine. */
  readonly image: string | null;
  /** Runs in a POSIX shell in `directory`. Null: the files are the result as they are. */
  readonly command: string | null;
  /** From the root of the repository. */
  readonly directory: string;
  /** From `directory`. */
  readonly output: string;
  readonly variables: Readonly<Record<string, string>>;
  /** Files in the folder that the variable BUILD_SECRETS_DIR names: name → content. */
  readonly secrets: Readonly<Record<string, string>>;
  /** In place of those of the engine. */
  readonly limits?: Partial<Pick<BuildLimits, 'timeMs' | 'memoryBytes'>>;
  /** Writes the inputs into an empty folder, the root of the repository. Undefined: done. */
  readonly fill: (folder: string) => Promise<Omit<BuildFailure, 'kind' | 'lastLines'> | undefined>;
};

/**
 * The output of a build as one compressed tar in the blob store. The same files give the same digest. Modes are 755 or 644;
 * links stay inside.
 */
export type Artifact = {
  /** SHA-256 of the tar, in hexadecimal digits. */
  readonly digest: string;
  /** Of the tar, in bytes. */
  readonly size: number;
  /** Links included, folders not. */
  readonly files: number;
  /** Of the files together. */
  readonly bytes: number;
};

export type BuildOutcome =
  | { readonly kind: 'built'; readonly artifact: Artifact }
  | BuildFailure
  | { readonly kind: 'cancelled' };

/** In words that people see. `lastLines`: of the output, without secrets. */
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
  /** The build names none, or it cannot be pulled. */
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

/** Of one build. */
export type BuildLimits = {
  readonly timeMs: number;
  readonly processes: number;
  /** Resident memory of its processes together. */
  readonly memoryBytes: number;
  /** Of its largest file. */
  readonly fileBytes: number;
  /** Of its folder: inputs, output and temporary files. */
  readonly diskBytes: number;
  readonly outputFiles: number;
};

/** The engine cannot run anything: its programs are missing, or the machine does not let them. */
export class EngineUnavailable extends Error {
  /** True: the build may be the cause, after many of these. */
  readonly isItsOwn: boolean;
  constructor(
    message: string,
    { isItsOwn = false, ...options }: ErrorOptions & { readonly isItsOwn?: boolean } = {},
  ) {
    super(message, options);
    this.isItsOwn = isItsOwn;
  }
}
