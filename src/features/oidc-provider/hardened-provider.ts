import type { IncomingMessage, ServerResponse } from 'node:http';
import Provider, {
  type AdapterFactory,
  type Configuration,
  errors,
  interactionPolicy,
  type KoaContextWithOIDC,
} from 'oidc-provider';
import type { JWK } from 'jose';
import type { RequestOrigin } from '../../core/caller.ts';
import type { Random } from '../../core/ids.ts';
import type { Log } from '../../platform/log.ts';
import { mcpScope } from '../../core/scopes.ts';
import { mac } from '../../platform/encryption.ts';
import {
  builtinClients,
  isMcpClient,
  mcpClientScopes,
  principalSyncClientId,
  providerScopes,
  webClientId,
} from './clients.ts';
import { type ClientDocuments, documentFeature, documentFetch } from './client-documents.ts';
import { grantName } from './connected-clients.ts';
import { type CookieJar, cookieNames, hardenCookies } from './cookies.ts';
import { answersDeviceFailure, requestIdOf, show, tellFailures } from './failures.ts';
import { nameSuccessors } from './successors.ts';
import { isOwnAddress } from './registration.ts';
import type { ProviderViews } from './views.ts';

/** The data of an account that the provider puts into tokens. Undefined = missing or disabled. */
export type FindEnabledAccount = (
  subject: string,
) => Promise<{ subject: string; name: string; email: string } | undefined>;

/** The MCP endpoint as a protected resource (RFC 8707). While it is off, the provider issues no token for it. */
export type McpResource = {
  readonly address: string;
  isEnabled(): Promise<boolean>;
  /** Whether clients may register themselves (RFC 7591). */
  allowsRegistration(): Promise<boolean>;
  /** A client registers itself. */
  registered(client: McpResourceClient): Promise<void>;
  /** A person allowed a client that registered itself. */
  confirmed(clientId: string): Promise<void>;
  /** A person allowed a client that is described by its own metadata document. */
  documentAllowed(client: McpResourceClient): Promise<void>;
  /** Name that a client chose. Undefined: the client is not known. */
  nameOf(clientId: string): Promise<string | undefined>;
  readonly documents: ClientDocuments;
  /** Definitions that a person can choose for the agents of a client. */
  definitionsFor(clientId: string): Promise<DefinitionOffer>;
  /** A person allowed a client something under this definition. @throws AppError state_conflict */
  chosen(
    origin: RequestOrigin,
    grant: { readonly subject: string; readonly clientId: string; readonly grantId: string },
    definitionId: string,
  ): Promise<void>;
};

export type McpResourceClient = {
  readonly clientId: string;
  readonly name: string;
  readonly redirectHosts: readonly string[];
};

export type OfferedDefinition = { readonly id: string; readonly name: string; readonly purpose: string };

/** `pinned`: an administrator chose it, so the person does not. */
export type DefinitionOffer = {
  readonly pinned: OfferedDefinition | null;
  readonly offered: readonly OfferedDefinition[];
};

export type ProviderDeps = {
  uiOrigin: string;
  mcp: McpResource;
  secrets: readonly string[];
  signingKeys: { keys: JWK[] };
  adapter: AdapterFactory;
  findEnabledAccount: FindEnabledAccount;
  views: ProviderViews;
  log: Log;
  random: Random;
  /** A person allows a client something only with a sign-in that is at most this old; 0 = any. */
  freshProofMinutes: () => number;
  /** Whether the account must sign in with two factors. A rejection fails the request. */
  isSecondFactorRequired: (subject: string) => Promise<boolean>;
};

/** Seconds. Contract 3: access token 5 minutes, offline grant 30 days idle and 60 days absolute. */
const minutes = 60;
const days = 86_400;
const accessTokenSeconds = 5 * minutes;
const offlineIdleSeconds = 30 * days;
const offlineAbsoluteSeconds = 60 * days;
const browserSessionSeconds = 7 * days;
const anonymousSessionSeconds = 15 * minutes;

