import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hour, second } from '../../core/clock.ts';
import type { AppError } from '../../core/errors.ts';
import {
  effectiveScopes,
  grantableScopes,
  isNarrowerOrEqual,
  satisfies,
  type Scope,
} from '../../core/scopes.ts';
import {
  decideExpiry,
  decideScopes,
  defaultKeyPolicy,
  type KeyPolicy,
  type LifetimeRequest,
  refusalsUnder,
} from './key-policy.ts';

const now = Date.UTC(2026, 0, 1);
const decided = (request: LifetimeRequest, policy: KeyPolicy = defaultKeyPolicy) =>
  decideExpiry(policy, 'personal', request, now);
const refusal = (work: () => unknown): string => {
  try {
    work();
  } catch (error) {
    return (error as AppError).code;
  }
  return 'accepted';
};

describe('PB-02 lifetimes', () => {
  test('neither field means no expiry, whatever the UI offers by default', () => {
    expect(decided({})).toBeNull();
  });
  test('exactly 720 hours pass, 720.01 do not', () => {
    expect(decided({ ttlHours: 720 })).toBe(now + 720 * hour);
    expect(refusal(() => decided({ ttlHours: 720.01 }))).toBe('lifetime_too_long');
    expect(refusal(() => decided({ ttlHours: 1e9 }))).toBe('lifetime_too_long');
  });
  test('an expiresAt up to 60 s over the cap is stored as the cap, beyond it is refused', () => {
    const cap = now + 720 * hour;
    expect(decided({ expiresAt: cap })).toBe(cap);
    expect(decided({ expiresAt: cap + 60 * second })).toBe(cap);
    expect(refusal(() => decided({ expiresAt: cap + 60 * second + 1 }))).toBe('lifetime_too_long');
  });
  test('both fields, the past and the present are refused', () => {
    expect(refusal(() => decided({ ttlHours: 1, expiresAt: now + hour }))).toBe('invalid_expiry');
    expect(refusal(() => decided({ expiresAt: now }))).toBe('invalid_expiry');
    expect(refusal(() => decided({ expiresAt: now - 1 }))).toBe('invalid_expiry');
    expect(refusal(() => decided({ ttlHours: 0.0001 }))).toBe('invalid_expiry');
  });
  test('decimals are kept to the second', () => {
    expect(decided({ ttlHours: 0.5 })).toBe(now + 1_800 * second);
    expect(decided({ ttlHours: 1.0001 })).toBe(now + 3_600 * second);
  });
  test('a policy without eternal keys refuses; it never fills in a lifetime', () => {
    const { personal } = defaultKeyPolicy.lifetime;
    const policy = {
      ...defaultKeyPolicy,
      lifetime: { ...defaultKeyPolicy.lifetime, personal: { ...personal, allowNoExpiry: false } },
    };
    expect(refusal(() => decided({}, policy))).toBe('expiry_required');
    expect(decided({ ttlHours: 1 }, policy)).toBe(now + hour);
  });
});

test('PB-04 a service key lasts longer than 720 hours only under an approved policy', () => {
  const asked = { ttlHours: 1_000 };
  expect(refusal(() => decideExpiry(defaultKeyPolicy, 'service', asked, now))).toBe('lifetime_too_long');
  const approved = {
    ...defaultKeyPolicy,
    lifetime: {
      ...defaultKeyPolicy.lifetime,
      service: { ...defaultKeyPolicy.lifetime.service, maxTtlHours: 2_000 },
    },
  };
  expect(decideExpiry(approved, 'service', asked, now)).toBe(now + 1_000 * hour);
  expect(refusal(() => decideExpiry(approved, 'personal', asked, now))).toBe('lifetime_too_long');
});

const scopeSets = fc.subarray([...grantableScopes] as Scope[], { minLength: 0 });

