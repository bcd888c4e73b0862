import type {
  CoreV1Event,
  V1ContainerStateTerminated,
  V1ContainerStatus,
  V1Deployment,
  V1Pod,
} from '@kubernetes/client-node';
import type { ObservedProcess } from '../contract.ts';
import { limitAnnotations, revisionAnnotation } from './objects.ts';

/** Translates the states of pods into Postern's states and messages. Pure. */

type Seen = Pick<ObservedProcess, 'state' | 'reason' | 'restarts'>;

/** Pods of the Deployment's current revision, newest first. */
export function currentPods(deployment: V1Deployment, pods: readonly V1Pod[]): readonly V1Pod[] {
  const revision = deployment.metadata?.annotations?.[revisionAnnotation];
  return pods
    .filter(({ metadata }) => metadata?.annotations?.[revisionAnnotation] === revision)
    .toSorted((one, other) => createdAt(other) - createdAt(one));
}

/** `pods`: pods of the current revision, newest first. `events`: warnings about them. */
export function seen(deployment: V1Deployment, pods: readonly V1Pod[], events: readonly CoreV1Event[]): Seen {
  const ended = pods.filter(hasEnded);
  const counted = pods.reduce((sum, pod) => sum + (mainOf(pod)?.restartCount ?? 0), 0);
  const restarts = counted + ended.length;
  if (deployment.spec?.replicas === 0) return { state: 'stopped', reason: null, restarts };
  const pod = pods.find((one) => !hasEnded(one) && one.metadata?.deletionTimestamp === undefined);
  const evicted = ended[0] === undefined ? null : evictionOf(ended[0]);
  if (pod === undefined) {
    const refused = deployment.status?.conditions?.find(
      ({ type, status }) => type === 'ReplicaFailure' && status === 'True',
    );
    if (refused !== undefined)
      return { state: 'starting', reason: `no pod can be made: ${refusal(refused.message ?? '')}`, restarts };
    return { state: evicted === null ? 'starting' : 'failed', reason: evicted, restarts };
  }
  if (isReady(pod)) return { state: 'ready', reason: null, restarts };
  const main = mainOf(pod);
  if (evicted !== null && main?.state?.running === undefined)
    return { state: 'failed', reason: evicted, restarts };
  return { ...notReady(pod, main, events), restarts };
}

function notReady(
  pod: V1Pod,
  main: V1ContainerStatus | undefined,
  events: readonly CoreV1Event[],
): Omit<Seen, 'restarts'> {
  const failed = (reason: string) => ({ state: 'failed' as const, reason });
  const fetching = pod.status?.initContainerStatuses?.find(({ name }) => name === 'fetch');
  for (const status of [fetching, main]) {
    const problem = imageProblem(status);
    if (problem !== undefined) return failed(problem);
  }
  const fetchEnd = endOf(fetching);
  if (fetchEnd !== undefined && fetchEnd.exitCode !== 0)
    return failed(
      `cannot be started: ${lowered(messageIn(fetchEnd)?.message ?? 'its files cannot be fetched')}`,
    );
  const end = main?.state?.terminated;
  if (end !== undefined) return failed(endInWords(end, pod));
  const last = main?.lastState?.terminated;
  const waiting = main?.state?.waiting;
  if (waiting?.reason === 'CrashLoopBackOff' && last !== undefined) return failed(endInWords(last, pod));
  if (waiting?.reason !== undefined && cannotStart.has(waiting.reason))
    return failed(`cannot be started: ${shortened(waiting.message ?? waiting.reason)}`);
  const lastInWords = last === undefined ? null : endInWords(last, pod);
  const running = main?.state?.running;
  if (running !== undefined)
    return { state: 'starting', reason: probeInWords(pod, running.startedAt, events) ?? lastInWords };
  return { state: 'starting', reason: unscheduled(pod) ?? lastInWords };
}

/** Reasons why a container cannot be created. */
const cannotStart = new Set(['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError']);
const imageReasons = new Set(['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull']);

export function mainOf(pod: V1Pod): V1ContainerStatus | undefined {
  return pod.status?.containerStatuses?.find(({ name }) => name === 'service');
}

/** Why the image cannot be pulled. Undefined: no problem is known. */
export function imageProblem(status: V1ContainerStatus | undefined): string | undefined {
  const waiting = status?.state?.waiting;
  if (status === undefined || !imageReasons.has(waiting?.reason ?? '')) return undefined;
  return `the image ${status.image} cannot be pulled: ${shortened(waiting?.message ?? waiting?.reason ?? '')}`;
}

/** Why a pod is not scheduled on a node. */
export function unscheduled(pod: V1Pod): string | null {
  const found = pod.status?.conditions?.find(
    ({ type, status }) => type === 'PodScheduled' && status === 'False',
  );
  return found === undefined ? null : `waits for a node: ${shortened(found.message ?? found.reason ?? '')}`;
}

