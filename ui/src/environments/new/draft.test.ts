import { expect, test } from 'vitest';
import { accessShown, firstDraft, hoursShown, leasesOffered, mistakesIn, requestOf } from './draft.ts';

const policy = { allowedAccess: ['owner', 'members'] as const, defaultTtlHours: 72, maxTtlHours: 336 };
const allowed = { ...policy, allowedAccess: [...policy.allowedAccess] };
const draft = firstDraft({ repository: 'acme/website', branch: 'main' });
const planned = { access: 'owner' as const, ttlHours: 48, autoTrack: true, services: [], levels: [] };

const always = { repository: 'acme/website', branch: 'main', idempotencyKey: 'k' };

test('the request leaves unset choices to postern.yaml and the policy', () => {
  expect(requestOf(draft, planned, allowed, 'k')).toEqual(always);
  expect(requestOf({ ...draft, autoTrack: false }, planned, allowed, 'k')).toEqual({
    ...always,
    autoTrack: false,
  });
  expect(accessShown(draft, planned, allowed)).toBe('owner');
  expect(accessShown(draft, null, allowed)).toBe('members');
  expect(accessShown({ ...draft, access: 'members' }, planned, allowed)).toBe('members');
  expect([hoursShown(draft, planned, allowed), hoursShown(draft, null, allowed)]).toEqual([48, 72]);
});

test('without a readable postern.yaml, the request has the values that the form shows', () => {
  expect(requestOf(draft, null, allowed, 'k')).toEqual({
    ...always,
    access: 'members',
    ttlHours: 72,
    autoTrack: true,
  });
  expect(
    requestOf({ ...draft, access: 'owner', ttlHours: 8, autoTrack: false }, null, allowed, 'k'),
  ).toMatchObject({ access: 'owner', ttlHours: 8, autoTrack: false });
});

test('the form offers leases up to the maximum, including the lease of the file', () => {
  expect(leasesOffered(planned, allowed)).toEqual([8, 24, 48, 72, 168, 336]);
  expect(leasesOffered(null, { ...allowed, maxTtlHours: 24, defaultTtlHours: 12 })).toEqual([8, 12, 24]);
});

test('a missing repository or branch and an invalid name are reported before anything is sent', () => {
  expect(Object.keys(mistakesIn(firstDraft({})))).toEqual(['repository']);
  expect(Object.keys(mistakesIn({ ...draft, branch: '' }))).toEqual(['branch']);
  for (const name of ['ab', '-abc', 'abc-', 'Abc', 'a'.repeat(51)])
    expect([name, Object.keys(mistakesIn({ ...draft, name }))]).toEqual([name, ['name']]);
  expect(mistakesIn({ ...draft, name: ' my-shop ' })).toEqual({});
});
