import type { Clock } from '../../core/clock.ts';
import { second } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { newId, type Random } from '../../core/ids.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Git } from '../../platform/git/git.ts';
import { type ArtifactKey, artifactKeyOf, type Engine } from '../engine/engine.ts';
import { gitErrorOf, sourceFailure } from './git-failures.ts';
import { type Secrets, secretsRefused } from './secrets.ts';
import type { ArtifactStore } from './artifact-store.ts';
import type { BuildInput, BuildRequest, Builds, Requested } from './build-job.ts';
import type { BuildStore } from './build-store.ts';

/**
 * Builds of Environments and their results. It promises: equal inputs in one repository are built once, even when two deploys
 * need them at the same time; a build survives its worker; artifacts that a living Environment uses are never removed.
 * The reconciler decides which builds a deploy needs, and the engine how they run.
 */
export type { Builds } from './build-job.ts';
export type { ArtifactStore } from './artifact-store.ts';
export type { BuildStore } from './build-store.ts';
export { gitErrorOf } from './git-failures.ts';
export { type RetryCause, retryCauseOf } from './retry-cause.ts';
export { type Secrets, secretsRefused } from './secrets.ts';

/** A deploy records its build within this time after its request. */
const recordedMs = 10 * second;
/** Maximum tries, because a build can end between two checks. */
const maxTries = 3;

export function createBuilds(deps: {
  readonly read: { readonly builds: BuildStore; readonly artifacts: ArtifactStore };
  readonly tx: Tx<{ builds: BuildStore; artifacts: ArtifactStore }>;
  /** Null: this process has no engine. */
  readonly engine: Pick<Engine, 'place'> | null;
  readonly git: Pick<Git, 'treeOf'>;
  readonly secrets: Secrets;
  /** Key for HMACs of the values of variables. */
  readonly hmacKey: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Called when a build is cancelled. */
  readonly onEnded: (jobId: string) => void;
}): Builds {
  const { read, tx, engine, git, secrets, hmacKey, clock, random, onEnded } = deps;

  /** Uses one transaction, so that a build that ends meanwhile does not run again: its end commits together with its artifact. */
  async function findOrQueue(key: ArtifactKey, input: BuildInput): Promise<Requested | undefined> {
    return await tx(async ({ builds, artifacts }) => {
      const now = clock.now();
      const found = await artifacts.use(key, now);
      if (found !== undefined) return { kind: 'built', artifactId: found };
      const queued = await builds.insert({ id: newId(random, 'job'), key, input, now });
      if (queued === undefined) {
        const jobId = await builds.findUnderWay(key, now);
        return jobId === undefined ? undefined : { kind: 'building', jobId };
      }
      const builtMeanwhile = await artifacts.use(key, now);
      if (builtMeanwhile === undefined) return { kind: 'building', jobId: queued };
      await builds.remove(queued);
      return { kind: 'built', artifactId: builtMeanwhile };
    });
  }

  return {
    async request({
      repositoryId,
      remote,
      branch,
      sha,
      kind,
      build,
      variables,
      maySecrets,
      redactedSecrets,
    }) {
      if (engine === null)
        throw new AppError('engine_unavailable', {
          message: 'This installation builds nothing: ENVIRONMENTS_ENGINE is off.',
          hint: 'Ask an administrator to switch an engine on.',
        });
      // Checked before anything is reused, because an artifact can contain what its build read.
      if (Object.keys(build.secrets).length > 0) {
        if (!maySecrets) return noSecret(secretsRefused(branch, build.secrets));
        const stored = await secrets.read(repositoryId, build.secrets);
        if (stored.kind === 'missing') return noSecret(stored);
      }
      const found = await git.treeOf(remote, { branch, sha, patterns: build.inputs });
      if (found.kind === 'failed')
        return { kind: 'refused', ...sourceFailure(gitErrorOf(found.reason, found.path)) };
      const { tree } = found.value;
      const inputs = { planDigest: build.digest, tree, variables };
      const key = artifactKeyOf(inputs, { ...engine.place, repositoryId }, hmacKey);
      const input: BuildInput = {
        branch,
        sha,
        kind,
        variables,
        tree,
        redactedSecrets,
        build: whatRuns(build),
      };
      for (let tries = 0; tries < maxTries; tries += 1) {
        const requested = await findOrQueue(key, input);
        if (requested !== undefined) return requested;
      }
      throw new AppError('store_unavailable', { retryAfterSeconds: 1 });
    },
    job: (id) => read.builds.find(id),
    async keepOnly(wanted) {
      const now = clock.now();
      const cancelled = await tx(({ builds }) => builds.cancelExcept([...wanted], now - recordedMs, now));
      for (const id of cancelled) onEnded(id);
    },
    log: (jobId, after, limit) => read.builds.log(jobId, after, limit),
  };
}

function whatRuns({ image, command, directory, output, inputs, secrets }: BuildRequest['build']) {
  return { image, command, directory, output, inputs, secrets };
}

function noSecret({ message, fix }: { readonly message: string; readonly fix: string }): Requested {
  return { kind: 'refused', reason: 'no_secret', message, fix };
}
