import { keepLastUsed } from '../../../platform/last-used.ts';
import { systemAuditContext } from '../../../core/caller.ts';
import { second } from '../../../core/clock.ts';
import { AppError } from '../../../core/errors.ts';
import { createFairQueue } from '../../../platform/fair-queue.ts';
import { type Deploy, isPlanned } from '../deploys/deploy.ts';
import { EngineUnavailable } from '../../engine/engine.ts';
import type { Environment, EnvironmentStatus } from '../environment/environment.ts';
import { buildStep } from './build-step.ts';
import type { ReconcilerDeps, StepOutcome } from './deps.ts';
import { fetchStep } from './fetch-step.ts';
import { failed, recording } from './record.ts';
import { createProcesses } from './processes.ts';
import { retryCauseOf } from '../../builds/builds.ts';
import { serveStep } from './serve-step.ts';
import { watching } from './watch.ts';

/**
 * Brings Environments to what their rows say, one step at a time (contract of Environments, section 2). The rows decide: each
 * step reads them, does what is next, and writes what came of it. So a step may run twice, and a worker that dies loses
 * nothing. The change feed only gives hints to look sooner.
 */
export type Reconciler = {
  /** Looks at every Environment that something has to be done for. Returns when it has begun. */
  run(): Promise<void>;
  /** Looks at those that changed and, after a build, at those with a deploy under way. 'unfinished': one changed meanwhile. */
  runChanged(): Promise<'unfinished' | void>;
  /** Begins to look at one Environment. One that is under way is looked at once more afterwards. Returns at once. */
  look(environmentId: string): void;
  /** Resolves when nothing is under way in this process. */
  idle(): Promise<void>;
};

/** Repositories take turns, so that one with many Environments does not delay the others. */
const atOnce = { width: 4, perSender: 2, queue: 10_000 };
/** The next step asks the git server, and waits for it. */
const readsGit: readonly EnvironmentStatus[] = ['queued', 'building'];
/** As many as the policy can allow. */
const perRound = 10_000;
/** Steps that follow each other without waiting. */
const maxSteps = 10;
const firstDelayMs = second;
const maxDelayMs = 60 * second;
/** A deploy fails after this many defects of Postern in a row. */
const maxMistakes = 5;

/** `mistakes`: failures in a row that were defects of Postern. `until` in ms. */
type Delay = { readonly failures: number; readonly mistakes: number; readonly until: number };

type Running = Pick<Environment, 'id' | 'repositoryId' | 'revision'>;

