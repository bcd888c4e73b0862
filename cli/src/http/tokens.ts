import { type ContextFile, contextNamed, type Credential } from './contexts.ts';
import { Failure } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import { unreachable } from './send.ts';

/** The OAuth 2.0 client that every installation has. */
export const clientId = 'postern-cli';

/** Before the end of an access token, so that it does not end on the way. */
const earlyMs = 30_000;
const timeoutMs = 30_000;

export type Endpoints = {
  readonly authorization: string;
  readonly token: string;
  readonly revocation: string;
  readonly deviceAuthorization: string;
};

export type Tokens = Extract<Credential, { kind: 'tokens' }>;

/** The endpoints of an issuer, all on its own origin. @throws Failure */
export async function endpointsOf(issuer: string): Promise<Endpoints> {
  const found = await ask(`${issuer}/.well-known/openid-configuration`);
  const endpoint = (name: string): string => {
    const address = found.body[`${name}_endpoint`];
    const url = typeof address === 'string' ? URL.parse(address) : null;
    if (url?.origin !== new URL(issuer).origin) throw noIssuer(issuer);
    return url.href;
  };
  if (found.status !== 200 || found.body['issuer'] !== issuer) throw noIssuer(issuer);
  return {
    authorization: endpoint('authorization'),
    token: endpoint('token'),
    revocation: endpoint('revocation'),
    deviceAuthorization: endpoint('device_authorization'),
  };
}

function noIssuer(issuer: string): Failure {
  return new Failure('no_issuer', 1, `${issuer} does not answer as an OpenID Connect issuer.`, {
    hint: 'With Keycloak, name the realm: postern login URL --issuer https://id.example.com/realms/postern',
  });
}

type Reply = { readonly status: number; readonly body: Readonly<Record<string, unknown>> };

/** GET, or POST with a form. */
export async function ask(address: string, form?: Readonly<Record<string, string>>): Promise<Reply> {
  try {
    const response = await fetch(address, {
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
      ...(form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }),
    });
    const body: unknown = await response.json().catch(() => undefined);
    const isObject = typeof body === 'object' && body !== null;
    return { status: response.status, body: isObject ? { ...body } : {} };
  } catch (error) {
    throw unreachable(new URL(address).origin, error);
  }
}

/** The tokens of a successful reply. @throws Failure */
export function tokensFrom({ status, body }: Reply, issuer: string, now: number): Tokens {
  const { access_token: accessToken, refresh_token: refreshToken, expires_in: seconds } = body;
  if (status !== 200 || typeof accessToken !== 'string') throw refused(body);
  return {
    kind: 'tokens',
    issuer,
    accessToken,
    refreshToken: typeof refreshToken === 'string' ? refreshToken : null,
    expiresAt: now + Number(seconds ?? 0) * 1000,
  };
}

const retryHint = 'Sign in again: postern login';

export function refused({ error, error_description: description }: Reply['body']): Failure {
  const code = typeof error === 'string' ? error : 'sign_in_failed';
  // The provider's own text names neither the person nor the sign-in.
  if (code === 'access_denied')
    return new Failure(code, 4, 'You declined the sign-in in the browser.', { hint: retryHint });
  const message = typeof description === 'string' ? description : 'The sign-in was refused.';
  return new Failure(code, 4, message, { hint: retryHint });
}

/** The access token of a context, renewed under the lock when it ends soon. @throws Failure of the code 4 */
export async function freshAccessToken(
  file: ContextFile,
  name: string,
  { now }: Pick<Io, 'now'>,
): Promise<string> {
  const held = tokensOf(contextNamed(await file.read(), name).credential);
  if (isFresh(held, now())) return held.accessToken;
  return await file.update(async (contexts) => {
    const context = contextNamed(contexts, name);
    // Another command may have renewed it while this one waited for the lock.
    const tokens = tokensOf(context.credential);
    if (isFresh(tokens, now())) return { contexts, result: tokens.accessToken };
    if (tokens.refreshToken === null) throw refused({ error_description: 'The sign-in has ended.' });
    const { token } = await endpointsOf(tokens.issuer);
    const reply = await ask(token, {
      client_id: clientId,
      grant_type: 'refresh_token',
      refresh_token: tokens.refreshToken,
    });
    const next = tokensFrom(reply, tokens.issuer, now());
    const credential = { ...next, refreshToken: next.refreshToken ?? tokens.refreshToken };
    return {
      contexts: { ...contexts, servers: { ...contexts.servers, [name]: { ...context, credential } } },
      result: next.accessToken,
    };
  });
}

function tokensOf(credential: Credential | null): Tokens {
  if (credential?.kind !== 'tokens') throw refused({ error_description: 'This context is not signed in.' });
  return credential;
}

function isFresh({ expiresAt }: Tokens, now: number): boolean {
  return expiresAt - earlyMs > now;
}
