import { mcpScope } from '../../core/scopes.ts';
import { isRecord, type KeycloakClient, KeycloakTrouble } from './keycloak-client.ts';

/**
 * Checks what a realm allows the clients of agents, as far as possible without a token of a person: how they may register, and
 * whether a token for `/mcp` differs from one for the API (decision 0062). It changes nothing.
 */
export type McpCheck = {
  readonly registration: {
    /** The metadata names an endpoint. Policies of the realm, which it does not name, decide who may use it. */
    readonly hasEndpoint: boolean;
    readonly acceptsDocuments: boolean;
  };
  readonly audience: AudienceFinding;
};

export type AudienceFinding =
  /** Tokens for the API name `/mcp`, so that the API refuses them all. */
  | { readonly kind: 'in_every_token' }
  | { readonly kind: 'no_scope' }
  /** A token with the scope does not name `/mcp`, which refuses it. */
  | { readonly kind: 'not_in_token' }
  /** It names the API besides. */
  | { readonly kind: 'names_both'; readonly other: string }
  | { readonly kind: 'apart' }
  /** Tokens without the scope are right. The realm gives the reading client none with it. */
  | { readonly kind: 'scope_unknown' };

/** @throws KeycloakTrouble */
export async function checkMcp({
  uiUrl,
  client,
}: {
  readonly uiUrl: string;
  readonly client: Pick<KeycloakClient, 'publicDocument' | 'introspect' | 'ownToken' | 'ownTokenWith'>;
}): Promise<McpCheck> {
  const { status, body } = await client.publicDocument('/.well-known/openid-configuration');
  if (status !== 200 || !isRecord(body)) throw new KeycloakTrouble(`status_${status}`);
  const scopes = body['scopes_supported'];
  return {
    registration: {
      hasEndpoint: typeof body['registration_endpoint'] === 'string',
      acceptsDocuments: body['client_id_metadata_document_supported'] === true,
    },
    audience: await audience(Array.isArray(scopes) && scopes.includes(mcpScope)),
  };

  async function audience(hasScope: boolean): Promise<AudienceFinding> {
    const resource = `${uiUrl}/mcp`;
    if ((await audiencesOf(await client.ownToken())).includes(resource)) return { kind: 'in_every_token' };
    const token = await client.ownTokenWith(mcpScope);
    if (token === undefined) return { kind: hasScope ? 'scope_unknown' : 'no_scope' };
    const named = await audiencesOf(token);
    // Keycloak ignores a scope that a client does not have.
    if (!named.includes(resource)) return { kind: hasScope ? 'not_in_token' : 'no_scope' };
    const other = [uiUrl, `${uiUrl}/api/v2`].find((address) => named.includes(address));
    return other === undefined ? { kind: 'apart' } : { kind: 'names_both', other };
  }

  /** By introspection, because a lightweight token does not contain its audience. */
  async function audiencesOf(token: string): Promise<unknown[]> {
    return [(await client.introspect(token, 'access_token'))['aud']].flat();
  }
}