/** Why a pod cannot be created, without its name: exceeded quota: … */
export function refusal(message: string): string {
  return shortened(/(?:exceeded quota|violates PodSecurity).*/s.exec(message)?.[0] ?? message);
}

/** The last termination of a container. */
export function endOf(status: V1ContainerStatus | undefined): V1ContainerStateTerminated | undefined {
  return status?.state?.terminated ?? status?.lastState?.terminated;
}

/** The message that the pod program wrote before it ended. Undefined: it wrote none. */
export function messageIn(
  end: V1ContainerStateTerminated,
): { readonly reason: string; readonly message: string; readonly fix: string } | undefined {
  try {
    const found: unknown = JSON.parse(end.message ?? '');
    if (typeof found !== 'object' || found === null) return undefined;
    const { reason, message, fix } = found as Record<string, unknown>;
    if (typeof reason !== 'string' || typeof message !== 'string' || typeof fix !== 'string')
      return undefined;
    return { reason, message, fix };
  } catch {
    return undefined;
  }
}

export function endInWords(end: V1ContainerStateTerminated, pod: V1Pod): string {
  const { exitCode, reason, message } = end;
  if (reason === 'OOMKilled')
    return `used more than ${pod.metadata?.annotations?.[limitAnnotations.memory]} bytes of memory, so Postern ended it`;
  if (isStartError(end)) return `cannot be started: ${shortened(message ?? reason ?? '')}`;
  return `exited with ${exitCode} after ${secondsOf(end)} s`;
}

/** Whether the container never ran, for example because its image has no shell. */
export function isStartError({ reason }: V1ContainerStateTerminated): boolean {
  return reason === 'StartError' || reason === 'ContainerCannotRun';
}

export function secondsOf({ startedAt, finishedAt }: V1ContainerStateTerminated): number {
  return Math.max(0, Math.round(((finishedAt?.getTime() ?? 0) - (startedAt?.getTime() ?? 0)) / 1_000));
}

/** Why Kubernetes ended the pod. */
export function evictionOf(pod: V1Pod): string {
  const disk = pod.metadata?.annotations?.[limitAnnotations.disk];
  if (isDiskEviction(pod)) return `wrote more than ${disk} bytes, so Postern ended it`;
  return `was ended by Kubernetes: ${shortened(pod.status?.message ?? pod.status?.reason ?? 'it gave no reason')}`;
}

export function isDiskEviction({ status }: V1Pod): boolean {
  return status?.reason === 'Evicted' && /emptydir/i.test(status.message ?? '');
}

export function hasEnded({ status }: V1Pod): boolean {
  return status?.phase === 'Failed' || status?.phase === 'Succeeded';
}

export function isReady({ status, metadata }: V1Pod): boolean {
  const isTrue = status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') ?? false;
  return isTrue && metadata?.deletionTimestamp === undefined;
}

/** Describes the last failed probe. Null: none has failed since the container started. */
function probeInWords(pod: V1Pod, since: Date | undefined, events: readonly CoreV1Event[]): string | null {
  const last = events
    .filter(
      ({ reason, involvedObject }) => reason === 'Unhealthy' && involvedObject.uid === pod.metadata?.uid,
    )
    .filter((event) => eventAt(event) >= (since?.getTime() ?? 0))
    .toSorted((one, other) => eventAt(other) - eventAt(one))[0];
  if (last === undefined) return null;
  const container = pod.spec?.containers.find(({ name }) => name === 'service');
  const { httpGet, tcpSocket } = container?.readinessProbe ?? {};
  const port = httpGet?.port ?? tcpSocket?.port;
  const text = last.message ?? '';
  if (text.includes('connection refused'))
    return `does not listen on port ${port}, which the variable PORT names`;
  if (httpGet === undefined) return `does not answer on port ${port}`;
  const status = /statuscode: (\d+)/.exec(text)?.[1];
  return status === undefined
    ? `does not answer GET ${httpGet.path}`
    : `answers ${status} to GET ${httpGet.path}`;
}

function eventAt({ lastTimestamp, eventTime }: CoreV1Event): number {
  return lastTimestamp?.getTime() ?? eventTime?.getTime() ?? 0;
}

function createdAt({ metadata }: V1Pod): number {
  return metadata?.creationTimestamp?.getTime() ?? 0;
}

/** Shortens the text to one line for a message. */
function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim().replace(/\.$/, '');
  return line.length > 300 ? `${line.slice(0, 299)}…` : line;
}

function lowered(sentence: string): string {
  return shortened(sentence.charAt(0).toLowerCase() + sentence.slice(1));
}
