import type { GitRemote } from '../../platform/git/git.ts';
import type { DesiredBuild } from '../configuration-file/configuration-file.ts';
import type { ArtifactKey, BuildFailureReason, LogStream } from '../engine/engine.ts';

/** What is built, what came of it, and the verbs on both. No I/O. */
export type BuildRequest = {
  readonly repositoryId: string;
  readonly remote: GitRemote;
  readonly branch: string;
  readonly sha: string;
  readonly kind: 'static' | 'process';
  readonly build: DesiredBuild;
  /** Those of the build, with every reference replaced. */
  readonly variables: Readonly<Record<string, string>>;
  /** Whether this branch may use stored secrets (secrets.ts). */
  readonly maySecrets: boolean;
  /** Names of stored secrets whose values the log must not show: those of the whole Environment. */
  readonly redactedSecrets: readonly string[];
};

export type Requested =
  /** A result with the same inputs exists. */
  | { readonly kind: 'built'; readonly artifactId: string }
  /** Queued or running, also when another deploy requested it first. */
  | { readonly kind: 'building'; readonly jobId: string }
  /** The repository or a secret is at fault, in words for people. The same request fails again until that changes. */
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
  /** Why it failed, or why it still waits, in words for people. */
  readonly message: string | null;
  readonly fix: string | null;
  /** Null unless it failed, and for builds that an earlier version ran. */
  readonly reason: BuildFailureReason | null;
  /** Of the output of a failed build, without secrets. */
  readonly lastLines: readonly string[];
  /** Set when it is built. */
  readonly artifactId: string | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
};

/** What a queued build needs to run in any worker. No credential and no value of a secret. */
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
  /** With this one. */
  readonly starts: number;
  /** Why it could not run before. */
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
   * @throws AppError with status 503 when it cannot tell now: git_unavailable, store_unavailable, engine_unavailable,
   * overloaded
   */
  request(wanted: BuildRequest): Promise<Requested>;
  job(id: string): Promise<BuildJobState | undefined>;
  /**
   * Cancels the builds that are not in `wanted`: ids of all jobs that a deploy still waits for. A job that was requested in
   * the last seconds stays, because its deploy may not have recorded it yet; so call it again and again.
   */
  keepOnly(wanted: ReadonlySet<string>): Promise<void>;
  /** At most `limit` lines with ids above `after`, oldest first. 0: from the first line. */
  log(jobId: string, after: number, limit: number): Promise<readonly BuildLogLine[]>;
};
