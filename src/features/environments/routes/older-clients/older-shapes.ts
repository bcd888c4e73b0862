import { second, timestamp } from '../../../../core/clock.ts';
import type { Deploy, DeployStep, StepStatus } from '../../deploys/deploy.ts';
import type {
  Environment,
  EnvironmentStatus,
  ServiceKind,
  ServiceStatus,
} from '../../environment/environment.ts';
import type { MetadataLink } from '../../metadata-links/metadata-link.ts';
import type { toEnvironmentResponse } from '../responses.ts';

/**
 * An Environment in the shapes of the older system, which called it a build and each of its services a deploy. Fields without a
 * meaning in Postern are empty, or left out where clients expect a number. No I/O.
 */
export const olderStatuses = [
  'pending',
  'queued',
  'building',
  'built',
  'deploying',
  'deployed',
  'error',
  'config_error',
  'tearing_down',
  'torn_down',
] as const;
type OlderStatus = (typeof olderStatuses)[number];

export const olderServiceStatuses = [
  'waiting',
  'building',
  'build_failed',
  'deploying',
  'deploy_failed',
  'ready',
  'deployed',
  'error',
  'torn_down',
] as const;
type OlderServiceStatus = (typeof olderServiceStatuses)[number];

export const olderServiceTypes = ['github', 'docker', 'externalHTTP'] as const;

/** Statuses of one build of one service. */
export const olderJobStatuses = ['Pending', 'Active', 'Complete', 'Failed'] as const;

const jobStatuses = {
  waiting: 'Pending',
  running: 'Active',
  done: 'Complete',
  failed: 'Failed',
  cancelled: 'Failed',
} as const satisfies Record<StepStatus, (typeof olderJobStatuses)[number]>;

type Row = ReturnType<typeof toEnvironmentResponse>;
type Service = Row['services'][number];

/** An Environment and its wire form. */
export type Viewed = {
  readonly environment: Environment;
  readonly row: Row;
  /** Steps of the newest deploy. */
  readonly steps: readonly DeployStep[];
};

/** A client of the older system polls until `deployed`, `error`, `config_error` or `torn_down`. */
function statusOf(status: EnvironmentStatus): OlderStatus {
  // Nothing was deployed yet.
  if (status === 'paused') return 'pending';
  return status === 'asleep' ? 'deployed' : status;
}

const serviceStatuses = {
  waiting: 'waiting',
  building: 'building',
  starting: 'deploying',
  ready: 'ready',
  asleep: 'deployed',
  failed: 'error',
  inactive: 'torn_down',
} as const satisfies Record<ServiceStatus, OlderServiceStatus>;

const serviceTypes = {
  static: 'github',
  process: 'github',
  image: 'docker',
  postgres: 'docker',
  external: 'externalHTTP',
} as const satisfies Record<ServiceKind, (typeof olderServiceTypes)[number]>;

/** State of the service in the newest deploy; otherwise its own state. */
function stateOf(
  { name, status, reason }: Service,
  steps: readonly DeployStep[],
): { readonly status: OlderServiceStatus; readonly statusMessage: string } {
  const own = steps.filter(({ service }) => service === name);
  const failed = own.find((step) => step.status === 'failed');
  if (failed !== undefined) {
    const isBuild = failed.step === 'build';
    return { status: isBuild ? 'build_failed' : 'deploy_failed', statusMessage: failed.message ?? '' };
  }
  const isBuilding = own.some((step) => step.step === 'build' && step.status === 'running');
  return { status: isBuilding ? 'building' : serviceStatuses[status], statusMessage: reason ?? '' };
}

export function toOlderBuild({ environment, row, steps }: Viewed) {
  const { id, uuid, createdAt, updatedAt } = row;
  const sha = row.sha ?? '';
  return {
    id,
    uuid,
    status: statusOf(environment.status),
    statusMessage: row.statusMessage,
    sha,
    manifest: '',
    kind: 'environment' as const,
    namespace: '',
    isStatic: false,
    pullRequest: null,
    createdAt,
    updatedAt,
    deploys: row.services.map((service) => {
      const { name, kind, active, url } = service;
      return {
        uuid: `${name}-${uuid}`,
        ...stateOf(service, steps),
        active,
        branchName: row.branch,
        sha,
        publicUrl: url === null ? '' : new URL(url).host,
        publicHref: url,
        dockerImage: '',
        initDockerImage: '',
        buildLogs: '',
        deployPipelineId: '',
        devMode: false,
        createdAt,
        updatedAt,
        deployable: {
          name,
          type: serviceTypes[kind],
          dockerfilePath: '',
          requires: [],
          deploymentDependsOn: [],
          builder: {},
          ecr: '',
        },
        repository: { fullName: row.repository },
      };
    }),
  };
}

/** Includes each service, and each choice for a service that no deploy has read yet. */
export function toServiceOverrides({ environment, row, steps }: Viewed) {
  const { services: choices } = environment;
  const names = new Set([...row.services, ...choices].map(({ name }) => name));
  return [...names].map((name) => {
    const service = row.services.find((one) => one.name === name);
    const choice = choices.find((one) => one.name === name);
    const state = service && stateOf(service, steps);
    return {
      name,
      active: choice?.active ?? service?.active ?? true,
      branchOrExternalUrl: choice?.branchOrExternalUrl ?? null,
      status: state?.status ?? null,
      statusMessage: state?.statusMessage ?? null,
      updatedAt: row.updatedAt,
      group: 'default' as const,
      editable: true,
    };
  });
}

/** `links`: the links of the Environment with its values. */
export function toOlderMetadata(links: readonly (Row['links'][number] & Pick<MetadataLink, 'id'>)[]) {
  return {
    links: links.map(({ id, text, icon, url }, at) => ({ id, text, icon, link: url, position: at + 1 })),
  };
}

/** True: the deploy built the service, or will build it. A reused result needs no build. */
export function isBuildOf(service: string, step: DeployStep): boolean {
  return step.service === service && step.step === 'build' && !step.reused;
}

export function toBuildJob({ uuid }: Environment, deploy: Pick<Deploy, 'id' | 'sha'>, step: DeployStep) {
  const { startedAt, endedAt } = step;
  return {
    jobName: deploy.id,
    buildUuid: uuid,
    sha: deploy.sha ?? '',
    status: jobStatuses[step.status],
    ...(startedAt === null ? {} : { startedAt: timestamp(startedAt) }),
    ...(endedAt === null ? {} : { completedAt: timestamp(endedAt) }),
    ...(startedAt === null || endedAt === null ? {} : { duration: (endedAt - startedAt) / second }),
    engine: 'unknown' as const,
    ...errorOf(step),
    source: endedAt === null ? ('live' as const) : ('archived' as const),
  };
}

/** `text`: the log so far. A client of the older system opens a WebSocket for the rest, which Postern does not offer. */
export function toBuildJobLog(deploy: Pick<Deploy, 'id'>, step: DeployStep, text: string) {
  const log = { streamingRequired: false, archivedLogs: text, ...errorOf(step) };
  if (step.endedAt !== null) return { status: 'Archived' as const, ...log };
  const live = `/api/v2/builds/${deploy.id}/logs?service=${step.service}`;
  const status = step.status === 'waiting' ? ('Pending' as const) : ('Active' as const);
  return { status, ...log, message: `GET ${live} with Accept: text/event-stream follows this log.` };
}

function errorOf({ status, message }: DeployStep) {
  return status === 'failed' && message !== null ? { error: message } : {};
}
