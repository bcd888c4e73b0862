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
 * Brings Environments to the state in their rows, one step at a time (contract of Environments, section 2). Each step reads the
 * rows, does the next piece of work, and writes the result. So a step may run twice, and a worker that dies loses
 * nothing. The change feed only makes checks happen sooner.
 */
export type Reconciler = {
  /** Starts checking every Environment with pending work. Does not wait for the checks. */
  run(): Promise<void>;
  /** Checks changed Environments and, after a build, Environments with a running deploy. 'unfinished': one changed meanwhile. */
  runChanged(): Promise<'unfinished' | void>;
  /** Starts checking one Environment, or checks it once more if a check is already running. Returns immediately. */
  look(environmentId: string): void;
  /** Resolves when this process checks no Environment. */
  idle(): Promise<void>;
};

/** Repositories take turns, so that one with many Environments does not delay the others. */
const atOnce = { width: 4, perSender: 2, queue: 10_000 };
/** Statuses whose next step waits for the git server. */
const readsGit: readonly EnvironmentStatus[] = ['queued', 'building'];
/** Maximum Environments in a round: as many as the policy can allow. */
const perRound = 10_000;
/** Maximum consecutive steps without waiting. */
const maxSteps = 10;
const firstDelayMs = second;
const maxDelayMs = 60 * second;
/** A deploy fails after this many consecutive defects of Postern. */
const maxMistakes = 5;

/** `mistakes`: consecutive failures that were defects of Postern. `until` in ms. */
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
  /** A separate queue, so that unresponsive git servers delay only steps that need git. */
  const turnsWithGit = createFairQueue(atOnce);
  const underWay = new Map<string, Promise<void>>();
  /** Environments that changed since their last check. */
  const heard = new Set<string>();
  let hasBuildEnded = false;
  /** Environments whose last step failed because an external system, such as a git server, was unavailable. */
  const delayed = new Map<string, Delay>();
  /** Environments with a running deploy that keepServed() skips until this time, in ms. */
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

  /** Keeps the previous processes running until the deploy replaces them. If that fails, the deploy may fix it. */
  async function keepServed(environment: Environment): Promise<void> {
    const { id, liveDeployId } = environment;
    if (liveDeployId === null || (unkept.get(id) ?? 0) > clock.now()) return;
    try {
      await watch(environment);
    } catch (error) {
      unkept.set(id, clock.now() + maxDelayMs);
      log.warn(
        { err: error, environment: id },
        'could not restore the running services; retrying in one minute',
      );
    }
  }

  /** Removes the remaining resources. Since the teardown began, nothing is served. */
  async function tearDown({ id }: Environment): Promise<StepOutcome> {
    await processes?.remove(id);
    const services = (await read.environments.services([id])).get(id) ?? [];
    // The sweep removes databases of services that only an earlier deploy had. The engine has removed its own databases.
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

  /** Retries a temporary failure later. Any other failure ends the deploy with its message. */
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
    // The next deploy starts with a fresh count of failures.
    delayed.delete(id);
  }

  async function say(deploy: Deploy, message: string): Promise<void> {
    const words = `${message} Postern tries again.`;
    const environment = await read.environments.find(deploy.environmentId);
    if (environment === undefined || environment.statusMessage === words) return;
    await record(deploy, (rows) => ({ ...rows, environment: { ...rows.environment, statusMessage: words } }));
  }

  /** Reports why a teardown waits, such as for an unavailable engine. */
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

  /** Reads no row of an Environment whose processes have not changed, as most have not since a second ago. */
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

  /** Checks a busy Environment again, because its step may have read the rows before the change. */
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