/** The built-in OpenID provider: oidc-provider with our storage, clients, lifetimes, cookies and pages. */
export function createProvider(deps: ProviderDeps): Provider {
  const { uiOrigin, secrets, log } = deps;
  const [secret] = secrets;
  if (secret === undefined) throw new Error('SESSION_SECRET holds no secret.');
  const provider = new HardenedProvider(`${uiOrigin}/identity`, {
    adapter: deps.adapter,
    clients: builtinClients(uiOrigin, secret),
    jwks: deps.signingKeys as NonNullable<Configuration['jwks']>,
    cookies: {
      names: cookieNames,
      keys: secrets.map((one) => mac(one, 'postern-provider-cookies', 'v1')),
      long: { httpOnly: true, sameSite: 'lax', signed: true },
      short: { httpOnly: true, sameSite: 'lax', signed: true },
    },
    scopes: providerScopes,
    claims: { openid: ['sub', 'amr', 'sid'], profile: ['name'], email: ['email'] },
    responseTypes: ['code'],
    conformIdTokenClaims: false,
    clockTolerance: 5,
    // No script of another origin may call the endpoints; programs outside a browser do not need CORS.
    clientBasedCORS: () => false,
    pkce: { required: () => true },
    fetch: documentFetch(deps.mcp.documents, uiOrigin, log),
    features: featuresOf(deps),
    ttl: lifetimes(),
    // Every token ends with the provider's session, except those of an offline grant.
    expiresWithSession: (_ctx, source) => !isOffline(source),
    issueRefreshToken: (_ctx, client, source) =>
      client.grantTypeAllowed('refresh_token') && (isOffline(source) || client.clientId === webClientId),
    // The web workload authenticates itself and stores its token encrypted, so it needs no rotation. With rotation, a
    // lost answer would end the session: the retry with the old token would look like the use of a stolen one.
    async rotateRefreshToken({ oidc }) {
      const clientId = oidc.client?.clientId ?? '';
      // Before the token is used up: with the next one, the client continues when the endpoint is on again.
      if (isMcpClient(clientId)) await requireEnabled(deps.mcp);
      return clientId !== webClientId;
    },
    // Introspection returns it: Postern records the calls of one consent as one session.
    extraTokenClaims: (_ctx, token) =>
      'grantId' in token && token.grantId !== undefined
        ? { postern_grant: grantName(token.grantId) }
        : undefined,
    loadExistingGrant,
    findAccount: async (_ctx, subject, token) => {
      const account = await deps.findEnabledAccount(subject);
      if (account === undefined) return undefined;
      return {
        accountId: account.subject,
        claims: () => ({
          sub: account.subject,
          name: account.name,
          email: account.email,
          ...sessionClaim(token),
        }),
      };
    },
    interactions: {
      policy: interactionSteps(deps),
      url: (_ctx, interaction) => `${uiOrigin}/identity/interaction/${interaction.uid}`,
    },
    renderError: (ctx, out) => {
      const requestId = requestIdOf(ctx);
      show(ctx, deps.views, (views) =>
        ctx.status >= 500
          ? views.failed({ requestId })
          : views.error({ error: out.error, description: out.error_description, requestId }),
      );
    },
  });
  // URLs and cookies derive from the headers that in-process.ts sets, never from a client's headers.
  provider.proxy = true;
  provider.silent = true;
  tellFailures(provider, { views: deps.views, log });
  nameSuccessors(provider, deps.random);
  provider.use(nameRegistration(deps.mcp));
  return provider;
}

/** Only for the web app, which stops accepting what an ended session of the provider proved. */
function sessionClaim(token: unknown): { sid?: string } {
  const { clientId, sessionUid } = (token ?? {}) as { clientId?: string; sessionUid?: string };
  return clientId === webClientId && sessionUid !== undefined ? { sid: sessionUid } : {};
}

class HardenedProvider extends Provider {
  override createContext(request: IncomingMessage, response: ServerResponse) {
    const ctx = super.createContext(request, response);
    // Both types describe koa's one cookie jar.
    hardenCookies(ctx.cookies as unknown as CookieJar, request.url ?? '/', request.headers.cookie ?? '');
    return ctx;
  }
}

/**
 * The library's steps: sign-in, then consent. When the account is deleted or disabled, the first asks again instead of failing.
 * Between them is the second factor. Each authorization and each approval of a device goes through all of them.
 */
