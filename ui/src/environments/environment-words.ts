import type { Schemas } from '../api/contract.ts';

export type Environment = Schemas['Environment'];
export type Service = Schemas['EnvironmentService'];
export type Deploy = Schemas['Build'];
export type Access = Environment['access'];

/** A badge: its label and its colour. The label alone says everything. */
type Words = readonly [label: string, color: 'blue' | 'gray' | 'green' | 'red' | 'yellow'];

export const statusWords: Readonly<Record<Environment['status'], Words>> = {
  queued: ['Queued', 'blue'],
  building: ['Building', 'blue'],
  built: ['Built', 'blue'],
  deploying: ['Deploying', 'blue'],
  deployed: ['Deployed', 'green'],
  error: ['Failed', 'red'],
  config_error: ['Configuration error', 'red'],
  paused: ['Paused', 'gray'],
  asleep: ['Asleep', 'gray'],
  tearing_down: ['Tearing down', 'yellow'],
  torn_down: ['Torn down', 'gray'],
};

export const deployStatusWords: Readonly<Record<Deploy['status'], Words>> = {
  queued: ['Queued', 'blue'],
  building: ['Building', 'blue'],
  built: ['Built', 'blue'],
  deploying: ['Deploying', 'blue'],
  deployed: ['Deployed', 'green'],
  error: ['Failed', 'red'],
  config_error: ['Configuration error', 'red'],
  cancelled: ['Cancelled', 'gray'],
  superseded: ['Superseded', 'gray'],
};

export const serviceStatusWords: Readonly<Record<Service['status'], Words>> = {
  waiting: ['Waiting', 'gray'],
  building: ['Building', 'blue'],
  starting: ['Starting', 'blue'],
  ready: ['Ready', 'green'],
  asleep: ['Asleep', 'gray'],
  failed: ['Failed', 'red'],
  inactive: ['Not active', 'gray'],
};

export const kindWords: Readonly<Record<Service['kind'], string>> = {
  static: 'Static files',
  process: 'Process',
  image: 'Image',
  postgres: 'PostgreSQL',
  external: 'External',
};

export const triggerWords: Readonly<Record<Deploy['trigger'], string>> = {
  api: 'Manual or API',
  push: 'New commit of the branch',
  retry: 'Retry',
  wake: 'Wake-up',
};

/** Who may open an Environment in a browser, from the narrowest to the widest. */
export const accessChoices: readonly {
  readonly value: Access;
  readonly label: string;
  readonly says: string;
}[] = [
  {
    value: 'owner',
    label: 'Only me',
    says: 'Only its creator can open and see it, in a browser where they are signed in.',
  },
  {
    value: 'members',
    label: 'Members',
    says: 'Everyone who can sign in to Postern can open it.',
  },
  {
    value: 'public',
    label: 'Everyone',
    says: 'Anyone who has the address can open it without signing in.',
  },
];

export function isAccess(value: string): value is Access {
  return accessChoices.some((choice) => choice.value === value);
}

/** The same access as a fact, whoever created the Environment. */
export const accessFacts: Readonly<Record<Access, string>> = {
  owner: 'Only its creator',
  members: 'Everyone who can sign in',
  public: 'Everyone who has the address',
};

const underWay: readonly Environment['status'][] = [
  'queued',
  'building',
  'built',
  'deploying',
  'tearing_down',
];

/** Its status changes without a new request. */
export function isUnderWay({ status }: Pick<Environment, 'status'>): boolean {
  return underWay.includes(status);
}

/** True if it is no longer served and cannot be changed. */
export function isEnding({ status }: Pick<Environment, 'status'>): boolean {
  return status === 'tearing_down' || status === 'torn_down';
}

/** Tells the two answers of the route apart: for the name of an Environment, it answers as the older system did. */
export function isDeploy(build: Deploy | Schemas['OlderBuild']): build is Deploy {
  return 'steps' in build;
}

export function hasEnded({ endedAt }: Pick<Deploy, 'endedAt'>): boolean {
  return endedAt !== null;
}

/** Who created it, as the person `me` reads it. */
export function creatorWords({ createdBy }: Pick<Environment, 'createdBy'>, me: string | undefined): string {
  if (createdBy.kind === 'user') return createdBy.id === me ? 'You' : (createdBy.name ?? 'Unknown user');
  return `Key ${createdBy.name ?? createdBy.id}`;
}

/** `me` sees the row as an administrator: only the creator may read the rest. */
export function isRowOnly(
  { access, createdBy }: Pick<Environment, 'access' | 'createdBy'>,
  me: string | undefined,
): boolean {
  return access === 'owner' && me !== undefined && createdBy.id !== me;
}

export function shortSha(sha: string): string {
  return sha.slice(0, 7);
}
