import { queryOptions } from '@tanstack/react-query';
import { api, dataOf } from '../api/client.ts';

/** The Environment policy. The navigation reads it on every page, to hide Environments while they are off. */
export const environmentPolicy = queryOptions({
  queryKey: ['environments', 'policy'],
  staleTime: 60_000,
  queryFn: async ({ signal }) => {
    const data = await dataOf(api.GET('/environments/policy', { signal }));
    // The server decides about the ends of leases, so relative times use the server's clock, not this machine's.
    return { ...data, clockOffsetMs: Date.parse(data.serverTime) - Date.now() };
  },
});

export type EnvironmentPolicy = Awaited<ReturnType<NonNullable<typeof environmentPolicy.queryFn>>>;
