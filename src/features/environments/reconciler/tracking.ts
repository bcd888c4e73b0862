import { keepLastUsed } from '../../../platform/last-used.ts';
import { systemAuditContext } from '../../../core/caller.ts';
import type { Clock } from '../../../core/clock.ts';
import type { Random } from '../../../core/ids.ts';
import { anything, type ChangeFeed } from '../../../platform/database/change-feed.ts';
import type { Tx } from '../../../platform/database/database.ts';
import type { Git } from '../../../platform/git/git.ts';
import type { Log } from '../../../platform/log.ts';
import type { Repositories } from '../../repositories/repositories.ts';
import { queueDeploy } from '../deploys/queue-deploy.ts';
import { configurationFileName } from '../../configuration-file/configuration-file.ts';
import { type Creator, deploysPushes, isEnding } from '../environment/environment.ts';
import type { TrackedEnvironment } from '../environment/environment-store.ts';
import type { EnvironmentStores } from '../deploys/environments-deps.ts';

/**
 * Checks the git servers for new commits, and deploys the Environments that follow their branch or whose first deploy failed.
 * While a creator may not use Postern, its Environments are not deployed. The first round after that deploys them.
 */
export type Tracking = {
  /** Checks every repository with such Environments. */
  run(): Promise<void>;
  /**
   * Starts checking the repositories for which a webhook reported a push, without waiting for slow git servers. All pushes that
   * arrive meanwhile cause only one more check: 'unfinished'.
   */
  runPushed(): Promise<'unfinished' | void>;
  /** Resolves when none of these checks is running. */
  idle(): Promise<void>;
};

export function createTracking(deps: {
  readonly read: Pick<EnvironmentStores, 'environments'>;
  readonly tx: Tx<EnvironmentStores>;
  readonly feed: Pick<ChangeFeed, 'subscribe'>;
  readonly repositories: Pick<Repositories, 'remoteOf'>;
  readonly git: Pick<Git, 'branches' | 'treeOf'>;
  readonly isEnabled: () => Promise<boolean>;
  /** Also false when this cannot be determined now. */
  readonly isCreatorActive: (creator: Creator) => Promise<boolean>;
  readonly random: Random;
  readonly clock: Clock;
  readonly log: Log;
}): Tracking {
  const { read, tx, feed, repositories, git, random, clock, log } = deps;
  const pushed = new Set<string>();
  const underWay = new Map<string, Promise<void>>();
  /** Commits by Environment that differ only in ignored files, so that not every round compares them. */
  const ignoredPushes = keepLastUsed<string>(10_000);

  feed.subscribe(({ topic, subject }) => {
    // The next round finds a missed push.
    if (topic === 'push' && subject !== anything) pushed.add(subject);
  });

  async function headsOf(repositoryId: string): Promise<ReadonlyMap<string, string>> {
    const remote = await repositories.remoteOf(repositoryId);
    if (remote === undefined) return new Map();
    const answer = await git.branches(remote);
    if (answer.kind === 'failed') {
      log.warn(
        { repository: repositoryId, reason: answer.reason },
        'could not ask a git server for new commits',
      );
      return new Map();
    }
    return new Map(answer.value.map(({ name, sha }) => [name, sha]));
  }

  /** Deploys a commit once. Even if its deploy failed, only a new commit is deployed. */
  async function deploy(id: string, head: string): Promise<void> {
    await tx(async (stores) => {
      const environment = await stores.environments.hold(id);
      if (environment === undefined || isEnding(environment)) return;
      if (!deploysPushes(environment) || !environment.deployEnabled) return;
      // A deploy that has not read the branch yet may read this commit.
      if ((await stores.deploys.underWay(id))?.sha === null) return;
      if (await stores.deploys.knows(id, head)) return;
      const how = { trigger: 'push', creator: null, sha: head } as const;
      const now = clock.now();
      const queued = await queueDeploy(stores, systemAuditContext, environment, how, { random, now });
      await stores.environments.update(queued.environment);
      await stores.changes.publish({ topic: 'environment', subject: id });
    });
  }

  /** Git's hashes of the files that are not ignored. Undefined: git has no answer, for example for a commit that the branch lost. */
  async function countingAt(
    { repositoryId, branch }: TrackedEnvironment,
    sha: string,
    ignoreFiles: readonly string[],
  ): Promise<string | undefined> {
    const remote = await repositories.remoteOf(repositoryId);
    if (remote === undefined) return undefined;
    const file = await git.treeOf(remote, { branch, sha, patterns: [configurationFileName] });
    const rest = await git.treeOf(remote, { branch, sha, patterns: ['**'], except: ignoreFiles });
    if (file.kind === 'failed' || rest.kind === 'failed') return undefined;
    return `${file.value.tree} ${rest.value.tree}`;
  }

  /** Whether the push changed only files in `environment.ignoreFiles`. False without an answer of git. */
  async function isIgnored(environment: TrackedEnvironment, head: string): Promise<boolean> {
    const { id, served } = environment;
    if (served === null) return false;
    const push = `${served.sha} ${head}`;
    if (ignoredPushes.get(id) === push) return true;
    const before = await countingAt(environment, served.sha, served.ignoreFiles);
    if (before === undefined) return false;
    if ((await countingAt(environment, head, served.ignoreFiles)) !== before) return false;
    ignoredPushes.set(id, push);
    return true;
  }

  async function deployNew(repositoryId: string, tracked: readonly TrackedEnvironment[]): Promise<void> {
    const own = tracked.filter((one) => one.repositoryId === repositoryId);
    if (own.length === 0) return;
    const heads = await headsOf(repositoryId);
    for (const environment of own) {
      const { id, branch, sha, creator } = environment;
      const head = heads.get(branch);
      if (head === undefined || head === sha) continue;
      if (!(await deps.isCreatorActive(creator))) continue;
      if (!(await isIgnored(environment, head))) await deploy(id, head);
    }
  }

  function begin(repositoryId: string, tracked: readonly TrackedEnvironment[]): void {
    const work = deployNew(repositoryId, tracked)
      .catch((error: unknown) =>
        log.warn(
          { err: error, repository: repositoryId },
          'could not look for new commits; the next round does it',
        ),
      )
      .finally(() => underWay.delete(repositoryId));
    underWay.set(repositoryId, work);
  }

  async function idle(): Promise<void> {
    while (underWay.size > 0) await Promise.all(underWay.values());
  }

  return {
    async run() {
      if (!(await deps.isEnabled())) return;
      const tracked = await read.environments.tracked();
      // All at the same time, so that an unresponsive git server delays no other repository.
      for (const repositoryId of new Set(tracked.map((one) => one.repositoryId)))
        if (!underWay.has(repositoryId)) begin(repositoryId, tracked);
      await idle();
    },
    async runPushed() {
      const due = [...pushed].filter((repositoryId) => !underWay.has(repositoryId));
      for (const repositoryId of due) pushed.delete(repositoryId);
      if (due.length > 0 && (await deps.isEnabled())) {
        const tracked = await read.environments.tracked();
        for (const repositoryId of due) begin(repositoryId, tracked);
      }
      return pushed.size > 0 ? 'unfinished' : undefined;
    },
    idle,
  };
}
