import type { KeyType } from '../../core/caller.ts';
import { hour, second } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { type GrantableScope, grantableScopes, isScope, type Scope } from '../../core/scopes.ts';
import type { TrustedIssuer } from './trusted-issuer.ts';

/**
 * The rules for issuing keys, as pure functions over the policy document (contract 4). The document's wire schema is in
 * policy-schema.ts.
 */
export type LifetimePolicy = {
  readonly defaultTtlHours: number;
  readonly maxTtlHours: number;
  readonly offeredTtlHours: readonly number[];
  readonly allowNoExpiry: boolean;
};

type PerType<T> = { readonly personal: T; readonly service: T };

export type KeyPolicy = {
  readonly authentication: PerType<boolean>;
  readonly issuance: PerType<boolean>;
  readonly scopes: PerType<readonly GrantableScope[]>;
  readonly repositories: PerType<{ readonly allowAll: boolean }> & { readonly maxSelected: number };
  readonly lifetime: PerType<LifetimePolicy>;
  readonly maxActivePersonalKeysPerUser: number;
  readonly rateLimitPerMinute: number;
  readonly failedAuthenticationsPerMinute: number;
  /** Whose ID tokens trust rules of service keys may accept. */
  readonly federation: { readonly issuers: readonly TrustedIssuer[] };
};

/** Only the default: policy-schema.ts limits what an administrator may set. */
const defaultLifetime: LifetimePolicy = {
  defaultTtlHours: 168,
  maxTtlHours: 720,
  offeredTtlHours: [24, 72, 168, 336, 720],
  allowNoExpiry: true,
};

export const defaultKeyPolicy: KeyPolicy = {
  authentication: { personal: true, service: true },
  issuance: { personal: true, service: true },
  scopes: { personal: grantableScopes, service: grantableScopes },
  repositories: { personal: { allowAll: true }, service: { allowAll: true }, maxSelected: 50 },
  lifetime: { personal: defaultLifetime, service: defaultLifetime },
  maxActivePersonalKeysPerUser: 10,
  rateLimitPerMinute: 600,
  failedAuthenticationsPerMinute: 120,
  federation: { issuers: [] },
};

/** The lifetime that a create or rotate request asks for. */
export type LifetimeRequest = {
  readonly ttlHours?: number | undefined;
  readonly expiresAt?: number | undefined;
};

/** How far `expiresAt` may exceed the cap, because clients compute it from their own clock. */
const clientSkewMs = 60 * second;

/**
 * The expiry of a key of `type` requested at `now`: milliseconds (rounded to the second for `ttlHours`), or null for
 * never. When the request has neither field, the key does not expire, whatever the UI offers (contract 4).
 * @throws AppError invalid_expiry, lifetime_too_long, expiry_required
 */
export function decideExpiry(
  policy: KeyPolicy,
  type: KeyType,
  request: LifetimeRequest,
  now: number,
): number | null {
  const { maxTtlHours, allowNoExpiry } = policy.lifetime[type];
  if (request.ttlHours !== undefined && request.expiresAt !== undefined) {
    throw new AppError('invalid_expiry', {
      message: 'The request has both ttlHours and expiresAt.',
      hint: 'Send only one of them.',
    });
  }
  const longest = maxTtlHours * hour;
  if (request.ttlHours !== undefined) {
    const lifetime = Math.round((request.ttlHours * hour) / second) * second;
    if (request.ttlHours > maxTtlHours) throw tooLong(maxTtlHours);
    if (lifetime <= 0)
      throw new AppError('invalid_expiry', { message: 'ttlHours: must be at least 0.0003 (one second)' });
    return now + lifetime;
  }
  if (request.expiresAt !== undefined) {
    if (request.expiresAt <= now)
      throw new AppError('invalid_expiry', { message: 'expiresAt: must be in the future' });
    if (request.expiresAt > now + longest + clientSkewMs) throw tooLong(maxTtlHours);
    return Math.min(request.expiresAt, now + longest);
  }
  if (!allowNoExpiry)
    throw new AppError('expiry_required', {
      hint: `Send ttlHours or expiresAt, at most ${maxTtlHours} hours ahead.`,
      details: { maxTtlHours },
    });
  return null;
}

