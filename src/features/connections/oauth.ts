import { extractWWWAuthenticateParams, LATEST_PROTOCOL_VERSION } from '@modelcontextprotocol/client';
import * as client from 'openid-client';
import { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { isLoopback } from '../../core/loopback.ts';
import type { Fetch } from '../../platform/fetch.ts';
import { version } from '../../platform/version.ts';
import type { McpServer } from './server-store.ts';

/**
 * Signs people in at the authorization servers of external MCP servers, with openid-client: discovery (RFC 9728, RFC 8414),
 * registration (RFC 7591), code flow with PKCE and `iss` (RFC 9207), tokens for one resource (RFC 8707). Secrets go only to the origin of the issuer.
 */
export type ExternalOAuth = {
  /** The issuer at which people sign in, from the server. @throws AppError external_server_unavailable */
  discover(server: Pick<McpServer, 'name' | 'url'>): Promise<Discovered>;
  /** @throws AppError external_server_unavailable, state_conflict; so do the others */
  register(issuer: string, redirectUri: string): Promise<Registration>;
  authorizationUrl(sign: SignIn, discovered: Discovered): Promise<string>;
  exchange(sign: SignIn & { readonly callback: URL; readonly resource: string }): Promise<OAuthTokens>;
  refresh(issuer: string, tokens: OAuthTokens): Promise<Refreshed>;
  /**
   * Revokes for at most `timeoutMs`. Resolves with the number of entries whose tokens were not all revoked; never rejects. An
   * authorization server without a revocation endpoint counts as none.
   */
  revoke(issuer: string, tokens: readonly OAuthTokens[]): Promise<number>;
};

export type Discovered = {
  readonly issuer: string;
  readonly resource: string;
  readonly scopes: readonly string[];
};

/** Postern's client at an authorization server. */
export type Registration = {
  readonly clientId: string;
  /** Null: a public client. */
  readonly clientSecret: string | null;
};

export type SignIn = {
  readonly issuer: string;
  readonly registration: Registration;
  readonly redirectUri: string;
  readonly state: string;
  readonly verifier: string;
};

export type OAuthTokens = {
  readonly accessToken: string;
  readonly refreshToken: string | null;
  /** Milliseconds; null: the authorization server does not say. */
  readonly endsAt: number | null;
  readonly resource: string;
  readonly registration: Registration;
};

export type Refreshed =
  | { readonly kind: 'refreshed'; readonly tokens: OAuthTokens }
  /** The person must sign in there again. */
  | { readonly kind: 'refused' };

/** The metadata of one authorization server. */
const revokedAtOnce = 8;

/** The first message of a client. A server that needs a sign-in answers it with its challenge. */
const firstMessage = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: LATEST_PROTOCOL_VERSION,
    capabilities: {},
    clientInfo: { name: 'postern', version },
  },
});

const resourceSchema = z.object({
  resource: z.string().max(500),
  authorization_servers: z.array(z.string().max(500)).min(1),
  scopes_supported: z.array(z.string().max(100)).max(100).optional(),
});

