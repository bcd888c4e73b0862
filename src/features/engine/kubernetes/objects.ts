import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import type {
  V1Container,
  V1Deployment,
  V1Job,
  V1NetworkPolicy,
  V1NetworkPolicyEgressRule,
  V1ObjectMeta,
  V1OwnerReference,
  V1PodSpec,
  V1Secret,
  V1Service,
} from '@kubernetes/client-node';
import { reservedNetworks } from '../../../platform/outbound.ts';
import type { BuildJob, BuildLimits, DesiredProcess } from '../contract.ts';

/**
 * Kubernetes objects of a build and of a process service. Pure: the same input gives the same objects, so that
 * applying them again changes nothing. All objects of a service belong to its Deployment, and all objects of a build to its Job.
 */
export type Place = {
  /** Namespace in which everything runs. */
  readonly namespace: string;
  /** Postern's own image, which fetches and sends files (operations/pod). */
  readonly podImage: string;
  /** URL at which pods fetch and send files. */
  readonly transferUrl: string;
};

export type BuildTickets = { readonly source: string; readonly output: string };

export type BuildObjects = {
  /** A suspended Job, because its Secrets do not exist yet. */
  readonly job: V1Job;
  readonly owned: (job: V1OwnerReference) => readonly (V1Secret | V1NetworkPolicy)[];
};

export type ServiceObjects = {
  readonly deployment: (replicas: number) => V1Deployment;
  readonly owned: (deployment: V1OwnerReference) => readonly (V1Secret | V1Service | V1NetworkPolicy)[];
  /** Name of this revision's Secret. */
  readonly secretName: string;
};

export const labels = {
  managed: 'app.kubernetes.io/managed-by',
  environment: 'postern.dev/environment',
  service: 'postern.dev/service',
  build: 'postern.dev/build',
} as const;
/** Revision of a Deployment and its pods. An annotation, because a label has at most 63 characters. */
export const revisionAnnotation = 'postern.dev/revision';
/** Limits of the pods of a service. Kubernetes formats its own quantities differently: 20M. */
export const limitAnnotations = {
  memory: 'postern.dev/memory-bytes',
  disk: 'postern.dev/disk-bytes',
} as const;
export const manager = 'postern';

/** Paths of files in a pod. */
const inPod = { work: '/work', home: '/home/postern', tmp: '/tmp', secrets: '/run/secrets/build' } as const;
/** User of Postern's image and of its pods: any user except root. */
const user = 65_532;
/** Time that processes have to end after SIGTERM. */
const graceSeconds = 5;
/** Lifetime of an ended Job whose worker no longer exists to delete it. */
const endedJobSeconds = 600;
/** Resources of Postern's own containers, which only stream. */
const podProgram = { memory: String(256 * 1024 ** 2), milliCpu: 500 };
/** Thousandths of a processor: two builds fit on a node with other pods, and a single one uses the free capacity. */
const buildCpu = { request: 250, limit: 2_000 };

/** Minimum request of a pod, in thousandths of a processor: most services wait for requests, and a busy one uses the free capacity. */
const idleCpu = 100;

/** A value of a label (Kubernetes: at most 63 characters, the first and the last a letter or digit). */
const labelShape = /^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$/;

/** A DNS label, unique among the services of all Environments. */
export function serviceNameOf(environmentId: string, service: string): string {
  const readable = service.slice(0, 40).replace(/-+$/, '');
  return `env-${hashOf(`${environmentId}/${service}`)}-${readable}`;
}

function buildNameOf(buildId: string): string {
  return `build-${hashOf(buildId)}`;
}

function secretNameOf(environmentId: string, { service, revision }: DesiredProcess): string {
  return `${serviceNameOf(environmentId, service)}-${hashOf(revision)}`;
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}

/** Selects all objects of one Environment, or of all Environments. */
export function environmentSelector(environmentId?: string): string {
  const of = environmentId === undefined ? labels.environment : `${labels.environment}=${environmentId}`;
  return `${labels.managed}=${manager},${of}`;
}

export function buildSelector(buildId?: string): string {
  const of = buildId === undefined ? labels.build : `${labels.build}=${buildId}`;
  return `${labels.managed}=${manager},${of}`;
}