function tooLong(maxTtlHours: number): AppError {
  return new AppError('lifetime_too_long', {
    message: `The lifetime is longer than the ${maxTtlHours} hours that the policy allows.`,
    hint: `Choose a lifetime of at most ${maxTtlHours} hours.`,
    details: { maxTtlHours },
  });
}

/** The scopes that a new key of `type` gets, in the product's order. @throws AppError */
export function decideScopes(policy: KeyPolicy, type: KeyType, asked: readonly string[]): Scope[] {
  const allowed = policy.scopes[type];
  const unknown = [...new Set(asked.filter((scope) => !isScope(scope)))];
  const repeated = [...new Set(asked.filter((scope, at) => asked.indexOf(scope) !== at))];
  if (unknown.length + repeated.length > 0) {
    const problems = [
      ...unknown.map((scope) => `${scope} is unknown`),
      ...repeated.map((scope) => `${scope} is repeated`),
    ];
    throw new AppError('invalid_scopes', {
      message: `scopes: ${problems.join('; ')}`,
      hint: 'Use each of details.allowedScopes at most once.',
      details: { unknown, repeated, allowedScopes: allowed },
    });
  }
  if (asked.includes('env:admin')) {
    throw new AppError('forbidden_scope', {
      message: 'env:admin cannot be granted to a new key.',
      hint: 'Use env:read or env:write.',
      details: { requiredScope: 'env:admin' },
    });
  }
  const refused = grantableScopes.filter((scope) => asked.includes(scope) && !allowed.includes(scope));
  if (refused.length > 0)
    throw new AppError('scope_not_allowed', {
      message: `The policy does not allow ${refused.join(', ')}; it allows ${allowed.join(', ') || 'no scope'}.`,
      details: { refused, allowedScopes: allowed },
    });
  return grantableScopes.filter((scope) => asked.includes(scope));
}

/** @throws AppError repository_policy, invalid_repository_access */
export function checkRepositories(
  policy: KeyPolicy,
  type: KeyType,
  access: { mode: 'all' } | { mode: 'selected'; count: number },
): void {
  if (access.mode === 'all') {
    if (!policy.repositories[type].allowAll) {
      throw new AppError('repository_policy', {
        message: 'The policy does not allow access to all repositories; the key needs a selection.',
      });
    }
    return;
  }
  const { maxSelected } = policy.repositories;
  if (access.count > maxSelected) {
    throw new AppError('repository_policy', {
      message: `The request selects ${access.count} repositories; the policy allows ${maxSelected}.`,
      details: { maxSelected },
    });
  }
}

/** Why this policy would refuse to create the stored key today; empty = it would not. */
export function refusalsUnder(
  policy: KeyPolicy,
  key: {
    readonly type: KeyType;
    readonly scopes: readonly Scope[];
    readonly repositoryMode: 'all' | 'selected';
    readonly repositoryCount: number;
    readonly lifetimeMs: number | null;
    readonly expiresAt: number | null;
  },
): string[] {
  const reasons: string[] = [];
  if (!policy.authentication[key.type]) reasons.push('api_keys_disabled');
  if (!policy.issuance[key.type]) reasons.push('issuance_disabled');
  if (key.scopes.some((scope) => !(policy.scopes[key.type] as readonly Scope[]).includes(scope)))
    reasons.push('scope_not_allowed');
  const { allowAll } = policy.repositories[key.type];
  const tooMany = key.repositoryCount > policy.repositories.maxSelected;
  if (key.repositoryMode === 'all' ? !allowAll : tooMany) reasons.push('repository_policy');
  const { maxTtlHours, allowNoExpiry } = policy.lifetime[key.type];
  if (key.expiresAt === null && !allowNoExpiry) reasons.push('expiry_required');
  if (key.lifetimeMs !== null && key.lifetimeMs > maxTtlHours * hour) reasons.push('lifetime_too_long');
  return reasons;
}
