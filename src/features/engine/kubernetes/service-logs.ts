import { setTimeout as wait } from 'node:timers/promises';
import type { V1ContainerStateTerminated, V1Pod } from '@kubernetes/client-node';
import { openLogWriter, type LogWriter } from '../log-writer.ts';
import { openBuildLog, type LogLine, roomIn } from '../build-log.ts';
import { type DesiredProcess, type Engine, EngineUnavailable } from '../contract.ts';
import type { Cluster } from './cluster.ts';
import { labels, revisionAnnotation } from './objects.ts';
import { endInWords, mainOf } from './states.ts';
import { createTimedLines } from './timed-lines.ts';
import type { View } from './view.ts';

/** Stores the log lines of services, also for processes without an engine. */
export type ServiceLogStore = {
  /** Make one call at a time for each service. */
  append(environmentId: string, service: string, lines: readonly LogLine[]): Promise<void>;
  read: Engine['logs'];
  /** Removes the oldest lines until at most `maxBytes` remain. */
  trim(environmentId: string, service: string, maxBytes: number): Promise<void>;
  remove(environmentId: string): Promise<void>;
};

/** Copies the logs of pods, without secrets, into the store, because Kubernetes removes a log with its pod. */
export type ServiceLogs = {
  /** Provides the secrets of a service. Its logs are not copied before. */
  know(environmentId: string, process: DesiredProcess): void;
  /** Starts copying the logs of new containers. Call it after each change. */
  look(): void;
  /** Last lines of this revision's output. */
  lastLines(environmentId: string, service: string, revision: string): Promise<readonly string[]>;
  /** Call it when the pods are gone. Copies what arrives in time, then removes the logs. */
  remove(environmentId: string): Promise<void>;
  stop(): Promise<void>;
};

type Known = Pick<DesiredProcess, 'logBytes'> & { readonly secrets: readonly string[] };

/** One service. Its containers are copied one after the other. */
type Copied = {
  known: Known | undefined;
  /** IDs of containers whose copying has begun. */
  readonly begun: Set<string>;
  last: Promise<void>;
  /** Stops all copying for this service. */
  readonly stopping: AbortController;
  recent: { revision: string; lines: string[] } | undefined;
  /** What an earlier engine copied. Undefined: not read yet. */
  before: { readonly at: number; readonly ends: readonly number[] } | undefined;
  writer: LogWriter;
  trimmedAfter: number;
};

/** One start of the container. */
type Start = { readonly pod: V1Pod; readonly containerId: string };

type Found = {
  /** Kubernetes no longer has this log. */
  readonly isGone: boolean;
  /** A newer container replaced it. */
  readonly isPrevious: boolean;
  /** Its pod is terminating. */
  readonly isEnding: boolean;
  readonly end: V1ContainerStateTerminated | undefined;
};

/** A service that writes more loses lines, so that its output cannot keep the worker and the database busy. */
const periodMs = 1_000;
const periodsInLog = 8;
/** Lines to read of a log whose rest was skipped: more than are kept. */
const lastLines = 200;
/** Maximum time for copying the remaining logs after the pods are gone, in ms. */
const copyMs = 10_000;
const shownLines = 10;

