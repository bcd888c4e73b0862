import { z } from 'zod';
import { callerKinds } from '../../core/caller.ts';
import { defineRoute, type Route } from '../../platform/http.ts';

/**
 * “What am I changing, who owns it, and where?”: the map of configuration surfaces (contract 8) as data, for people
 * and programs. It also lists what Postern does not have, with its owner, so that no one searches for another way.
 * test/api/surfaces.test.ts checks that every address is an existing page, route or document.
 */
type Place =
  /** A page of the web app. */
  | { readonly kind: 'page'; readonly title: string; readonly address: `/${string}` }
  /** A route of the API, as `METHOD /path` below /api/v2; the API reference lists it by its operation id. */
  | {
      readonly kind: 'route';
      readonly title: string;
      readonly address: string;
      readonly operationId: string;
    }
  /** A document, by its path from the root of the repository. */
  | { readonly kind: 'document'; readonly title: string; readonly address: `docs/${string}` };

type Surface = {
  readonly id: string;
  readonly change: string;
  readonly owner: string;
  readonly note: string;
  /** Postern will never have it: it is always changed elsewhere, in every installation. */
  readonly isOutside?: true;
  /** Empty: not part of this installation. */
  readonly places: readonly Place[];
};

const page = (title: string, address: `/${string}`): Place => ({ kind: 'page', title, address });
const route = (title: string, address: string, operationId: string): Place => ({
  kind: 'route',
  title,
  address,
  operationId,
});
const guide = (title: string, address: `docs/${string}`): Place => ({ kind: 'document', title, address });

