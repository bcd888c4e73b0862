import { queryOptions } from '@tanstack/react-query';
import { call } from '../../api/client.ts';

/** What the palette finds by name. */
export const foundKeys = (search: string) =>
  queryOptions({
    queryKey: ['keys', 'found', search],
    enabled: search !== '',
    queryFn: async ({ signal }) =>
      (await call('GET /me/tokens', { query: { search, limit: 5 }, signal })).data,
  });

export const foundSites = (search: string) =>
  queryOptions({
    queryKey: ['sites', 'found', search],
    enabled: search !== '',
    queryFn: async ({ signal }) =>
      (await call('GET /sites', { query: { search, mine: 'true', limit: 5 }, signal })).data,
  });
