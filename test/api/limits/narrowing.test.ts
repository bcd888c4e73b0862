// @module-tag sql
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hour } from '../../../src/core/clock.ts';
import { grantableScopes, isNarrowerOrEqual, type Scope } from '../../../src/core/scopes.ts';
import type { RepositorySelection } from '../../../src/features/keys/keys.ts';
import { type Harness, openHarness, type Person } from '../../harness.ts';
import { noLimits, setPolicy } from '../access/cast.ts';

let h: Harness;
let ada: Person;
const repositories = ['acme/website', 'acme/api', 'acme/docs'];
beforeAll(async () => {
  h = await openHarness();
  await setPolicy(h, noLimits);
  ada = await h.person('Ada');
  for (const name of repositories) await h.repository(name);
});
afterAll(() => h.close());

/** What a key may do, as someone who presents it is told. */
type Rights = { scopes: Scope[]; repositories: string[] | 'all'; endsAt: number };

const scopes = fc.uniqueArray(fc.constantFrom(...grantableScopes), { minLength: 1, maxLength: 4 });
const selection: fc.Arbitrary<RepositorySelection> = fc.oneof(
  fc.constant<RepositorySelection>({ mode: 'all' }),
  fc
    .uniqueArray(fc.constantFrom(...repositories), { minLength: 1 })
    .map((names): RepositorySelection => ({ mode: 'selected', repositories: names })),
);
const ttlHours = fc.option(fc.constantFrom(1, 24, 719, 720), { nil: undefined });
const start = fc.record({ scopes, repositoryAccess: selection, ttlHours });
type Edit = { name?: string; scopes?: Scope[]; repositoryAccess?: RepositorySelection; ttlHours?: number };
const edit: fc.Arbitrary<Edit> = fc.record(
  {
    name: fc.constant('renamed'),
    scopes,
    repositoryAccess: selection,
    ttlHours: fc.constantFrom(1, 24, 719, 720),
  },
  { requiredKeys: [] },
);

async function rightsOf(value: string): Promise<Rights> {
  const { data } = await h.call('GET', '/auth/context', { as: `Bearer ${value}` });
  return {
    scopes: data.scopes,
    repositories: data.repositories.mode === 'all' ? 'all' : data.repositories.repositories,
    endsAt: data.expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(data.expiresAt),
  };
}

/** Order of the lattice: nothing in `next` that `before` did not have. */
function isWithin(next: Rights, before: Rights): boolean {
  const reach = before.repositories;
  return (
    isNarrowerOrEqual(next.scopes, before.scopes) &&
    (reach === 'all' ||
      (next.repositories !== 'all' && next.repositories.every((one) => reach.includes(one)))) &&
    next.endsAt <= before.endsAt
  );
}

/** What the edit asks for, in the same words; undefined = it cannot be said in advance. */
function wished(before: Rights, asked: Edit, now: number): Rights {
  const { repositoryAccess } = asked;
  return {
    scopes: asked.scopes ?? before.scopes,
    repositories:
      repositoryAccess === undefined
        ? before.repositories
        : repositoryAccess.mode === 'all'
          ? 'all'
          : [...repositoryAccess.repositories],
    endsAt: asked.ttlHours === undefined ? before.endsAt : now + asked.ttlHours * hour,
  };
}

test('a lifetime beyond the key’s own is refused as a widening, even if it also exceeds the policy', async () => {
  const key = await h.key(ada, { ttlHours: 500 });
  for (const ttlHours of [600, 900]) {
    const { status, error } = await h.call('PATCH', `/me/tokens/${key.id}`, { as: ada, body: { ttlHours } });
    expect([status, error.code, error.message]).toEqual([
      422,
      'lifetime_too_long',
      `The key expires at ${error.details.expiresAt}; an edit can only shorten its lifetime.`,
    ]);
    expect(error.details.expiresAt).toMatch(/Z$/);
  }
});

test('accepted edits only narrow a key, and every edit that narrows is accepted', {
  tags: 'flood',
}, async () => {
  await fc.assert(
    fc.asyncProperty(start, fc.array(edit, { minLength: 1, maxLength: 5 }), async (first, edits) => {
      const { ttlHours: hours, ...rest } = first;
      const key = await h.key(ada, hours === undefined ? rest : { ...rest, ttlHours: hours });
      for (const asked of edits) {
        h.clock.advance(60_000);
        const before = await rightsOf(key.value);
        const answer = await h.call('PATCH', `/me/tokens/${key.id}`, { as: ada, body: asked });
        const after = await rightsOf(key.value);
        expect(isWithin(after, before)).toBe(true);
        const isFair =
          Object.keys(asked).length > 0 && isWithin(wished(before, asked, h.clock.now()), before);
        expect(answer.status).toBe(isFair ? 200 : Object.keys(asked).length === 0 ? 400 : 422);
        expect(answer.status === 200 ? before : after).toEqual(before);
      }
      await h.call('DELETE', `/me/tokens/${key.id}`, { as: ada });
    }),
    { numRuns: 60 },
  );
});
