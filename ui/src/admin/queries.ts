import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { call } from '../api/client.ts';
import type { Operations } from '../api/contract.ts';

/** What administration pages read. Everything is below `admin`; after a change, its part of it is read again. */
type Asked<O extends keyof Operations> = NonNullable<Operations[O]['query']>;

export const managedKeys = (query: Asked<'GET /tokens'>) =>
  queryOptions({
    queryKey: ['admin', 'keys', 'list', query],
    queryFn: ({ signal }) => call('GET /tokens', { query, signal }),
    placeholderData: keepPreviousData,
  });

export const keyTotals = (query: Asked<'GET /tokens/totals'>) =>
  queryOptions({
    queryKey: ['admin', 'keys', 'totals', query],
    queryFn: async ({ signal }) => (await call('GET /tokens/totals', { query, signal })).data,
  });

export const endingKeys = queryOptions({
  queryKey: ['admin', 'keys', 'ending'],
  queryFn: async ({ signal }) => (await call('GET /tokens/ending', { signal })).data,
});

export const surfaces = queryOptions({
  queryKey: ['admin', 'surfaces'],
  staleTime: Number.POSITIVE_INFINITY,
  queryFn: async ({ signal }) => (await call('GET /config/surfaces', { signal })).data,
});

export const publicSites = (query: Asked<'GET /sites'>) =>
  queryOptions({
    queryKey: ['admin', 'sites', 'list', query],
    queryFn: ({ signal }) => call('GET /sites', { query, signal }),
    placeholderData: keepPreviousData,
  });

export const stoppedSites = queryOptions({
  queryKey: ['admin', 'sites', 'stopped'],
  queryFn: ({ signal }) => call('GET /sites/taken-down', { query: { limit: 100 }, signal }),
});

export const siteStorage = queryOptions({
  queryKey: ['admin', 'sites', 'storage'],
  queryFn: ({ signal }) => call('GET /sites/storage', { query: { limit: 10 }, signal }),
});

/** How many sites someone or some service key manages, also those to which nothing was published yet. */
export const sitesManagedBy = (owner: string) =>
  queryOptions({
    queryKey: ['admin', 'sites', 'managed', owner],
    staleTime: 0,
    queryFn: async ({ signal }) => {
      const { data } = await call('GET /sites/storage', { query: { owner }, signal });
      return data.owners[0]?.sites ?? 0;
    },
  });

export const users = (query: Asked<'GET /users'>) =>
  queryOptions({
    queryKey: ['admin', 'users', 'list', query],
    queryFn: ({ signal }) => call('GET /users', { query, signal }),
    placeholderData: keepPreviousData,
  });

export const oneUser = (id: string) =>
  queryOptions({
    queryKey: ['admin', 'users', 'one', id],
    queryFn: async ({ signal }) => (await call('GET /users/{id}', { params: { id }, signal })).data,
  });

export const people = (query: Asked<'GET /people'>) =>
  queryOptions({
    queryKey: ['admin', 'users', 'people', query],
    queryFn: ({ signal }) => call('GET /people', { query, signal }),
    placeholderData: keepPreviousData,
  });

export const person = (id: string) =>
  queryOptions({
    queryKey: ['admin', 'users', 'person', id],
    queryFn: async ({ signal }) => (await call('GET /people/{id}', { params: { id }, signal })).data,
  });

/** As the identity provider says now. */
export const accountOf = (id: string) =>
  queryOptions({
    queryKey: ['admin', 'users', 'account', id],
    queryFn: async ({ signal }) => (await call('GET /people/{id}/account', { params: { id }, signal })).data,
  });

export const clientsOf = (id: string) =>
  queryOptions({
    queryKey: ['admin', 'users', 'clients', id],
    queryFn: async ({ signal }) => (await call('GET /users/{id}/clients', { params: { id }, signal })).data,
  });

export const groups = (query: Asked<'GET /groups'>) =>
  queryOptions({
    queryKey: ['admin', 'groups', query],
    queryFn: ({ signal }) => call('GET /groups', { query, signal }),
    placeholderData: keepPreviousData,
  });

export const repositories = (query: Asked<'GET /repositories'>) =>
  queryOptions({
    queryKey: ['admin', 'repositories', query],
    queryFn: ({ signal }) => call('GET /repositories', { query, signal }),
    placeholderData: keepPreviousData,
  });

export const auditEvent = (id: string) =>
  queryOptions({
    queryKey: ['admin', 'audit', 'one', id],
    queryFn: async ({ signal }) => (await call('GET /audit/events/{id}', { params: { id }, signal })).data,
  });

export const auditSummary = (query: Asked<'GET /audit/summary'>) =>
  queryOptions({
    queryKey: ['admin', 'audit', 'summary', query],
    queryFn: async ({ signal }) => (await call('GET /audit/summary', { query, signal })).data,
    placeholderData: keepPreviousData,
  });

export const serviceNotices = queryOptions({
  queryKey: ['admin', 'notices'],
  queryFn: ({ signal }) => call('GET /notices', { query: { unread: 'true', limit: 10 }, signal }),
});
