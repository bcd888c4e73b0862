import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import inject, { type Response as InjectResponse } from 'light-my-request';
import { type App, type AppBackends, type AppSettings, createApp } from '../src/composition/app.ts';
import { createGatewayAlone, type GatewayAlone } from '../src/composition/gateway/gateway-alone.ts';
import type { KeyType, UserRef } from '../src/core/caller.ts';
import { day, minute } from '../src/core/clock.ts';
import { systemRandom } from '../src/core/ids.ts';
import type { Scope } from '../src/core/scopes.ts';
import type { ReadDocument } from '../src/platform/public-document.ts';
import type { Directory } from '../src/features/people/directory/directory.ts';
import type { ProviderTokens } from '../src/features/people/oidc-client.ts';
import { createEncryption } from '../src/platform/encryption.ts';
import { encryptTokens } from '../src/features/people/sessions/session-token.ts';
import { identityStores } from '../src/composition/identity/identity-stores.ts';
import type { RepositorySelection } from '../src/features/keys/keys.ts';
import { type LimitSource, memorySource } from '../src/features/rate-limit/rate-limit.ts';
import type { Database } from '../src/platform/database/database.ts';
import { lazyStores } from '../src/platform/database/stores.ts';
import type { DatabaseServer } from '../src/features/environments/databases/server.ts';
import type { Engine } from '../src/features/engine/contract.ts';
import type { IsolationInForce } from '../src/features/environments/policy/environment-policy.ts';
import type { Blobs } from '../src/platform/blobs/blobs.ts';
import { fileBlobs } from '../src/platform/blobs/file-blobs.ts';
import type { Route } from '../src/platform/http.ts';
import type { Kv } from '../src/platform/kv/kv.ts';
import { memoryKv } from '../src/platform/kv/memory-kv.ts';
import { createLog } from '../src/platform/log.ts';
import type { Tracing } from '../src/platform/tracing.ts';
import { gitIn } from '../src/platform/git/git.ts';
import { createOutbound } from '../src/platform/outbound.ts';
import { temporaryFilesIn } from '../src/platform/temporary-files.ts';
import { readWebApp } from '../src/surfaces/web/pages/web-app.ts';
import { FakeClock } from './clock.ts';
import { openTestDatabase } from './database.ts';
import { shareSigningKeys } from './signing-keys.ts';

/**
 * The whole product in one object, as its callers see it: real database, real pipeline, fake time. Every response is
 * checked against its route's schema, so an undocumented field or code fails the test that received it.
 */
export const uiOrigin = 'http://localhost:3000';
const webApp = readWebApp(join(import.meta.dirname, '../ui/dist'));
export const contentUrl = 'http://sites.localhost:3001';

export const settings: AppSettings = {
  uiUrl: uiOrigin,
  contentUrl,
  environmentsContentUrl: contentUrl,
  grantSecrets: ['grant-secret-of-the-tests-0123456789abcd'],
  allowSharedApex: false,
  keyPrefix: 'app',
  trustedProxies: [],
  sessionSecrets: ['session-secret-of-the-tests-0123456789'],
  encryptionKeys: ['encryption-key-of-the-tests-0123456789'],
  passwordCost: { memoryKib: 8, passes: 1 },
  // Healthy answers never meet these limits, however busy the machine is.
  identityTimeoutMs: minute,
  externalServerMs: minute,
  allowsFileRepositories: true,
};

type SignIn = {
  tokenMs?: number;
  /** When the person proved who they are, in milliseconds; null = not known. Absent: the proof stays fresh. */
  signedInAt?: number | null;
};

export type Harness = {
  readonly app: App;
  readonly clock: FakeClock;
  readonly database: Database;
  readonly logged: string[];
  readonly blobs: Blobs;
  /** The folder of staging files. */
  readonly incoming: string;
  /** A person with an account and a browser session. */
  person(name: string, options?: SignIn & { admin?: boolean }): Promise<Person>;
  /** The same person with another session. */
  otherBrowser(person: Person): Promise<Person>;
  /** Revokes the access token behind a person's session, as a provider does (RFC 7009). */
  revokeToken(person: Person): void;
  key(owner: Person, options?: KeyOptions): Promise<TestKey>;
  serviceKey(options?: KeyOptions): Promise<TestKey>;
  repository(fullName: string): Promise<string>;
  /** Sends one request; `as` is a person (cookie and Origin), a key, or a raw Authorization value. */
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  /** Sends one request to the gateway at an address of content, such as a site's `url`. */
  open(url: string, options?: OpenOptions): Promise<InjectResponse>;
  /** Waits for the work that follows a response. */
  settle(): Promise<void>;
  /** A second process on the same database and key-value store; its clock may differ by milliseconds. */
  another(options?: {
    clockOffBy?: number;
    workload?: 'web' | 'worker';
    secrets?: Partial<Secrets>;
    externalServerMs?: number;
  }): Promise<Harness>;
  /** A standalone gateway on the same backends: a function that opens an address, and its jobs. */
  gatewayAlone(database?: Database): Promise<GatewayAlone & { open: Harness['open'] }>;
  close(): Promise<void>;
};

