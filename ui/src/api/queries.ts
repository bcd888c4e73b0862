import { keepPreviousData, QueryClient, queryOptions, useQuery } from '@tanstack/react-query';
import { api, dataOf, unwrap } from './client.ts';
import { maxRetries, retryDelayMs } from './retries.ts';

/** Queries that several pages share. No answer with a key's value passes through here. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (count, error) => count < maxRetries(error),
      retryDelay: (_count, error) => retryDelayMs(error),
      staleTime: 15_000,
    },
  },
});

export const whoAmI = queryOptions({
  queryKey: ['me'],
  queryFn: ({ signal }) => dataOf(api.GET('/auth/context', { signal })),
  refetchOnWindowFocus: 'always',
});

/** False while it is unknown. */
export function useIsAdministrator(): boolean {
  return useQuery(whoAmI).data?.roles?.includes('admin') === true;
}

/** The number of unread notices, shown on every page. */
export const unreadNotices = queryOptions({
  queryKey: ['notices', 'unread'],
  queryFn: async ({ signal }) => {
    const { metadata } = await unwrap(
      api.GET('/me/notices', { params: { query: { unread: true, limit: 1 } }, signal }),
    );
    return metadata.pagination.items;
  },
  staleTime: 60_000,
});

/** Whether MCP is on, and calls that wait for the user's approval. Every page shows their number. */
export const waitingApprovals = queryOptions({
  queryKey: ['agents', 'approvals'],
  queryFn: async ({ signal }) => await dataOf(api.GET('/me/agents/approvals', { signal })),
  staleTime: 60_000,
});

/** Registered repositories, for pickers. The server searches, because a registry may be too long for a list. */
export const repositoriesNamed = (search: string) =>
  queryOptions({
    queryKey: ['repositories', search],
    queryFn: ({ signal }) =>
      unwrap(api.GET('/repositories', { params: { query: { search, limit: 100 } }, signal })),
    placeholderData: keepPreviousData,
  });
