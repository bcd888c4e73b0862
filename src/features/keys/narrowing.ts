import { hour, second } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { effectiveScopes, isNarrowerOrEqual, isScope, type Scope } from '../../core/scopes.ts';
import type { Key } from './key.ts';
import {
  checkRepositories,
  decideExpiry,
  decideScopes,
  type KeyPolicy,
  type LifetimeRequest,
} from './key-policy.ts';

/**
 * The rules for changes of a key, as pure functions: an edit only narrows, and a successor has the same rights or fewer
 * and must pass the current policy (contract 4). keys.ts looks up the repositories that a request names.
 */

/** @throws AppError invalid_scopes, scope_not_allowed */
export function narrowScopes(before: Pick<Key, 'scopes'>, asked: readonly string[]): Scope[] {
  const scopes = asked.filter(isScope);
  if (scopes.length !== asked.length || new Set(asked).size !== asked.length) {
    throw new AppError('invalid_scopes', { message: 'scopes: must be known scopes, each at most once' });
  }
  if (!isNarrowerOrEqual(scopes, before.scopes)) {
    const refused = scopes.filter((scope) => !effectiveScopes(before.scopes).includes(scope));
    throw new AppError('scope_not_allowed', {
      message: `The key has ${before.scopes.join(', ')}; it cannot get ${refused.join(', ')}.`,
      hint: 'Send only scopes that the key has, or create a new key.',
      details: { refused },
    });
  }
  return scopes;
}

/** undefined = the repositories stay. @throws AppError repository_policy */
export function narrowRepositories(
  { repositories }: Pick<Key, 'repositories'>,
  asked: readonly string[] | 'all',
): readonly string[] | undefined {
  if (asked === 'all' && repositories.mode === 'all') return undefined;
  const isNarrower =
    asked !== 'all' &&
    (repositories.mode === 'all' || asked.every((id) => repositories.repositoryIds.includes(id)));
  if (!isNarrower) {
    throw new AppError('repository_policy', { message: 'An edit can only remove repositories.' });
  }
  return asked;
}

/**
 * undefined = the expiry stays. Setting one on a key that never expires, or moving one closer, is narrowing.
 * @throws AppError invalid_expiry, lifetime_too_long
 */
export function narrowExpiry(
  policy: KeyPolicy,
  before: Pick<Key, 'type' | 'expiresAt'>,
  request: LifetimeRequest,
  now: number,
): number | undefined {
  if (request.ttlHours === undefined && request.expiresAt === undefined) return undefined;
  const asked = askedExpiry(request, now);
  if (before.expiresAt !== null && asked !== null && asked > before.expiresAt) {
    const expiresAt = new Date(before.expiresAt).toISOString();
    throw new AppError('lifetime_too_long', {
      message: `The key expires at ${expiresAt}; an edit can only shorten its lifetime.`,
      hint: 'Rotate the key to get a longer lifetime.',
      details: { expiresAt },
    });
  }
  return decideExpiry(policy, before.type, request, now) ?? undefined;
}

/** The requested expiry, before the policy applies. Null when the request has both fields or none; decideExpiry() judges that. */
function askedExpiry({ ttlHours, expiresAt }: LifetimeRequest, now: number): number | null {
  if (ttlHours !== undefined && expiresAt !== undefined) return null;
  if (ttlHours !== undefined) return now + Math.round((ttlHours * hour) / second) * second;
  return expiresAt ?? null;
}

/** @throws AppError invalid_scopes, scope_not_allowed */
export function successorScopes(
  policy: KeyPolicy,
  predecessor: Pick<Key, 'type' | 'scopes'>,
  asked: readonly string[] | undefined,
): Scope[] {
  // A successor loses env:admin: no new key may have it.
  const kept = predecessor.scopes.filter((scope) => scope !== 'env:admin');
  const scopes = asked === undefined ? kept : narrowScopes(predecessor, asked);
  if (scopes.length === 0) {
    throw new AppError('scope_not_allowed', {
      message: 'The key would have no scope left.',
      hint: 'Create a new key.',
    });
  }
  return decideScopes(policy, predecessor.type, scopes);
}

/** `asked` undefined = those of the predecessor. @throws AppError repository_policy */
export function successorRepositories(
  policy: KeyPolicy,
  predecessor: Pick<Key, 'type' | 'repositories'>,
  asked: readonly string[] | 'all' | undefined,
): readonly string[] | 'all' {
  const { type, repositories } = predecessor;
  const narrowed = asked === undefined ? undefined : narrowRepositories(predecessor, asked);
  const ids = narrowed ?? (repositories.mode === 'all' ? 'all' : repositories.repositoryIds);
  checkRepositories(policy, type, ids === 'all' ? { mode: 'all' } : { mode: 'selected', count: ids.length });
  return ids;
}

/** A request without an expiry repeats the lifetime of the predecessor. @throws AppError as decideExpiry() */
export function successorExpiry(
  policy: KeyPolicy,
  { type, lifetimeMs }: Pick<Key, 'type' | 'lifetimeMs'>,
  request: LifetimeRequest,
  now: number,
): number | null {
  const isAsked = request.ttlHours !== undefined || request.expiresAt !== undefined;
  const repeated: LifetimeRequest = lifetimeMs === null ? {} : { ttlHours: lifetimeMs / hour };
  return decideExpiry(policy, type, isAsked ? request : repeated, now);
}
