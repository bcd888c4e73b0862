import type { Schemas } from '../../api/contract.ts';
import type { Access } from '../environment-words.ts';

type Planned = Schemas['PlannedEnvironment'];
type Policy = Pick<
  Schemas['EnvironmentPolicyForEveryone'],
  'allowedAccess' | 'defaultTtlHours' | 'maxTtlHours'
>;

/** Input for a new Environment. Null: postern.yaml or the policy decides. */
export type Draft = {
  readonly repository: string;
  readonly branch: string;
  readonly name: string;
  readonly access: Access | null;
  readonly ttlHours: number | null;
  readonly autoTrack: boolean | null;
};

export type DraftErrors = {
  readonly [key in 'repository' | 'branch' | 'name' | 'access' | 'ttlHours' | 'autoTrack']?: string;
};

export function firstDraft(from: { readonly repository?: string; readonly branch?: string }): Draft {
  const { repository = '', branch = '' } = from;
  return { repository, branch, name: '', access: null, ttlHours: null, autoTrack: null };
}

/** The access that the form shows as chosen. */
export function accessShown({ access }: Draft, planned: Planned | null, { allowedAccess }: Policy): Access {
  return (
    access ??
    planned?.access ??
    (allowedAccess.includes('members') ? 'members' : (allowedAccess[0] ?? 'owner'))
  );
}

export function hoursShown({ ttlHours }: Draft, planned: Planned | null, policy: Policy): number {
  return ttlHours ?? planned?.ttlHours ?? policy.defaultTtlHours;
}

/** Leases to choose from, shortest first: usual ones, and those of the policy and the file. */
export function leasesOffered(planned: Planned | null, { defaultTtlHours, maxTtlHours }: Policy): number[] {
  const offered = [8, 24, 72, 168, defaultTtlHours, maxTtlHours, planned?.ttlHours ?? defaultTtlHours];
  return [...new Set(offered.filter((hours) => hours <= maxTtlHours))].sort((a, b) => a - b);
}

export function mistakesIn({ repository, branch, name }: Draft): DraftErrors {
  const wanted = name.trim();
  return {
    ...(repository === '' ? { repository: 'Choose a repository.' } : {}),
    ...(repository !== '' && branch === '' ? { branch: 'Choose a branch.' } : {}),
    ...(wanted === '' || /^[a-z0-9][a-z0-9-]{1,48}[a-z0-9]$/.test(wanted)
      ? {}
      : { name: 'Use 3 to 50 characters a–z, 0–9 and -. Begin and end with a letter or a digit.' }),
  };
}

/** Whether the form shows that the Environment follows its branch. */
export function followShown({ autoTrack }: Draft, planned: Planned | null): boolean {
  return autoTrack ?? planned?.autoTrack ?? true;
}

/** Without a readable file, the request has the values that the form shows. */
export function requestOf(
  draft: Draft,
  planned: Planned | null,
  policy: Policy,
  idempotencyKey: string,
): Schemas['CreateEnvironmentRequest'] {
  const shown = {
    access: accessShown(draft, planned, policy),
    ttlHours: hoursShown(draft, planned, policy),
    autoTrack: followShown(draft, planned),
  };
  const { repository, branch, name } = draft;
  const { access, ttlHours, autoTrack } = planned === null ? shown : draft;
  return {
    repository,
    branch,
    idempotencyKey,
    ...(name.trim() === '' ? {} : { name: name.trim() }),
    ...(access === null ? {} : { access }),
    ...(ttlHours === null ? {} : { ttlHours }),
    ...(autoTrack === null ? {} : { autoTrack }),
  };
}

/** Makes a retry safe: if the answer was lost, the second request creates nothing. */
export function newIdempotencyKey(): string {
  // crypto.randomUUID is missing on plain http.
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}
