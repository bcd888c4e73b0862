import { queryOptions } from '@tanstack/react-query';
import { api, dataOf } from '../../api/client.ts';

/** What the palette finds by name. */
export const foundKeys = (search: string) =>
  queryOptions({
    queryKey: ['keys', 'found', search],
    enabled: search !== '',
    queryFn: ({ signal }) =>
      dataOf(api.GET('/me/tokens', { params: { query: { search, limit: 5 } }, signal })),
  });

export const foundSites = (search: string) =>
  queryOptions({
    queryKey: ['sites', 'found', search],
    enabled: search !== '',
    queryFn: ({ signal }) =>
      dataOf(api.GET('/sites', { params: { query: { search, mine: true, limit: 5 } }, signal })),
  });

export const foundEnvironments = (search: string) =>
  queryOptions({
    queryKey: ['environments', 'found', search],
    queryFn: ({ signal }) =>
      dataOf(api.GET('/environments', { params: { query: { search, mine: true, limit: 5 } }, signal })),
  });
