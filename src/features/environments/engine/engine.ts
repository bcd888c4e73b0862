import type { BuildPlace } from './artifact-key.ts';
import type { BuildLog } from './build-log.ts';

/**
 * Builds services of Environments. When build() resolves, every process of the build has ended, and only the artifact is
 * left. The caller decides what is built, when, and who may see the result.
 */
export type Engine = {
  readonly place: BuildPlace;
  /**
   * Runs the build, writes its output to `log` and ends the log. An aborted `signal` cancels the build. Rejects with
   * EngineUnavailable when the engine itself cannot run it, and with the error of `fill` when that rejects.
   */
  build(job: BuildJob, log: BuildLog, signal: AbortSignal): Promise<BuildOutcome>;
  /** Ends and removes every build that is not known and not under way here. Returns their ids. */
  sweep(known: ReadonlySet<string>): Promise<readonly string[]>;
};

export type BuildJob = {
  /** Letters, digits, `_` and `-`. No two builds under way have the same. */
  readonly id: string;
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
  readonly fill: (folder: string) => Promise<{ readonly message: string; readonly fix: string } | undefined>;
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

/** The engine cannot run builds: its programs are missing, or the machine does not let them. */
export class EngineUnavailable extends Error {}
