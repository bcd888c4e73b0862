import { type Random, randomBase62 } from '../../core/ids.ts';
import { containsKey } from '../../core/key-shape.ts';
import { plainText } from '../../platform/schemas.ts';
import { mcpClientScopes, registeredPrefix } from './clients.ts';

/**
 * Dynamic registration of MCP clients (RFC 7591). Anyone may call it, so a registration is worth little: the client is
 * public, can request only the MCP endpoint, and is removed after an hour unless a person allows it something. It chose
 * its name itself.
 */
export type Registered = {
  readonly client_id: string;
  readonly client_name: string;
  readonly redirect_uris: readonly string[];
  readonly application_type: 'native';
  readonly grant_types: readonly string[];
  readonly response_types: readonly string[];
  readonly token_endpoint_auth_method: 'none';
  readonly scope: string;
};

export type Refused = {
  readonly error: 'invalid_redirect_uri' | 'invalid_client_metadata';
  readonly error_description: string;
};

const maxRedirects = 5;

export function registrationOf(sent: unknown, random: Random, uiOrigin: string): Registered | Refused {
  return metadataOf(`${registeredPrefix}${randomBase62(random, 20)}`, sent, uiOrigin);
}

/** The metadata that is kept. What a client asks for beyond it is replaced or left out, as the standard allows. */
export function metadataOf(clientId: string, sent: unknown, uiOrigin: string): Registered | Refused {
  if (typeof sent !== 'object' || sent === null || Array.isArray(sent))
    return refused('invalid_client_metadata', 'send a JSON object');
  const { redirect_uris: redirects, client_name: name } = sent as Record<string, unknown>;
  if (!Array.isArray(redirects) || redirects.length === 0 || redirects.length > maxRedirects)
    return refused('invalid_redirect_uri', `redirect_uris must have 1 to ${maxRedirects} addresses`);
  if (!redirects.every(isRedirect))
    return refused(
      'invalid_redirect_uri',
      'a redirect must be https, or http on the loopback address, without a user name and a fragment',
    );
  if (redirects.some((uri) => isOwnAddress(uri, uiOrigin)))
    return refused(
      'invalid_redirect_uri',
      `a redirect must not be an address of ${uiOrigin}, which is Postern itself`,
    );
  const called = plainText(60).safeParse(name);
  return {
    client_id: clientId,
    // Administrators read it in a table, where no key may be (matrix KF-03).
    client_name: called.success && !containsKey(called.data) ? called.data : 'MCP client',
    redirect_uris: [...new Set(redirects)],
    application_type: 'native',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    scope: mcpClientScopes.join(' '),
  };
}

/** The names of the loopback address for which the library lets the port vary (RFC 8252 section 7.3). */
const loopback: readonly string[] = ['127.0.0.1', '[::1]', 'localhost'];

/** Postern never opens it; a browser does. No other scheme, because a page of ours would lead to it. */
function isRedirect(text: unknown): text is string {
  if (typeof text !== 'string' || text.length > 500) return false;
  const url = URL.parse(text);
  if (url === null || url.hash !== '' || text.includes('#') || url.username !== '' || url.password !== '')
    return false;
  return url.protocol === (loopback.includes(url.hostname) ? 'http:' : 'https:');
}

/** A page of Postern is not a client: Postern's own sign-in could accept a code that arrives there. */
export function isOwnAddress(uri: string, uiOrigin: string): boolean {
  return URL.parse(uri)?.origin === uiOrigin;
}

function refused(error: Refused['error'], description: string): Refused {
  return { error, error_description: description };
}
