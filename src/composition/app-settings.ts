import type { Config, KeycloakSettings } from '../config/read.ts';
import type { Workload } from '../config/names.ts';
import type { Clock } from '../core/clock.ts';
import type { Random } from '../core/ids.ts';
import type { PasswordCost } from '../features/accounts/passwords.ts';
import type { DatabaseServer } from '../features/environments/databases/server.ts';
import type { Engine } from '../features/engine/contract.ts';
import type { IsolationInForce } from '../features/environments/policy/environment-policy.ts';
import type { Directory } from '../features/people/directory/directory.ts';
import type { Fetch } from '../platform/fetch.ts';
import type { LimitSource } from '../features/rate-limit/rate-limit.ts';
import type { Blobs } from '../platform/blobs/blobs.ts';
import type { Database } from '../platform/database/database.ts';
import type { Git } from '../platform/git/git.ts';
import type { Kv } from '../platform/kv/kv.ts';
import type { Log } from '../platform/log.ts';
import type { ReadDocument } from '../platform/public-document.ts';
import type { TemporaryFiles } from '../platform/temporary-files.ts';
import type { Tracing } from '../platform/tracing.ts';
import type { WebApp } from '../surfaces/web/pages/web-app.ts';

/** What the program stands on: the stores, the clock and the log. */
export type AppBackends = {
  readonly database: Database;
  /** Where requests are counted; shared by all processes of the installation. */
  readonly limitSource: LimitSource;
  /** Short-lived data that processes share. */
  readonly kv: Kv;
  readonly blobs: Blobs;
  readonly temporaryFiles: TemporaryFiles;
  readonly git: Git;
  /** What builds and runs Environments. `elsewhere`: that of a worker. Null or absent: nothing does. */
  readonly engine?: Engine | 'elsewhere' | null;
  /** Has the databases of Environments. Null or absent: there are none. */
  readonly databaseServer?: DatabaseServer | null;
  /** What isolates Environments from everything else. Null or absent: nothing runs them. */
  readonly isolation?: IsolationInForce | null;
  /** Replaces the built-in provider's directory, which decides about people's accounts and roles. */
  readonly directory?: (builtin: Directory) => Directory;
  /** How to reach Keycloak: over the network, unless a test replaces it. */
  readonly identityFetch?: Fetch;
  /** Reads metadata documents of MCP clients: over the network, unless a test replaces it. */
  readonly readDocument?: ReadDocument;
  /** How to reach external MCP servers and issuers of ID tokens. Absent: over the network, at public addresses. */
  readonly outboundFetch?: Fetch;
  readonly clock: Clock;
  /** Monotonic time, for what must expire even if the clock is set back; the process's own unless a test controls time. */
  readonly steady?: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Null or absent: tracing is off. */
  readonly tracing?: Tracing | null;
  /** True: no other process changes this database, so the announcements of this process are complete. */
  readonly isOnlyProcess: boolean;
  /** Housekeeping that the engine does not do by itself. */
  readonly tidy?: () => Promise<void>;
  /** The database's clock; read from the database unless a test controls time. */
  readonly serverTime?: () => Promise<number>;
  /** The built web app; absent = it is read from ui/dist. The app of each test would read its hundreds of files again. */
  readonly webApp?: WebApp;
};

export type AppSettings = {
  readonly uiUrl: string;
  readonly contentUrl: string;
  readonly environmentsContentUrl: string;
  readonly grantSecrets: readonly string[];
  readonly allowSharedApex: boolean;
  readonly keyPrefix: string;
  readonly trustedProxies: readonly string[];
  readonly sessionSecrets: readonly string[];
  readonly encryptionKeys: readonly string[];
  readonly passwordCost: PasswordCost;
  /** Replaces the built-in provider as the source of accounts and roles. */
  readonly keycloak?: KeycloakSettings | null;
  /** Minutes between checks of the owners of keys; 5 unless configured otherwise. */
  readonly ownerSweepMinutes?: number;
  /** Time limit in milliseconds for a request about a person; 2 s unless a test sets another. */
  readonly identityTimeoutMs?: number;
  /** Time limit in milliseconds for an external MCP server or issuer; that of its feature unless a test sets another. */
  readonly externalServerMs?: number;
  /** Milliseconds between two looks at the external servers of a person; 2 s unless a test needs none. */
  readonly externalLookMs?: number;
  /** Changes by a person in any 60 seconds; `changesPerMinute` of features/rate-limit unless a test needs more. */
  readonly changesPerMinute?: number;
  /** Requests a minute that the gateway accepts; its own defaults unless a bench needs more. */
  readonly gatewayLimits?: { readonly perAddress?: number; readonly perHost?: number };
  /** False: node:http reads every request to the gateway. */
  readonly gatewayFastHttp?: boolean;
  /** True: clone URLs may begin with file://. */
  readonly allowsFileRepositories?: boolean;
  /** Folder of the secrets of repositories; absent: there are none. */
  readonly secretsDir?: string | null;
  /** Kubernetes namespace in which Environments run. Null or absent: they run elsewhere, or not at all. */
  readonly namespace?: string | null;
  /** See WebServerDeps. */
  readonly overloadDelayMs?: number;
  /** The workload of this process; absent = all of them. gateway-alone.ts builds a standalone gateway. */
  readonly workload?: Exclude<Workload, 'gateway'>;
};

/** What the app needs of the configuration, value by value: a setting that is not named here reaches no feature. */
export function appSettingsOf(
  config: Config,
  own: Pick<AppSettings, 'passwordCost' | 'changesPerMinute' | 'overloadDelayMs' | 'workload'>,
): AppSettings {
  return {
    uiUrl: config.uiUrl,
    contentUrl: config.contentUrl,
    environmentsContentUrl: config.environmentsContentUrl,
    grantSecrets: config.grantSecrets,
    allowSharedApex: config.allowSharedApex,
    keyPrefix: config.keyPrefix,
    trustedProxies: config.trustedProxies,
    sessionSecrets: config.sessionSecrets,
    encryptionKeys: config.encryptionKeys,
    keycloak: config.keycloak,
    ownerSweepMinutes: config.ownerSweepMinutes,
    gatewayLimits: config.gatewayLimits,
    gatewayFastHttp: config.gatewayFastHttp,
    allowsFileRepositories: config.git.allowsFiles,
    secretsDir: config.environments.secretsDir,
    namespace: config.environments.kubernetes?.namespace ?? null,
    ...own,
  };
}