export function buildObjects(
  job: Pick<BuildJob, 'id' | 'image' | 'command' | 'directory' | 'output' | 'variables' | 'secrets'>,
  limits: BuildLimits,
  tickets: BuildTickets,
  place: Place,
): BuildObjects {
  const name = buildNameOf(job.id);
  const its = { [labels.build]: labelOf(job.id) };
  const { command, image } = job;
  const variables = {
    HOME: inPod.home,
    TMPDIR: inPod.tmp,
    LANG: 'C.UTF-8',
    CI: 'true',
    BUILD_SECRETS_DIR: inPod.secrets,
    ...job.variables,
  };
  const build: V1Container[] =
    command === null || image === null
      ? []
      : [
          {
            name: 'build',
            image,
            command: ['/bin/sh', '-c', limited, 'sh', String(Math.ceil(limits.fileBytes / 512))],
            args: [literal(command)],
            workingDir: posix.join(inPod.work, job.directory),
            envFrom: [{ secretRef: { name: `${name}-variables` } }],
            resources: {
              requests: { memory: String(limits.memoryBytes), cpu: `${buildCpu.request}m` },
              limits: { memory: String(limits.memoryBytes), cpu: `${buildCpu.limit}m` },
            },
            volumeMounts: [...fileMounts(), { name: 'secrets', mountPath: inPod.secrets, readOnly: true }],
            securityContext: containerSecurity(),
          },
        ];
  return {
    job: {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name, namespace: place.namespace, labels: labelsOf(its) },
      spec: {
        suspend: true,
        backoffLimit: 0,
        activeDeadlineSeconds: Math.max(1, Math.ceil(limits.timeMs / 1_000)),
        ttlSecondsAfterFinished: endedJobSeconds,
        template: {
          metadata: { labels: labelsOf(its) },
          spec: {
            ...podSecurity(),
            restartPolicy: 'Never',
            initContainers: [podContainer('fetch', ['fetch', inPod.work], `${name}-source`, place), ...build],
            containers: [
              podContainer(
                'send',
                ['send', inPod.work, '--directory', job.directory, '--output', job.output],
                `${name}-output`,
                place,
              ),
            ],
            volumes: [
              { name: 'files', emptyDir: { sizeLimit: String(limits.diskBytes) } },
              { name: 'secrets', secret: { secretName: `${name}-files`, defaultMode: 0o440 } },
            ],
          },
        },
      },
    },
    owned: (owner) => [
      secret(`${name}-source`, { TRANSFER_TICKET: tickets.source }, its, place, owner),
      secret(`${name}-output`, { TRANSFER_TICKET: tickets.output }, its, place, owner),
      secret(`${name}-variables`, variables, its, place, owner),
      secret(`${name}-files`, job.secrets, its, place, owner),
      {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'NetworkPolicy',
        metadata: metadata(name, its, place, owner),
        spec: {
          podSelector: { matchLabels: its },
          policyTypes: ['Ingress', 'Egress'],
          egress: [publicAddresses],
        },
      },
    ],
  };
}

export function serviceObjects(
  environmentId: string,
  process: DesiredProcess,
  image: string,
  ticket: string,
  { diskBytes, fileBytes }: Pick<BuildLimits, 'diskBytes' | 'fileBytes'>,
  place: Place,
): ServiceObjects {
  const { service, port, health } = process;
  const name = serviceNameOf(environmentId, service);
  const secretName = secretNameOf(environmentId, process);
  const environment = { [labels.environment]: labelOf(environmentId) };
  const its = { ...environment, [labels.service]: service };
  const revision = { [revisionAnnotation]: process.revision };
  const resources = {
    requests: { memory: String(process.memoryBytes), cpu: `${Math.min(process.milliCpu, idleCpu)}m` },
    limits: { memory: String(process.memoryBytes), cpu: `${process.milliCpu}m` },
  };
  const variables = {
    HOME: inPod.home,
    TMPDIR: inPod.tmp,
    LANG: 'C.UTF-8',
    ...process.variables,
    ...process.secrets,
    PORT: String(port),
  };
  const main: V1Container = {
    name: 'service',
    image,
    command: ['/bin/sh', '-c', limited, 'sh', String(Math.ceil(fileBytes / 512))],
    args: [literal(process.command)],
    workingDir: inPod.work,
    envFrom: [{ secretRef: { name: secretName } }],
    ports: [{ name: 'service', containerPort: port }],
    readinessProbe: {
      ...(health === null ? { tcpSocket: { port } } : { httpGet: { path: health, port } }),
      periodSeconds: 1,
      timeoutSeconds: 5,
    },
    resources,
    volumeMounts: fileMounts(),
    securityContext: containerSecurity(),
  };
  return {
    secretName,
    deployment: (replicas) => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace: place.namespace, labels: labelsOf(its), annotations: revision },
      spec: {
        replicas,
        revisionHistoryLimit: 0,
        strategy: { type: 'Recreate' },
        selector: { matchLabels: its },
        template: {
          metadata: {
            labels: labelsOf(its),
            annotations: {
              ...revision,
              [limitAnnotations.memory]: String(process.memoryBytes),
              [limitAnnotations.disk]: String(diskBytes),
            },
          },
          spec: {
            ...podSecurity(),
            initContainers: [podContainer('fetch', ['fetch', inPod.work], `${secretName}-ticket`, place)],
            containers: [main],
            volumes: [{ name: 'files', emptyDir: { sizeLimit: String(diskBytes) } }],
          },
        },
      },
    }),
    owned: (owner) => [
      secret(`${secretName}-ticket`, { TRANSFER_TICKET: ticket }, its, place, owner),
      secret(secretName, variables, its, place, owner),
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: metadata(name, its, place, owner),
        spec: {
          type: 'ClusterIP',
          selector: its,
          ports: [{ name: 'service', port, targetPort: port, protocol: 'TCP' }],
        },
      },
      {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'NetworkPolicy',
        metadata: metadata(name, its, place, owner),
        spec: {
          podSelector: { matchLabels: its },
          policyTypes: ['Ingress', 'Egress'],
          ingress: [
            {
              _from: [{ podSelector: { matchLabels: environment } }],
              ports: [{ port, protocol: 'TCP' }],
            },
          ],
          egress: [{ to: [{ podSelector: { matchLabels: environment } }] }, publicAddresses],
        },
      },
    ],
  };
}

