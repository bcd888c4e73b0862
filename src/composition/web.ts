import { fileURLToPath } from 'node:url';
import type { AppBackends, AppSettings } from './app-settings.ts';
import type { Identity } from './identity/identity.ts';
import type { Page, PageSteps, Process } from './part.ts';
import type { Denials } from '../features/audit/audit.ts';
import type { KeyAlarms } from '../features/keys/alarms.ts';
import type { createChangeLimit } from '../features/rate-limit/change-limit.ts';
import type { RateLimiter } from '../features/rate-limit/rate-limit.ts';
import { surfaceRoutes } from '../features/settings/surfaces.ts';
import { drain } from '../platform/drain.ts';
import type { Route } from '../platform/http.ts';
import { version } from '../platform/version.ts';
import { routeCaller } from '../surfaces/mcp/call-route.ts';
import { mcpPath } from '../surfaces/mcp/agent-steps.ts';
import { type AuthenticationDeps, createAuthentication } from '../surfaces/web/authentication.ts';
import { type AuthorizationDeps, createAuthorization } from '../surfaces/web/authorization.ts';
import type { Metrics } from '../surfaces/web/metrics.ts';
import { createOpenStreams } from '../surfaces/web/open-streams.ts';
import { buildOpenApi } from '../surfaces/web/openapi/openapi.ts';
import { openApiPage } from '../surfaces/web/openapi/page.ts';
import { commandLineFile } from '../surfaces/web/pages/command-line-file.ts';
import { homePages } from '../surfaces/web/pages/home.ts';
import { legacyConfigCache } from '../surfaces/web/pages/legacy-config-cache.ts';
import { readWebApp } from '../surfaces/web/pages/web-app.ts';
import { referencePage } from '../surfaces/web/reference/reference.ts';
import { createRequestLimits } from '../surfaces/web/request-limits.ts';
import { createRequestRecords } from '../surfaces/web/request-records.ts';
import { createWebServer } from '../surfaces/web/server.ts';

/** The output of `npm run build:ui`. */
const webAppFolder = fileURLToPath(new URL('../../ui/dist', import.meta.url));
const commandLinePath = fileURLToPath(new URL('../../cli/dist/postern.mjs', import.meta.url));

/** The routes that belong to no group. */
export const webRoutes = surfaceRoutes;

type WebDeps = Pick<Process, 'feed' | 'clock' | 'log'> & {
  readonly settings: Pick<
    AppSettings,
    | 'uiUrl'
    | 'contentUrl'
    | 'environmentsContentUrl'
    | 'keyPrefix'
    | 'namespace'
    | 'overloadDelayMs'
    | 'trustedProxies'
  >;
  readonly webApp: AppBackends['webApp'];
  readonly tracing: AppBackends['tracing'];
  readonly routes: readonly Route[];
  /** What pods of Environments call. */
  readonly podRoutes: readonly Route[];
  readonly pages: (steps: PageSteps) => readonly Page[];
  readonly identity: Identity;
  readonly identityCheck: AuthorizationDeps['identityCheck'];
  readonly keys: Pick<AuthenticationDeps, 'verifier' | 'policies' | 'usage'> & {
    readonly alarms: AuthenticationDeps['exposures'] & {
      deadUse: KeyAlarms['deadUse'];
    };
    readonly firstUses: { record(keyId: string, at: number): void };
    readonly refuseBadCredential: AuthenticationDeps['refuse'];
  };
  readonly limiter: RateLimiter;
  readonly changeLimit: ReturnType<typeof createChangeLimit>;
  readonly denials: Denials;
  readonly metrics: Metrics;
  readonly hasStarted: () => boolean;
};

/** The server of web, and the one for pods. */
export async function createWeb(deps: WebDeps) {
  const { settings, routes, podRoutes, identity, keys, limiter, clock, log } = deps;
  const { uiUrl, contentUrl, environmentsContentUrl, trustedProxies } = settings;
  const authentication = createAuthentication({
    verifier: keys.verifier,
    policies: keys.policies,
    limiter,
    refuse: keys.refuseBadCredential,
    sessions: identity.sessions,
    directory: identity.directory,
    mcpResource: uiUrl + mcpPath,
    userOfToken: (token) => identity.learnUser(token),
    usage: keys.usage,
    onDeadUse: (dead, auditContext) => keys.alarms.deadUse(dead.key, dead.status, auditContext),
    exposures: keys.alarms,
    clock,
  });
  const authorization = createAuthorization({
    identityCheck: deps.identityCheck,
    tokenOfSession: identity.accessTokenFor,
    freshProof: identity.freshProof,
  });
  const limits = createRequestLimits({ limiter, changes: deps.changeLimit });
  const records = createRequestRecords({
    denials: deps.denials,
    usage: keys.usage,
    recordFirstUse: keys.firstUses.record,
    clock,
  });
  const callRoute = routeCaller({ routes, authorization, limits });

  // Built on first use: it takes as long as everything else here together.
  let made: ReturnType<typeof buildOpenApi> | undefined;
  const document = () =>
    (made ??= buildOpenApi({ routes, version, serverUrl: uiUrl, keyPrefix: settings.keyPrefix }));
  const ofBothServers = {
    uiOrigin: uiUrl,
    contentUrls: [contentUrl, environmentsContentUrl],
    isHttps: uiUrl.startsWith('https:'),
    overloadDelayMs: settings.overloadDelayMs,
    hasStarted: deps.hasStarted,
    log,
    tracing: deps.tracing ?? null,
    metrics: deps.metrics,
    authentication,
    authorization,
    limits,
    openStreams: createOpenStreams(deps.feed),
    records,
  };
  // A separate port, so that a network policy can keep pods from everything else. No proxy is in front of it.
  const files =
    (settings.namespace ?? null) === null
      ? null
      : await createWebServer({ ...ofBothServers, trustedProxies: [], routes: podRoutes, pages: [] });
  const web = await createWebServer({
    ...ofBothServers,
    trustedProxies,
    routes: files === null ? routes : routes.filter((route) => !podRoutes.includes(route)),
    pages: [
      openApiPage(document),
      referencePage(document),
      homePages({
        identity,
        uiOrigin: uiUrl,
        records,
        webApp: deps.webApp ?? (await readWebApp(webAppFolder)),
      }),
      await commandLineFile(commandLinePath),
      legacyConfigCache({ routes, authentication, callRoute, uiOrigin: uiUrl }),
      ...deps.pages({ authentication, authorization, limits, records, callRoute }),
    ],
  });
  return {
    web,
    files,
    document,
    /** Completes requests in progress. */
    async stop() {
      const servers = files === null ? [web] : [web, files];
      await Promise.all(servers.map((one) => drain(one.server, { close: () => one.close() })));
    },
  };
}
