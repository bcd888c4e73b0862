// @module-tag sql
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { defaultKeyPolicy } from '../../../src/features/keys/key-policy.ts';
import { grantableScopes, type Scope } from '../../../src/core/scopes.ts';
import type { RepositorySelection } from '../../../src/features/keys/keys.ts';
import type { CallOptions, Harness, Person } from '../../harness.ts';
import { commandLine, noLimits, openFrozenHarness, setPolicy } from '../access/cast.ts';

let h: Harness;
let people: { root: Person; ada: Person };
let tokens: Map<string, string>;
const registered = ['acme/website', 'acme/api'];
beforeAll(async () => {
  h = await openFrozenHarness();
  await setPolicy(h, noLimits);
  for (const name of registered) await h.repository(name);
  people = { root: await h.person('Root', { admin: true }), ada: await h.person('Ada') };
  tokens = new Map();
  for (const name of ['Root', 'Ada']) {
    const line = commandLine(h, name);
    for (const scopes of [['repos:read'], ['repos:write'], ['sites:write']])
      tokens.set(`${name} ${scopes.join()}`, await line.token(scopes));
  }
});
afterAll(async () => {
  await h.close();
  vi.useRealTimers();
});

const owner = fc.constantFrom('root' as const, 'ada' as const);
const scopes = fc.uniqueArray(fc.constantFrom(...grantableScopes), { minLength: 1, maxLength: 3 });
const access: fc.Arbitrary<RepositorySelection> = fc.oneof(
  fc.constant<RepositorySelection>({ mode: 'all' }),
  fc
    .uniqueArray(fc.constantFrom(...registered), { minLength: 1 })
    .map((names): RepositorySelection => ({ mode: 'selected', repositories: names })),
);
const caller = fc.oneof(
  fc.record({ kind: fc.constant('session' as const), owner }),
  fc.record({
    kind: fc.constant('access token' as const),
    owner: fc.constantFrom('Root', 'Ada'),
    scope: fc.constantFrom('repos:read', 'repos:write', 'sites:write'),
  }),
  fc.record({ kind: fc.constant('personal key' as const), owner, scopes, access }),
  fc.record({ kind: fc.constant('service key' as const), scopes, access }),
);
type Caller = typeof caller extends fc.Arbitrary<infer One> ? One : never;

async function credentialOf(one: Caller): Promise<NonNullable<CallOptions['as']>> {
  if (one.kind === 'session') return people[one.owner];
  if (one.kind === 'access token') return `Bearer ${tokens.get(`${one.owner} ${one.scope}`)}`;
  const options = { scopes: [...one.scopes] as Scope[], repositoryAccess: one.access };
  return one.kind === 'service key' ? await h.serviceKey(options) : await h.key(people[one.owner], options);
}

test('the routes do what ?can= says of a repository, for every caller, scope and selection', {
  tags: 'flood',
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      caller,
      fc.constantFrom(...registered, 'acme/none'),
      fc.constantFrom('repos:read' as const, 'repos:write' as const),
      fc.constantFrom(
        defaultKeyPolicy.authentication,
        { personal: false, service: true },
        { personal: true, service: false },
      ),
      async (one, repository, can, authentication) => {
        await setPolicy(h, { ...noLimits, authentication });
        const as = await credentialOf(one);
        const context = await h.call('GET', '/auth/context', { as, query: { can, repository } });
        const done =
          can === 'repos:read'
            ? await h.call('GET', `/repositories/${repository}`, { as })
            : await h.call('PATCH', `/repositories/${repository}`, { as, body: {} });
        // A switched-off key type may not even ask.
        const promised = context.status === 200 && context.data.decision.allowed === true;
        expect({ promised, status: done.status < 300 }).toEqual({ promised, status: promised });
        const failed = context.data?.decision.rules.find(({ passed }: { passed: boolean }) => !passed);
        expect(failed === undefined).toBe(promised || context.status !== 200);
      },
    ),
    { numRuns: 150 },
  );
});
