import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { V1ContainerStatus, V1Job, V1Pod } from '@kubernetes/client-node';
import type { Transfers } from '../transfers/transfers.ts';
import { endingLog, exited, type Failure, stopped } from '../build-failures.ts';
import { type BuildLog, roomIn } from '../build-log.ts';
import {
  type BuildJob,
  type BuildLimits,
  type BuildOutcome,
  type Engine,
  EngineUnavailable,
} from '../contract.ts';
import { directoryIn } from '../output.ts';
import type { Cluster } from './cluster.ts';
import { doEach } from './do-each.ts';
import { buildObjects, buildSelector, labels, type Place } from './objects.ts';
import { ownerOf } from './services.ts';
import {
  endInWords,
  endOf,
  evictionOf,
  hasEnded,
  imageProblem,
  isDiskEviction,
  isStartError,
  messageIn,
  refusal,
  secondsOf,
  unscheduled,
} from './states.ts';
import { createTimedLines } from './timed-lines.ts';
import type { View } from './view.ts';

/** Runs each build as a Job, which owns all other objects of the build. */
export type Builds = Pick<Engine, 'build'> & {
  /** IDs of builds that have a Job, read from Kubernetes now. */
  found(): Promise<readonly string[]>;
  /** Ends and removes these builds, except those running in this process. Returns the removed ids. */
  sweep(ids: readonly string[]): Promise<readonly string[]>;
};

/** `done`: the command succeeded. */
type End = Failure | 'done' | 'cancelled';

const kinds = ['jobs', 'pods', 'secrets', 'networkpolicies'] as const;
/** Interval between checks that everything was removed, and between retries while Kubernetes does not answer, in ms. */
const [lookMs, retryMs] = [250, 1_000];
/** Maximum duration of one removal, and of its retries, in ms. */
const [removeMs, tryMs] = [25_000, 60_000];
/** Maximum time for copying the rest of a log after its build has ended, in ms. */
const copyMs = 10_000;
/** Lines to read of a log that was cut: more than are kept. */
const lastLines = 200;
/** A build fails when its image cannot be pulled for this long, about four tries of the kubelet. In ms. */
const pullMs = 60_000;

