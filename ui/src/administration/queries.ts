import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, dataOf, unwrap } from '../api/client.ts';
import type { Query } from '../api/contract.ts';

/** Queries of the administration pages. All keys begin with `admin`; a change refetches its part. */

export const managedKeys = (query: Query<'/tokens'>) =>
  queryOptions({
    queryKey: ['admin', 'keys', 'list', query],
    queryFn: ({ signal }) => unwrap(api.GET('/tokens', { params: { query }, signal })),
    placeholderData: keepPreviousData,
  });

/** The issuers of the key policy. */
export const trustedIssuers = queryOptions({
  queryKey: ['admin', 'keys', 'issuers'],
  staleTime: 0,
  queryFn: async ({ signal }) =>
    (await dataOf(api.GET('/config/api-keys', { signal }))).policy.federation.issuers,
});

export const trustRulesOf = (id: string) =>
  queryOptions({
    queryKey: ['admin', 'keys', 'trust', id],
    queryFn: ({ signal }) => dataOf(api.GET('/tokens/{id}/trust', { params: { path: { id } }, signal })),
  });

export const keyTotals = (query: Query<'/tokens/totals'>) =>
  queryOptions({
    queryKey: ['admin', 'keys', 'totals', query],
    queryFn: ({ signal }) => dataOf(api.GET('/tokens/totals', { params: { query }, signal })),
  });

export const endingKeys = queryOptions({
  queryKey: ['admin', 'keys', 'ending'],
  queryFn: ({ signal }) => dataOf(api.GET('/tokens/ending', { signal })),
});

/** Counts the Environments of all owners, except torn-down ones. */
export const countedEnvironments = queryOptions({
  queryKey: ['admin', 'environments', 'count'],
  queryFn: ({ signal }) => unwrap(api.GET('/environments', { params: { query: { limit: 1 } }, signal })),
});

export const surfaces = queryOptions({
  queryKey: ['admin', 'surfaces'],
  staleTime: Number.POSITIVE_INFINITY,
  queryFn: ({ signal }) => dataOf(api.GET('/config/surfaces', { signal })),
});

export const publicSites = (query: Query<'/sites'>) =>
  queryOptions({
    queryKey: ['admin', 'sites', 'list', query],
    queryFn: ({ signal }) => unwrap(api.GET('/sites', { params: { query }, signal })),
    placeholderData: keepPreviousData,
  });

export const stoppedSites = queryOptions({
  queryKey: ['admin', 'sites', 'stopped'],
  queryFn: ({ signal }) =>
    unwrap(api.GET('/sites/taken-down', { params: { query: { limit: 100 } }, signal })),
});

export const siteStorage = queryOptions({
  queryKey: ['admin', 'sites', 'storage'],
  queryFn: ({ signal }) => unwrap(api.GET('/sites/storage', { params: { query: { limit: 10 } }, signal })),
});

/** Counts the sites that a person or a service key manages, including those without a version. */
export const sitesManagedBy = (owner: string) =>
  queryOptions({
    queryKey: ['admin', 'sites', 'managed', owner],
    staleTime: 0,
    queryFn: async ({ signal }) => {
      const { data } = await unwrap(api.GET('/sites/storage', { params: { query: { owner } }, signal }));
      return data.owners[0]?.sites ?? 0;
    },
  });

export const users = (query: Query<'/users'>) =>
  queryOptions({
    queryKey: ['admin', 'users', 'list', query],
    queryFn: ({ signal }) => unwrap(api.GET('/users', { params: { query }, signal })),
    placeholderData: keepPreviousData,
  });

export const oneUser = (id: string) =>
  queryOptions({
    queryKey: ['admin', 'users', 'one', id],
    queryFn: ({ signal }) => dataOf(api.GET('/users/{id}', { params: { path: { id } }, signal })),
  });

export const people = (query: Query<'/people'>) =>
  queryOptions({
    queryKey: ['admin', 'users', 'people', query],
    queryFn: ({ signal }) => unwrap(api.GET('/people', { params: { query }, signal })),
    placeholderData: keepPreviousData,
  });

export const person = (id: string) =>
  queryOptions({
    queryKey: ['admin', 'users', 'person', id],
    queryFn: ({ signal }) => dataOf(api.GET('/people/{id}', { params: { path: { id } }, signal })),
  });

/** The current answer of the identity provider. */
export const accountOf = (id: string) =>
  queryOptions({
    queryKey: ['admin', 'users', 'account', id],
    queryFn: ({ signal }) => dataOf(api.GET('/people/{id}/account', { params: { path: { id } }, signal })),
  });

export const sessionsOf = (id: string) =>
  queryOptions({
    queryKey: ['admin', 'users', 'sessions', id],
    queryFn: ({ signal }) => dataOf(api.GET('/users/{id}/sessions', { params: { path: { id } }, signal })),
  });

export const clientsOf = (id: string) =>
  queryOptions({
    queryKey: ['admin', 'users', 'clients', id],
    queryFn: ({ signal }) => dataOf(api.GET('/users/{id}/clients', { params: { path: { id } }, signal })),
  });