export function createExternalOAuth({
  fetch,
  clock,
  timeoutMs = 8_000,
}: {
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly timeoutMs?: number;
}): ExternalOAuth {
  function optionsFor(issuer: string, ending?: AbortSignal) {
    const { origin, protocol } = new URL(issuer);
    const pinned: Fetch = async (url, init) => {
      if (new URL(url).origin !== origin) throw new Error('The endpoint is not at the origin of the issuer.');
      const signals = [init.signal, ending].filter((signal) => signal !== undefined);
      return await fetch(url, { ...init, signal: AbortSignal.any(signals) });
    };
    return {
      // openid-client types the body as the Fetch standard does; it only sends forms and JSON, as text.
      [client.customFetch]: pinned as unknown as client.CustomFetch,
      timeout: timeoutMs / 1_000,
      // isIssuer() lets http pass for loopback addresses only.
      execute: protocol === 'http:' ? [client.allowInsecureRequests] : [],
    };
  }

  /** Tries both metadata addresses: RFC 8414 section 3.1, then OpenID Connect Discovery. */
  async function withMetadata<T>(
    issuer: string,
    task: (options: ReturnType<typeof optionsFor> & { algorithm: 'oauth2' | 'oidc' }) => Promise<T>,
    ending?: AbortSignal,
  ): Promise<T> {
    const options = optionsFor(issuer, ending);
    try {
      return await task({ ...options, algorithm: 'oauth2' });
    } catch (error) {
      if (!(error instanceof client.ClientError) || error.code !== 'OAUTH_RESPONSE_IS_NOT_CONFORM')
        throw error;
      return await task({ ...options, algorithm: 'oidc' });
    }
  }

  async function configurationOf(
    issuer: string,
    { clientId, clientSecret }: Registration,
    ending?: AbortSignal,
  ) {
    const auth = clientSecret === null ? client.None() : withSecret(clientSecret);
    return await withMetadata(
      issuer,
      (options) => client.discovery(new URL(issuer), clientId, undefined, auth, options),
      ending,
    );
  }

  async function revokeOne(
    configuration: client.Configuration,
    { refreshToken, accessToken }: OAuthTokens,
  ): Promise<void> {
    if (configuration.serverMetadata().revocation_endpoint === undefined) return;
    if (refreshToken !== null)
      await client.tokenRevocation(configuration, refreshToken, { token_type_hint: 'refresh_token' });
    await client.tokenRevocation(configuration, accessToken, { token_type_hint: 'access_token' });
  }

  function tokensOf(
    answer: client.TokenEndpointResponse,
    { refreshToken, resource, registration }: Pick<OAuthTokens, 'refreshToken' | 'resource' | 'registration'>,
  ): OAuthTokens {
    return {
      accessToken: answer.access_token,
      refreshToken: answer.refresh_token ?? refreshToken,
      endsAt: answer.expires_in === undefined ? null : clock.now() + answer.expires_in * 1_000,
      resource,
      registration,
    };
  }

  /** The server's challenge to a request without a token (RFC 9728 section 5.1); undefined if it has none. */
  async function challengeOf({ name, url }: Pick<McpServer, 'name' | 'url'>): Promise<Challenge> {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
      body: firstMessage,
      signal: AbortSignal.timeout(timeoutMs),
    }).catch((cause: unknown) => {
      throw unavailable(`${name} did not say where people sign in.`, cause);
    });
    await answer.body?.cancel();
    const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(answer);
    const isOwn = resourceMetadataUrl?.origin === new URL(url).origin;
    return {
      // Another origin could describe this server to Postern alone.
      metadata: isOwn ? resourceMetadataUrl.href : undefined,
      scopes:
        scope !== undefined && scope.length <= maxScopeLength ? scope.split(' ').filter(Boolean) : undefined,
    };
  }

  return {
    async discover({ name, url }) {
      const { origin, pathname } = new URL(url);
      const wellKnown = `${origin}/.well-known/oauth-protected-resource`;
      const challenge = await challengeOf({ name, url });
      const addresses = [challenge.metadata, wellKnown + pathname.replace(/\/$/, ''), wellKnown];
      for (const address of new Set(addresses.filter((one) => one !== undefined))) {
        const answer = await fetch(address, {
          method: 'GET',
          headers: { accept: 'application/json' },
          signal: AbortSignal.timeout(timeoutMs),
        })
          .then(async (response) => (response.ok ? await response.json() : undefined))
          .catch((cause: unknown) => {
            throw unavailable(`${name} did not say where people sign in.`, cause);
          });
        const { data } = resourceSchema.safeParse(answer);
        const issuer = data?.authorization_servers[0] ?? '';
        if (data === undefined || !covers(data.resource, url) || !isIssuer(issuer)) continue;
        const scopes = challenge.scopes ?? data.scopes_supported ?? [];
        return { issuer, resource: data.resource, scopes };
      }
      throw unavailable(`${name} does not say where people sign in (RFC 9728).`);
    },
    register: (issuer, redirectUri) =>
      explaining(async () => {
        const server = (await configurationOf(issuer, notRegistered)).serverMetadata();
        if (server.registration_endpoint === undefined)
          throw unavailable(
            'The authorization server of the server registers no clients.',
            undefined,
            enterClient,
          );
        const metadata = {
          client_name: 'Postern',
          redirect_uris: [redirectUri],
          // OpenID Connect Registration section 2: a web client has no loopback redirect.
          application_type: isLoopback(new URL(redirectUri).hostname) ? 'native' : 'web',
          grant_types: ['authorization_code', 'refresh_token'],
          response_types: ['code'],
          token_endpoint_auth_method: authMethodFor(server.token_endpoint_auth_methods_supported),
        };
        const registered = await withMetadata(issuer, (options) => {
          const lenient = withSecretExpiry(options[client.customFetch]);
          return client.dynamicClientRegistration(new URL(issuer), metadata, undefined, {
            ...options,
            [client.customFetch]: lenient,
          });
        });
        const { client_id: clientId, client_secret: secret } = registered.clientMetadata();
        return { clientId, clientSecret: typeof secret === 'string' ? secret : null };
      }),
    authorizationUrl: ({ issuer, registration, redirectUri, state, verifier }, { resource, scopes }) =>
      explaining(async () => {
        const configuration = await configurationOf(issuer, registration);
        const metadata = configuration.serverMetadata();
        if (!metadata.supportsPKCE()) throw unavailable('The authorization server does not support PKCE.');
        const isOffline = metadata.scopes_supported?.includes('offline_access') === true;
        const scope = [...new Set([...scopes, ...(isOffline ? ['offline_access'] : [])])].join(' ');
        const to = client.buildAuthorizationUrl(configuration, {
          redirect_uri: redirectUri,
          state,
          code_challenge: await client.calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
          resource,
          ...(scope === '' ? {} : { scope }),
          // Without it, a server may omit the refresh token (OpenID Connect Core section 11).
          ...(isOffline ? { prompt: 'consent' } : {}),
        });
        // A browser opens it.
        if (!isIssuer(to.origin)) throw unavailable('The page of the authorization server is not https.');
        return to.href;
      }),
    exchange: ({ issuer, registration, state, verifier, callback, resource }) =>
      explaining(async () => {
        const answer = await client.authorizationCodeGrant(
          await configurationOf(issuer, registration),
          callback,
          { expectedState: state, pkceCodeVerifier: verifier },
          { resource },
        );
        return tokensOf(answer, { refreshToken: null, resource, registration });
      }),
    refresh: (issuer, tokens) =>
      explaining(async () => {
        if (tokens.refreshToken === null) return { kind: 'refused' };
        const { registration, resource, refreshToken } = tokens;
        try {
          const configuration = await configurationOf(issuer, registration);
          const answer = await client.refreshTokenGrant(configuration, refreshToken, { resource });
          return { kind: 'refreshed', tokens: tokensOf(answer, tokens) };
        } catch (error) {
          if (error instanceof client.ResponseBodyError && isFinal(error.error)) return { kind: 'refused' };
          throw error;
        }
      }),
    async revoke(issuer, tokens) {
      // One limit for all tokens: a stopping process waits for this.
      const ending = AbortSignal.timeout(timeoutMs);
      const configurations = new Map<string, Promise<client.Configuration>>();
      const waiting = [...tokens];
      let lost = 0;
      async function revokeInTurn(): Promise<void> {
        for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
          const { clientId } = next.registration;
          const configuration =
            configurations.get(clientId) ?? configurationOf(issuer, next.registration, ending);
          configurations.set(clientId, configuration);
          try {
            await revokeOne(await configuration, next);
          } catch {
            lost += 1;
          }
        }
      }
      await Promise.all(Array.from({ length: revokedAtOnce }, revokeInTurn));
      return lost;
    },
  };
}

