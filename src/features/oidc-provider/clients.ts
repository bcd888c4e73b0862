import type { ClientMetadata } from 'oidc-provider';
import { grantableScopes, mcpScope } from '../../core/scopes.ts';
import { mac } from '../../platform/encryption.ts';

/** The clients every installation has. The names are part of the documented surface. */
export const webClientId = 'postern-web';
const cliClientId = 'postern-cli';
export const mcpClientId = 'postern-mcp';
export const principalSyncClientId = 'postern-principal-sync';

/** What a client of the API may ask for: OIDC's own scopes, the six of the API, and `admin` (contract 3, 10.15). */
const apiScopes: readonly string[] = [
  'openid',
  'profile',
  'email',
  'offline_access',
  ...grantableScopes,
  'admin',
];
export const providerScopes: readonly string[] = [...apiScopes, mcpScope];

/** All that an MCP client may ask for. */
export const mcpClientScopes: readonly string[] = ['openid', 'offline_access', mcpScope];

/** MCP clients get tokens for `/mcp` only, and every other client gets none for it (decision 0062). */
export function isMcpClient(clientId: string): boolean {
  return clientId === mcpClientId || isUnverified(clientId);
}

/** Whether its name is unverified: the client registered itself, or is described by its own metadata document. */
export function isUnverified(clientId: string): boolean {
  return isRegistered(clientId) || hasDocument(clientId);
}

/** Whether the id of a client is the address of its metadata. No other kind of client has such an id. */
export function hasDocument(clientId: string): boolean {
  return clientId.startsWith('https://');
}

/** Begins the ids of clients that registered themselves (registration.ts). */
export const registeredPrefix = 'mcp_';

export function isRegistered(clientId: string): boolean {
  return clientId.startsWith(registeredPrefix);
}

/** A confidential client's secret, derived so that no process has to store or transmit it. */
export function clientSecretFor(secret: string, clientId: string): string {
  return mac(secret, 'postern-client-secret', clientId);
}

/** RFC 8252 section 7.3: any port of the loopback address. */
const loopbackRedirects = ['http://127.0.0.1/callback', 'http://[::1]/callback'];

export function builtinClients(uiOrigin: string, secret: string): ClientMetadata[] {
  return [
    {
      client_id: webClientId,
      client_name: 'Postern',
      client_secret: clientSecretFor(secret, webClientId),
      token_endpoint_auth_method: 'client_secret_basic',
      redirect_uris: [`${uiOrigin}/auth/callback`],
      response_types: ['code'],
      grant_types: ['authorization_code', 'refresh_token'],
      scope: 'openid profile email',
    },
    {
      client_id: cliClientId,
      client_name: 'Postern command line',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      redirect_uris: loopbackRedirects,
      response_types: ['code'],
      grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
      scope: apiScopes.join(' '),
    },
    {
      // For MCP clients that cannot register themselves, or may not.
      client_id: mcpClientId,
      client_name: 'MCP client',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      // Many MCP clients name the loopback address so, and VS Code has no path.
      redirect_uris: [...loopbackRedirects, 'http://localhost/callback', 'http://127.0.0.1/'],
      response_types: ['code'],
      grant_types: ['authorization_code', 'refresh_token'],
      scope: mcpClientScopes.join(' '),
    },
    {
      // This client may only introspect: no grant, no redirect.
      client_id: principalSyncClientId,
      client_secret: clientSecretFor(secret, principalSyncClientId),
      token_endpoint_auth_method: 'client_secret_basic',
      redirect_uris: [],
      response_types: [],
      grant_types: [],
    },
  ];
}