/** Replace those of the first process. */
type Secrets = Pick<AppSettings, 'sessionSecrets' | 'encryptionKeys' | 'grantSecrets'>;

export type Person = {
  readonly user: UserRef;
  readonly cookie: string;
  readonly sessionId: string;
  readonly subject: string;
  /** The access token behind the session. */
  readonly accessToken: string;
};
export type TestKey = { readonly id: string; readonly value: string; readonly type: KeyType };
export type KeyOptions = {
  name?: string;
  scopes?: Scope[];
  ttlHours?: number;
  repositoryAccess?: RepositorySelection;
};
export type CallOptions = {
  as?: Person | TestKey | string;
  body?: unknown;
  /** A body that is not JSON, with its content type. */
  raw?: { type: string; bytes: Buffer | string | Readable };
  headers?: Record<string, string>;
  query?: Record<string, string>;
  /** The client's address. */
  from?: string;
};
export type OpenOptions = {
  method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE' | 'OPTIONS';
  headers?: Record<string, string>;
  body?: string;
  /** The client's address. */
  from?: string;
};
export type Answer = {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly text: string;
  // Parsed JSON; a wrong field name shows as a failing expectation.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly data: any;
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly error: any;
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly metadata: any;
};

type Shared = {
  database: Database;
  kv: Kv;
  /** Blobs and unfinished uploads. */
  folder: string;
  tokens: Map<string, SessionToken>;
  directory: ((builtin: Directory) => Directory) | undefined;
  readDocument: ReadDocument | undefined;
  limitSource: LimitSource;
  clock: FakeClock;
  settings: AppSettings;
  tracing: Tracing | null;
  engine: ((blobs: Blobs) => Promise<Engine>) | undefined;
  isolation: IsolationInForce | null;
  databaseServer: DatabaseServer | null;
  outboundFetch: AppBackends['outboundFetch'] | undefined;
  others: number;
};

export async function openHarness(
  options: {
    limitSource?: LimitSource;
    database?: Database;
    changesPerMinute?: number;
    ownerSweepMinutes?: number;
    gatewayLimits?: AppSettings['gatewayLimits'];
    gatewayFastHttp?: boolean;
    allowsFileRepositories?: boolean;
    /** How to reach external MCP servers. Default: none are reached, because a test's are in a private network. */
    outboundFetch?: AppBackends['outboundFetch'];
    /** Milliseconds between two looks at the external servers of a person. Default: none, so that each listing looks. */
    externalLookMs?: number;
    /** Folder of the secrets of repositories. */
    secretsDir?: string;
    /** What builds and runs Environments, on the blobs of the installation; web alone has none. Default: nothing. */
    engine?: (blobs: Blobs) => Promise<Engine>;
    isolation?: IsolationInForce;
    /** Kubernetes namespace of Environments. Default: none. */
    namespace?: string;
    /** Has the databases of Environments. Default: there are none. */
    databaseServer?: DatabaseServer;
    /** Public addresses of the web app and content; default: those above. */
    uiUrl?: string;
    contentUrl?: string;
    /** Default: that of sites. */
    environmentsContentUrl?: string;
    kv?: Kv;
    tracing?: Tracing | null;
    /** Default: all workloads in one process. */
    workload?: 'web' | 'worker';
    /** Decides about people; default: the built-in provider's tables. */
    directory?: (builtin: Directory) => Directory;
    /** Metadata documents of MCP clients; default: those of the network. */
    readDocument?: ReadDocument;
  } = {},
): Promise<Harness> {
  const clock = new FakeClock();
  const database = options.database ?? (await openTestDatabase());
  return await build(
    {
      database,
      kv: options.kv ?? memoryKv({ clock }),
      folder: await mkdtemp(join(tmpdir(), 'postern-content-')),
      tokens: new Map(),
      directory: options.directory,
      readDocument: options.readDocument,
      tracing: options.tracing ?? null,
      engine: options.engine,
      isolation: options.isolation ?? null,
      databaseServer: options.databaseServer ?? null,
      outboundFetch: options.outboundFetch,
      limitSource: options.limitSource ?? memorySource({ clock }),
      clock,
      settings: {
        ...settings,
        ...(options.changesPerMinute === undefined ? {} : { changesPerMinute: options.changesPerMinute }),
        ...(options.ownerSweepMinutes === undefined ? {} : { ownerSweepMinutes: options.ownerSweepMinutes }),
        ...(options.gatewayLimits === undefined ? {} : { gatewayLimits: options.gatewayLimits }),
        ...(options.gatewayFastHttp === undefined ? {} : { gatewayFastHttp: options.gatewayFastHttp }),
        ...(options.allowsFileRepositories === undefined
          ? {}
          : { allowsFileRepositories: options.allowsFileRepositories }),
        externalLookMs: options.externalLookMs ?? 0,
        ...(options.secretsDir === undefined ? {} : { secretsDir: options.secretsDir }),
        ...(options.namespace === undefined ? {} : { namespace: options.namespace }),
        ...(options.uiUrl === undefined ? {} : { uiUrl: options.uiUrl }),
        contentUrl: options.contentUrl ?? contentUrl,
        environmentsContentUrl: options.environmentsContentUrl ?? options.contentUrl ?? contentUrl,
      },
      others: 0,
    },
    { isFirst: true, clockOffBy: 0, workload: options.workload },
  );
}

