import type { GitRemote } from '../../platform/git/git.ts';
import type { DesiredBuild } from '../configuration-file/configuration-file.ts';
import type { ArtifactKey, BuildFailureReason, LogStream } from '../engine/engine.ts';

/** Builds, their results, and the verbs on both. No I/O. */
export type BuildRequest = {
  readonly repositoryId: string;
  readonly remote: GitRemote;
  readonly branch: string;
  readonly sha: string;
  readonly kind: 'static' | 'process';
  readonly build: DesiredBuild;
  /** Variables of the build, with every reference replaced. */
  readonly variables: Readonly<Record<string, string>>;
  /** Whether this branch may use stored secrets (secrets.ts). */
  readonly maySecrets: boolean;
  /** Names of the Environment's stored secrets, whose values the log must not show. */
  readonly redactedSecrets: readonly string[];
};

export type Requested =
  /** A result with the same inputs exists. */
  | { readonly kind: 'built'; readonly artifactId: string }
  /** Queued or running, even if another deploy requested it first. */
  | { readonly kind: 'building'; readonly jobId: string }
  /** The repository or a secret is the cause, with a message for people. The same request fails until that changes. */
  | {
      readonly kind: 'refused';
      readonly reason: 'no_secret' | 'no_source' | 'wrong_inputs';
      readonly message: string;
      readonly fix: string;
    };

export type BuildJobStatus = 'queued' | 'running' | 'built' | 'failed' | 'cancelled';

/** Times in milliseconds. */
export type BuildJobState = {
  readonly id: string;
  readonly status: BuildJobStatus;
  /** Why the build failed or still waits, as a message for people. */
  readonly message: string | null;
  readonly fix: string | null;
  /** Null: the build did not fail, or an earlier version ran it. */
  readonly reason: BuildFailureReason | null;
  /** Last lines of a failed build's output, without secrets. */
  readonly lastLines: readonly string[];
  /** Set when the build succeeded. */
  readonly artifactId: string | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
};

/** Input that lets any worker run a queued build. It contains no credential and no value of a secret. */
export type BuildInput = Pick<BuildRequest, 'branch' | 'sha' | 'kind' | 'variables'> & {
  readonly build: Pick<DesiredBuild, 'image' | 'command' | 'directory' | 'output' | 'inputs' | 'secrets'>;
  /** Absent in builds that an earlier version queued. */
  readonly redactedSecrets?: BuildRequest['redactedSecrets'];
  /** Git's hash of the inputs. */
  readonly tree: string;
};

export type TakenBuild = {
  readonly id: string;
  readonly key: ArtifactKey;
  readonly input: BuildInput;
  /** Number of starts, including this one. */
  readonly starts: number;
  /** Why the build could not run earlier. */
  readonly waitedFor: string | null;
};

/** `id` counts from 1 in each build. `at` in milliseconds. */
export type BuildLogLine = {
  readonly id: number;
  readonly at: number;
  readonly stream: LogStream;
  readonly text: string;
};

export type Builds = {
  /**
   * Finds the artifact of these inputs, or requests a build. Requests for the same inputs share one build.
   * @throws AppError with status 503 when this cannot be decided now: git_unavailable, store_unavailable, engine_unavailable,
   * overloaded
   */
  request(wanted: BuildRequest): Promise<Requested>;
  job(id: string): Promise<BuildJobState | undefined>;
  /**
   * Cancels the builds that are not in `wanted`, the ids of all jobs that a deploy waits for. A job that was requested in
   * the last seconds stays, because its deploy may not have recorded it yet. Call it regularly.
   */
  keepOnly(wanted: ReadonlySet<string>): Promise<void>;
  /** At most `limit` lines with ids above `after`, oldest first. 0: from the first line. */
  log(jobId: string, after: number, limit: number): Promise<readonly BuildLogLine[]>;
};
