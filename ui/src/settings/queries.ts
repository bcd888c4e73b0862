import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf, unwrap } from '../api/client.ts';
import type { Query } from '../api/contract.ts';

/** Queries of the Settings pages, except keys. */
export const refusalOf = (requestId: string) =>
  queryOptions({
    queryKey: ['refusals', requestId],
    enabled: requestId !== '',
    staleTime: 0,
    queryFn: ({ signal }) =>
      dataOf(api.GET('/me/refusals/{requestId}', { params: { path: { requestId } }, signal })),
  });

export const myRefusals = queryOptions({
  queryKey: ['refusals', 'last'],
  staleTime: 0,
  queryFn: ({ signal }) => dataOf(api.GET('/me/refusals', { signal })),
});

export type NoticesAsked = Query<'/me/notices'>;

export const myNotices = (query: NoticesAsked) =>
  queryOptions({
    queryKey: ['notices', 'list', query],
    queryFn: ({ signal }) => unwrap(api.GET('/me/notices', { params: { query }, signal })),
    placeholderData: keepPreviousData,
  });

export const myClients = queryOptions({
  queryKey: ['clients'],
  queryFn: ({ signal }) => dataOf(api.GET('/me/clients', { signal })),
});

export const myPasskeys = queryOptions({
  queryKey: ['passkeys'],
  queryFn: ({ signal }) => dataOf(api.GET('/me/passkeys', { signal })),
});

export const mySessions = queryOptions({
  queryKey: ['sessions'],
  queryFn: ({ signal }) => dataOf(api.GET('/me/sessions', { signal })),
});

export const myConnections = queryOptions({
  queryKey: ['connections'],
  queryFn: ({ signal }) => dataOf(api.GET('/me/connections', { signal })),
});

type SessionsAsked = Query<'/me/agents/sessions'>;

export const myAgentSessions = (query: SessionsAsked) =>
  queryOptions({
    queryKey: ['agents', 'sessions', query],
    queryFn: ({ signal }) => unwrap(api.GET('/me/agents/sessions', { params: { query }, signal })),
    placeholderData: keepPreviousData,
  });

/** The consents that the user's agents use, and the definitions that the user may choose for them. */
export const myAgentAccess = queryOptions({
  queryKey: ['agents', 'access'],
  queryFn: async ({ signal }) => {
    const [own, all] = await Promise.all([
      dataOf(api.GET('/me/agents/access', { signal })),
      dataOf(api.GET('/agents/definitions', { signal })),
    ]);
    return { access: own.access, offered: all.definitions.filter(({ isOffered }) => isOffered) };
  },
});

export const myAgentCalls = (id: string, query: SessionsAsked) =>
  queryOptions({
    queryKey: ['agents', 'calls', id, query],
    queryFn: ({ signal }) =>
      unwrap(api.GET('/me/agents/sessions/{id}', { params: { path: { id }, query }, signal })),
    placeholderData: keepPreviousData,
  });

export const myApproval = (id: string) =>
  queryOptions({
    queryKey: ['agents', 'approvals', id],
    staleTime: 0,
    queryFn: ({ signal }) =>
      dataOf(api.GET('/me/agents/approvals/{id}', { params: { path: { id } }, signal })),
  });