async function build(
  shared: Shared,
  {
    isFirst,
    clockOffBy,
    workload,
  }: { isFirst: boolean; clockOffBy: number; workload: 'web' | 'worker' | undefined },
): Promise<Harness> {
  const { clock, database } = shared;
  const logged: string[] = [];
  const blobs = fileBlobs(join(shared.folder, 'blobs'));
  const temporaryFiles = temporaryFilesIn(join(shared.folder, `uploads-${shared.others}`));
  const git = gitIn(join(shared.folder, `git-${shared.others}`), {
    outbound: createOutbound({ allowsPrivate: false }),
    searchPath: process.env['PATH'] ?? '',
    allowsFiles: true,
  });
  await blobs.prepare();
  const engine = await engineOf(shared, workload, blobs);
  await temporaryFiles.prepare();
  await git.prepare();
  const encryption = createEncryption(shared.settings.encryptionKeys, systemRandom);
  if (isFirst)
    await shareSigningKeys(lazyStores(identityStores(clock))(database.sql).signingKeys, encryption);
  const backends: AppBackends = {
    database,
    kv: shared.kv,
    blobs,
    engine,
    isolation: shared.isolation,
    databaseServer: shared.databaseServer,
    temporaryFiles,
    git,
    directory: shared.directory ?? ((builtin) => withSessionTokens(builtin, shared)),
    limitSource: shared.limitSource,
    ...(shared.readDocument === undefined ? {} : { readDocument: shared.readDocument }),
    clock: { now: () => clock.now() + clockOffBy },
    random: systemRandom,
    log: createLog({
      level: 'debug',
      sink: { write: (line) => void logged.push(line) },
      more: shared.tracing?.ids,
    }),
    tracing: shared.tracing,
    ...(shared.outboundFetch === undefined ? {} : { outboundFetch: shared.outboundFetch }),
    // Two processes must read each other's changes. A single process is the only one to change the database.
    isOnlyProcess: false,
    webApp: await webApp,
    serverTime: async () => clock.now(),
  };
  const app = await createApp({ ...shared.settings, workload: workload ?? 'all' }, backends);
  await app.start();
  await app.web.ready();
  const { identity, keys, repositories } = app.services;
  const auditContext = {
    actor: { kind: 'system', id: null, name: 'test', credential: null },
    origin: { requestId: null, address: null, agent: null },
  } as const;

  async function issued(owner: Parameters<typeof keys.create>[1], request: KeyOptions): Promise<TestKey> {
    const { key, value } = await keys.create(auditContext, owner, {
      name: request.name ?? 'test key',
      scopes: request.scopes ?? ['repos:read'],
      repositoryAccess: request.repositoryAccess ?? { mode: 'all' },
      ...(request.ttlHours === undefined ? {} : { ttlHours: request.ttlHours }),
    });
    return { id: key.id, value, type: key.type };
  }

  async function signIn(user: UserRef, { tokenMs = 7 * day, signedInAt }: SignIn): Promise<Person> {
    const accessToken = randomBytes(32).toString('base64url');
    const tokens: ProviderTokens = {
      accessToken,
      refreshToken: null,
      accessExpiresAt: clock.now() + tokenMs,
    };
    shared.tokens.set(accessToken, { subject: user.subject, expiresAt: tokens.accessExpiresAt });
    const session = await identity.sessions.begin(
      auditContext,
      user,
      {
        encryptedFor: (sessionId) => encryptTokens(encryption, sessionId, tokens),
        accessExpiresAt: tokens.accessExpiresAt,
        // Fresh for as long as a test advances its clock.
        authenticatedAt: signedInAt === undefined ? clock.now() + 400 * day : signedInAt,
        methods: ['pwd'],
        providerSession: null,
      },
      undefined,
    );
    if ('refused' in session) throw new Error('The account was signed out meanwhile.');
    return { user, cookie: session.cookieValue, sessionId: session.id, subject: user.subject, accessToken };
  }

  const harness: Harness = {
    app,
    clock,
    database,
    logged,
    blobs,
    incoming: join(shared.folder, 'blobs', 'incoming'),
    async person(name, { admin = false, ...signedIn } = {}) {
      const { account } = await identity.accounts.create(auditContext, {
        email: `${name.toLowerCase()}@example.com`,
        name,
        password: 'correct horse battery',
        roles: admin ? ['user', 'admin'] : ['user'],
        groups: [],
        enabled: true,
      });
      const user = await identity.findUser(account.userId);
      if (user === undefined) throw new Error('The account has no user.');
      return await signIn(user, signedIn);
    },
    otherBrowser: ({ user }) => signIn(user, {}),
    revokeToken: ({ accessToken }) => void shared.tokens.delete(accessToken),
    key: (owner, request = {}) => issued({ type: 'personal', userId: owner.user.id }, request),
    serviceKey: (request = {}) => issued({ type: 'service' }, request),
    async repository(fullName) {
      const created = await repositories.create({ kind: 'anonymous' }, auditContext, {
        fullName,
        cloneUrl: `https://git.example.com/${fullName}.git`,
        defaultBranch: 'main',
      });
      return created.id;
    },
    async call(method, path, callOptions = {}) {
      const response = await app.web.inject({
        method: method as 'GET',
        url: path.startsWith('/') && !path.startsWith('/api/') && !isPage(path) ? `/api/v2${path}` : path,
        ...(callOptions.query === undefined ? {} : { query: callOptions.query }),
        ...(callOptions.body === undefined ? {} : { payload: JSON.stringify(callOptions.body) }),
        ...(callOptions.raw === undefined ? {} : { payload: callOptions.raw.bytes }),
        ...(callOptions.from === undefined ? {} : { remoteAddress: callOptions.from }),
        headers: headersOf(callOptions, shared.settings.uiUrl),
      });
      const answer = toAnswer(response);
      if (answer.status === 500)
        throw new Error(
          `${method} ${path} failed: ${logged.findLast((line) => line.includes('"err"')) ?? logged.at(-1)}`,
        );
      holdAgainstSchema(app.routes, method, path, answer);
      return answer;
    },
    open: openerOf({ gateway: app.gateway, feed: app.services.feed }),
    settle: () => app.settled(),
    another: ({ clockOffBy: off = 0, workload, secrets = {}, externalServerMs } = {}) => {
      shared.others += 1;
      return build(
        {
          ...shared,
          settings: {
            ...shared.settings,
            ...secrets,
            ...(externalServerMs === undefined ? {} : { externalServerMs }),
          },
        },
        { isFirst: false, clockOffBy: off, workload },
      );
    },
    async gatewayAlone(own = database) {
      const alone = createGatewayAlone(shared.settings, { ...backends, database: own });
      await alone.start();
      return { ...alone, open: openerOf(alone) };
    },
    async close() {
      await app.stop();
      if (!isFirst) return;
      await database.close();
      await rm(shared.folder, { recursive: true, force: true });
    },
  };
  return harness;
}

