import type { LightMyRequestResponse as InjectResponse } from 'fastify';
import { type App, type AppParts, type AppSettings, createApp } from '../src/app.ts';
import type { KeyType, UserRef } from '../src/core/caller.ts';
import { hour } from '../src/core/clock.ts';
import { systemRandom } from '../src/core/ids.ts';
import type { Scope } from '../src/core/scopes.ts';
import type { RepositorySelection } from '../src/features/keys/keys.ts';
import { type LimitSource, memorySource } from '../src/features/ratelimit/ratelimit.ts';
import type { Database } from '../src/platform/database/database.ts';
import type { Route } from '../src/platform/http.ts';
import { createLog } from '../src/platform/log.ts';
import { FakeClock } from './clock.ts';
import { openTestDatabase } from './database.ts';

/**
 * The whole product in one object, as its callers see it: real database, real pipeline, fake time. Every answer is
 * held against its route's schema, so an undocumented field or code fails the test that met it.
 */
export const uiOrigin = 'http://localhost:3000';

const settings: AppSettings = {
  uiUrl: uiOrigin,
  keyPrefix: 'app',
  trustedProxies: [],
  sessionSecrets: ['session-secret-of-the-tests-0123456789'],
  encryptionKeys: ['encryption-key-of-the-tests-0123456789'],
  passwordCost: { memoryKib: 8, passes: 1 },
};

export type Harness = {
  readonly app: App;
  readonly clock: FakeClock;
  readonly database: Database;
  readonly logged: string[];
  /** A person with an account and a browser session. */
  person(name: string, options?: { admin?: boolean }): Promise<Person>;
  key(owner: Person, options?: KeyOptions): Promise<TestKey>;
  serviceKey(options?: KeyOptions): Promise<TestKey>;
  repository(fullName: string): Promise<string>;
  /** Sends one request; `as` is a person (cookie and Origin), a key, or a raw Authorization value. */
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  /** Lets the work that follows an answer finish. */
  settle(): Promise<void>;
  /** A second process over the same database and key-value store; its own clock may be off by milliseconds. */
  another(options?: { clockOffBy?: number }): Promise<Harness>;
  close(): Promise<void>;
};

export type Person = {
  readonly user: UserRef;
  readonly cookie: string;
  readonly sessionId: string;
  readonly subject: string;
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
  headers?: Record<string, string>;
  query?: Record<string, string>;
};
export type Answer = {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly text: string;
  // Tests read the wire form freely; a wrong field name shows as a failing expectation.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly data: any;
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly error: any;
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly metadata: any;
};

type Shared = {
  database: Database;
  limitSource: LimitSource;
  clock: FakeClock;
  settings: AppSettings;
  others: number;
};

export async function openHarness(
  options: { limitSource?: LimitSource; database?: Database; changesPerMinute?: number } = {},
): Promise<Harness> {
  const clock = new FakeClock();
  const database = options.database ?? (await openTestDatabase());
  return await build(
    {
      database,
      limitSource: options.limitSource ?? memorySource({ clock }),
      clock,
      settings:
        options.changesPerMinute === undefined
          ? settings
          : { ...settings, changesPerMinute: options.changesPerMinute },
      others: 0,
    },
    { isFirst: true, clockOffBy: 0 },
  );
}

