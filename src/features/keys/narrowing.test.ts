import { describe, expect, test } from 'vitest';
import { hour } from '../../core/clock.ts';
import type { AppError } from '../../core/errors.ts';
import { defaultKeyPolicy } from './key-policy.ts';
import {
  narrowExpiry,
  narrowRepositories,
  narrowScopes,
  successorExpiry,
  successorRepositories,
  successorScopes,
} from './narrowing.ts';

const now = Date.UTC(2026, 0, 1);
const all = { repositories: { mode: 'all' } } as const;
const selected = { repositories: { mode: 'selected', repositoryIds: ['a', 'b'] } } as const;
const refusal = (work: () => unknown): string => {
  try {
    work();
  } catch (error) {
    return (error as AppError).code;
  }
  return 'accepted';
};

describe('an edit only narrows', () => {
  test('scopes: a scope that the key has or that follows from one of its scopes', () => {
    const key = { scopes: ['sites:write'] } as const;
    expect(narrowScopes(key, ['sites:read'])).toEqual(['sites:read']);
    expect(refusal(() => narrowScopes(key, ['repos:read']))).toBe('scope_not_allowed');
    expect(refusal(() => narrowScopes(key, ['sites:read', 'sites:read']))).toBe('invalid_scopes');
    expect(refusal(() => narrowScopes(key, ['sites:delete']))).toBe('invalid_scopes');
  });

  test('repositories: fewer, or a selection instead of all', () => {
    expect(narrowRepositories(selected, ['b'])).toEqual(['b']);
    expect(narrowRepositories(all, ['c'])).toEqual(['c']);
    expect(narrowRepositories(all, 'all')).toBeUndefined();
    expect(refusal(() => narrowRepositories(selected, ['a', 'c']))).toBe('repository_policy');
    expect(refusal(() => narrowRepositories(selected, 'all'))).toBe('repository_policy');
  });

  test('expiry: earlier, or one for a key that never expires', () => {
    const expiry = (expiresAt: number | null, request: { ttlHours?: number; expiresAt?: number }) =>
      narrowExpiry(defaultKeyPolicy, { type: 'personal', expiresAt }, request, now);
    expect(expiry(now + 2 * hour, {})).toBeUndefined();
    expect(expiry(now + 2 * hour, { ttlHours: 1 })).toBe(now + hour);
    expect(expiry(null, { ttlHours: 1 })).toBe(now + hour);
    expect(refusal(() => expiry(now + 2 * hour, { ttlHours: 3 }))).toBe('lifetime_too_long');
    expect(refusal(() => expiry(now + 2 * hour, { ttlHours: 1, expiresAt: now + hour }))).toBe(
      'invalid_expiry',
    );
  });
});

describe('a successor has the same rights or fewer, under the current policy', () => {
  test('it loses env:admin, and is refused without a scope', () => {
    const scopesOf = (scopes: readonly ('env:admin' | 'env:read')[], asked?: readonly string[]) =>
      successorScopes(defaultKeyPolicy, { type: 'personal', scopes }, asked);
    expect(scopesOf(['env:admin', 'env:read'])).toEqual(['env:read']);
    expect(refusal(() => scopesOf(['env:admin']))).toBe('scope_not_allowed');
    expect(refusal(() => scopesOf(['env:read'], ['env:write']))).toBe('scope_not_allowed');
  });

  test('a policy that requires a selection refuses a successor for all repositories', () => {
    const { repositories } = defaultKeyPolicy;
    const policy = {
      ...defaultKeyPolicy,
      repositories: { ...repositories, personal: { allowAll: false } },
    };
    const repositoriesOf = (asked?: readonly string[]) =>
      successorRepositories(policy, { type: 'personal', ...all }, asked);
    expect(refusal(() => repositoriesOf())).toBe('repository_policy');
    expect(repositoriesOf(['a'])).toEqual(['a']);
    expect(successorRepositories(policy, { type: 'personal', ...selected }, undefined)).toEqual(['a', 'b']);
  });

  test('it gets the lifetime of its predecessor from now, unless the request has another', () => {
    const expiry = (lifetimeMs: number | null, request = {}) =>
      successorExpiry(defaultKeyPolicy, { type: 'service', lifetimeMs }, request, now);
    expect(expiry(5 * hour)).toBe(now + 5 * hour);
    expect(expiry(null)).toBeNull();
    expect(expiry(5 * hour, { ttlHours: 48 })).toBe(now + 48 * hour);
    expect(refusal(() => expiry(2_000 * hour))).toBe('lifetime_too_long');
  });
});