export function createBuilds(deps: {
  readonly cluster: Cluster;
  readonly view: View;
  readonly place: Place;
  readonly transfers: Omit<Transfers, 'offerTree' | 'closeEnvironment'>;
  readonly limits: BuildLimits;
  /** Folder for the inputs until they are packed. */
  readonly folder: string;
  /** Current time in ms. */
  readonly now: () => number;
  /** Calls `work` once, after `ms`. */
  readonly later: (work: () => void, ms: number) => void;
}): Builds {
  const { cluster, view, transfers } = deps;
  const wait = (ms: number) => new Promise<void>((resolve) => deps.later(resolve, ms));
  const underWay = new Set<string>();

  async function buildIn(job: BuildJob, log: BuildLog, signal: AbortSignal): Promise<BuildOutcome | Failure> {
    if (job.command !== null && job.image === null) return noImage;
    if (underWay.has(job.id)) throw new Error(`The build ${job.id} is under way already.`);
    underWay.add(job.id);
    try {
      const source = await offer(job);
      if (typeof source !== 'string') return source;
      if (signal.aborted) return { kind: 'cancelled' };
      const tickets = { source, output: await transfers.expectOutput(job.id) };
      const end = await runJob(job, tickets, log, signal);
      if (end === 'cancelled') return { kind: 'cancelled' };
      // Checked first: the output may have arrived even if its sender got no response.
      const artifact = await transfers.outputOf(job.id);
      if (artifact !== undefined) return { kind: 'built', artifact };
      if (end === 'done') throw endOfItsOwn('The output of the build did not arrive.');
      return end;
    } finally {
      underWay.delete(job.id);
      // No pod has these tickets any more. If they cannot be withdrawn now, they are removed with the row of the build.
      await transfers.closeBuild(job.id).catch(() => undefined);
    }
  }

  /** Returns the ticket for the inputs. */
  async function offer(job: BuildJob): Promise<string | Failure> {
    const folder = await mkdtemp(join(deps.folder, 'source-'));
    try {
      const missing = await job.fill(folder);
      if (missing !== undefined) return { kind: 'failed', ...missing };
      const directory = await directoryIn(folder, job);
      if (typeof directory !== 'string') return directory;
      return await transfers.offerSource(job.id, folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async function runJob(
    job: BuildJob,
    tickets: { readonly source: string; readonly output: string },
    log: BuildLog,
    signal: AbortSignal,
  ): Promise<End> {
    const limits = { ...deps.limits, ...job.limits };
    // Removes the Job of an earlier worker.
    await end(job.id);
    const objects = buildObjects(job, limits, tickets, deps.place);
    try {
      const owner = ownerOf(await cluster.apply(objects.job), 'batch/v1', 'Job');
      for (const one of objects.owned(owner)) await cluster.apply(one);
      await cluster.merge('jobs', owner.name, { spec: { suspend: false } });
      return await follow(job, owner.uid, limits, log, signal);
    } finally {
      // Nothing of an ended build may keep running, so this waits for Kubernetes.
      await endSurely(job.id);
    }
  }

  /** Resolves when the Job has ended or the build is cancelled. */
  async function follow(
    job: BuildJob,
    uid: string,
    limits: BuildLimits,
    log: BuildLog,
    signal: AbortSignal,
  ): Promise<End> {
    const aborted = new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    const said = new Set<string>();
    const copy = copier(log);
    let wasThere = false;
    let cannotPullSince: number | undefined;
    let lastPod: V1Pod | undefined;
    try {
      for (;;) {
        if (signal.aborted) {
          // The end of its log is copied meanwhile.
          await endSurely(job.id);
          await copy.done();
          return 'cancelled';
        }
        const changed = view.changed();
        const found = look(job.id, uid);
        if (found !== undefined) {
          const { made, pod } = found;
          lastPod = pod ?? lastPod;
          wasThere ||= made !== undefined;
          if (pod !== undefined) copy.begin(pod);
          const problem = pod === undefined ? undefined : pullProblem(pod);
          cannotPullSince = problem === undefined ? undefined : (cannotPullSince ?? deps.now());
          const reason = problem?.text ?? waitsFor(found);
          if (reason !== null && !said.has(reason)) log.say(`The build waits: ${reason}.`);
          if (reason !== null) said.add(reason);
          if (problem !== undefined && deps.now() - (cannotPullSince ?? 0) >= pullMs)
            return cannotPull(problem);
          if (made === undefined && wasThere)
            throw new EngineUnavailable('Kubernetes no longer has the Job of the build.');
          const ended = made === undefined ? undefined : endIn(made, pod, lastPod, limits);
          if (ended !== undefined) {
            await copy.done();
            return ended;
          }
        }
        await Promise.race([changed, aborted]);
      }
    } finally {
      await copy.stop();
    }
  }

  /** Undefined: Kubernetes does not answer. */
  function look(id: string, uid: string) {
    try {
      const made = view.all('jobs').find(({ metadata }) => metadata?.uid === uid);
      const pod = view.all('pods').find(({ metadata }) => metadata?.labels?.[labels.build] === id);
      const refused = view
        .all('events')
        .find(({ involvedObject, reason }) => involvedObject.uid === uid && reason === 'FailedCreate');
      return { made, pod, refused };
    } catch (error) {
      orUnavailable(error);
      return undefined;
    }
  }

  /** Copies what the command prints. */
  function copier(log: BuildLog) {
    const stopping = new AbortController();
    let copying: Promise<void> | undefined;

    async function copyLog(pod: V1Pod): Promise<void> {
      const lines = createTimedLines((_, chunk) => log.output('stdout', chunk));
      while (!stopping.signal.aborted) {
        const now = podNow(pod);
        const isOver = now === undefined || containerOf(now, 'build')?.state?.running === undefined;
        const isCut = log.cuts > 0;
        // After a cut, only the last lines are kept, so nothing else is read.
        if (isOver || !isCut) {
          lines.begin();
          const from = isCut
            ? { since: undefined, lastLines }
            : { since: lines.lastTime, lastLines: undefined };
          const source = { pod: pod.metadata?.name ?? '', container: 'build', isPrevious: false, ...from };
          const take = async (chunk: Buffer) => {
            lines.push(chunk);
            await roomIn(log, stopping.signal);
            return isOver || log.cuts === 0;
          };
          const isRead = await cluster.log(source, take, stopping.signal).then(() => true, orUnavailable);
          // A log that was read after the end is complete.
          if (isOver && (isRead || now === undefined)) return;
          if (log.cuts > 0) {
            lines.leave();
            log.skip();
          }
        }
        await wait(lookMs);
      }
    }

    return {
      begin(pod: V1Pod) {
        if (copying !== undefined || !hasBegun(containerOf(pod, 'build'))) return;
        copying = copyLog(pod);
        // done() and stop() get the failure.
        copying.catch(() => undefined);
      },
      /** Call it when the pod has ended or will be removed. Output that is not copied in time is lost: its node may be lost. */
      async done() {
        const late = wait(copyMs);
        await Promise.race([copying, late]);
      },
      async stop() {
        stopping.abort();
        await copying;
      },
    };
  }

  /** The current pod. Undefined: it was removed. While Kubernetes does not answer, returns `pod`. */
  function podNow(pod: V1Pod): V1Pod | undefined {
    try {
      return view.all('pods').find(({ metadata }) => metadata?.uid === pod.metadata?.uid);
    } catch (error) {
      orUnavailable(error);
      return pod;
    }
  }

  /** Removes the build, with retries. Kubernetes or the sweep later removes what remains, such as a pod of a lost node. */
  async function endSurely(id: string): Promise<void> {
    const until = deps.now() + tryMs;
    while (!(await end(id).then(() => true, orUnavailable)) && deps.now() < until) await wait(retryMs);
  }

  /** Deletes the Job and resolves when all of its objects are gone. */
  async function end(id: string): Promise<void> {
    const selector = buildSelector(id);
    await cluster.deleteAll('jobs', selector);
    const until = deps.now() + removeMs;
    for (;;) {
      const left = await Promise.all(
        kinds.map(async (kind) => (await cluster.list(kind, selector)).items.length),
      );
      if (left.every((count) => count === 0)) return;
      if (deps.now() > until)
        throw new EngineUnavailable('Kubernetes still has objects of the build that it was told to delete.');
      await wait(lookMs);
    }
  }

  return {
    build: async (job, log, signal) => await endingLog(log, () => buildIn(job, log, signal)),

    async found() {
      const { items } = await cluster.list('jobs', buildSelector());
      return items.map(({ metadata }) => metadata?.labels?.[labels.build] ?? '');
    },

    async sweep(ids) {
      const gone = ids.filter((id) => !underWay.has(id));
      await doEach(gone, async (id) => {
        await end(id);
        await transfers.closeBuild(id);
      });
      return gone;
    },
  };
}

const noImage: Failure = {
  kind: 'failed',
  reason: 'no_image',
  message: 'The build has a command, but names no image to run it in.',
  fix: 'Set build.image in postern.yaml, for example to node:24.',
};

function orUnavailable(error: unknown): false {
  if (!(error instanceof EngineUnavailable)) throw error;
  return false;
}

function containerOf({ status }: V1Pod, name: string): V1ContainerStatus | undefined {
  const all = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return all.find((one) => one.name === name);
}

function hasBegun(status: V1ContainerStatus | undefined): boolean {
  return status?.state?.running !== undefined || status?.state?.terminated !== undefined;
}

type PullProblem = { readonly text: string; readonly isOfPostern: boolean };

function pullProblem(pod: V1Pod): PullProblem | undefined {
  for (const name of ['fetch', 'build', 'send']) {
    const text = imageProblem(containerOf(pod, name));
    if (text !== undefined) return { text, isOfPostern: name !== 'build' };
  }
  return undefined;
}

function cannotPull({ text, isOfPostern }: PullProblem): Failure {
  const message = `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
  if (isOfPostern) throw new EngineUnavailable(message);
  return {
    kind: 'failed',
    reason: 'no_image',
    message,
    fix: 'Correct build.image in postern.yaml, or ask an administrator to let the cluster pull it.',
  };
}

/** Why the build has not started yet. */
function waitsFor({
  pod,
  refused,
}: {
  readonly pod: V1Pod | undefined;
  readonly refused: { readonly message?: string } | undefined;
}): string | null {
  if (pod !== undefined) return unscheduled(pod);
  return refused === undefined ? null : `no pod can be made: ${refusal(refused.message ?? '')}`;
}

/** `last`: the last known state of the pod. Undefined: the Job has not ended. */
function endIn(
  job: V1Job,
  pod: V1Pod | undefined,
  last: V1Pod | undefined,
  limits: BuildLimits,
): Exclude<End, 'cancelled'> | undefined {
  const condition = (wanted: string) =>
    job.status?.conditions?.find(({ type, status }) => type === wanted && status === 'True');
  if (condition('Complete') !== undefined) return 'done';
  const failed = condition('Failed');
  if (failed === undefined) return undefined;
  if (failed.reason === 'DeadlineExceeded') {
    if (last !== undefined) return stopped('timed_out', limits);
    throw new EngineUnavailable('Kubernetes made no pod of the build in time.');
  }
  if (last !== undefined && hasEnded(last)) return failureOf(last, limits);
  // The state of the pod is older than the state of the Job.
  if (pod !== undefined) return undefined;
  throw new EngineUnavailable('The pod of the build was deleted.');
}

function failureOf(pod: V1Pod, limits: BuildLimits): Failure {
  if (isDiskEviction(pod)) return stopped('disk_full', limits);
  if (pod.status?.reason !== undefined) {
    // The build may have exhausted a resource of the node. The node causes all other reasons.
    const isItsOwn = pod.status.reason === 'Evicted';
    throw new EngineUnavailable(`The pod of the build ${evictionOf(pod)}.`, { isItsOwn });
  }
  for (const name of ['fetch', 'build', 'send']) {
    const end = endOf(containerOf(pod, name));
    if (end === undefined || end.exitCode === 0) continue;
    if (name !== 'build') {
      const told = messageIn(end);
      if (told === undefined) throw endOfItsOwn(`The container ${name} of Postern ${endInWords(end, pod)}.`);
      // The pod program writes a failure of a build.
      return { kind: 'failed', ...told } as Failure;
    }
    if (end.reason === 'OOMKilled') return stopped('out_of_memory', limits);
    if (isStartError(end))
      return {
        kind: 'failed',
        reason: 'no_image',
        message: `The command ${endInWords(end, pod)}.`,
        fix: 'Set build.image to an image that has a POSIX shell as /bin/sh.',
      };
    return exited(end.exitCode, secondsOf(end) * 1_000, limits);
  }
  throw endOfItsOwn('The pod of the build ended, and Kubernetes does not say why.');
}

/** A build can also end a container of Postern in its own pod. */
function endOfItsOwn(message: string): EngineUnavailable {
  return new EngineUnavailable(message, { isItsOwn: true });
}