export const surfaces: readonly Surface[] = [
  // What Postern has, in the order of the menu.
  {
    id: 'personal-keys',
    change: 'Personal API keys',
    owner: 'Settings → API keys',
    note: 'Each person manages their own keys, only in a signed-in browser session.',
    places: [
      page('API keys', '/settings/keys'),
      route('Create a personal key', 'POST /me/tokens', 'createMyKey'),
      guide('Replace a key', 'docs/how-to/rotate-a-key.md'),
    ],
  },
  {
    id: 'connected-clients',
    change: 'Programs that may act for a person, such as the command line',
    owner: 'Settings → Agents → Connected clients',
    note: 'Each person manages their own; an administrator disconnects clients on the page of an account.',
    places: [
      page('Connected clients', '/settings/clients'),
      route('List mine', 'GET /me/clients', 'listMyClients'),
    ],
  },
  {
    id: 'passkeys',
    change: 'Passkeys of a person',
    owner: 'Settings → Passkeys',
    note: 'Each person manages their own; an administrator resets those of a person on the page of the account.',
    places: [
      page('Passkeys', '/settings/passkeys'),
      route('List mine', 'GET /me/passkeys', 'listMyPasskeys'),
      route('Reset those of a person', 'POST /users/{id}/reset-passkeys', 'resetUserPasskeys'),
      guide('Sign in with a passkey', 'docs/how-to/sign-in-with-a-passkey.md'),
    ],
  },
  {
    id: 'sessions',
    change: 'Browsers in which a person is signed in',
    owner: 'Settings → Sessions',
    note: 'Each person ends their own; an administrator ends those of a person on the page of the account.',
    places: [
      page('Sessions', '/settings/sessions'),
      route('List mine', 'GET /me/sessions', 'listMySessions'),
      route('Sign out everywhere else', 'DELETE /me/sessions', 'endMyOtherSessions'),
    ],
  },
  {
    id: 'key-policy',
    change:
      'API key policy: authentication, issuance, scopes, repositories, lifetimes, rate limits, issuers of ID tokens',
    owner: 'Administration → Access controls',
    note: 'One document with history; it takes effect everywhere within a second.',
    places: [
      page('Access controls', '/admin/access-controls'),
      route('Change the key policy', 'PUT /config/api-keys', 'changeKeyPolicy'),
      guide('Change a setting, and be able to go back', 'docs/how-to/change-settings-safely.md'),
      guide('Turn a type of key off', 'docs/how-to/respond-to-a-leak.md'),
    ],
  },
  {
    id: 'service-keys',
    change: 'Service keys, and the keys of users',
    owner: 'Administration → Keys',
    note: 'An administrator creates and revokes service keys, and reads and revokes the keys of users.',
    places: [
      page('Service keys', '/admin/service-keys'),
      page('User keys', '/admin/user-keys'),
      route('Create a service key', 'POST /tokens', 'createServiceKey'),
      route('Add a trust rule to it', 'POST /tokens/{id}/trust', 'addTrustRule'),
    ],
  },
  {
    id: 'access',
    change:
      'Sign-ins from one address, how old a sign-in may be for a change that gives access, and who needs a second factor',
    owner: 'Administration → Access controls, Sign-ins',
    note: 'One document with history. Behind a proxy, TRUSTED_PROXIES decides which requests count as one address.',
    places: [
      page('Sign-ins', '/admin/access-controls/sign-ins'),
      route('Change the access configuration', 'PUT /config/access', 'changeAccessConfig'),
      guide('Too many sign-ins from one address', 'docs/how-to/reset-a-password.md'),
    ],
  },
  {
    id: 'sites',
    change: 'Sites limits and availability',
    owner: 'Administration → Sites limits',
    note: 'One document with history; a switch for all of Sites is part of it.',
    places: [
      page('Sites limits', '/admin/sites'),
      route('Change the Sites configuration', 'PUT /config/sites', 'changeSitesConfig'),
      guide('Set limits for Sites', 'docs/how-to/set-limits-for-sites.md'),
    ],
  },
  {
    id: 'one-site',
    change: 'Whether one site is served',
    owner: 'Administration → Sites limits, All sites',
    note: 'With a reason that the owner reads; the administrator cannot see the content.',
    places: [
      page('All sites', '/admin/sites/all'),
      route('Stop serving a site', 'POST /sites/{id}/take-down', 'takeSiteDown'),
      guide('Take a site down', 'docs/how-to/take-a-site-down.md'),
    ],
  },
  {
    id: 'environment-policy',
    change: 'Environment policy: whether there are Environments, access, lifetimes, quotas, builds',
    owner: 'Administration → Environment policy',
    note: 'One document with history; a switch for all Environments is part of it.',
    places: [
      page('Environment policy', '/admin/environments'),
      route('Change the Environment policy', 'PUT /config/api-environments', 'changeEnvironmentPolicy'),
      guide('Change a setting, and be able to go back', 'docs/how-to/change-settings-safely.md'),
    ],
  },
  {
    id: 'metadata-links',
    change: 'Metadata links of Environments',
    owner: 'Administration → Environment policy, Metadata links',
    note: 'Links that every Environment shows, each with its own branch, commit or name.',
    places: [
      page('Metadata links', '/admin/environments/links'),
      route('Add a link', 'POST /config/metadata', 'addMetadataLink'),
    ],
  },
  {
    id: 'mcp',
    change: 'MCP enablement and change-tool policy',
    owner: 'Administration → Agents → MCP',
    note: 'Whether agents of people may use Postern, and whether they may change anything. One document with history.',
    places: [
      page('MCP', '/admin/mcp'),
      page('Connected clients', '/admin/mcp/clients'),
      route('Change the MCP policy', 'PUT /config/mcp', 'changeMcpPolicy'),
      route('Allow or block an MCP client', 'PATCH /config/mcp/clients/{id}', 'changeMcpClient'),
      guide('Connect an agent', 'docs/how-to/connect-an-agent.md'),
    ],
  },
  {
    id: 'accounts',
    change: 'Accounts, groups and roles',
    owner: 'Administration → People',
    note: 'Of the built-in identity provider. Another provider manages them itself; then “Users” only shows the people known here.',
    places: [
      page('Users', '/admin/users'),
      page('Groups', '/admin/groups'),
      route('Change an account', 'PATCH /users/{id}', 'changeUser'),
      guide('Reset a password without signing in', 'docs/how-to/reset-a-password.md'),
    ],
  },
  {
    id: 'repositories',
    change:
      'Repositories: what keys can be bound to, how Postern signs in to their git servers, and their webhooks',
    owner: 'Administration → Repositories',
    note: 'Keys are bound to a repository, not to its name.',
    places: [
      page('Repositories', '/admin/repositories'),
      route('Register a repository', 'POST /repositories', 'createRepository'),
      route(
        'Set the credential for its git server',
        'PUT /repositories/{owner}/{name}/credential',
        'setRepositoryCredential',
      ),
      route(
        'Create the secret of its webhook',
        'POST /repositories/{owner}/{name}/webhook',
        'createRepositoryWebhook',
      ),
      guide('Give Postern access to a repository', 'docs/how-to/give-access-to-a-repository.md'),
    ],
  },
  {
    id: 'process',
    change: 'Addresses, ports, database, key-value store, secrets of the process',
    owner: 'Environment of the process',
    note: 'Each process reads them once, when it starts.',
    places: [
      guide('Configuration', 'docs/reference/config.md'),
      guide('Run on one machine', 'docs/how-to/run-on-one-machine.md'),
      guide('Rotate secrets', 'docs/how-to/rotate-secrets.md'),
    ],
  },
  {
    id: 'chart',
    change: 'Component replicas, resources, ingress, dependencies, pod settings',
    owner: 'Versioned chart values',
    note: 'Of an installation on Kubernetes.',
    places: [
      guide('Install on Kubernetes', 'docs/how-to/install-on-kubernetes.md'),
      guide('Upgrade on Kubernetes', 'docs/how-to/upgrade-on-kubernetes.md'),
    ],
  },
  {
    id: 'repository-file',
    change: 'Application services, builds, deployments, Environment defaults',
    owner: 'Repository configuration file',
    note: 'In each repository, as postern.yaml.',
    places: [
      page('Repositories', '/admin/repositories'),
      route('Validate the file of a branch', 'GET /schema/validate', 'validateConfigurationFileOfBranch'),
      guide('Write a postern.yaml', 'docs/how-to/write-a-postern-yaml.md'),
      guide('Run a branch at a URL', 'docs/how-to/run-a-branch.md'),
    ],
  },
  {
    id: 'agents',
    change: 'Agent models, instructions, tools, workspaces, session review',
    owner: 'Administration → Agents',
    note: 'Instructions, tools, workspace and model of an agent, by its client. Postern itself runs no model.',
    places: [
      page('Agents', '/admin/agents'),
      page('Models for agents', '/admin/agents/models'),
      page('Agent sessions', '/admin/agents/sessions'),
      route('Add an agent definition', 'POST /config/agents/definitions', 'addAgentDefinition'),
      route('Change the models for agents', 'PUT /config/agents/models', 'changeAgentModels'),
      guide('Connect an agent', 'docs/how-to/connect-an-agent.md'),
    ],
  },
  {
    id: 'mcp-connections',
    change: 'User connections',
    owner: 'Settings → Agents → MCP connections',
    note: 'Accounts of a person at external MCP servers, which an administrator registers.',
    places: [
      page('MCP connections', '/settings/connections'),
      page('External MCP servers', '/admin/mcp/servers'),
      route('Connect an account', 'POST /me/connections/{slug}/start', 'startMyConnection'),
      route('Add an external MCP server', 'POST /config/mcp/servers', 'addMcpServer'),
      guide('Use external MCP servers', 'docs/how-to/use-external-mcp-servers.md'),
    ],
  },
  // What Postern does not have.
  {
    id: 'infrastructure',
    change: 'Infrastructure, DNS, evaluation cluster resources',
    owner: 'The selected installation and infrastructure workflow',
    note: 'Outside Postern.',
    isOutside: true,
    places: [],
  },
];

