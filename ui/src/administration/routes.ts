import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { root } from '../shell/root.ts';
import { auditSearch } from './audit/audit-search.ts';
import { managedKeySearch } from './keys/managed-key-search.ts';
import { keyTab } from '../keys/detail/key-tab.ts';
import { prefillFrom } from '../keys/new/prefill.ts';
import { given, listSearch, oneOf, pageFrom, type Raw, textFrom } from './search.ts';

// The administration pages. `area.tsx` wraps them and handles users without the role.
const area = createRoute({
  getParentRoute: () => root,
  id: 'administration',
  component: lazyRouteComponent(() => import('./area.tsx'), 'AdminArea'),
});

const overview = createRoute({
  getParentRoute: () => area,
  path: '/admin',
  component: lazyRouteComponent(() => import('./overview/overview-page.tsx'), 'OverviewPage'),
});

const serviceKeys = createRoute({
  getParentRoute: () => area,
  path: '/admin/service-keys',
  validateSearch: managedKeySearch,
  component: lazyRouteComponent(() => import('./keys/service-keys-page.tsx'), 'ServiceKeysPage'),
});

const newServiceKey = createRoute({
  getParentRoute: () => area,
  path: '/admin/service-keys/new',
  validateSearch: prefillFrom,
  component: lazyRouteComponent(() => import('./keys/new-service-key-page.tsx'), 'NewServiceKeyPage'),
});

const serviceKey = createRoute({
  getParentRoute: () => area,
  path: '/admin/service-keys/$id',
  validateSearch: keyTab,
  component: lazyRouteComponent(() => import('./keys/managed-key-page.tsx'), 'ServiceKeyPage'),
});

const narrowServiceKey = createRoute({
  getParentRoute: () => area,
  path: '/admin/service-keys/$id/narrow',
  component: lazyRouteComponent(() => import('./keys/narrow-service-key-page.tsx'), 'NarrowServiceKeyPage'),
});

const userKeys = createRoute({
  getParentRoute: () => area,
  path: '/admin/user-keys',
  validateSearch: managedKeySearch,
  component: lazyRouteComponent(() => import('./keys/user-keys-page.tsx'), 'UserKeysPage'),
});

const userKey = createRoute({
  getParentRoute: () => area,
  path: '/admin/user-keys/$id',
  validateSearch: keyTab,
  component: lazyRouteComponent(() => import('./keys/managed-key-page.tsx'), 'UserKeyPage'),
});

const documentSearch = (raw: Raw) =>
  given({ view: oneOf(raw['view'], ['history'] as const), page: pageFrom(raw['page']) });

const accessControls = createRoute({
  getParentRoute: () => area,
  path: '/admin/access-controls',
  validateSearch: documentSearch,
  component: lazyRouteComponent(() => import('./policy/policy-page.tsx'), 'PolicyPage'),
});

const signInLimits = createRoute({
  getParentRoute: () => area,
  path: '/admin/access-controls/sign-ins',
  validateSearch: documentSearch,
  component: lazyRouteComponent(() => import('./sign-ins/sign-ins-page.tsx'), 'SignInsPage'),
});

const sitesConfig = createRoute({
  getParentRoute: () => area,
  path: '/admin/sites',
  validateSearch: documentSearch,
  component: lazyRouteComponent(() => import('./sites/sites-config-page.tsx'), 'SitesConfigPage'),
});

const allSites = createRoute({
  getParentRoute: () => area,
  path: '/admin/sites/all',
  validateSearch: listSearch,
  component: lazyRouteComponent(() => import('./sites/all-sites-page.tsx'), 'AllSitesPage'),
});

const environments = createRoute({
  getParentRoute: () => area,
  path: '/admin/environments',
  validateSearch: documentSearch,
  component: lazyRouteComponent(() => import('./environments/environments-page.tsx'), 'EnvironmentsPage'),
});

const metadataLinks = createRoute({
  getParentRoute: () => area,
  path: '/admin/environments/links',
  component: lazyRouteComponent(() => import('./environments/links-page.tsx'), 'LinksPage'),
});

const mcp = createRoute({
  getParentRoute: () => area,
  path: '/admin/mcp',
  validateSearch: documentSearch,
  component: lazyRouteComponent(() => import('./mcp/mcp-page.tsx'), 'McpPage'),
});

const mcpClients = createRoute({
  getParentRoute: () => area,
  path: '/admin/mcp/clients',
  component: lazyRouteComponent(() => import('./mcp/clients-page.tsx'), 'ClientsPage'),
});