function interactionSteps({
  freshProofMinutes,
  isSecondFactorRequired,
}: Pick<ProviderDeps, 'freshProofMinutes' | 'isSecondFactorRequired'>) {
  const policy = interactionPolicy.base();
  policy.get('login')?.checks.add(
    new interactionPolicy.Check('account_gone', 'the account is gone', 'login_required', (ctx) => {
      const isGone = ctx.oidc.session?.accountId !== undefined && ctx.oidc.account === undefined;
      return isGone ? interactionPolicy.Check.REQUEST_PROMPT : interactionPolicy.Check.NO_NEED_TO_PROMPT;
    }),
  );
  // A client that a person allows something acts for up to 60 days, so a session that was left open allows nothing.
  policy.get('login')?.checks.add(
    new interactionPolicy.Check('stale', 'the sign-in is too old', 'login_required', (ctx) => {
      const { session, client, result } = ctx.oidc;
      const seconds = 60 * freshProofMinutes();
      const isAsked = client?.clientId !== webClientId && session?.accountId !== undefined && seconds > 0;
      // A person who signed in for this request may take longer over the consent.
      return isAsked && result?.login === undefined && session.past(seconds)
        ? interactionPolicy.Check.REQUEST_PROMPT
        : interactionPolicy.Check.NO_NEED_TO_PROMPT;
    }),
  );
  // The provider's session says how its person signed in, also when it began before the requirement.
  const lacksFactor = async ({ oidc: { session } }: KoaContextWithOIDC) =>
    session?.accountId !== undefined &&
    session.amr?.includes('mfa') !== true &&
    (await isSecondFactorRequired(session.accountId));
  // Both factors belong to one sign-in: a browser that was left open after the password adds no passkey.
  policy
    .get('login')
    ?.checks.add(
      new interactionPolicy.Check(
        'first_factor',
        'the password was not part of this sign-in',
        'login_required',
        async (ctx) => ctx.oidc.result?.login === undefined && (await lacksFactor(ctx)),
      ),
    );
  policy.add(
    new interactionPolicy.Prompt(
      { name: secondFactorStep, requestable: false },
      new interactionPolicy.Check(
        'second_factor_missing',
        'a second factor is required',
        'interaction_required',
        lacksFactor,
      ),
    ),
    policy.findIndex(({ name }) => name === 'consent'),
  );
  return policy;
}

/** The name of the step after the password. */
export const secondFactorStep = 'second_factor';

/**
 * The web app is part of Postern, so it gets its grant without consent. Any other client gets the grant that its consent
 * page just created, so that each sign-in of a device or client can be revoked separately.
 */
async function loadExistingGrant(ctx: KoaContextWithOIDC) {
  const { provider, client, session, result } = ctx.oidc;
  const consented = result?.consent?.grantId;
  if (consented !== undefined) return await provider.Grant.find(consented);
  if (client?.clientId !== webClientId || session?.accountId === undefined) return undefined;
  // The grant of a session stays the same: a sign-in that the person does not finish must not unbind the tokens in use.
  const before = session.grantIdFor(client.clientId);
  const known = before === undefined ? undefined : await provider.Grant.find(before);
  if (known !== undefined) return known;
  const grant = new provider.Grant({ accountId: session.accountId, clientId: client.clientId });
  grant.addOIDCScope('openid profile email');
  await grant.save();
  return grant;
}

/** Older MCP clients ask only for the scopes that the resource names, and `offline_access` is none of them (SEP-2207). */
function isOffline({ scopes, clientId }: { scopes: Set<string>; clientId?: string | undefined }): boolean {
  return scopes.has('offline_access') || (clientId !== undefined && isMcpClient(clientId));
}

function lifetimes(): NonNullable<Configuration['ttl']> {
  return {
    AccessToken: accessTokenSeconds,
    AuthorizationCode: 1 * minutes,
    DeviceCode: 10 * minutes,
    Grant: offlineAbsoluteSeconds,
    IdToken: 5 * minutes,
    Interaction: 15 * minutes,
    RefreshToken: (_ctx, token, client) => {
      if (client.clientId === webClientId) return browserSessionSeconds;
      // The absolute lifetime counts from the first token of the family; rotation keeps that date.
      return Math.max(1, Math.min(offlineIdleSeconds, offlineAbsoluteSeconds - token.totalLifetime()));
    },
    // A session without an account holds only a form's secret and a state. Anyone can create one, so keep it short.
    Session: (_ctx, session) =>
      session.accountId === undefined ? anonymousSessionSeconds : browserSessionSeconds,
  };
}

