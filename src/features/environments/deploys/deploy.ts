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
  /** Null until Postern has read the branch. */
  readonly sha: string | null;
  /** The first line of the commit's message. Null: Postern did not read it. */
  readonly commitSubject: string | null;
  readonly trigger: DeployTrigger;
  readonly status: DeployStatus;
  /** What went wrong and what to do, for people. */
  readonly message: string | null;
  readonly fix: string | null;
  /** Problems of postern.yaml. */
  readonly problems: readonly Problem[];
  /** Null until Postern has read the file. */
  readonly plan: DesiredEnvironment | null;
  /** Null: Postern itself. */
  readonly creator: Creator | null;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
};

export type DeployStep = {
  /** Empty: the step is of the whole deploy. */
  readonly service: string;
  readonly step: StepName;
  readonly status: StepStatus;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** The step reused the result of an earlier build. */
  readonly reused: boolean;
  readonly message: string | null;
  readonly buildJobId: string | null;
  readonly artifactId: string | null;
};

export function hasEnded({ endedAt }: Pick<Deploy, 'endedAt'>): boolean {
  return endedAt !== null;
}

/** A deploy whose file had no problems. */
export type PlannedDeploy = Deploy & { readonly plan: DesiredEnvironment };

export function isPlanned(deploy: Deploy): deploy is PlannedDeploy {
  return deploy.plan !== null;
}
