import { administratorSession } from '../../core/authorize.ts';
import { timestamp, timestampOrNull } from '../../core/clock.ts';
import { defineRoute, pagePagination, type Route } from '../../platform/http.ts';
import type { KnownPeople } from './known-people.ts';
import * as shapes from './schemas.ts';
import type { Person } from './user-store.ts';

const personExample = {
  id: 'usr_4fKq0Zb1Xw8TnLr2Vd6M',
  issuer: 'https://id.example.com/realms/acme',
  subject: '8b1f6f0e-3c1d-4c53-9c0e-2d6a1f2b9f11',
  name: 'Ada',
  email: 'ada@example.com',
  firstSeenAt: '2026-01-01T00:00:00.000Z',
  lastLoginAt: '2026-01-02T09:30:00.000Z',
};

/** The routes of the people that this installation knows, of any identity provider. */
export function peopleRoutes({ known }: { known: KnownPeople }): Route[] {
  const tag = 'People';
  return [
    defineRoute({
      method: 'GET',
      path: '/people',
      operationId: 'listPeople',
      tag,
      summary: 'List everyone this installation knows',
      description:
        'Everyone who signed in here, has an account, or owns an imported key, with any identity provider. Sorted by name.',
      policy: administratorSession,
      query: shapes.personQuery,
      success: { status: 200, data: shapes.personResponse.array(), pagination: 'page' },
      example: { data: [personExample] },
      async handle({ query }) {
        const { page, limit, search } = query;
        const found = await known.list({ search, offset: (page - 1) * limit, limit });
        return { data: found.people.map(toPerson), pagination: pagePagination(page, limit, found.total) };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/people/{id}',
      operationId: 'getPerson',
      tag,
      summary: 'Read what this installation knows about a person',
      policy: administratorSession,
      params: shapes.personIdParams,
      success: { status: 200, data: shapes.personResponse },
      errors: ['not_found'],
      example: { data: personExample },
      handle: async ({ params }) => ({ data: toPerson(await known.get(params.id)) }),
    }),
    defineRoute({
      method: 'GET',
      path: '/people/{id}/account',
      operationId: 'getPersonAccount',
      tag,
      summary: 'Ask the identity provider about a person',
      description: 'Whether the account is enabled and which roles it has, as the provider states now.',
      policy: administratorSession,
      params: shapes.personIdParams,
      success: { status: 200, data: shapes.personAccountResponse },
      errors: ['not_found', 'identity_unavailable'],
      example: { data: { state: 'active', roles: ['user'] } },
      async handle({ params }) {
        const { state, roles } = await known.accountOf(params.id);
        return { data: { state, roles: [...roles] } };
      },
    }),
  ];
}

function toPerson({ createdAt, lastLoginAt, ...person }: Person) {
  return { ...person, firstSeenAt: timestamp(createdAt), lastLoginAt: timestampOrNull(lastLoginAt) };
}