describe('SC-03 scopes', () => {
  test('write satisfies read of the same resource and nothing else', () => {
    for (const granted of grantableScopes) {
      for (const required of grantableScopes) {
        const [resource, verb] = granted.split(':');
        const expected = granted === required || (verb === 'write' && required === `${resource}:read`);
        expect(satisfies([granted], required)).toBe(expected);
      }
      expect(satisfies(['env:admin'], granted)).toBe(false);
    }
  });
  test('narrowing is a partial order: reflexive, transitive, and never adds a permission', () => {
    fc.assert(
      fc.property(scopeSets, scopeSets, scopeSets, (a, b, c) => {
        expect(isNarrowerOrEqual(a, a)).toBe(true);
        const isChain = isNarrowerOrEqual(a, b) && isNarrowerOrEqual(b, c);
        expect(!isChain || isNarrowerOrEqual(a, c)).toBe(true);
        const adds = effectiveScopes(a).some((scope) => !effectiveScopes(b).includes(scope));
        expect(isNarrowerOrEqual(a, b)).toBe(!adds);
      }),
    );
  });
});

test('SC-04 unknown, repeated and reserved scopes are refused, each with its code', () => {
  const codeOf = (scopes: string[]) => refusal(() => decideScopes(defaultKeyPolicy, 'service', scopes));
  expect(codeOf(['env:everything'])).toBe('invalid_scopes');
  expect(codeOf(['env:read', 'env:read'])).toBe('invalid_scopes');
  expect(codeOf(['env:admin'])).toBe('forbidden_scope');
  expect(codeOf(['repos:read', 'env:admin'])).toBe('forbidden_scope');
  const readOnly = {
    ...defaultKeyPolicy,
    scopes: { personal: ['repos:read'], service: ['repos:read'] },
  } as const;
  expect(refusal(() => decideScopes(readOnly, 'personal', ['repos:write']))).toBe('scope_not_allowed');
});

test('every unknown and every repeated scope is named, with the scopes that are allowed', () => {
  const policy = { ...defaultKeyPolicy, scopes: { personal: ['repos:read'], service: [] } } as const;
  const asked = ['repo:read', 'repos:read', 'root', 'repos:read', 'root'];
  expect(() => decideScopes(policy, 'personal', asked)).toThrow(
    expect.objectContaining({
      code: 'invalid_scopes',
      message: 'scopes: repo:read is unknown; root is unknown; repos:read is repeated; root is repeated',
      details: {
        unknown: ['repo:read', 'root'],
        repeated: ['repos:read', 'root'],
        allowedScopes: ['repos:read'],
      },
    }),
  );
});

test('what a policy lets be created, it does not list as refused', () => {
  const policies = fc.record({
    maxTtlHours: fc.integer({ min: 1, max: 720 }),
    allowNoExpiry: fc.boolean(),
    allowAll: fc.boolean(),
    scopes: fc.subarray([...grantableScopes]),
  });
  fc.assert(
    fc.property(
      policies,
      scopeSets,
      fc.option(fc.double({ min: 0.01, max: 800, noNaN: true })),
      fc.boolean(),
      (shape, asked, ttl, all) => {
        const lifetime = {
          defaultTtlHours: 1,
          offeredTtlHours: [1],
          maxTtlHours: shape.maxTtlHours,
          allowNoExpiry: shape.allowNoExpiry,
        };
        const policy: KeyPolicy = {
          ...defaultKeyPolicy,
          scopes: { personal: shape.scopes, service: shape.scopes },
          lifetime: { personal: lifetime, service: lifetime },
          repositories: { ...defaultKeyPolicy.repositories, personal: { allowAll: shape.allowAll } },
        };
        const request = ttl === null ? {} : { ttlHours: ttl };
        const scopesCode = refusal(() => decideScopes(policy, 'personal', asked));
        const expiryCode = refusal(() => decideExpiry(policy, 'personal', request, now));
        const expiresAt = expiryCode === 'accepted' ? decideExpiry(policy, 'personal', request, now) : null;
        if (scopesCode !== 'accepted' || expiryCode !== 'accepted') return;
        const refused = refusalsUnder(policy, {
          type: 'personal',
          scopes: asked,
          repositoryMode: all ? 'all' : 'selected',
          repositoryCount: 1,
          lifetimeMs: expiresAt === null ? null : expiresAt - now,
          expiresAt,
        });
        expect(refused).toEqual(all && !shape.allowAll ? ['repository_policy'] : []);
      },
    ),
  );
});
