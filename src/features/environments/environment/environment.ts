import { type Caller, isSameOwner, type Owner, ownerOf } from '../../../core/caller.ts';
import type { Access } from '../../configuration-file/configuration-file.ts';

/** What an Environment is, and who may see and change it. No I/O. */

/** `createdAt`: the newest first. `expiresAt`: the lease that ends next first. */
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

/** What a creator chose for one service in place of the file. */
export type ServiceChoice = {
  readonly name: string;
  readonly active?: boolean | undefined;
  /** URL of an external service. */
  readonly branchOrExternalUrl?: string | undefined;
};

/** Times in milliseconds. */
export type Environment = {
  readonly id: string;
  /** Its name: a DNS label, unique while the Environment lives. */
  readonly uuid: string;
  readonly repositoryId: string;
  /** Full name of the repository when it was last read. */
  readonly repository: string;
  readonly branch: string;
  /** Null: the newest commit of the branch. */
  readonly pinnedSha: string | null;
  /** The commit that the newest deploy read; null before the first. */
  readonly sha: string | null;
  readonly creator: Creator;
  readonly trigger: 'api' | 'push';
  readonly access: Access;
  /** True until the file is read for the first time: then its access counts, because nobody chose one. */
  readonly isAccessOpen: boolean;
  /** The last part of the host names of its services (labels.ts). */
  readonly label: string;
  readonly services: readonly ServiceChoice[];
  /** Variables, in place of those of the file. */
  readonly env: Readonly<Record<string, string>>;
  /** Variables of builds. */
  readonly initEnv: Readonly<Record<string, string>>;
  /** Hours of the lease from the creation on; null until a caller chose them or the file was read. */
  readonly ttlHours: number | null;
  readonly deployEnabled: boolean;
  /** Whether it follows its branch; null until a caller chose it or the file was read. */
  readonly autoTrack: boolean | null;
  readonly trackDefaultBranches: boolean;
  readonly status: EnvironmentStatus;
  readonly statusMessage: string | null;
  readonly liveDeployId: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly expiresAt: number;
  /** When the last of it was removed. */
  readonly deletedAt: number | null;
  readonly revision: number;
};

/** One service as it is now. */
export type EnvironmentService = {
  readonly name: string;
  readonly kind: ServiceKind;
  readonly status: ServiceStatus;
  /** Why it is not ready, in words. */
  readonly reason: string | null;
  readonly isExposed: boolean;
  /** Path → name of the service that answers it. */
  readonly routes: Readonly<Record<string, string>>;
  readonly spa: boolean;
  /** Of an external service. */
  readonly url: string | null;
  readonly artifactId: string | null;
  /** `host:port` where the gateway reaches a process; null while it does not listen. */
  readonly address: string | null;
};

export function isCreator(caller: Caller, { creator }: Pick<Environment, 'creator'>): boolean {
  return isSameOwner(ownerOf(caller), creator);
}

/** It runs, and is served, unless a deploy is under way. */
export const restingStatuses: readonly EnvironmentStatus[] = ['deployed', 'error', 'config_error'];

/** What people see: `paused` while deploys are paused, and afterwards again what the newest deploy came to. */
export function shownStatus(
  environment: Pick<Environment, 'status' | 'statusMessage' | 'deployEnabled'>,
): Pick<Environment, 'status' | 'statusMessage'> {
  const { status, statusMessage } = environment;
  if (environment.deployEnabled || isEnding(environment)) return { status, statusMessage };
  const rest = statusMessage ?? 'What is served stays as it is.';
  return { status: 'paused', statusMessage: `Deploys are paused. ${rest}` };
}

/** A push can repair what kept the first deploy from succeeding, so each push tries again until one succeeds. */
export function deploysPushes({
  autoTrack,
  pinnedSha,
  liveDeployId,
  status,
}: Pick<Environment, 'autoTrack' | 'pinnedSha' | 'liveDeployId' | 'status'>): boolean {
  const neverSucceeded = liveDeployId === null && (status === 'error' || status === 'config_error');
  return autoTrack === true || (neverSucceeded && pinnedSha === null);
}

/** A service that the engine runs, or is about to run. */
export function hasProcess({ kind, status }: Pick<EnvironmentService, 'kind' | 'status'>): boolean {
  return kind === 'process' && status !== 'inactive';
}

/** True: nothing of it is served any more, and nothing starts. */
export function isEnding({ status }: Pick<Environment, 'status'>): boolean {
  return status === 'tearing_down' || status === 'torn_down';
}