function openerOf({ gateway, feed }: Pick<GatewayAlone, 'gateway' | 'feed'>): Harness['open'] {
  return async (url, { method = 'GET', headers = {}, body, from = '127.0.0.1' } = {}) => {
    const { host } = new URL(url);
    // Another process's changes arrive within a second; here that second has passed.
    await feed.poll();
    return await inject((request, response) => void gateway.emit('request', request, response), {
      method,
      // The address exactly as written: URL would normalize it.
      url: url.slice(url.indexOf(host) + host.length) || '/',
      headers: { host, 'accept-encoding': 'identity', ...headers },
      remoteAddress: from,
      ...(body === undefined ? {} : { payload: body }),
    });
  };
}

async function engineOf(
  { engine }: Shared,
  workload: 'web' | 'worker' | undefined,
  blobs: Blobs,
): Promise<NonNullable<AppBackends['engine']> | null> {
  if (engine === undefined) return null;
  if (workload === 'web') return 'elsewhere';
  return await engine(blobs);
}

type SessionToken = { readonly subject: string; readonly expiresAt: number };

/** The built-in directory, extended by the tokens that person() put behind sessions. */
function withSessionTokens(builtin: Directory, { tokens, clock, settings: { uiUrl } }: Shared): Directory {
  return {
    principal: builtin.principal,
    async introspect(value, hint) {
      const token = tokens.get(value);
      if (token === undefined) return await builtin.introspect(value, hint);
      if (token.expiresAt <= clock.now()) return { kind: 'inactive' };
      return {
        kind: 'active',
        issuer: `${uiUrl}/identity`,
        clientId: 'postern-web',
        scopes: ['openid'],
        audiences: [],
        grantId: null,
        ...token,
      };
    },
  };
}