type Challenge = {
  /** The address of the server's metadata. */
  readonly metadata: string | undefined;
  readonly scopes: readonly string[] | undefined;
};

const maxScopeLength = 2_000;

/** A placeholder for reading metadata; Postern sends it to no server. */
const notRegistered: Registration = { clientId: 'postern', clientSecret: null };

const enterClient =
  'Ask an administrator to enter the client id and secret that the operator of the server gives.';

const methods = ['none', 'client_secret_basic', 'client_secret_post'] as const;

/** The method that Postern registers: the method of a public client if the server supports it. */
function authMethodFor(supported: readonly string[] | undefined): (typeof methods)[number] {
  return methods.find((method) => supported === undefined || supported.includes(method)) ?? 'none';
}

/** RFC 8414 section 2: an authorization server that names no method takes HTTP Basic. */
function withSecret(secret: string): client.ClientAuth {
  const [basic, post] = [basicAuth(secret), client.ClientSecretPost(secret)];
  return (server, ...rest) => {
    const supported = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const isPost = !supported.includes('client_secret_basic') && supported.includes('client_secret_post');
    (isPost ? post : basic)(server, ...rest);
  };
}

/**
 * Encodes only what a form requires. The library also encodes hyphens and dots, which many authorization servers do not
 * decode (RFC 6749 section 2.3.1).
 */
