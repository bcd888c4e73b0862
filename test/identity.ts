import { accountStore } from '../src/features/accounts/account-store.ts';
import { createHash, randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyRequest, InjectOptions } from 'fastify';
import { afterAll, vi } from 'vitest';
import { anonymous, type Caller } from '../src/core/caller.ts';
import { type Clock, minute, second } from '../src/core/clock.ts';
import { systemRandom } from '../src/core/ids.ts';
import type { AuditEntry, AuditWriter } from '../src/features/audit/audit.ts';
import type { SecondFactorLevel } from '../src/features/people/people.ts';
import { createEncryption } from '../src/platform/encryption.ts';
import { type BuiltinIdentity, createBuiltinIdentity } from '../src/composition/identity/builtin-identity.ts';
import { noticeStores } from '../src/composition/notices.ts';
import { identityStores } from '../src/composition/identity/identity-stores.ts';
import { generateSetupToken } from '../src/features/accounts/setup-token.ts';
import { groupRoutes } from '../src/features/accounts/group-routes.ts';
import { userRoutes } from '../src/features/accounts/routes.ts';
import { clientRoutes } from '../src/features/people/client-routes.ts';
import { passkeyRoutes } from '../src/features/passkeys/routes.ts';
import { sessionRoutes } from '../src/features/people/sessions/session-routes.ts';
import { peopleRoutes } from '../src/features/people/routes.ts';
import { announcing, type ChangeFeed, createChangeFeed } from '../src/platform/database/change-feed.ts';
import type { Database } from '../src/platform/database/database.ts';
import { lazyStores } from '../src/platform/database/stores.ts';
import { createLog } from '../src/platform/log.ts';
import { findCredential } from '../src/surfaces/web/credential.ts';
import { createMetrics } from '../src/surfaces/web/metrics.ts';
import { authPages } from '../src/surfaces/web/pages/auth-routes.ts';
import { interactionPages, providerEndpoints } from '../src/surfaces/web/pages/provider-routes.ts';
import { providerViews } from '../src/surfaces/web/pages/provider-views.ts';
import { createWebServer } from '../src/surfaces/web/server.ts';
import { openTestDatabase } from './database.ts';
import { shareSigningKeys } from './signing-keys.ts';
import { createAuthorization } from '../src/surfaces/web/authorization.ts';
import { nobody } from './fixed-caller.ts';

export const uiOrigin = 'http://localhost:3000';
export const sessionSecrets = ['test-session-secret-one', 'test-session-secret-two'];
export const encryptionKeys = ['test-encryption-key-one', 'test-encryption-key-two'];

/**
 * Freezes Date until the tests of this file are over: oidc-provider reads it, so the injected clock must read it too. A test
 * file calls it once, outside its tests.
 */
export function frozenTime(start = Date.UTC(2026, 0, 1)): Clock & { advance(ms: number): void } {
  vi.useFakeTimers({ toFake: ['Date'], now: start });
  afterAll(() => void vi.useRealTimers());
  return { now: () => Date.now(), advance: (ms) => void vi.setSystemTime(Date.now() + ms) };
}

type Secrets = { readonly sessionSecrets: readonly string[]; readonly encryptionKeys: readonly string[] };

export type IdentityApp = {
  identity: BuiltinIdentity;
  app: FastifyInstance;
  database: Database;
  feed: ChangeFeed;
  audit: AuditEntry[];
  refusals: { reason: string; userId: string | null }[];
  /** Who must have a second factor: nobody, unless a test changes it. An error: the setting cannot be read. */
  required: { secondFactor: SecondFactorLevel | Error };
  /** Runs once, between the read of an account's password hash and its check. */
  meanwhile: { passwordCheck: (() => Promise<void>) | null };
  setupToken(): string;
  /** A second process on the same database; optionally with its own secrets and audit log. */
  another(secrets?: Partial<Secrets>, auditLog?: AuditWriter): Promise<IdentityApp>;
  close(): Promise<void>;
};