function headersOf({ as, body, raw, headers }: CallOptions, uiUrl: string): Record<string, string> {
  return {
    host: new URL(uiUrl).host,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(raw === undefined ? {} : { 'content-type': raw.type }),
    ...credentialOf(as, uiUrl),
    ...headers,
  };
}

function credentialOf(as: CallOptions['as'], uiUrl: string): Record<string, string> {
  if (as === undefined) return {};
  if (typeof as === 'string') return { authorization: as };
  if ('value' in as) return { authorization: `Bearer ${as.value}` };
  return { cookie: `__Host-postern_session=${as.cookie}`, origin: uiUrl };
}

function toAnswer(response: InjectResponse): Answer {
  const isJson = String(response.headers['content-type'] ?? '').startsWith('application/json');
  const body = isJson && response.payload !== '' ? JSON.parse(response.payload) : {};
  return {
    status: response.statusCode,
    headers: response.headers as Record<string, string>,
    text: response.payload,
    data: body.data,
    // Errors of OAuth are a text.
    error: typeof body.error === 'string' ? { code: body.error } : body.error,
    metadata: body.metadata,
  };
}

/** Pages for people, besides the API. */
function isPage(path: string): boolean {
  return /^\/(?:auth\/login|identity|[se]\/|sites\/open|environments\/open)/.test(path);
}

const patterns = new Map<string, RegExp>();

function patternOf(path: string): RegExp {
  const pattern = patterns.get(path) ?? new RegExp(`^${path.replaceAll(/\{\w+\*?\}/g, '[^/]+')}$`);
  patterns.set(path, pattern);
  return pattern;
}

/** Throws when a response breaks the route's promise: an extra field, an undocumented code, a missing envelope. */
function holdAgainstSchema(routes: readonly Route[], method: string, path: string, answer: Answer): void {
  const plain = path.split('?', 1)[0] ?? '';
  const fits = routes.filter(
    (candidate) => candidate.method === method && patternOf(candidate.path).test(plain),
  );
  // In the server's order: `/sites/storage` before `/sites/{id}`.
  const route = fits.find(({ path: written }) => written === plain) ?? fits[0];
  if (answer.headers['x-request-id'] === undefined)
    throw new Error(`${method} ${path} answered without a request id.`);
  if (route !== undefined && 'oauth' in route.success && answer.status < 400) {
    const checked = route.success.oauth.safeParse(JSON.parse(answer.text));
    if (!checked.success) throw new Error(`${method} ${path} broke its schema: ${checked.error.message}`);
  }
  if (route === undefined || isPage(path) || answer.text === '' || !('data' in route.success)) return;
  if (answer.status < 400) {
    if (route.success.streams?.includes(answer.headers['content-type'] ?? '')) return;
    const isReplay = answer.status === 200 && route.success.replay !== undefined;
    if (answer.status !== route.success.status && !isReplay)
      throw new Error(`${method} ${path} answered ${answer.status}.`);
    const checked = route.success.data.safeParse(answer.data);
    if (!checked.success) throw new Error(`${method} ${path} broke its schema: ${checked.error.message}`);
  }
}
