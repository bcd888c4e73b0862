import { keepPreviousData, QueryClient, queryOptions } from '@tanstack/react-query';
import { api, ApiProblem, dataOf, unwrap } from './client.ts';
import type { Query } from './contract.ts';

/** What several pages read, each under one name. No answer that holds a key's value ever passes through here. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // Retries only temporary failures; a refusal would be refused again.
      retry: (count, error) =>
        count < 1 && error instanceof ApiProblem && (error.status === 0 || error.status >= 500),
      staleTime: 15_000,
    },
  },
});

export const whoAmI = queryOptions({
  queryKey: ['me'],
  queryFn: ({ signal }) => dataOf(api.GET('/auth/context', { signal })),
  refetchOnWindowFocus: 'always',
});

export const myPolicy = queryOptions({
  queryKey: ['keys', 'policy'],
  staleTime: 0,
  queryFn: async ({ signal }) => {
    const { data } = await unwrap(api.GET('/me/tokens/policy', { signal }));
    // The server decides expiry, so relative times use the server's clock, not this machine's.
    return { ...data, clockOffsetMs: Date.parse(data.serverTime) - Date.now() };
  },
});

export type KeysAsked = Query<'/me/tokens'>;

export const myKeys = (query: KeysAsked) =>
  queryOptions({
    queryKey: ['keys', 'list', query],
    queryFn: ({ signal }) => unwrap(api.GET('/me/tokens', { params: { query }, signal })),
    placeholderData: keepPreviousData,
  });

export const repositoriesNamed = (search: string) =>
  queryOptions({
    queryKey: ['repositories', search],
    queryFn: ({ signal }) =>
      unwrap(api.GET('/repositories', { params: { query: { search, limit: 100 } }, signal })),
    placeholderData: keepPreviousData,
  });

export type Scope = NonNullable<Query<'/auth/context'>['can']>;

/** Whether I could use a scope today, rule by rule, from the function that enforces. */
export const decisionOn = (can: Scope) =>
  queryOptions({
    queryKey: ['me', 'can', can],
    queryFn: async ({ signal }) =>
      (await dataOf(api.GET('/auth/context', { params: { query: { can } }, signal }))).decision,
  });

export const myClients = queryOptions({
  queryKey: ['clients'],
  queryFn: ({ signal }) => dataOf(api.GET('/me/clients', { signal })),
});

/** The number of unread notices, shown on every page. */
export const unreadNotices = queryOptions({
  queryKey: ['notices', 'unread'],
  queryFn: async ({ signal }) => {
    const { metadata } = await unwrap(
      api.GET('/me/notices', { params: { query: { unread: 'true', limit: 1 } }, signal }),
    );
    return metadata.pagination.items;
  },
  staleTime: 60_000,
});
