import { type Caller, isSameOwner, type Owner, ownerOf } from '../../../core/caller.ts';
import type { Access } from '../../configuration-file/configuration-file.ts';

/** The type of an Environment and its rules. No I/O. */

/** `createdAt`: newest first. `expiresAt`: earliest end of the lease first. */
export const environmentSorts = ['createdAt', 'expiresAt'] as const;
export type EnvironmentSort = (typeof environmentSorts)[number];

export const environmentStatuses = [
  'queued',
  'building',
  'built',
  'deploying',
  'deployed',
  'error',
  'config_error',
  'paused',
  'asleep',
  'tearing_down',
  'torn_down',
] as const;
export type EnvironmentStatus = (typeof environmentStatuses)[number];

export const serviceStatuses = [
  'waiting',
  'building',
  'starting',
  'ready',
  'asleep',
  'failed',
  'inactive',
] as const;
export type ServiceStatus = (typeof serviceStatuses)[number];

export const serviceKinds = ['static', 'process', 'image', 'postgres', 'external'] as const;
export type ServiceKind = (typeof serviceKinds)[number];

export type Creator = Owner;

/** A creator's choice for one service, which replaces the file's value. */
export type ServiceChoice = {
  readonly name: string;
  readonly active?: boolean | undefined;
  /** URL of an external service. */
  readonly branchOrExternalUrl?: string | undefined;
};

/** Times in milliseconds. */
export type Environment = {
  readonly id: string;
  /** Name of the Environment: a DNS label, unique while the Environment lives. */
  readonly uuid: string;
  readonly repositoryId: string;
  /** Full name of the repository at the last read. */
  readonly repository: string;
  readonly branch: string;
  /** Null: the newest commit of the branch. */
  readonly pinnedSha: string | null;
  /** The commit that the newest deploy read. Null: no deploy has read one. */
  readonly sha: string | null;
  readonly creator: Creator;
  readonly trigger: 'api' | 'push';
  readonly access: Access;
  /** True until the file is first read: its access then applies, because the creator chose none. */
  readonly isAccessOpen: boolean;
  /** Last part of the host names of its services (labels.ts). */
  readonly label: string;
  readonly services: readonly ServiceChoice[];
  /** Variables that replace those of the file. */
  readonly env: Readonly<Record<string, string>>;
  /** Variables of builds. */
  readonly initEnv: Readonly<Record<string, string>>;
  /** Hours of the lease from the creation. Null until a caller chose them or the file was read. */
  readonly ttlHours: number | null;
  readonly deployEnabled: boolean;
  /** Whether the Environment follows its branch. Null until a caller chose it or the file was read. */
  readonly autoTrack: boolean | null;
  readonly trackDefaultBranches: boolean;
  readonly status: EnvironmentStatus;
  readonly statusMessage: string | null;
  readonly liveDeployId: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly expiresAt: number;
  /** When its teardown was complete. */
  readonly deletedAt: number | null;
  readonly revision: number;
};

/** Current state of one service. */
export type EnvironmentService = {
  readonly name: string;
  readonly kind: ServiceKind;
  readonly status: ServiceStatus;
  /** Why the service is not ready, for people. */
  readonly reason: string | null;
  readonly isExposed: boolean;
  /** Path → name of the service that serves it. */
  readonly routes: Readonly<Record<string, string>>;
  readonly spa: boolean;
  /** URL of an external service. */
  readonly url: string | null;
  readonly artifactId: string | null;
  /** `host:port` at which the gateway reaches a process. Null: it does not listen. */
  readonly address: string | null;
};

export function isCreator(caller: Caller, { creator }: Pick<Environment, 'creator'>): boolean {
  return isSameOwner(ownerOf(caller), creator);
}

/** Statuses of an Environment that is served and has no running deploy. */
export const restingStatuses: readonly EnvironmentStatus[] = ['deployed', 'error', 'config_error'];

/** The status that people see: `paused` while deploys are paused, otherwise the result of the newest deploy. */
export function shownStatus(
  environment: Pick<Environment, 'status' | 'statusMessage' | 'deployEnabled'>,
): Pick<Environment, 'status' | 'statusMessage'> {
  const { status, statusMessage } = environment;
  if (environment.deployEnabled || isEnding(environment)) return { status, statusMessage };
  const rest = statusMessage ?? 'What is served stays as it is.';
  return { status: 'paused', statusMessage: `Deploys are paused. ${rest}` };
}

/** A push can fix the cause of a failed first deploy, so each push deploys until one succeeds. */
export function deploysPushes({
  autoTrack,
  pinnedSha,
  liveDeployId,
  status,
}: Pick<Environment, 'autoTrack' | 'pinnedSha' | 'liveDeployId' | 'status'>): boolean {
  const neverSucceeded = liveDeployId === null && (status === 'error' || status === 'config_error');
  return autoTrack === true || (neverSucceeded && pinnedSha === null);
}

/** Whether the engine runs, or will run, the service. */
export function hasProcess({ kind, status }: Pick<EnvironmentService, 'kind' | 'status'>): boolean {
  return kind === 'process' && status !== 'inactive';
}

/** True: the Environment is no longer served, and nothing starts. */
export function isEnding({ status }: Pick<Environment, 'status'>): boolean {
  return status === 'tearing_down' || status === 'torn_down';
}