export function createReconciler(deps: ReconcilerDeps): Reconciler {
  const { read, feed, builds, lifecycle, clock, log } = deps;
  const fetch = fetchStep(deps);
  const build = buildStep(deps);
  const processes = deps.engine === null ? null : createProcesses(deps, deps.engine);
  const serve = serveStep(deps, processes);
  const { watch, hasChanged } = watching(deps, processes);
  const record = recording(deps);
  const turns = createFairQueue(atOnce);
  /** Apart, so that git servers that do not answer delay nothing that needs none. */
  const turnsWithGit = createFairQueue(atOnce);
  const underWay = new Map<string, Promise<void>>();
  /** What changed since it was looked at. */
  const heard = new Set<string>();
  let hasBuildEnded = false;
  /** Environments whose last step met something that was away, such as a git server. */
  const delayed = new Map<string, Delay>();
  /** Environments with a deploy under way that keepServed() leaves alone until then, in ms. */
  const unkept = keepLastUsed<number>(perRound);

  feed.subscribe(({ topic, subject }) => {
    if (topic === 'environment') heard.add(subject);
    if (topic === 'build') hasBuildEnded = true;
  });

  async function step(environment: Environment): Promise<StepOutcome> {
    if (environment.status === 'torn_down') return 'waiting';
    if (environment.status === 'tearing_down') return await tearDown(environment);
    if (environment.expiresAt <= clock.now()) {
      await lifecycle.expire(systemAuditContext, environment.id);
      return 'again';
    }
    const deploy = await read.deploys.underWay(environment.id);
    if (deploy === undefined) {
      await watch(environment);
      return 'waiting';
    }
    const steps = (await read.deploys.steps([deploy.id])).get(deploy.id) ?? [];
    const isBuilt = steps.every(({ step: name, status }) => name !== 'build' || status === 'done');
    if (isPlanned(deploy) && isBuilt) return await serve(environment, deploy, steps);
    await keepServed(environment);
    return isPlanned(deploy) ? await build(environment, deploy, steps) : await fetch(environment, deploy);
  }

  /** What was served before runs until the processes of the deploy replace it. When that fails, the deploy may be the remedy. */
  async function keepServed(environment: Environment): Promise<void> {
    const { id, liveDeployId } = environment;
    if (liveDeployId === null || (unkept.get(id) ?? 0) > clock.now()) return;
    try {
      await watch(environment);
    } catch (error) {
      unkept.set(id, clock.now() + maxDelayMs);
      log.warn({ err: error, environment: id }, 'what an Environment serves is left alone for a minute');
    }
  }

  /** Nothing of it is served any more since the teardown began; this removes what is left. */
  async function tearDown({ id }: Environment): Promise<StepOutcome> {
    await processes?.remove(id);
    const services = (await read.environments.services([id])).get(id) ?? [];
    // The sweep removes those of services that an earlier deploy had. The engine has removed its own.
    if (deps.databases?.kind === 'server' && services.some(({ kind }) => kind === 'postgres'))
      await deps.databases.remove(id);
    await deps.tx(async (stores) => {
      const environment = await stores.environments.hold(id);
      if (environment?.status !== 'tearing_down') return;
      const now = clock.now();
      await stores.environments.putServices(id, []);
      await stores.deploys.forgetPlans(id);
      await stores.environments.retireLabels(id, now);
      await stores.environments.update({
        ...environment,
        status: 'torn_down',
        statusMessage: null,
        env: {},
        initEnv: {},
        deletedAt: now,
        updatedAt: now,
      });
      await stores.changes.publish({ topic: 'environment', subject: id });
    });
    return 'waiting';
  }

  async function reconcile(id: string): Promise<void> {
    for (let count = 0; count < maxSteps; count += 1) {
      const environment = await read.environments.find(id);
      if (environment === undefined || (await step(environment)) === 'waiting') return;
    }
  }

  /** A failure that may pass is tried again later. Any other one ends the deploy, with its words. */
  async function onError(id: string, error: unknown): Promise<void> {
    const isPassing = !(error instanceof AppError) || error.status >= 500;
    const cause = retryCauseOf(error);
    const before = delayed.get(id);
    const mistakes = cause === 'mistake' ? (before?.mistakes ?? 0) + 1 : 0;
    if (cause !== null) deps.countRetry(cause);
    const deploy = await read.deploys.underWay(id);
    if (isPassing || deploy === undefined) {
      const failures = (before?.failures ?? 0) + 1;
      const waitMs = Math.min(maxDelayMs, firstDelayMs * 2 ** (failures - 1));
      delayed.set(id, { failures, mistakes, until: clock.now() + waitMs });
      log.warn(
        { err: error, environment: id, failures },
        'a step of an Environment failed; it is tried again',
      );
    }
    if (deploy === undefined) return await sayOfTeardown(id, error);
    const step = isPlanned(deploy) ? (deploy.status === 'deploying' ? 'start' : 'build') : 'fetch';
    const at = { service: '', step } as const;
    if (isPassing && mistakes < maxMistakes) return await say(deploy, wordsOf(error));
    const { code, message, hint: fix } = isPassing ? ownMistake : error;
    const status = code === 'config_invalid' ? 'config_error' : 'error';
    await record(deploy, (rows, stores, now) => failed(stores, rows, { status, message, fix, at }, now));
    // The next deploy has tries of its own.
    delayed.delete(id);
  }

  async function say(deploy: Deploy, message: string): Promise<void> {
    const words = `${message} Postern tries again.`;
    const environment = await read.environments.find(deploy.environmentId);
    if (environment === undefined || environment.statusMessage === words) return;
    await record(deploy, (rows) => ({ ...rows, environment: { ...rows.environment, statusMessage: words } }));
  }

  /** Why a teardown waits, such as for an engine that is away. */
  async function sayOfTeardown(id: string, error: unknown): Promise<void> {
    const words = `${wordsOf(error, 'remove')} Postern tries again.`;
    await deps.tx(async (stores) => {
      const environment = await stores.environments.hold(id);
      if (environment?.status !== 'tearing_down' || environment.statusMessage === words) return;
      await stores.environments.update({ ...environment, statusMessage: words, updatedAt: clock.now() });
      await stores.changes.publish({ topic: 'environment', subject: id });
    });
  }

  async function inTurn(id: string): Promise<void> {
    heard.delete(id);
    const environment = await read.environments.find(id);
    if (environment === undefined) return;
    const queue = readsGit.includes(environment.status) ? turnsWithGit : turns;
    await queue(environment.repositoryId, () => reconcile(id));
  }

  /** Most Environments run as they did a second ago, and then no row of them is read. */
  async function inTurnWhenChanged(environment: Running): Promise<void> {
    const { id, repositoryId } = environment;
    if (await turns(repositoryId, () => hasChanged(environment))) await inTurn(id);
  }

  function start(id: string, work = inTurn(id)): void {
    const whole = work
      .then(() => void delayed.delete(id))
      .catch((error: unknown) => onError(id, error))
      .catch((error: unknown) =>
        log.warn({ err: error, environment: id }, 'could not record why a step of an Environment failed'),
      )
      .finally(() => {
        underWay.delete(id);
      });
    underWay.set(id, whole);
  }

  /** One that is under way is looked at again: it may have read the rows before the change. */
  function look(id: string): void {
    if (underWay.has(id)) heard.add(id);
    else start(id);
  }

  const isDelayed = (id: string) => (delayed.get(id)?.until ?? 0) > clock.now();

  return {
    async run() {
      await builds.keepOnly(new Set(await read.deploys.wantedJobs()));
      const now = clock.now();
      const found = [
        ...heard,
        ...(await read.environments.unsettled(perRound)),
        ...(await read.environments.expired(now, perRound)),
      ];
      for (const id of new Set(found)) if (!isDelayed(id)) look(id);
      if (processes === null) return;
      for (const one of await read.environments.withProcesses())
        if (!isDelayed(one.id) && !underWay.has(one.id)) start(one.id, inTurnWhenChanged(one));
    },
    async runChanged() {
      const found = new Set(heard);
      if (hasBuildEnded) {
        hasBuildEnded = false;
        for (const id of await read.environments.unsettled(perRound)) found.add(id);
      }
      const due = [...found].filter((id) => !isDelayed(id));
      for (const id of due) look(id);
      return due.some((id) => heard.has(id)) ? 'unfinished' : undefined;
    },
    look,
    async idle() {
      while (underWay.size > 0) await Promise.all(underWay.values());
    },
  };
}

const ownMistake = {
  code: 'internal',
  message: 'Something went wrong in Postern.',
  hint: 'Your administrator finds the error in the log. Deploy again after it is fixed.',
} as const;

function wordsOf(error: unknown, verb: 'run' | 'remove' = 'run'): string {
  if (error instanceof AppError) return error.message;
  return error instanceof EngineUnavailable
    ? `The engine cannot ${verb} it: ${error.message.replace(/\.?$/, '.')}`
    : ownMistake.message;
}