/** The built-in identity behind the real web server, which accepts browser sessions only. */
export async function openIdentityApp(
  clock: Clock,
  database?: Database,
  secrets: Partial<Secrets> = {},
  auditLog?: AuditWriter,
): Promise<IdentityApp> {
  const db = database ?? (await openTestDatabase());
  const encryption = createEncryption(secrets.encryptionKeys ?? encryptionKeys, systemRandom);
  const log = createLog({ level: 'silent' });
  const storesOn = lazyStores({
    ...identityStores(clock),
    ...noticeStores({ clock, random: systemRandom, log }),
    audit: () => auditLog ?? { append: async (entry: AuditEntry) => void audit.push(entry) },
  });
  if (database === undefined) await shareSigningKeys(storesOn(db.sql).signingKeys, encryption);
  const feed = createChangeFeed({ database: db, clock });
  const audit: AuditEntry[] = [];
  const refusals: IdentityApp['refusals'] = [];
  const required: IdentityApp['required'] = { secondFactor: 'optional' };
  const meanwhile: IdentityApp['meanwhile'] = { passwordCheck: null };
  const read = storesOn(db.sql);
  const accounts = accountStore(db.sql, clock);
  const findLogin: typeof accounts.findLogin = async (email) => {
    const login = await accounts.findLogin(email);
    const { passwordCheck } = meanwhile;
    meanwhile.passwordCheck = null;
    await passwordCheck?.();
    return login;
  };
  Object.defineProperty(read, 'accounts', { value: { ...accounts, findLogin } });
  const identity = createBuiltinIdentity({
    uiOrigin,
    read,
    tx: announcing({ database: db, storesOn, feed, clock }),
    feed,
    isFresh: () => clock.now() - feed.lastReadAt() <= second,
    clock,
    random: systemRandom,
    log,
    sessionSecrets: secrets.sessionSecrets ?? sessionSecrets,
    encryption,
    identityTimeoutMs: minute,
    passwordCost: { memoryKib: 8, passes: 1 },
    views: providerViews,
    mcp: {
      address: `${uiOrigin}/mcp`,
      isEnabled: async () => true,
      allowsRegistration: async () => false,
      registered: async () => undefined,
      confirmed: async () => undefined,
      documentAllowed: async () => undefined,
      nameOf: async () => undefined,
      documents: {
        allowsHost: async () => false,
        allowsAny: async () => false,
        mayFetch: async () => false,
        read: () => Promise.reject(new Error('No document is read.')),
      },
      definitionsFor: async () => ({ pinned: null, offered: [] }),
      chosen: async () => undefined,
    },
    holder: `test-${Math.random()}`,
    signInsPerMinute: () => 60,
    freshProofMinutes: { now: async () => 120, last: () => 120 },
    async secondFactorLevel() {
      if (required.secondFactor instanceof Error) throw required.secondFactor;
      return required.secondFactor;
    },
    signInRefused: (reason, _origin, userId) => void refusals.push({ reason, userId }),
  });
  await identity.start();
  async function authenticate(request: FastifyRequest): Promise<Caller> {
    const credential = findCredential(request.raw);
    if (credential.kind !== 'session') return anonymous;
    const found = await identity.sessions.authenticate(credential.value);
    if (found.kind === 'none') return anonymous;
    const { id: sessionId, ...session } = found.session;
    return { kind: 'session', sessionId, ...session };
  }
  const app = await createWebServer({
    uiOrigin,
    isHttps: false,
    trustedProxies: [],
    log,
    metrics: createMetrics(),
    routes: [
      ...userRoutes(identity),
      ...groupRoutes(identity),
      ...clientRoutes(identity),
      ...peopleRoutes(identity),
      ...sessionRoutes(identity),
      ...passkeyRoutes(identity),
    ],
    pages: [
      authPages({ identity, uiOrigin, clock, ...nobody }),
      interactionPages({ identity, uiOrigin, ...nobody }),
      providerEndpoints({ identity, uiOrigin, ...nobody }),
    ],
    ...nobody,
    authentication: { ...nobody.authentication, authenticate, authenticateAgain: authenticate },
    authorization: createAuthorization({
      freshProof: identity.freshProof,
      identityCheck: {
        async ofCaller(caller) {
          if (caller.kind !== 'session') return { kind: 'not_asked' };
          return await identity.directory.principal(caller.user.subject);
        },
      },
      tokenOfSession: identity.accessTokenFor,
    }),
  });
  await app.ready();
  return {
    identity,
    app,
    database: db,
    feed,
    audit,
    refusals,
    required,
    meanwhile,
    setupToken: () => generateSetupToken(sessionSecrets, clock),
    another: (own, ownAuditLog) => openIdentityApp(clock, db, own, ownAuditLog),
    async close() {
      await app.close();
      if (database === undefined) await db.close();
    },
  };
}

export type Answer = {
  status: number;
  headers: Record<string, unknown>;
  text: string;
  location: string | undefined;
  json(): unknown;
};

/** A browser: keeps cookies, sends Origin with forms, follows redirects on the UI's origin. */
export class Browser {
  readonly cookies = new Map<string, string>();
  readonly setCookies: string[] = [];
  readonly #app: FastifyInstance;
  readonly #origin: string;