const mcpServers = createRoute({
  getParentRoute: () => area,
  path: '/admin/mcp/servers',
  component: lazyRouteComponent(() => import('./mcp/servers/servers-page.tsx'), 'ServersPage'),
});

const mcpServer = createRoute({
  getParentRoute: () => area,
  path: '/admin/mcp/servers/$slug',
  component: lazyRouteComponent(() => import('./mcp/servers/server-page.tsx'), 'ServerPage'),
});

const agents = createRoute({
  getParentRoute: () => area,
  path: '/admin/agents',
  component: lazyRouteComponent(() => import('./agents/definitions-page.tsx'), 'DefinitionsPage'),
});

const newDefinition = createRoute({
  getParentRoute: () => area,
  path: '/admin/agents/new',
  component: lazyRouteComponent(() => import('./agents/definition-page.tsx'), 'NewDefinitionPage'),
});

const definition = createRoute({
  getParentRoute: () => area,
  path: '/admin/agents/$id',
  component: lazyRouteComponent(() => import('./agents/definition-page.tsx'), 'DefinitionPage'),
});

const pageSearch = (raw: Raw) => given({ page: pageFrom(raw['page']) });

const agentModels = createRoute({
  getParentRoute: () => area,
  path: '/admin/agents/models',
  validateSearch: documentSearch,
  component: lazyRouteComponent(() => import('./agents/models-page.tsx'), 'ModelsPage'),
});

const agentSessions = createRoute({
  getParentRoute: () => area,
  path: '/admin/agents/sessions',
  validateSearch: pageSearch,
  component: lazyRouteComponent(() => import('./agents/sessions-page.tsx'), 'SessionsPage'),
});

const agentSession = createRoute({
  getParentRoute: () => area,
  path: '/admin/agents/sessions/$id',
  validateSearch: pageSearch,
  component: lazyRouteComponent(() => import('./agents/session-page.tsx'), 'SessionPage'),
});

const users = createRoute({
  getParentRoute: () => area,
  path: '/admin/users',
  validateSearch: listSearch,
  component: lazyRouteComponent(() => import('./people/users-page.tsx'), 'UsersPage'),
});

const user = createRoute({
  getParentRoute: () => area,
  path: '/admin/users/$id',
  component: lazyRouteComponent(() => import('./people/user-page.tsx'), 'UserPage'),
});

const groups = createRoute({
  getParentRoute: () => area,
  path: '/admin/groups',
  validateSearch: pageSearch,
  component: lazyRouteComponent(() => import('./people/groups-page.tsx'), 'GroupsPage'),
});

const repositories = createRoute({
  getParentRoute: () => area,
  path: '/admin/repositories',
  validateSearch: listSearch,
  component: lazyRouteComponent(() => import('./repositories/repositories-page.tsx'), 'RepositoriesPage'),
});

const repository = createRoute({
  getParentRoute: () => area,
  path: '/admin/repositories/$owner/$name',
  component: lazyRouteComponent(() => import('./repositories/repository-page.tsx'), 'RepositoryPage'),
});

const audit = createRoute({
  getParentRoute: () => area,
  path: '/admin/audit',
  validateSearch: auditSearch,
  component: lazyRouteComponent(() => import('./audit/audit-page.tsx'), 'AuditPage'),
});

const event = createRoute({
  getParentRoute: () => area,
  path: '/admin/audit/$id',
  component: lazyRouteComponent(() => import('./audit/event-page.tsx'), 'EventPage'),
});

const surfaces = createRoute({
  getParentRoute: () => area,
  path: '/admin/surfaces',
  validateSearch: (raw: Raw) => given({ search: textFrom(raw['search']) }),
  component: lazyRouteComponent(() => import('./surfaces/surfaces-page.tsx'), 'SurfacesPage'),
});

export const adminRoutes = [
  area.addChildren([
    overview,
    serviceKeys,
    newServiceKey,
    serviceKey,
    narrowServiceKey,
    userKeys,
    userKey,
    accessControls,
    signInLimits,
    sitesConfig,
    allSites,
    environments,
    metadataLinks,
    mcp,
    mcpClients,
    mcpServers,
    mcpServer,
    agents,
    newDefinition,
    definition,
    agentModels,
    agentSessions,
    agentSession,
    users,
    user,
    groups,
    repositories,
    repository,
    audit,
    event,
    surfaces,
  ]),
] as const;
