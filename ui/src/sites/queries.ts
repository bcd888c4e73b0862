import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf, unwrap } from '../api/client.ts';
import type { Query } from '../api/contract.ts';

/** Queries of the pages of Sites. A change of a site makes all of them stale: each name begins with `sites`. */
type SitesAsked = Query<'/sites'>;

export const sitesList = (query: SitesAsked) =>
  queryOptions({
    queryKey: ['sites', 'list', query],
    queryFn: ({ signal }) => unwrap(api.GET('/sites', { params: { query }, signal })),
    placeholderData: keepPreviousData,
  });

export const capabilities = queryOptions({
  queryKey: ['sites', 'capabilities'],
  queryFn: async ({ signal }) => {
    const { data } = await unwrap(api.GET('/sites/capabilities', { signal }));
    // The server decides expiry, so relative times use the server's clock, not this machine's.
    return { ...data, clockOffsetMs: Date.parse(data.serverTime) - Date.now() };
  },
});

export const oneSite = (id: string) =>
  queryOptions({
    queryKey: ['sites', 'one', id],
    queryFn: ({ signal }) => dataOf(api.GET('/sites/{id}', { params: { path: { id } }, signal })),
  });

export const siteActions = (id: string) =>
  queryOptions({
    queryKey: ['sites', 'one', id, 'actions'],
    queryFn: ({ signal }) => dataOf(api.GET('/sites/{id}/actions', { params: { path: { id } }, signal })),
  });

export const siteVersions = (id: string, page: number, limit: number) =>
  queryOptions({
    queryKey: ['sites', 'one', id, 'versions', page, limit],
    queryFn: ({ signal }) =>
      unwrap(api.GET('/sites/{id}/versions', { params: { path: { id }, query: { page, limit } }, signal })),
    placeholderData: keepPreviousData,
  });

export const versionReport = (id: string, number: number) =>
  queryOptions({
    queryKey: ['sites', 'one', id, 'versions', 'report', number],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET('/sites/{id}/versions/{number}', {
          params: { path: { id, number: String(number) } },
          signal,
        }),
      ),
  });

export const versionChanges = (id: string, number: number, page: number, limit: number) =>
  queryOptions({
    queryKey: ['sites', 'one', id, 'versions', 'changes', number, page, limit],
    queryFn: ({ signal }) =>
      unwrap(
        api.GET('/sites/{id}/versions/{number}/changes', {
          params: { path: { id, number: String(number) }, query: { page, limit } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
  });

type FilesAsked = Query<'/sites/{id}/files'>;

export const siteFiles = (id: string, query: FilesAsked) =>
  queryOptions({
    queryKey: ['sites', 'one', id, 'files', query],
    queryFn: ({ signal }) =>
      unwrap(api.GET('/sites/{id}/files', { params: { path: { id }, query }, signal })),
    placeholderData: keepPreviousData,
  });

export const siteAccess = (id: string, page: number, limit: number) =>
  queryOptions({
    queryKey: ['sites', 'one', id, 'access', page, limit],
    queryFn: ({ signal }) =>
      unwrap(api.GET('/sites/{id}/access', { params: { path: { id }, query: { page, limit } }, signal })),
    staleTime: 0,
    placeholderData: keepPreviousData,
  });
