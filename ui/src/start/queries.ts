import { queryOptions } from '@tanstack/react-query';
import { api, dataOf, unwrap } from '../api/client.ts';
import { closedBy } from '../sites/sites-off.tsx';

/**
 * Queries of the first page: counts, and what expires next. Scripts change these too, so each visit refetches them.
 */
const fresh = { staleTime: 0 } as const;

export const firstKeys = queryOptions({
  ...fresh,
  queryKey: ['keys', 'first'],
  queryFn: async ({ signal }) => {
    const used = await unwrap(
      api.GET('/me/tokens', { params: { query: { sort: 'lastUsedAt', limit: 1 } }, signal }),
    );
    const [latest] = used.data;
    return { hasKey: latest !== undefined, wasUsed: (latest?.lastUsedAt ?? null) !== null };
  },
});

/** How many of the next to expire are shown. */
export const endingMost = 5;

export const endingKeys = queryOptions({
  ...fresh,
  queryKey: ['keys', 'ending'],
  queryFn: ({ signal }) =>
    dataOf(
      api.GET('/me/tokens', {
        params: { query: { status: 'active', sort: 'expiresAt', order: 'asc', limit: endingMost } },
        signal,
      }),
    ),
});

export type MySites =
  | { readonly kind: 'open'; readonly count: number }
  | { readonly kind: 'closed'; readonly why: 'off' | 'role' };

/** Sites being closed to the user is a result, not an error: the page shows everything else. */
export const mySites = queryOptions({
  ...fresh,
  queryKey: ['sites', 'mine', 'count'],
  queryFn: async ({ signal }): Promise<MySites> => {
    try {
      const { metadata } = await unwrap(
        api.GET('/sites', { params: { query: { mine: true, limit: 1 } }, signal }),
      );
      return { kind: 'open', count: metadata.pagination.items };
    } catch (error) {
      const why = closedBy(error);
      if (why === null) throw error;
      return { kind: 'closed', why };
    }
  },
});

/** Empty while the user may not use Sites: the page already says so. */
export const endingSites = queryOptions({
  ...fresh,
  queryKey: ['sites', 'mine', 'ending'],
  queryFn: async ({ signal }) => {
    const query = {
      mine: true,
      status: 'active',
      sort: 'expiresAt',
      order: 'asc',
      limit: endingMost,
    } as const;
    try {
      return await dataOf(api.GET('/sites', { params: { query }, signal }));
    } catch (error) {
      if (closedBy(error) === null) throw error;
      return [];
    }
  },
});

/** The user's Environments whose leases end next, and how many there are in all. */
export const myEnvironments = queryOptions({
  ...fresh,
  queryKey: ['environments', 'mine', 'ending'],
  queryFn: ({ signal }) => {
    const query = {
      mine: true,
      exclude: 'tearing_down,torn_down',
      sort: 'expiresAt',
      limit: endingMost,
    } as const;
    return unwrap(api.GET('/environments', { params: { query }, signal }));
  },
});

export const people = queryOptions({
  ...fresh,
  queryKey: ['people', 'count'],
  queryFn: async ({ signal }) =>
    (await unwrap(api.GET('/people', { params: { query: { limit: 1 } }, signal }))).metadata.pagination.items,
});

export const policyVersion = queryOptions({
  ...fresh,
  queryKey: ['config', 'api-keys', 'version'],
  queryFn: async ({ signal }) => (await dataOf(api.GET('/config/api-keys', { signal }))).version,
});
