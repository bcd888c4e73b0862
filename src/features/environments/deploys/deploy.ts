import type { DesiredEnvironment, Problem } from '../../configuration-file/configuration-file.ts';
import type { Creator } from '../environment/environment.ts';

/** A deploy brings an Environment to one commit. Clients know it as a build. */
export const deployStatuses = [
  'queued',
  'building',
  'built',
  'deploying',
  'deployed',
  'error',
  'config_error',
  'cancelled',
  'superseded',
] as const;
export type DeployStatus = (typeof deployStatuses)[number];

export const deployTriggers = ['api', 'push', 'retry', 'wake'] as const;
export type DeployTrigger = (typeof deployTriggers)[number];

export const stepNames = ['fetch', 'build', 'start', 'health', 'route'] as const;
export type StepName = (typeof stepNames)[number];

export const stepStatuses = ['waiting', 'running', 'done', 'failed', 'cancelled'] as const;
export type StepStatus = (typeof stepStatuses)[number];

/** Times in milliseconds. */
export type Deploy = {
  readonly id: string;
  readonly environmentId: string;
  readonly repositoryId: string;
  readonly branch: string;
  /** Null until the branch was read. */
  readonly sha: string | null;
  /** The first line of the commit's message; null where nobody read it. */
  readonly commitSubject: string | null;
  readonly trigger: DeployTrigger;
  readonly status: DeployStatus;
  /** What went wrong, in words, and what to do. */
  readonly message: string | null;
  readonly fix: string | null;
  /** Of postern.yaml. */
  readonly problems: readonly Problem[];
  /** Null until the file was read. */
  readonly plan: DesiredEnvironment | null;
  /** Null: Postern itself. */
  readonly creator: Creator | null;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
};

export type DeployStep = {
  /** Empty: of the deploy as a whole. */
  readonly service: string;
  readonly step: StepName;
  readonly status: StepStatus;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** The result of an earlier build was used again. */
  readonly reused: boolean;
  readonly message: string | null;
  readonly buildJobId: string | null;
  readonly artifactId: string | null;
};

export function hasEnded({ endedAt }: Pick<Deploy, 'endedAt'>): boolean {
  return endedAt !== null;
}

/** One whose file was read without problems. */
export type PlannedDeploy = Deploy & { readonly plan: DesiredEnvironment };

export function isPlanned(deploy: Deploy): deploy is PlannedDeploy {
  return deploy.plan !== null;
}
