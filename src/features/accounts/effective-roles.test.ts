import { describe, expect, test } from 'vitest';
import { effectiveRoles, wouldBeCircular } from './effective-roles.ts';

describe('effective roles', () => {
  const tree = [
    { id: 'top', parentId: null, roles: ['admin'] as const },
    { id: 'middle', parentId: 'top', roles: [] },
    { id: 'bottom', parentId: 'middle', roles: ['user'] as const },
    { id: 'other', parentId: null, roles: [] },
  ];

  test('come from the account, its groups and everything above them', () => {
    expect(effectiveRoles([], ['bottom'], tree)).toEqual(['user', 'admin']);
    expect(effectiveRoles(['user'], ['other'], tree)).toEqual(['user']);
    expect(effectiveRoles([], [], tree)).toEqual([]);
    expect(effectiveRoles([], ['gone'], tree)).toEqual([]);
  });

  test('end even where the stored groups form a circle', () => {
    const circle = [
      { id: 'a', parentId: 'b', roles: ['user'] as const },
      { id: 'b', parentId: 'a', roles: [] },
    ];
    expect(effectiveRoles([], ['a'], circle)).toEqual(['user']);
    expect(wouldBeCircular('top', 'bottom', tree)).toBe(true);
    expect(wouldBeCircular('top', 'other', tree)).toBe(false);
  });
});
