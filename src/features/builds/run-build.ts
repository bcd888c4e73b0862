import type { Clock } from '../../core/clock.ts';
import { minute } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Git, GitRemote } from '../../platform/git/git.ts';
import {
  type BuildLog,
  type BuildOutcome,
  openBuildLog,
  type Engine,
  EngineUnavailable,
  type LogWriter,
} from '../engine/engine.ts';
import { gitErrorOf, sourceFailure } from './git-failures.ts';
import { type RetryCause, retryCauseOf } from './retry-cause.ts';
import type { Secrets } from './secrets.ts';
import type { TakenBuild } from './build-job.ts';

/** The limits of builds in the policy of Environments. */
export type BuildPolicy = {
  readonly maxConcurrentBuilds: number;
  readonly buildTimeoutMinutes: number;
  /** Maximum bytes of one build's log. */
  readonly logBytes: number;
  readonly artifactBytesPerRepository: number;
  readonly resources: { readonly maxMemoryBytes: number };
};

export type RunDeps = {
  readonly engine: Pick<Engine, 'place' | 'build' | 'sweep'>;
  /** Undefined: the repository is no longer registered. */
  readonly remoteOf: (repositoryId: string) => Promise<GitRemote | undefined>;
  readonly git: Pick<Git, 'checkOut'>;
  readonly secrets: Secrets;
  readonly policy: () => Promise<BuildPolicy>;
  readonly clock: Clock;
};

/** `postponed`: the build is not the cause. `isItsOwn`: if this repeats, it may be. `cause`: see retryCauseOf(). */
export type RunEnd =
  | BuildOutcome
  | {
      readonly kind: 'postponed';
      readonly message: string;
      readonly isItsOwn: boolean;
      readonly cause: RetryCause | null;
    };

/** Runs a build on the engine with the current repository, secrets and policy. Rejects on defects of Postern. */
export async function runBuild(
  { engine, remoteOf, git, secrets, policy, clock }: RunDeps,
  { id, key, input, starts }: TakenBuild,
  writer: LogWriter,
  signal: AbortSignal,
): Promise<RunEnd> {
  const { branch, sha, build, variables } = input;
  try {
    const remote = await remoteOf(key.repositoryId);
    if (remote === undefined) return failed(gone);
    const stored = await secrets.read(key.repositoryId, build.secrets);
    if (stored.kind === 'missing') return failed(stored);
    const redacted = await secrets.readStored(key.repositoryId, input.redactedSecrets ?? []);
    const { buildTimeoutMinutes, logBytes, resources } = await policy();
    const log: BuildLog = openBuildLog({
      secrets: [...Object.values(stored.values), ...redacted],
      maxBytes: logBytes,
      now: () => clock.now(),
      write: writer.add,
      room: () => writer.room,
    });
    if (starts > 1) log.say(`The build starts again (attempt ${starts}).`);
    log.say(
      `Builds ${build.directory === '.' ? 'the repository' : build.directory} at ${sha.slice(0, 12)} (${branch}).`,
    );
    const job = {
      id,
      image: build.image,
      command: build.command,
      directory: build.directory,
      output: build.output,
      variables,
      secrets: stored.values,
      limits: { timeMs: buildTimeoutMinutes * minute, memoryBytes: resources.maxMemoryBytes },
      async fill(folder: string) {
        const found = await git.checkOut(remote, { branch, sha, patterns: build.inputs }, folder);
        if (found.kind === 'failed') return sourceFailure(gitErrorOf(found.reason, found.path));
        return found.value.tree === input.tree ? undefined : otherFiles;
      },
    };
    return await engine.build(job, log, signal);
  } catch (error) {
    if (error instanceof EngineUnavailable)
      return {
        kind: 'postponed',
        message: `The engine cannot run builds: ${error.message}`,
        isItsOwn: error.isItsOwn,
        cause: retryCauseOf(error),
      };
    if (error instanceof AppError && error.status === 503)
      return {
        kind: 'postponed',
        message: `${error.message} ${error.hint}`,
        isItsOwn: error.code === 'git_unavailable',
        cause: retryCauseOf(error),
      };
    throw error;
  }
}

const gone = {
  message: 'The repository is not registered any more.',
  fix: 'Register the repository, and deploy again.',
};
/** Failure of a build whose files differ from its inputs: its artifact would be found under the wrong key. */
const otherFiles = {
  reason: 'no_source',
  message: 'The files of the commit are not those that were requested.',
  fix: 'Deploy again.',
} as const;

function failed({ message, fix }: { readonly message: string; readonly fix: string }) {
  return { kind: 'failed', reason: 'no_source', message, fix, lastLines: [] } as const;
}
