import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf, unwrap } from '../api/client.ts';
import type { Query } from '../api/contract.ts';
import { type Environment, hasEnded, isDeploy, isUnderWay } from './environment-words.ts';

/** Queries of the Environment pages. A change refetches all of them: each name begins with `environments`. */

/** Milliseconds between two reads of something that is under way, and of something that a push may change. */
const pollMs = 2_000;
const idleMs = 15_000;

export const environmentList = (query: Query<'/environments'>) =>
  queryOptions({
    queryKey: ['environments', 'list', query],
    queryFn: ({ signal }) => unwrap(api.GET('/environments', { params: { query }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.data.some(isUnderWay) === true ? pollMs : idleMs),
  });

export const oneEnvironment = (id: string) =>
  queryOptions({
    queryKey: ['environments', 'one', id],
    queryFn: ({ signal }) => dataOf(api.GET('/environments/{id}', { params: { path: { id } }, signal })),
    refetchInterval: ({ state }) => (state.data !== undefined && isUnderWay(state.data) ? pollMs : idleMs),
  });

/** Read again with every change of the Environment, and while it is under way. */
export const explanationOf = ({ id, status, updatedAt }: Environment) =>
  queryOptions({
    queryKey: ['environments', 'one', id, 'why', updatedAt],
    staleTime: 0,
    queryFn: ({ signal }) => dataOf(api.GET('/environments/{id}/why', { params: { path: { id } }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: isUnderWay({ status }) ? pollMs : false,
  });

export const eventsOf = (id: string) =>
  infiniteQueryOptions({
    queryKey: ['environments', 'one', id, 'events'],
    staleTime: 0,
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET('/environments/{id}/events', {
          params: { path: { id }, query: { limit: 20, ...(pageParam === '' ? {} : { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: '',
    getNextPageParam: ({ metadata }) => metadata.pagination.nextCursor ?? undefined,
  });

export const deploysOf = (environment: string, page: number, limit: number, isLive: boolean) =>
  queryOptions({
    queryKey: ['environments', 'deploys', environment, page, limit],
    staleTime: 0,
    queryFn: ({ signal }) =>
      unwrap(api.GET('/builds', { params: { query: { environment, page, limit } }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) =>
      isLive || state.data?.data.some((deploy) => !hasEnded(deploy)) === true ? pollMs : false,
  });

export const oneDeploy = (id: string) =>
  queryOptions({
    queryKey: ['environments', 'deploy', id],
    queryFn: ({ signal }) => dataOf(api.GET('/builds/{id}', { params: { path: { id } }, signal })),
    refetchInterval: ({ state: { data } }) =>
      data !== undefined && isDeploy(data) && !hasEnded(data) ? pollMs : false,
  });

/** These two query the git server, so they are not refetched automatically. */
export const branchesNamed = (repository: string, search: string) =>
  queryOptions({
    queryKey: ['environments', 'branches', repository, search],
    enabled: repository !== '',
    retry: false,
    refetchOnWindowFocus: false,
    queryFn: ({ signal }) =>
      dataOf(api.GET('/environments/branches', { params: { query: { repository, search } }, signal })),
    placeholderData: keepPreviousData,
  });

export const previewOf = (repository: string, branch: string) =>
  queryOptions({
    queryKey: ['environments', 'preview', repository, branch],
    enabled: repository !== '' && branch !== '',
    retry: false,
    refetchOnWindowFocus: false,
    queryFn: ({ signal }) =>
      dataOf(api.GET('/environments/config-preview', { params: { query: { repository, branch } }, signal })),
  });
