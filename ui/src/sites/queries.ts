import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { call } from '../api/client.ts';
import type { Operations } from '../api/contract.ts';

/** What the pages of Sites read. All of it goes stale together when a site changes: each name begins with `sites`. */
type SitesAsked = NonNullable<Operations['GET /sites']['query']>;

export const sitesList = (query: SitesAsked) =>
  queryOptions({
    queryKey: ['sites', 'list', query],
    queryFn: ({ signal }) => call('GET /sites', { query, signal }),
    placeholderData: keepPreviousData,
  });

export const capabilities = queryOptions({
  queryKey: ['sites', 'capabilities'],
  queryFn: async ({ signal }) => {
    const { data } = await call('GET /sites/capabilities', { signal });
    // The server decides expiry, so relative times use the server's clock, not this machine's.
    return { ...data, clockOffsetMs: Date.parse(data.serverTime) - Date.now() };
  },
});

export const oneSite = (id: string) =>
  queryOptions({
    queryKey: ['sites', 'one', id],
    queryFn: async ({ signal }) => (await call('GET /sites/{id}', { params: { id }, signal })).data,
  });

export const siteActions = (id: string) =>
  queryOptions({
    queryKey: ['sites', 'one', id, 'actions'],
    queryFn: async ({ signal }) => (await call('GET /sites/{id}/actions', { params: { id }, signal })).data,
  });

export const siteVersions = (id: string, page: number, limit: number) =>
  queryOptions({
    queryKey: ['sites', 'one', id, 'versions', page, limit],
    queryFn: ({ signal }) =>
      call('GET /sites/{id}/versions', { params: { id }, query: { page, limit }, signal }),
    placeholderData: keepPreviousData,
  });

export const versionReport = (id: string, number: number) =>
  queryOptions({
    queryKey: ['sites', 'one', id, 'versions', 'report', number],
    queryFn: async ({ signal }) =>
      (await call('GET /sites/{id}/versions/{number}', { params: { id, number: String(number) }, signal }))
        .data,
  });

export const versionChanges = (id: string, number: number, page: number, limit: number) =>
  queryOptions({
    queryKey: ['sites', 'one', id, 'versions', 'changes', number, page, limit],
    queryFn: ({ signal }) =>
      call('GET /sites/{id}/versions/{number}/changes', {
        params: { id, number: String(number) },
        query: { page, limit },
        signal,
      }),
    placeholderData: keepPreviousData,
  });

type FilesAsked = NonNullable<Operations['GET /sites/{id}/files']['query']>;

export const siteFiles = (id: string, query: FilesAsked) =>
  queryOptions({
    queryKey: ['sites', 'one', id, 'files', query],
    queryFn: ({ signal }) => call('GET /sites/{id}/files', { params: { id }, query, signal }),
    placeholderData: keepPreviousData,
  });

export const siteAccess = (id: string, page: number, limit: number) =>
  queryOptions({
    queryKey: ['sites', 'one', id, 'access', page, limit],
    queryFn: ({ signal }) =>
      call('GET /sites/{id}/access', { params: { id }, query: { page, limit }, signal }),
    staleTime: 0,
    placeholderData: keepPreviousData,
  });
