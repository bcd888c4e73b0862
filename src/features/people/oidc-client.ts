import * as client from 'openid-client';
import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Fetch } from '../../platform/fetch.ts';
import { authenticatedAt, methodsIn, textIn } from './id-token.ts';

/**
 * The relying party's side of OpenID Connect, with openid-client: the same code for the built-in provider and any
 * other. An answer that takes longer than two seconds counts as no answer (contract 5).
 */
export type OidcClient = {
  /**
   * Rejects with `identity_unavailable`. `loginHint`: the e-mail address of the person who signs in again. `mustAsk`: the
   * provider asks the person, even if it knows a session.
   */
  authorizationUrl(
    attempt: LoginAttempt,
    options?: { readonly loginHint?: string | undefined; readonly mustAsk?: boolean },
  ): Promise<URL>;
  /** Rejects with a protocol error when the answer does not belong to this attempt. */
  exchange(callback: URL, attempt: LoginAttempt): Promise<LoginResult>;
  refresh(refreshToken: string): Promise<RefreshResult>;
  /** Ends the provider's session that this refresh token belongs to; `refused` when it has already ended. */
  endSession(
    refreshToken: string,
  ): Promise<{ kind: 'ended' | 'refused' } | { kind: 'unavailable'; reason: string }>;
  /** The raw RFC 7662 answer. Rejects when the provider does not answer. */
  introspect(token: string, hint: 'access_token' | 'refresh_token'): Promise<Record<string, unknown>>;
};

export type LoginAttempt = {
  readonly state: string;
  readonly nonce: string;
  readonly pkceVerifier: string;
  /** The provider must ask the person again when they proved who they are longer ago than this. */
  readonly maxAgeSeconds: number;
};

export type ProviderTokens = {
  readonly accessToken: string;
  readonly refreshToken: string | null;
  /** Milliseconds; one second before the real expiry, because providers count in whole seconds. */
  readonly accessExpiresAt: number;
};

export type LoginResult = {
  readonly issuer: string;
  readonly subject: string;
  readonly name: string;
  readonly email: string | null;
  /** Milliseconds: when the person proved who they are (auth_time). Null when the provider does not say. */
  readonly authenticatedAt: number | null;
  /** How the person signed in (`amr`, RFC 8176). Null when the provider does not say. */
  readonly methods: readonly string[] | null;
  /** The provider's session (`sid`, OpenID Connect Front-Channel Logout). Null when the provider does not say. */
  readonly providerSession: string | null;
  readonly tokens: ProviderTokens;
};