  constructor(app: FastifyInstance, origin = uiOrigin) {
    this.#app = app;
    this.#origin = origin;
  }

  async get(url: string, headers: Record<string, string> = {}): Promise<Answer> {
    return await this.send({ method: 'GET', url, headers: { accept: 'text/html', ...headers } });
  }

  async post(
    url: string,
    form: Record<string, string>,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    return await this.send({
      method: 'POST',
      url,
      headers: {
        accept: 'text/html',
        origin: this.#origin,
        'content-type': 'application/x-www-form-urlencoded',
        ...headers,
      },
      payload: new URLSearchParams(form).toString(),
    });
  }

  async api(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<Answer> {
    return await this.send({
      method,
      url: `/api/v2${path}`,
      headers: {
        origin: this.#origin,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
    });
  }

  async follow(answer: Answer): Promise<Answer> {
    let current = answer;
    for (let hop = 0; hop < 10 && current.location !== undefined; hop += 1) {
      const url = new URL(current.location, this.#origin);
      if (url.origin !== this.#origin) return current;
      current = await this.get(url.pathname + url.search);
    }
    return current;
  }

  /** Opens the sign-in page; resolves with its path. */
  async openSignIn(returnTo = '/after'): Promise<string> {
    const page = await this.follow(await this.get(`/auth/login?returnTo=${encodeURIComponent(returnTo)}`));
    const action = /<form method="post" action="([^"]+)"/.exec(page.text)?.[1];
    if (action === undefined) throw new Error(`No sign-in form: ${page.status} ${page.text}`);
    return action;
  }

  /** Signs in; resolves with the last response, which on success is a redirect to `returnTo`. */
  async signIn(email: string, password: string, returnTo = '/after'): Promise<Answer> {
    const action = await this.openSignIn(returnTo);
    let answer = await this.post(action, { email, password, decision: 'sign-in' });
    while (
      answer.location !== undefined &&
      /^(http:\/\/localhost:3000)?\/(auth|identity)\//.test(answer.location)
    ) {
      const url = new URL(answer.location, uiOrigin);
      answer = await this.get(url.pathname + url.search);
    }
    return answer;
  }

  async send(options: InjectOptions): Promise<Answer> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await this.#app.inject({
      ...options,
      headers: { host: new URL(this.#origin).host, ...options.headers, ...(cookie === '' ? {} : { cookie }) },
    });
    for (const line of [response.headers['set-cookie'] ?? []].flat()) this.#keep(line);
    const { location } = response.headers;
    return {
      status: response.statusCode,
      headers: response.headers,
      text: response.payload,
      location: typeof location === 'string' ? location : undefined,
      json: () => JSON.parse(response.payload) as unknown,
    };
  }

  #keep(line: string): void {
    this.setCookies.push(line);
    const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
    const at = pair.indexOf('=');
    const [name, value] = [pair.slice(0, at), pair.slice(at + 1)];
    const isGone = attributes.some(
      (attribute) => /^max-age=0$/i.test(attribute) || /^expires=Thu, 01 Jan 1970/i.test(attribute),
    );
    if (isGone || value === '') this.cookies.delete(name);
    else this.cookies.set(name, value);
  }
}

export const admin = { email: 'ada@example.com', password: 'correct horse battery' };

/** An installation with its administrator, created as an operator would. */
export async function withAdministrator(open: IdentityApp): Promise<void> {
  await open.identity.firstAdministrator.ensure(admin);
}

export const programRedirect = 'http://127.0.0.1:45123/callback';

/** Signs in through a loopback redirect, as a command-line program on the same machine does. */
export async function authorizeProgram(
  browser: Browser,
  scope: string,
  person: { email: string; password: string },
  decision: 'allow' | 'deny',
): Promise<{ answer: URL; verifier: string; consent: Answer }> {
  const verifier = randomBytes(32).toString('base64url');
  const query = new URLSearchParams({
    client_id: 'postern-cli',
    redirect_uri: programRedirect,
    response_type: 'code',
    scope,
    prompt: 'consent',
    state: 'state-of-the-program',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  let page = await browser.follow(await browser.get(`/identity/auth?${query.toString()}`));
  const submit = async (form: Record<string, string>) =>
    await browser.follow(
      await browser.post(/<form method="post" action="([^"]+)"/.exec(page.text)?.[1] ?? '', form),
    );
  if (page.text.includes('type="password"')) {
    page = await submit({ email: person.email, password: person.password, decision: 'sign-in' });
  }
  const consent = page;
  page = await submit({ decision });
  return { answer: new URL(page.location ?? 'http://nowhere'), verifier, consent };
}