function featuresOf(deps: ProviderDeps): NonNullable<Configuration['features']> {
  const { views } = deps;
  return {
    devInteractions: { enabled: false },
    dPoP: { enabled: false },
    pushedAuthorizationRequests: { enabled: false },
    resourceIndicators: resourceIndicators(deps),
    userinfo: { enabled: true },
    revocation: {
      enabled: true,
      // RFC 7009 section 2.1: a client can revoke only its own tokens.
      allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId,
    },
    introspection: {
      enabled: true,
      allowedPolicy: async (ctx, client, token) => {
        if (client.clientId !== principalSyncClientId) return false;
        // The library also finds refresh tokens, whatever the hint; those must never pass as access tokens.
        const mayBeRefresh = ctx.oidc.params?.['token_type_hint'] === 'refresh_token';
        if (token.kind !== 'AccessToken' && !(token.kind === 'RefreshToken' && mayBeRefresh)) return false;
        if (!('accountId' in token) || typeof token.accountId !== 'string') return false;
        return (await deps.findEnabledAccount(token.accountId)) !== undefined;
      },
    },
    registration: { enabled: false },
    clientIdMetadataDocument: documentFeature(deps.mcp.documents),
    deviceFlow: {
      enabled: true,
      charset: 'base-20',
      mask: '****-****',
      deviceInfo: (ctx) => ({ ip: ctx.ip }),
      userCodeInputSource: (ctx, form, out, error) => {
        if (answersDeviceFailure(ctx, views, out, error)) return;
        show(ctx, views, (page) =>
          page.deviceCode({
            action: actionIn(form),
            xsrf: xsrfIn(form),
            userCode: typedCode(error),
            problem: error === undefined ? undefined : deviceProblem(error.name),
          }),
        );
      },
      userCodeConfirmSource: (ctx, form, client, deviceInfo, shownCode) => {
        const address = deviceInfo['ip'];
        show(ctx, views, (page) =>
          page.deviceConfirm({
            action: actionIn(form),
            xsrf: xsrfIn(form),
            userCode: shownCode,
            shownCode,
            clientName: client.clientName ?? client.clientId,
            address: typeof address === 'string' ? address : undefined,
          }),
        );
      },
      successSource: (ctx) => {
        const { client } = ctx.oidc;
        show(ctx, views, (page) => page.deviceDone({ clientName: client?.clientName ?? 'the device' }));
      },
    },
    rpInitiatedLogout: {
      enabled: true,
      logoutSource: (ctx, form) => {
        show(ctx, views, (page) => page.signOut({ action: actionIn(form), xsrf: xsrfIn(form) }));
      },
      postLogoutSuccessSource: (ctx) => {
        show(ctx, views, (page) => page.signedOut());
      },
    },
  };
}

/** RFC 8707: MCP clients get tokens for the MCP endpoint only, and no other client gets one for it (decision 0062). */
function resourceIndicators({
  mcp,
  uiOrigin,
}: Pick<ProviderDeps, 'mcp' | 'uiOrigin'>): NonNullable<
  NonNullable<Configuration['features']>['resourceIndicators']
> {
  const { address } = mcp;
  return {
    enabled: true,
    // The library also calls it with the resources of a token request that names several, and refuses those itself.
    defaultResource(ctx, client, several) {
      if (several === undefined && isMcpClient(client.clientId))
        throw new errors.InvalidTarget(`name the resource ${address}`);
      nameScopes(ctx);
      // Its type leaves out that there may be no resource.
      return several as string[];
    },
    useGrantedResource: () => true,
    async getResourceServerInfo(ctx, resource, client) {
      // The endpoint answers at both addresses.
      if ((resource !== address && resource !== `${address}/`) || !isMcpClient(client.clientId))
        throw new errors.InvalidTarget('this client gets no tokens for this resource');
      await requireEnabled(mcp);
      requireOtherRedirect(ctx, uiOrigin);
      nameScopesForMcp(ctx);
      // Opaque, because introspection refuses the tokens that are JWTs.
      return { scope: mcpScope, audience: address, accessTokenFormat: 'opaque' };
    },
  };
}

