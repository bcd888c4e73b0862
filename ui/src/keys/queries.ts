import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf, unwrap } from '../api/client.ts';
import type { Query } from '../api/contract.ts';
import { cacheAt, type KeyHome, routesAt } from './key-home.ts';

/** Queries of the pages about keys. A change of a key refetches all of them. */
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

export type Scope = NonNullable<Query<'/auth/context'>['can']>;

/** Whether the user could use a scope now, rule by rule, from the function that enforces it. */
export const decisionOn = (can: Scope) =>
  queryOptions({
    queryKey: ['me', 'can', can],
    queryFn: async ({ signal }) =>
      (await dataOf(api.GET('/auth/context', { params: { query: { can } }, signal }))).decision,
  });

export const keyAt = (home: KeyHome, id: string) =>
  queryOptions({
    queryKey: [...cacheAt[home], 'one', id],
    queryFn: ({ signal }) => dataOf(api.GET(`${routesAt[home]}/{id}`, { params: { path: { id } }, signal })),
  });

export const myKey = (id: string) => keyAt('/settings/keys', id);

export type Period = NonNullable<Query<'/me/tokens/{id}/usage'>['per']>;
export type Range = { readonly per: Period; readonly count: number };

const periodMs: Readonly<Record<Period, number>> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

export const usageAt = (home: KeyHome, id: string, { per, count }: Range, now: number) => {
  const step = periodMs[per];
  // The period that is under way is the last one; pages look at the clock twice a minute, so it may be the next already.
  const end = now + 30_000;
  const to = end - (end % step) + step;
  const from = to - count * step;
  const query = { per, from: new Date(from).toISOString(), to: new Date(to).toISOString() };
  return queryOptions({
    queryKey: [...cacheAt[home], 'usage', id, query],
    queryFn: async ({ signal }) => {
      const { data } = await unwrap(
        api.GET(`${routesAt[home]}/{id}/usage`, { params: { path: { id }, query }, signal }),
      );
      return { ...data, step };
    },
    placeholderData: keepPreviousData,
  });
};

/** The usage of all keys of a page, in one answer. */
export const usagesOf = (ids: readonly string[], home: KeyHome = '/settings/keys') =>
  queryOptions({
    queryKey: [...cacheAt[home], 'usages', ids],
    enabled: ids.length > 0,
    queryFn: ({ signal }) =>
      dataOf(api.GET(`${routesAt[home]}/usage`, { params: { query: { ids: ids.join(',') } }, signal })),
    placeholderData: keepPreviousData,
  });

export const timelineAt = (home: KeyHome, id: string) =>
  infiniteQueryOptions({
    queryKey: [...cacheAt[home], 'timeline', id],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET(`${routesAt[home]}/{id}/timeline`, {
          params: { path: { id }, query: { limit: 20, ...(pageParam === '' ? {} : { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: '',
    getNextPageParam: ({ metadata }) => metadata.pagination.nextCursor ?? undefined,
  });