export const groups = (query: Query<'/groups'>) =>
  queryOptions({
    queryKey: ['admin', 'groups', query],
    queryFn: ({ signal }) => unwrap(api.GET('/groups', { params: { query }, signal })),
    placeholderData: keepPreviousData,
  });

export const repositories = (query: Query<'/repositories'>) =>
  queryOptions({
    queryKey: ['admin', 'repositories', query],
    queryFn: ({ signal }) => unwrap(api.GET('/repositories', { params: { query }, signal })),
    placeholderData: keepPreviousData,
  });

export const oneRepository = (path: { owner: string; name: string }) =>
  queryOptions({
    queryKey: ['admin', 'repositories', 'one', path],
    queryFn: ({ signal }) => dataOf(api.GET('/repositories/{owner}/{name}', { params: { path }, signal })),
  });

/** Queries the git server, so it is not refetched automatically. A changed credential refetches it. */
export const branchesOf = (repository: string) =>
  queryOptions({
    queryKey: ['admin', 'repositories', 'branches', repository],
    retry: false,
    refetchOnWindowFocus: false,
    queryFn: ({ signal }) =>
      dataOf(api.GET('/environments/branches', { params: { query: { repository } }, signal })),
  });

export const validationOf = (repository: string, branch: string) =>
  queryOptions({
    queryKey: ['admin', 'repositories', 'validation', repository, branch],
    retry: false,
    refetchOnWindowFocus: false,
    queryFn: ({ signal }) =>
      dataOf(api.GET('/schema/validate', { params: { query: { repository, branch } }, signal })),
  });

export const metadataLinks = queryOptions({
  queryKey: ['admin', 'metadata'],
  queryFn: ({ signal }) => dataOf(api.GET('/config/metadata', { signal })),
});

export const mcpPolicy = queryOptions({
  queryKey: ['admin', 'agents', 'policy'],
  queryFn: async ({ signal }) => (await dataOf(api.GET('/config/mcp', { signal }))).policy,
});

export const mcpClients = queryOptions({
  queryKey: ['admin', 'agents', 'clients'],
  staleTime: 0,
  queryFn: async ({ signal }) => (await dataOf(api.GET('/config/mcp/clients', { signal }))).clients,
});

export const mcpServers = queryOptions({
  queryKey: ['admin', 'servers', 'list'],
  queryFn: ({ signal }) => dataOf(api.GET('/config/mcp/servers', { signal })),
});

export const mcpServerTools = (slug: string) =>
  queryOptions({
    queryKey: ['admin', 'servers', 'tools', slug],
    queryFn: ({ signal }) =>
      dataOf(api.GET('/config/mcp/servers/{slug}/tools', { params: { path: { slug } }, signal })),
  });

export const agentDefinitions = queryOptions({
  queryKey: ['admin', 'agents', 'definitions'],
  queryFn: ({ signal }) => dataOf(api.GET('/config/agents/definitions', { signal })),
});

export const agentModels = queryOptions({
  queryKey: ['admin', 'agents', 'models'],
  queryFn: ({ signal }) => dataOf(api.GET('/config/agents/models', { signal })),
});

export const exportedDefinition = (id: string, client: Query<'/agents/definitions/{id}/export'>['for']) =>
  queryOptions({
    queryKey: ['admin', 'agents', 'export', id, client],
    queryFn: async ({ signal }) => {
      const params = { path: { id }, query: { for: client } };
      return (await dataOf(api.GET('/agents/definitions/{id}/export', { params, signal }))).files;
    },
  });

export const agentSessions = (query: Query<'/agents/sessions'>) =>
  queryOptions({
    queryKey: ['admin', 'agents', 'sessions', query],
    queryFn: ({ signal }) => unwrap(api.GET('/agents/sessions', { params: { query }, signal })),
    placeholderData: keepPreviousData,
  });

export const agentCalls = (id: string, query: Query<'/agents/sessions'>) =>
  queryOptions({
    queryKey: ['admin', 'agents', 'calls', id, query],
    queryFn: ({ signal }) =>
      unwrap(api.GET('/agents/sessions/{id}', { params: { path: { id }, query }, signal })),
    placeholderData: keepPreviousData,
  });

export const auditEvent = (id: string) =>
  queryOptions({
    queryKey: ['admin', 'audit', 'one', id],
    queryFn: ({ signal }) => dataOf(api.GET('/audit/events/{id}', { params: { path: { id } }, signal })),
  });

export const auditSummary = (query: Query<'/audit/summary'>) =>
  queryOptions({
    queryKey: ['admin', 'audit', 'summary', query],
    queryFn: ({ signal }) => dataOf(api.GET('/audit/summary', { params: { query }, signal })),
    placeholderData: keepPreviousData,
  });

export const serviceNotices = queryOptions({
  queryKey: ['admin', 'notices'],
  queryFn: ({ signal }) =>
    unwrap(api.GET('/notices', { params: { query: { unread: true, limit: 10 } }, signal })),
});
