import { timestamp, timestampOrNull } from '../../core/clock.ts';
import { type Key, statusOf } from './key.ts';
import type { PolicyVersion } from './policy-document.ts';

/** Converts keys from the domain to their wire form. Names of people come from `features/people`. */
export type PeopleNames = (userIds: readonly string[]) => Promise<ReadonlyMap<string, string>>;

export async function toKeyResponses(keys: readonly Key[], names: PeopleNames, now: number) {
  const ids = new Set<string>();
  for (const key of keys) {
    for (const id of [key.ownerUserId, key.createdBy, key.revokedBy]) if (id !== null) ids.add(id);
  }
  const known = ids.size === 0 ? new Map<string, string>() : await names([...ids]);
  return keys.map((key) => toKeyResponse(key, known, now));
}

export async function toOneKeyResponse(key: Key, names: PeopleNames, now: number) {
  const [response] = await toKeyResponses([key], names, now);
  if (response === undefined) throw new Error('One key in, one key out.');
  return response;
}

function toKeyResponse(key: Key, names: ReadonlyMap<string, string>, now: number) {
  const person = (id: string | null) => (id === null ? null : { id, name: names.get(id) ?? null });
  return {
    id: key.id,
    name: key.name,
    type: key.type,
    status: statusOf(key, now),
    suspended: key.suspendedAt !== null,
    scopes: [...key.scopes],
    repositories: toConstraint(key.repositories.mode, key.repositoryNames),
    owner: person(key.ownerUserId),
    createdAt: timestamp(key.createdAt),
    createdBy: person(key.createdBy),
    expiresAt: timestampOrNull(key.expiresAt),
    revokedAt: timestampOrNull(key.revokedAt),
    revokedBy: person(key.revokedBy),
    revokeReason: key.revokeReason,
    lastUsedAt: timestampOrNull(key.lastUsedAt),
    lastUsedFrom: key.lastUsedFrom === null ? null : { ...key.lastUsedFrom },
    identityBinding:
      key.type === 'service' ? null : key.ownerUserId === null ? ('absent' as const) : ('present' as const),
    replaces: key.replaces,
    replacedBy: key.replacedBy,
    credential: key.credential,
    trustRules: key.trustRules,
  };
}

/** The wire form of a repository constraint, by names. */
export type RepositoryConstraint = { mode: 'all' } | { mode: 'selected'; repositories: string[] };

export function toConstraint(mode: 'all' | 'selected', names: readonly string[]): RepositoryConstraint {
  return mode === 'all' ? { mode } : { mode, repositories: [...names] };
}

export function toPolicyResponse({ version, value: policy, changedAt, changedBy }: PolicyVersion) {
  return {
    version,
    changedAt: timestampOrNull(changedAt),
    changedBy,
    policy: {
      ...policy,
      scopes: { personal: [...policy.scopes.personal], service: [...policy.scopes.service] },
      lifetime: {
        personal: {
          ...policy.lifetime.personal,
          offeredTtlHours: [...policy.lifetime.personal.offeredTtlHours],
        },
        service: {
          ...policy.lifetime.service,
          offeredTtlHours: [...policy.lifetime.service.offeredTtlHours],
        },
      },
      federation: { issuers: [...policy.federation.issuers] },
    },
  };
}