function basicAuth(secret: string): client.ClientAuth {
  const encode = (text: string) => new URLSearchParams([['', text]]).toString().slice(1);
  return (_server, { client_id: clientId }, _body, headers) => {
    const pair = `${encode(clientId)}:${encode(secret)}`;
    headers.set('authorization', `Basic ${Buffer.from(pair).toString('base64')}`);
  };
}

/** RFC 7591 requires `client_secret_expires_at` with a secret; many authorization servers omit it. */
function withSecretExpiry(fetch: client.CustomFetch): client.CustomFetch {
  return async (url, options) => {
    const answer = await fetch(url, options);
    if (options.method !== 'POST' || !answer.ok) return answer;
    const registered: unknown = await answer.json();
    // The library refuses a value that is not an object.
    const complete =
      typeof registered === 'object' && registered !== null && 'client_secret' in registered
        ? { client_secret_expires_at: 0, ...registered }
        : registered;
    return Response.json(complete, { status: answer.status });
  };
}

/** The refresh token or the registration no longer exists; a retry does not help. */
function isFinal(error: string): boolean {
  return ['invalid_grant', 'invalid_client', 'unauthorized_client'].includes(error);
}

/** RFC 9728 section 3.3: the metadata describes this server, and no other. */
function covers(resource: string, url: string): boolean {
  const of = URL.parse(resource);
  const server = new URL(url);
  if (of === null || of.origin !== server.origin) return false;
  const path = of.pathname.replace(/\/$/, '');
  return server.pathname === of.pathname || server.pathname.startsWith(`${path}/`);
}

function isIssuer(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== '' || url.search !== '' || url.hash !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
}

/** A library's error may quote a token, so it is only the cause and never the message. */
async function explaining<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    if (cause instanceof client.AuthorizationResponseError)
      throw new AppError('state_conflict', {
        message: 'The authorization server did not let you in.',
        hint: 'Try again, and allow the access there.',
        cause: cause.error,
      });
    throw unavailable('The authorization server of the server did not give a usable answer.', cause);
  }
}

function unavailable(message: string, cause?: unknown, hint?: string): AppError {
  // Only the name or code: texts of protocol errors quote the answer.
  const reason = cause instanceof Error ? new Error(cause.name) : undefined;
  return new AppError('external_server_unavailable', {
    message,
    ...(hint === undefined ? {} : { hint }),
    ...(reason === undefined ? {} : { cause: reason }),
  });
}