/** Script for `sh -c`: disables core dumps and limits the size of files (blocks of 512 bytes, POSIX ulimit). */
const limited = 'ulimit -c 0; ulimit -f "$1"; exec /bin/sh -c "$2"';

/** Escapes `$`, because Kubernetes expands `$(NAME)` and replaces `$$` with `$`. The shell must get the original text. */
function literal(command: string): string {
  return command.replaceAll('$', '$$$$');
}

function labelOf(id: string): string {
  if (!labelShape.test(id))
    throw new Error('An id is letters, digits, _ and -, and starts and ends with one of the first two.');
  return id;
}

function labelsOf(its: Record<string, string>): Record<string, string> {
  return { [labels.managed]: manager, ...its };
}

function metadata(
  name: string,
  its: Record<string, string>,
  { namespace }: Place,
  owner: V1OwnerReference,
): V1ObjectMeta {
  return { name, namespace, labels: labelsOf(its), ownerReferences: [owner] };
}

function secret(
  name: string,
  values: Readonly<Record<string, string>>,
  its: Record<string, string>,
  place: Place,
  owner: V1OwnerReference,
): V1Secret {
  const encoded = Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]);
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: metadata(name, its, place, owner),
    type: 'Opaque',
    data: Object.fromEntries(encoded) as Record<string, string>,
  };
}

/** A container of Postern's own image. The ticket is in a Secret that no other container sees. */
function podContainer(
  name: 'fetch' | 'send',
  args: readonly string[],
  secretName: string,
  { podImage, transferUrl }: Place,
): V1Container {
  const { memory, milliCpu } = podProgram;
  return {
    name,
    image: podImage,
    command: ['node', 'src/main.ts', 'pod', ...args.map(literal)],
    env: [
      { name: 'HOME', value: inPod.home },
      { name: 'TRANSFER_URL', value: transferUrl },
      { name: 'TRANSFER_TICKET', valueFrom: { secretKeyRef: { name: secretName, key: 'TRANSFER_TICKET' } } },
    ],
    resources: { requests: { memory, cpu: `${idleCpu}m` }, limits: { memory, cpu: `${milliCpu}m` } },
    volumeMounts: fileMounts(),
    securityContext: containerSecurity(),
  };
}

/** One volume, so that one limit counts everything that is written. */
function fileMounts() {
  return (['work', 'home', 'tmp'] as const).map((subPath) => ({
    name: 'files',
    mountPath: inPod[subPath],
    subPath,
  }));
}

/** Pod Security Standards, "restricted". */
function podSecurity(): Omit<V1PodSpec, 'containers'> {
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    // The first process of a namespace ignores signals without a handler (pid_namespaces(7)), so a command could not be ended.
    shareProcessNamespace: true,
    terminationGracePeriodSeconds: graceSeconds,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: user,
      runAsGroup: user,
      fsGroup: user,
      seccompProfile: { type: 'RuntimeDefault' },
    },
  };
}

/** Read-only, because no limit counts what a container writes outside of volumes. */
function containerSecurity(): NonNullable<V1Container['securityContext']> {
  return {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  };
}

/** Allowed in addition to what the chart opens for every pod: DNS, the files of web, and the gateway. */
const publicAddresses: V1NetworkPolicyEgressRule = {
  to: [
    { ipBlock: { cidr: '0.0.0.0/0', except: [...reservedNetworks.ipv4] } },
    { ipBlock: { cidr: '2000::/3', except: [...reservedNetworks.ipv6] } },
  ],
};