async function build(
  shared: Shared,
  { isFirst, clockOffBy }: { isFirst: boolean; clockOffBy: number },
): Promise<Harness> {
  const { clock, database } = shared;
  const logged: string[] = [];
  const parts: AppParts = {
    database,
    limitSource: shared.limitSource,
    clock: { now: () => clock.now() + clockOffBy },
    random: systemRandom,
    log: createLog({ level: 'debug', sink: { write: (line) => void logged.push(line) } }),
    // A pair of processes must hear of each other; alone, nobody else changes the database.
    isOnlyProcess: false,
    serverTime: async () => clock.now(),
  };
  const app = await createApp(shared.settings, parts);
  await app.start();
  await app.web.ready();
  const { identity, keys, repositories } = app.doors;
  const act = {
    actor: { kind: 'system', id: null, name: 'test', credential: null },
    origin: { requestId: null, address: null, agent: null },
  } as const;

  async function issued(owner: Parameters<typeof keys.create>[1], request: KeyOptions): Promise<TestKey> {
    const { key, value } = await keys.create(act, owner, {
      name: request.name ?? 'test key',
      scopes: request.scopes ?? ['repos:read'],
      repositoryAccess: request.repositoryAccess ?? { mode: 'all' },
      ...(request.ttlHours === undefined ? {} : { ttlHours: request.ttlHours }),
    });
    return { id: key.id, value, type: key.type };
  }

  const harness: Harness = {
    app,
    clock,
    database,
    logged,
    async person(name, { admin = false } = {}) {
      const { account } = await identity.accounts.create(act, {
        email: `${name.toLowerCase()}@example.com`,
        name,
        password: 'correct horse battery',
        roles: admin ? ['user', 'admin'] : ['user'],
        groups: [],
        enabled: true,
      });
      const user = await identity.findUser(account.userId);
      if (user === undefined) throw new Error('The account has no user.');
      const session = await identity.sessions.begin(
        act,
        user,
        { sealedFor: () => 'no tokens', accessExpiresAt: clock.now() + hour, authenticatedAt: null },
        undefined,
      );
      if (session === undefined) throw new Error('The account was signed out meanwhile.');
      return { user, cookie: session.cookieValue, sessionId: session.id, subject: user.subject };
    },
    key: (owner, request = {}) => issued({ type: 'personal', userId: owner.user.id }, request),
    serviceKey: (request = {}) => issued({ type: 'service' }, request),
    async repository(fullName) {
      const created = await repositories.create({ kind: 'anonymous' }, act, {
        fullName,
        cloneUrl: `https://git.example.com/${fullName}.git`,
        defaultBranch: 'main',
      });
      return created.id;
    },
    async call(method, path, callOptions = {}) {
      const response = await app.web.inject({
        method: method as 'GET',
        url:
          path.startsWith('/') &&
          !path.startsWith('/auth/login') &&
          !path.startsWith('/identity') &&
          !path.startsWith('/api/')
            ? `/api/v2${path}`
            : path,
        ...(callOptions.query === undefined ? {} : { query: callOptions.query }),
        ...(callOptions.body === undefined ? {} : { payload: JSON.stringify(callOptions.body) }),
        headers: headersOf(callOptions),
      });
      const answer = toAnswer(response);
      if (answer.status === 500) throw new Error(`${method} ${path} failed: ${logged.at(-1)}`);
      holdAgainstSchema(app.routes, method, path, answer);
      return answer;
    },
    settle: () => app.settled(),
    another: ({ clockOffBy: off = 0 } = {}) => {
      shared.others += 1;
      return build(shared, { isFirst: false, clockOffBy: off });
    },
    async close() {
      await app.stop();
      if (isFirst) await database.close();
    },
  };
  return harness;
}

function headersOf({ as, body, headers }: CallOptions): Record<string, string> {
  return {
    host: 'localhost:3000',
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...credentialOf(as),
    ...headers,
  };
}

function credentialOf(as: CallOptions['as']): Record<string, string> {
  if (as === undefined) return {};
  if (typeof as === 'string') return { authorization: as };
  if ('value' in as) return { authorization: `Bearer ${as.value}` };
  return { cookie: `__Host-postern_session=${as.cookie}`, origin: uiOrigin };
}

function toAnswer(response: InjectResponse): Answer {
  const isJson = String(response.headers['content-type'] ?? '').startsWith('application/json');
  const body = isJson && response.payload !== '' ? JSON.parse(response.payload) : {};
  return {
    status: response.statusCode,
    headers: response.headers as Record<string, string>,
    text: response.payload,
    data: body.data,
    error: body.error,
    metadata: body.metadata,
  };
}

/** Throws when an answer is not what the route promises: a field too many, a code not documented, a missing envelope. */
function holdAgainstSchema(routes: readonly Route[], method: string, path: string, answer: Answer): void {
  const plain = path.split('?', 1)[0] ?? '';
  const route = routes.find(
    (candidate) =>
      candidate.method === method &&
      new RegExp(`^${candidate.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(plain),
  );
  if (answer.headers['x-request-id'] === undefined)
    throw new Error(`${method} ${path} answered without a request id.`);
  if (route === undefined || answer.text === '' || 'stream' in route.success) return;
  if (answer.status < 400) {
    if (answer.status !== route.success.status)
      throw new Error(`${method} ${path} answered ${answer.status}.`);
    const checked = route.success.data.safeParse(answer.data);
    if (!checked.success) throw new Error(`${method} ${path} broke its schema: ${checked.error.message}`);
  }
}