/**
 * Completes the scopes of a new authorization request for the MCP endpoint. Older MCP clients name none, and a token
 * without the scope `mcp` opens nothing (RFC 6749 section 3.3). The consent page shows the result.
 */
function nameScopesForMcp({ oidc }: KoaContextWithOIDC): void {
  if (!newRequests.has(oidc.route) || oidc.params === undefined) return;
  const named = knownScopes(oidc.params['scope']);
  const scopes = named.length === 0 ? mcpClientScopes : new Set([...named, mcpScope]);
  oidc.params['scope'] = [...scopes].join(' ');
}

/** Refuses a new request of another client that names no known scope, before the person sees a page. */
function nameScopes({ oidc }: KoaContextWithOIDC): void {
  if (!newRequests.has(oidc.route) || oidc.params === undefined) return;
  const named = knownScopes(oidc.params['scope']);
  if (named.length === 0)
    throw new errors.InvalidScope(`name at least one scope of ${providerScopes.join(', ')}`, '');
  oidc.params['scope'] = named.join(' ');
}

/** The port of a loopback redirect may vary, so a registered one can become an address of Postern on this machine. */
function requireOtherRedirect({ oidc }: KoaContextWithOIDC, uiOrigin: string): void {
  const redirect = oidc.params?.['redirect_uri'];
  if (oidc.route === 'authorization' && typeof redirect === 'string' && isOwnAddress(redirect, uiOrigin))
    throw new errors.InvalidRedirectUri('the redirect is an address of Postern itself');
}

/** Requests that a person has not seen yet. */
const newRequests: ReadonlySet<string> = new Set(['authorization', 'device_authorization']);

/** Unknown scopes are left out (RFC 6749 section 3.3). */
function knownScopes(requested: unknown): string[] {
  const scopes = typeof requested === 'string' ? requested.split(' ') : [];
  return scopes.filter((scope) => providerScopes.includes(scope));
}

/**
 * Registration is an endpoint of ours, so the library does not name it (RFC 8414 section 2). It always says that clients may have
 * documents, which the MCP policy decides.
 */
function nameRegistration({ allowsRegistration, documents }: McpResource) {
  return async (ctx: KoaContextWithOIDC, next: () => Promise<unknown>) => {
    await next();
    // Paths that no endpoint answers have none, which the type leaves out.
    const { oidc } = ctx as { oidc?: KoaContextWithOIDC['oidc'] };
    if (oidc?.route !== 'discovery') return;
    // The document that the library has just written.
    const { client_id_metadata_document_supported: _, ...named } = ctx.body as Record<string, unknown>;
    ctx.body = {
      ...named,
      ...((await allowsRegistration()) ? { registration_endpoint: `${oidc.issuer}/reg` } : {}),
      ...((await documents.allowsAny()) ? { client_id_metadata_document_supported: true } : {}),
    };
  };
}

async function requireEnabled({ isEnabled }: McpResource): Promise<void> {
  if (!(await isEnabled())) throw new errors.InvalidTarget('the MCP endpoint is switched off');
}

function typedCode(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('userCode' in error)) return '';
  return typeof error.userCode === 'string' ? error.userCode : '';
}

function deviceProblem(name: string): string {
  if (name === 'AbortedError') return 'The request was declined. You can close this page.';
  if (name === 'ExpiredError') return 'This code has expired. Start again on your device.';
  if (name === 'AlreadyUsedError') return 'This code was already used. Start again on your device.';
  return 'This code is not correct. Check your device and enter the code again.';
}

/** oidc-provider passes its forms as HTML; Postern needs only two values from them. */
function actionIn(form: string): string {
  return /action="([^"]+)"/.exec(form)?.[1] ?? '';
}

function xsrfIn(form: string): string {
  return /name="xsrf" value="([0-9a-f]+)"/.exec(form)?.[1] ?? '';
}