const surfaceSchema = z
  .strictObject({
    id: z.string(),
    change: z.string().describe('What can be changed'),
    owner: z.string().describe('The only place where it can be changed'),
    note: z.string(),
    isHere: z.boolean().describe('False: not part of this installation'),
    isOutside: z.boolean().describe('True: not part of Postern, and changed elsewhere'),
    places: z.array(
      z.strictObject({
        kind: z.enum(['page', 'route', 'document']),
        title: z.string(),
        address: z
          .string()
          .describe('A path of the web app, `METHOD /path` below /api/v2, or a document of the repository'),
        href: z
          .string()
          .nullable()
          .describe(
            'The link for a browser: the page, or the section of the API reference; null for a document, which Postern does not serve',
          ),
      }),
    ),
  })
  .meta({ id: 'ConfigurationSurface' });

const answer = surfaces.map((surface) => ({
  ...surface,
  isHere: surface.places.length > 0,
  isOutside: surface.isOutside === true,
  places: surface.places.map((place) => ({
    kind: place.kind,
    title: place.title,
    address: place.address,
    href: hrefOf(place),
  })),
}));

function hrefOf(place: Place): string | null {
  if (place.kind === 'document') return null;
  return place.kind === 'page' ? place.address : `/api/v2/docs#${place.operationId}`;
}

export function surfaceRoutes(): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/config/surfaces',
      operationId: 'listConfigurationSurfaces',
      tag: 'Configuration surfaces',
      summary: 'Read where each setting is configured',
      description:
        'What can be changed, which surface owns it, and where to change it. An entry for a feature that this installation does not have shows its owner, but no place.',
      // The answer contains no configured values, only where they are changed.
      policy: { callers: callerKinds, role: 'user', identity: 'people' },
      success: { status: 200, data: z.array(surfaceSchema) },
      example: { data: answer.slice(0, 1) },
      handle: () => ({ data: answer }),
    }),
  ];
}