export type RefreshResult =
  | { readonly kind: 'refreshed'; readonly tokens: ProviderTokens }
  /** The provider says that the grant has ended. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'unavailable'; readonly reason: string };

export type OidcClientDeps = {
  issuer: string;
  clientId: string;
  clientSecret: string;
  redirectUri: string;
  fetch: Fetch;
  clock: Clock;
  timeoutSeconds?: number;
};

export function createOidcClient(deps: OidcClientDeps): OidcClient {
  const { issuer, clientId, clientSecret, redirectUri, clock } = deps;
  let discovered: Promise<client.Configuration> | undefined;

  function configuration(): Promise<client.Configuration> {
    discovered ??= client
      .discovery(new URL(issuer), clientId, undefined, client.ClientSecretBasic(clientSecret), {
        // openid-client types the body as the Fetch standard does; it only ever sends forms.
        [client.customFetch]: deps.fetch as unknown as client.CustomFetch,
        timeout: deps.timeoutSeconds ?? 2,
        // Plain http is allowed on loopback only; config/ refuses it elsewhere.
        execute: issuer.startsWith('http:') ? [client.allowInsecureRequests] : [],
      })
      .catch((error: unknown) => {
        discovered = undefined;
        throw error;
      });
    return discovered;
  }

  async function configurationOr503(): Promise<client.Configuration> {
    try {
      return await configuration();
    } catch (cause) {
      throw new AppError('identity_unavailable', { cause });
    }
  }

  function tokensOf(answer: client.TokenEndpointResponse, previousRefresh: string | null): ProviderTokens {
    return {
      accessToken: answer.access_token,
      refreshToken: answer.refresh_token ?? previousRefresh,
      accessExpiresAt: clock.now() + ((answer.expires_in ?? 60) - 1) * 1000,
    };
  }

  return {
    async authorizationUrl({ state, nonce, pkceVerifier, maxAgeSeconds }, { loginHint, mustAsk } = {}) {
      return client.buildAuthorizationUrl(await configurationOr503(), {
        redirect_uri: redirectUri,
        scope: 'openid profile email',
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(pkceVerifier),
        code_challenge_method: 'S256',
        max_age: String(maxAgeSeconds),
        ...(loginHint === undefined ? {} : { login_hint: loginHint }),
        ...(mustAsk === true ? { prompt: 'login' } : {}),
      });
    },
    async exchange(callback, attempt) {
      const answer = await client
        .authorizationCodeGrant(await configurationOr503(), callback, {
          expectedState: attempt.state,
          expectedNonce: attempt.nonce,
          pkceCodeVerifier: attempt.pkceVerifier,
          idTokenExpected: true,
          maxAge: attempt.maxAgeSeconds,
        })
        .catch((cause: unknown) => {
          throw isUnreachable(cause) ? new AppError('identity_unavailable', { cause }) : cause;
        });
      const claims = answer.claims();
      if (claims === undefined) throw new Error('The provider sent no ID token.');
      const email = typeof claims['email'] === 'string' ? claims['email'] : null;
      const name = typeof claims['name'] === 'string' && claims['name'] !== '' ? claims['name'] : email;
      return {
        issuer: claims.iss,
        subject: claims.sub,
        name: (name ?? claims.sub).slice(0, 200),
        email: email?.slice(0, 320) ?? null,
        authenticatedAt: authenticatedAt(claims.auth_time, clock.now()),
        methods: methodsIn(claims['amr']),
        providerSession: textIn(claims['sid']),
        tokens: tokensOf(answer, null),
      };
    },
    async refresh(refreshToken) {
      try {
        const answer = await client.refreshTokenGrant(await configuration(), refreshToken);
        return { kind: 'refreshed', tokens: tokensOf(answer, refreshToken) };
      } catch (error) {
        if (error instanceof client.ResponseBodyError && error.error === 'invalid_grant') {
          return { kind: 'refused' };
        }
        return { kind: 'unavailable', reason: reasonOf(error) };
      }
    },
    async endSession(refreshToken) {
      try {
        const endpoint = (await configuration()).serverMetadata().end_session_endpoint;
        if (endpoint === undefined) return { kind: 'unavailable', reason: 'no_end_session_endpoint' };
        const { status } = await deps.fetch(endpoint, {
          method: 'POST',
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body: new URLSearchParams({
            client_id: clientId,
            client_secret: clientSecret,
            refresh_token: refreshToken,
          }).toString(),
          signal: AbortSignal.timeout((deps.timeoutSeconds ?? 2) * 1_000),
        });
        if (status === 204 || status === 200) return { kind: 'ended' };
        return status === 400 ? { kind: 'refused' } : { kind: 'unavailable', reason: `status_${status}` };
      } catch (error) {
        return { kind: 'unavailable', reason: reasonOf(error) };
      }
    },
    async introspect(token, hint) {
      try {
        return {
          ...(await client.tokenIntrospection(await configuration(), token, { token_type_hint: hint })),
        };
      } catch (error) {
        // The provider's error for a type of token that it never introspects (RFC 7009 section 2.2.1): a clear no.
        if (error instanceof client.ResponseBodyError && error.error === 'unsupported_token_type') {
          return { active: false };
        }
        throw error;
      }
    },
  };
}

/** True for refused, slow and broken connections; false for an error that the provider answered. */
function isUnreachable(error: unknown): boolean {
  return (
    error instanceof TypeError || ['OAUTH_TIMEOUT', 'OAUTH_ABORT', 'TimeoutError'].includes(reasonOf(error))
  );
}

/** A short word for logs: the error's own name or code, never its text, which may quote a token. */
export function reasonOf(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string') {
    return error.code;
  }
  return error instanceof Error ? error.name : 'unknown';
}