export function createServiceLogs(deps: {
  readonly cluster: Pick<Cluster, 'log'>;
  readonly view: Pick<View, 'all' | 'changed'>;
  readonly store: ServiceLogStore;
  readonly later: (work: () => void, ms: number) => void;
  readonly onDefect: (error: unknown) => void;
}): ServiceLogs {
  const { cluster, view, store } = deps;
  const stopping = new AbortController();
  const services = new Map<string, Copied>();

  function copiedOf(environmentId: string, service: string): Copied {
    const key = `${environmentId}/${service}`;
    const found = services.get(key);
    if (found !== undefined) return found;
    const made: Copied = {
      known: undefined,
      begun: new Set(),
      last: Promise.resolve(),
      stopping: new AbortController(),
      recent: undefined,
      before: undefined,
      trimmedAfter: 0,
      writer: openLogWriter({
        async write(lines) {
          await store.append(environmentId, service, lines);
          await trimSometimes(environmentId, service, made, lines);
        },
        later: deps.later,
        onFailure: deps.onDefect,
      }),
    };
    services.set(key, made);
    return made;
  }

  async function trimSometimes(
    environmentId: string,
    service: string,
    copied: Copied,
    lines: readonly LogLine[],
  ): Promise<void> {
    const { logBytes = 0 } = copied.known ?? {};
    copied.trimmedAfter += lines.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
    const untrimmed = logBytes / periodsInLog;
    if (copied.trimmedAfter < untrimmed) return;
    copied.trimmedAfter = 0;
    // Less than may be kept, so that lines before the next trim still fit.
    await store.trim(environmentId, service, logBytes - untrimmed);
  }

  /** Reads what an earlier engine wrote, so that nothing is copied twice. */
  async function before(environmentId: string, service: string, copied: Copied) {
    if (copied.before !== undefined) return copied.before;
    const entries = await store.read(environmentId, service, 0, Number.MAX_SAFE_INTEGER);
    const own = entries.filter(({ stream }) => stream === 'postern');
    copied.before = {
      at: entries.at(-1)?.at ?? Number.NEGATIVE_INFINITY,
      ends: own.map(({ at }) => at),
    };
    return copied.before;
  }

  async function copy(environmentId: string, service: string, copied: Copied, start: Start): Promise<void> {
    const { pod } = start;
    const { known } = copied;
    const signal = AbortSignal.any([stopping.signal, copied.stopping.signal]);
    if (known === undefined || signal.aborted) return;
    const earlier = await before(environmentId, service, copied);
    const revision = pod.metadata?.annotations?.[revisionAnnotation] ?? '';
    if (copied.recent?.revision !== revision) copied.recent = { revision, lines: [] };
    const { recent } = copied;
    let at = Math.max(earlier.at, pod.metadata?.creationTimestamp?.getTime() ?? 0);
    const log = openBuildLog({
      secrets: known.secrets,
      maxBytes: Math.ceil(known.logBytes / periodsInLog),
      periodMs,
      now: () => at,
      write(line) {
        copied.writer.add(line);
        if (line.stream !== 'postern') recent.lines = [...recent.lines, line.text].slice(-shownLines);
      },
    });
    const lines = createTimedLines((time, chunk) => {
      at = time;
      log.output('stdout', chunk);
    }, earlier.at);
    let found = find(start);
    /** The rest of the period was not read: reading costs more than writing. */
    let isLeft = false;
    for (let isRead = false; !isRead && !signal.aborted; ) {
      const { end } = found;
      const { cuts } = log;
      lines.begin();
      const from = isLeft ? { since: undefined, lastLines } : { since: lines.lastTime, lastLines: undefined };
      const container = { pod: pod.metadata?.name ?? '', container: 'service', isPrevious: found.isPrevious };
      const take = async (chunk: Buffer) => {
        lines.push(chunk);
        await roomIn(copied.writer, signal);
        return end !== undefined || log.cuts === cuts;
      };
      const isOver = await cluster
        .log({ ...container, ...from }, take, signal)
        .then(() => true, notUnavailable);
      isLeft = end === undefined && log.cuts > cuts;
      if (isLeft) {
        lines.leave();
        log.skip();
      }
      const next = find(start);
      // A log that was read after the end is complete.
      isRead = next.isGone || (isOver && end !== undefined);
      found = { ...next, end: next.end ?? end };
      if (!isRead) await (isLeft ? pause(signal) : Promise.race([view.changed(), pause(signal)]));
    }
    const { end, isEnding } = found;
    if (signal.aborted) return;
    log.end();
    const endedAt = end?.finishedAt?.getTime() ?? at;
    at = Math.max(at, endedAt);
    if (earlier.ends.some((one) => one >= endedAt)) return;
    log.say(
      end === undefined || isEnding ? 'The service was stopped.' : `The service ${endInWords(end, pod)}.`,
    );
  }

  async function pause(signal: AbortSignal): Promise<void> {
    await wait(periodMs, undefined, { signal }).catch(() => undefined);
  }

  /** Undefined: Kubernetes does not answer, and its logs are copied later. */
  function pods(): readonly V1Pod[] | undefined {
    try {
      return view.all('pods');
    } catch (error) {
      notUnavailable(error);
      return undefined;
    }
  }

  /** Finds the current state of a container. */
  function find({ pod: known, containerId }: Start): Found {
    const all = pods();
    if (all === undefined) return { isGone: false, isPrevious: false, isEnding: false, end: undefined };
    const pod = all.find(({ metadata }) => metadata?.uid === known.metadata?.uid);
    const { state, lastState, containerID } = (pod && mainOf(pod)) ?? {};
    const isCurrent = state?.running !== undefined && containerID === containerId;
    const end = [state?.terminated, lastState?.terminated].find((one) => one?.containerID === containerId);
    return {
      end,
      isGone: end === undefined && !isCurrent,
      isPrevious: end !== undefined && end !== state?.terminated && state?.waiting === undefined,
      isEnding: pod === undefined || pod.metadata?.deletionTimestamp !== undefined,
    };
  }

  return {
    know(environmentId, { service, secrets, redacted, logBytes, isAsleep }) {
      // A sleeping process comes without its secrets, which its containers may still print.
      if (isAsleep) return;
      copiedOf(environmentId, service).known = {
        secrets: [...Object.values(secrets), ...redacted],
        logBytes,
      };
    },

    look() {
      for (const pod of pods() ?? []) {
        const { [labels.environment]: environmentId, [labels.service]: service } = pod.metadata?.labels ?? {};
        if (environmentId === undefined || service === undefined) continue;
        const copied = services.get(`${environmentId}/${service}`);
        if (copied?.known === undefined) continue;
        for (const containerId of startsIn(pod)) {
          if (copied.begun.has(containerId)) continue;
          copied.begun.add(containerId);
          copied.last = copied.last
            .then(() => copy(environmentId, service, copied, { pod, containerId }))
            .catch(deps.onDefect);
        }
      }
    },

    async lastLines(environmentId, service, revision) {
      const copied = copiedOf(environmentId, service);
      if (copied.recent === undefined) {
        const entries = await store.read(environmentId, service, 0, Number.MAX_SAFE_INTEGER);
        const output = entries.filter(({ stream }) => stream !== 'postern').map(({ text }) => text);
        copied.recent ??= { revision, lines: output.slice(-shownLines) };
      }
      return copied.recent.revision === revision ? copied.recent.lines : [];
    },

    async remove(environmentId) {
      const late = new Promise<void>((resolve) => deps.later(resolve, copyMs));
      for (const [key, { last, stopping: stoppingIts, writer }] of services)
        if (key.startsWith(`${environmentId}/`)) {
          await Promise.race([last, late]);
          stoppingIts.abort();
          await last;
          await writer.flush();
          services.delete(key);
        }
      await store.remove(environmentId);
    },

    async stop() {
      stopping.abort();
      const all = [...services.values()];
      await Promise.all(all.map(({ last }) => last));
      await Promise.allSettled(all.map(({ writer }) => writer.flush()));
    },
  };
}

/** IDs of started containers of the service, oldest first. */
function startsIn(pod: V1Pod): readonly string[] {
  const { state, lastState, containerID } = mainOf(pod) ?? {};
  const running = state?.running === undefined ? undefined : containerID;
  const ids = [lastState?.terminated?.containerID, state?.terminated?.containerID, running];
  return ids.filter((id) => id !== undefined);
}

function notUnavailable(error: unknown): false {
  if (!(error instanceof EngineUnavailable)) throw error;
  return false;
}
