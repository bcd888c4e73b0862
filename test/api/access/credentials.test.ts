// @module-tag sql
import { type AddressInfo, connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hour, minute, second } from '../../../src/core/clock.ts';
import { systemRandom } from '../../../src/core/ids.ts';
import { checksum, keyFormat } from '../../../src/features/keys/key-value.ts';
import type { Database } from '../../../src/platform/database/database.ts';
import { openTestDatabase } from '../../database.ts';
import { type Harness, openHarness, type Person, type TestKey } from '../../harness.ts';
import { contents, denialsOf, dump, noLimits, setPolicy } from './cast.ts';
import { browserOf, privateSite } from '../../gateway/private.ts';
import { formOf } from '../sites/uploads.ts';

/** A key's value on its way in: where it may travel, what is refused unread, and what is never kept. */
let h: Harness;
let ada: Person;
let root: Person;
let key: TestKey;
let queries = 0;
beforeAll(async () => {
  const database = await openTestDatabase();
  h = await openHarness({ database: counting(database) });
  await setPolicy(h, noLimits);
  ada = await h.person('Ada');
  root = await h.person('Root', { admin: true });
  key = await h.key(ada);
  await h.app.web.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => h.close());

/** The same database, and how often it is asked. */
function counting(database: Database): Database {
  const counted = () => {
    queries += 1;
  };
  return {
    ...database,
    sql: {
      run(...statement) {
        counted();
        return database.sql.run(...statement);
      },
    },
    tx(work) {
      counted();
      return database.tx(work);
    },
  };
}

const context = (authorization: string) => h.call('GET', '/auth/context', { headers: { authorization } });

type RawAnswer = { status: number; headers: string; body: string };

/** Sends these bytes to the listening server: what no client library would. */
async function send(request: string | Buffer): Promise<RawAnswer> {
  const { port } = h.app.web.server.address() as AddressInfo;
  return await new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port });
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', (error) => (chunks.length > 0 ? finish() : reject(error)));
    socket.on('end', finish);
    function finish() {
      socket.destroy();
      const text = Buffer.concat(chunks).toString('utf8');
      const [head = '', ...rest] = text.split('\r\n\r\n');
      resolve({
        status: Number(head.split(' ')[1]),
        headers: head.toLowerCase(),
        body: rest.join('\r\n\r\n'),
      });
    }
    socket.write(request);
  });
}

function get(path: string, ...lines: string[]): string {
  return [`GET ${path} HTTP/1.1`, 'Host: localhost:3000', 'Connection: close', ...lines, '', ''].join('\r\n');
}

const errorOf = ({ body }: RawAnswer): { code: string; message: string } => JSON.parse(body).error;

/** The change feed is read and what follows from it is done, so that the next query is the next request's. */
async function heardOfEverything(): Promise<void> {
  await h.app.jobs.runNow('change-feed');
  await h.settle();
  // Changes of the policy are read in the background; a request meanwhile reads them itself.
  await h.app.services.policies.inForce();
}

describe('a value that cannot be a key', () => {
  test('KF-02 one changed character anywhere, a cut, an addition or another prefix is 401 without asking the database', async () => {
    const { value } = key;
    const altered = value.split('').map((character, at) => {
      const other = character === 'x' ? 'y' : 'x';
      return value.slice(0, at) + other + value.slice(at + 1);
    });
    const swapped = `${value.slice(0, 30)}${value.charAt(31)}${value.charAt(30)}${value.slice(32)}`;
    const wrong = [
      ...altered,
      value.slice(0, -1),
      value.slice(0, 20),
      `${value}0`,
      value.replace('app_pat_', 'app_svc_'),
      value.replace('app_pat_', 'APP_PAT_'),
      value.replace('app_pat_', 'other_pat_'),
      ...(swapped === value ? [] : [swapped]),
    ];
    queries = 0;
    for (const candidate of wrong) {
      const answer = await context(`Bearer ${candidate}`);
      expect([candidate.length, answer.status, answer.error.code]).toEqual([
        candidate.length,
        401,
        'invalid_credential',
      ]);
    }
    // The few that no longer look like a key at all are asked of the identity provider as tokens.
    const keyLike = wrong.filter((candidate) => /^app_(pat|svc)_/.test(candidate));
    queries = 0;
    for (const candidate of keyLike) expect((await context(`Bearer ${candidate}`)).status).toBe(401);
    expect(keyLike.length).toBeGreaterThan(50);
    expect(queries).toBe(0);
  });

  test('KF-02 a wrong checksum costs no read, even while the change feed is silent', async () => {
    const wrong = `${key.value.slice(0, -1)}${key.value.endsWith('0') ? '1' : '0'}`;
    h.clock.advance(5 * second);
    queries = 0;
    const answer = await context(`Bearer ${wrong}`);
    expect([answer.status, queries]).toEqual([401, 0]);
  });

  test('KF-02 a well-formed value that was never issued is looked up once and gets the same body', async () => {
    const unknown = keyFormat('app').generate('personal', systemRandom).value;
    const rechecked = key.value.replace('app_pat_', 'app_svc_').slice(0, -6);
    await heardOfEverything();
    const malformed = await context(`Bearer ${key.value.slice(0, -1)}`);
    for (const candidate of [unknown, rechecked + checksum(rechecked)]) {
      queries = 0;
      const answer = await context(`Bearer ${candidate}`);
      expect([answer.status, answer.error, queries]).toEqual([401, malformed.error, 1]);
      expect(answer.headers['www-authenticate']).toBe(malformed.headers['www-authenticate']);
    }
  });
});

describe('what is kept', () => {
  test('KF-03 no key value, no secret part of one and no encoding of it is in any table, even after use everywhere', async () => {
    const body = {
      name: 'made here',
      scopes: ['repos:write'],
      repositoryAccess: { mode: 'all' },
      ttlHours: 1,
    };
    const mine = (await h.call('POST', '/me/tokens', { as: ada, body })).data;
    const service = (await h.call('POST', '/tokens', { as: root, body })).data;
    const successor = (await h.call('POST', `/tokens/${service.id}/rotate`, { as: root, body: {} })).data;
    const site = await privateSite(h, ada);
    const values: string[] = [mine.token, service.token, successor.token, key.value];
    for (const value of values) {
      await context(`Bearer ${value}`);
      await h.call('GET', '/repositories', { query: { search: value } });
      await h.call('GET', `/me/tokens/${value}`, { as: ada });
      await h.call('GET', '/auth/context', { headers: { cookie: `key=${value}` } });
      await h.call('GET', '/auth/context', { headers: { 'user-agent': value } });
      await h.call('GET', '/auth/context', {
        headers: { authorization: `Bearer ${value}`, 'user-agent': `curl ${value}` },
      });
      const { headers } = await browserOf(h, ada).navigate(site.url);
      const { pathname, search } = new URL(headers['location'] ?? '');
      const opened = await h.call('GET', pathname + search, {
        as: ada,
        headers: { accept: 'text/html', 'user-agent': value },
      });
      expect(opened.status).toBe(200);
      const named = { name: value, scopes: ['repos:read'], repositoryAccess: { mode: 'all' } };
      await h.call('POST', '/me/tokens', { headers: { authorization: `Bearer ${value}` }, body: named });
    }
    await h.call('DELETE', `/me/tokens/${mine.id}`, { as: ada });
    await context(`Bearer ${mine.token}`);
    await everythingWritten();
    const copy = await dump(h);
    expect(copy).toContain(mine.id);
    for (const value of values) {
      const secret = value.slice('app_pat_'.length + 12, -6);
      for (const form of [
        value,
        secret,
        Buffer.from(secret).toString('hex'),
        Buffer.from(secret).toString('base64').slice(0, 40),
        Buffer.from(value).toString('hex'),
        Buffer.from(value).toString('base64').slice(0, 60),
      ])
        expect(copy.includes(form)).toBe(false);
    }
  });

  test('KF-03 the SHA-256 of the whole value is all that is stored of the secret', async () => {
    const copy = await dump(h);
    const row = copy.split('\n').find((line) => line.startsWith(`api_keys: (${key.id},`)) ?? '';
    expect(row).toMatch(/\\\\x[0-9a-f]{64}/);
    // Not even its last characters, as older deployments kept for display.
    expect(row).not.toContain(key.value.slice(-4));
  });
});

async function everythingWritten(): Promise<void> {
  for (const job of ['alarms', 'usage', 'seal']) await h.app.jobs.runNow(job);
  await h.app.services.denials.flush({ all: true });
}

describe('a key where no key may be', () => {
  const places: [string, (value: string) => Parameters<Harness['call']>, number, string][] = [
    ['?token=', (value) => ['GET', '/auth/context', { query: { token: value } }], 400, 'credential_in_url'],
    ['a parameter’s name', (value) => ['GET', `/auth/context?${value}=1`], 400, 'credential_in_url'],
    ['the path', (value) => ['GET', `/me/tokens/${value}`], 400, 'credential_in_url'],
    ['an unknown path', (value) => ['GET', `/${value}/x`], 400, 'credential_in_url'],
    [
      'a percent-encoded path',
      (value) => ['GET', `/me/tokens/${value.replaceAll('_', '%5F').replace('a', '%61')}`],
      400,
      'credential_in_url',
    ],
    ['the login address', (value) => ['GET', `/auth/login?returnTo=/x?k=${value}`], 400, 'credential_in_url'],
    ['the provider', (value) => ['GET', `/identity/auth?state=${value}`], 400, 'credential_in_url'],
    [
      'a cookie',
      (value) => ['GET', '/auth/context', { headers: { cookie: `key=${value}` } }],
      401,
      'invalid_credential',
    ],
    [
      'the session cookie',
      (value) => ['GET', '/auth/context', { headers: { cookie: `__Host-postern_session=${value}` } }],
      401,
      'invalid_credential',
    ],
    [
      'a Basic password',
      (value) => ['GET', '/auth/context', { as: `Basic ${Buffer.from(`ada:${value}`).toString('base64')}` }],
      401,
      'invalid_credential',
    ],
    [
      'another scheme',
      (value) => ['GET', '/auth/context', { as: `Token ${value}` }],
      401,
      'invalid_credential',
    ],
    ['no scheme', (value) => ['GET', '/auth/context', { as: value }], 401, 'invalid_credential'],
    [
      'X-API-Key',
      (value) => ['GET', '/auth/context', { headers: { 'x-api-key': value } }],
      401,
      'authentication_required',
    ],
    [
      'a form',
      (value) => [
        'POST',
        '/repositories',
        { body: `access_token=${value}`, headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      ],
      401,
      'authentication_required',
    ],
    [
      'a JSON body',
      (value) => ['POST', '/repositories', { body: { token: value } }],
      401,
      'authentication_required',
    ],
  ];

  test.each(places)(
    'KF-05 in %s is refused and in no answer, log or table',
    async (_where, request, status, code) => {
      const exposed = await h.key(ada, { scopes: ['repos:write'] });
      const [method, path, options] = request(exposed.value);
      const from = h.logged.length;
      const answer = await h.call(method, path, options);
      expect([answer.status, answer.error.code]).toEqual([status, code]);
      expect(answer.text).not.toContain(exposed.value.slice(20));
      expect(h.logged.slice(from).join('\n')).not.toContain(exposed.value.slice(20));
      await everythingWritten();
      expect(await dump(h)).not.toContain(exposed.value.slice(20));
    },
  );

  test.each(
    places
      .filter(([, , , code]) => code === 'credential_in_url')
      .map(([where, request]) => [where, request] as const),
  )(
    'KF-05 in %s it counts as exposed: the audit log and a notice to its owner name its id',
    async (_where, request) => {
      const exposed = await h.key(ada);
      await h.call(...request(exposed.value));
      await everythingWritten();
      const query = { event: 'api_key.exposed', target: exposed.id };
      expect((await h.call('GET', '/audit/events', { as: root, query })).data).toHaveLength(1);
      const notices = await h.call('GET', '/me/notices', { as: ada, query: { limit: '100' } });
      expect(notices.data).toContainEqual(
        expect.objectContaining({ kind: 'key_exposed', keyId: exposed.id }),
      );
      expect(notices.text).not.toContain(exposed.value.slice(20));
    },
  );

  test('KF-05 every place is in the audit log with its reason', async () => {
    const reasons = new Set<string>();
    for (const route of ['GET /api/v2/auth/context', 'POST /api/v2/repositories', 'GET unknown'])
      for (const { reason } of await denialsOf(h, root, route)) reasons.add(reason);
    expect([...reasons].sort()).toEqual(
      expect.arrayContaining(['authentication_required', 'credential_in_url', 'invalid_credential']),
    );
  });
});

describe('the Authorization header', () => {
  test.each([
    ['the usual form', () => `Authorization: Bearer ${key.value}`],
    ['a lower-case scheme', () => `authorization: bearer ${key.value}`],
    ['an upper-case scheme', () => `AUTHORIZATION: BEARER ${key.value}`],
    ['extra spaces', () => `Authorization:    Bearer     ${key.value}   `],
  ])('KF-06 %s is understood', async (_what, line) => {
    const answer = await send(get('/api/v2/auth/context', line()));
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body).data.keyId).toBe(key.id);
  });

  test('KF-06 two Authorization headers are refused, alike or not, in any case and order', async () => {
    const good = `Authorization: Bearer ${key.value}`;
    for (const lines of [
      [good, good],
      [good, 'authorization: Bearer nothing'],
      ['AUTHORIZATION: Basic YTpi', good],
      [good, 'Authorization:'],
      [good, 'Cookie: theme=dark', good],
    ]) {
      const answer = await send(get('/api/v2/auth/context', ...lines));
      expect([answer.status, errorOf(answer).code]).toEqual([400, 'ambiguous_credential']);
    }
  });

  test.each([
    ['nothing after the name', () => 'Authorization:'],
    ['a scheme alone', () => 'Authorization: Bearer'],
    ['a tab for a space', () => `Authorization: Bearer\t${key.value}`],
    ['two values', () => `Authorization: Bearer ${key.value} ${key.value}`],
    ['a list', () => `Authorization: Bearer ${key.value}, Bearer ${key.value}`],
    ['a parameter', () => `Authorization: Bearer ${key.value};realm=x`],
    ['quotes', () => `Authorization: Bearer "${key.value}"`],
    ['a scheme glued to it', () => `Authorization: Bearer${key.value}`],
    ['Latin-1', () => Buffer.from(`Authorization: Bearer ${key.value}\u00FF`, 'latin1')],
    ['UTF-8', () => `Authorization: Bearer ${key.value}\u{1F511}`],
    ['a no-break space', () => Buffer.from(`Authorization: Bearer\u00A0${key.value}`, 'latin1')],
    ['6,000 characters', () => `Authorization: Bearer ${'a'.repeat(6_000)}`],
    ['6,000 characters in the form of a key', () => `Authorization: Bearer app_pat_${'a'.repeat(6_000)}`],
  ])('KF-06 %s is 401 in the envelope', async (_what, line) => {
    const request = Buffer.concat([
      Buffer.from('GET /api/v2/auth/context HTTP/1.1\r\nHost: localhost:3000\r\nConnection: close\r\n'),
      Buffer.from(line()),
      Buffer.from('\r\n\r\n'),
    ]);
    const answer = await send(request);
    expect([answer.status, errorOf(answer).code]).toEqual([401, 'invalid_credential']);
    expect(answer.headers).toContain('www-authenticate: bearer');
    expect(answer.body).not.toContain(key.value);
  });

  test.each([
    ['NUL', '\0'],
    ['a lone line feed', '\nX: '],
    ['a lone carriage return', '\rX: '],
    ['a control character', '\u0007'],
    ['a folded line', '\r\n '],
  ])('KF-06 %s in the value is 400 or 401 in the envelope, never 500', async (_what, character) => {
    const value = `${key.value.slice(0, 30)}${character}${key.value.slice(30)}`;
    const answer = await send(get('/api/v2/auth/context', `Authorization: Bearer ${value}`));
    expect([400, 401]).toContain(answer.status);
    expect(errorOf(answer).code).toMatch(/^(invalid_query|invalid_credential)$/);
    expect(answer.headers).toContain('x-request-id:');
    expect(answer.body).not.toContain(key.value.slice(30));
  });

  test.each([
    ['one value of 100 kB', () => [`Authorization: Bearer ${'a'.repeat(100_000)}`]],
    ['a key-shaped value of 100 kB', () => [`Authorization: Bearer app_pat_${'a'.repeat(100_000)}`]],
    ['a cookie of 100 kB', () => [`Cookie: a=${'a'.repeat(100_000)}`]],
    [
      '100 kB in a hundred fields',
      () => Array.from({ length: 100 }, (_, at) => `X-${at}: ${'a'.repeat(1_000)}`),
    ],
    ['a request line of 100 kB', () => []],
  ])('KF-06 %s is 431 in the envelope, and the server keeps serving', async (what, lines) => {
    const path = what.includes('line')
      ? `/api/v2/auth/context?x=${'a'.repeat(100_000)}`
      : '/api/v2/auth/context';
    const answer = await send(get(path, ...lines()));
    expect([answer.status, errorOf(answer).code]).toEqual([431, 'header_too_large']);
    expect(answer.headers).toContain('cache-control: no-store');
    // A neighbour's cookies may be to blame (T32), and a long link is not: it would sign people out.
    expect(answer.headers.includes('clear-site-data: "cookies"')).toBe(!what.includes('line'));
    expect(answer.headers).toContain('x-request-id:');
    const next = await send(get('/api/v2/auth/context', `Authorization: Bearer ${key.value}`));
    expect(next.status).toBe(200);
  });

  test('KF-06 what is not HTTP at all gets the envelope too', async () => {
    for (const request of [
      'hello\r\n\r\n',
      'GET / HTTP/9.9\r\n\r\n',
      'GET /a b HTTP/1.1\r\nHost: x\r\n\r\n',
    ]) {
      const answer = await send(request);
      expect([request, answer.status]).toEqual([request, 400]);
      expect(errorOf(answer).code).toBe('invalid_query');
    }
  });
});

describe('the context of a key', () => {
  test('KF-08 the context of a personal key has its type, scopes, repositories, expiry, binding and person', async () => {
    await h.repository('acme/site');
    const mine = await h.key(ada, {
      name: 'mine',
      scopes: ['sites:write'],
      ttlHours: 1,
      repositoryAccess: { mode: 'selected', repositories: ['acme/site'] },
    });
    const { data, text, headers } = await context(`Bearer ${mine.value}`);
    expect(data).toEqual({
      principal: { kind: 'user', id: ada.user.id, name: 'Ada' },
      authMethod: 'api_key',
      credential: 'value',
      tokenExpiresAt: null,
      act: null,
      keyType: 'personal',
      keyId: mine.id,
      keyName: 'mine',
      scopes: ['sites:write'],
      effectiveScopes: ['sites:read', 'sites:write'],
      repositories: { mode: 'selected', repositories: ['acme/site'] },
      expiresAt: new Date(h.clock.now() + hour).toISOString(),
      freshUntil: null,
      identityBinding: 'present',
      roles: ['user'],
      rateLimit: { limit: 1_000_000, remaining: expect.any(Number), resetSeconds: expect.any(Number) },
    });
    expect(text).not.toContain(mine.value.slice(20));
    expect(text).not.toContain('@');
    expect(headers['cache-control']).toBe('no-store');
  });

  test('KF-08 a service key is its own principal, without roles or binding', async () => {
    const service = await h.serviceKey({ name: 'nightly', scopes: ['env:read'] });
    const { data } = await context(`Bearer ${service.value}`);
    expect(data).toMatchObject({
      principal: { kind: 'service_key', id: service.id, name: 'nightly' },
      keyType: 'service',
      repositories: { mode: 'all' },
      expiresAt: null,
      identityBinding: null,
      roles: null,
    });
  });

  test('KF-08 the context of a session has the person and roles, and no key', async () => {
    const { data } = await h.call('GET', '/auth/context', { as: root });
    expect(data).toMatchObject({
      authMethod: 'session',
      keyType: null,
      keyId: null,
      scopes: null,
      roles: ['user', 'admin'],
      rateLimit: null,
    });
  });

  test('KF-08 an expired and a revoked key get one body, the one of a value that never was', async () => {
    const [ending, revoked] = [await h.key(ada, { ttlHours: 1 }), await h.key(ada)];
    await h.call('DELETE', `/me/tokens/${revoked.id}`, { as: ada });
    h.clock.advance(hour);
    await heardOfEverything();
    const unknown = await context(`Bearer ${keyFormat('app').generate('personal', systemRandom).value}`);
    expect([unknown.status, unknown.error.code]).toEqual([401, 'invalid_credential']);
    for (const { value } of [ending, revoked]) {
      const answer = await context(`Bearer ${value}`);
      expect([answer.status, answer.error]).toEqual([401, unknown.error]);
      expect('ratelimit' in answer.headers).toBe(false);
    }
    h.clock.advance(minute);
    await everythingWritten();
    const before = await contents(h);
    await context(`Bearer ${revoked.value}`);
    expect(await contents(h)).toEqual(before);
  });
});

describe('a key where text belongs', () => {
  test('KF-03 a key pasted into a name or a setting is refused, and the field is named', async () => {
    const before = await contents(h);
    const access = { mode: 'all' };
    const attempts = [
      [
        '/me/tokens',
        { name: `old ${key.value}`, scopes: ['repos:read'], repositoryAccess: access },
        'name',
        'invalid_name',
      ],
      ['/groups', { name: key.value, roles: [] }, 'name', 'invalid_name'],
      [
        '/repositories',
        {
          fullName: 'acme/leak',
          cloneUrl: 'https://git.example.com/a.git',
          environmentDefaults: { TOKEN: key.value },
        },
        'environmentDefaults',
        'invalid_body',
      ],
    ] as const;
    for (const [path, body, field, code] of attempts) {
      const answer = await h.call('POST', path, { as: root, body });
      expect([answer.status, answer.error.code]).toEqual([400, code]);
      expect(answer.error.message).toBe(`${field}: must not contain an API key`);
      expect(answer.text).not.toContain(key.value);
    }
    expect(await contents(h)).toEqual(before);
  });

  test('KF-03 a key pasted into a field of a form is refused like one in JSON, and so are bytes that are no text', async () => {
    const before = await contents(h);
    for (const [name, problem] of [
      [key.value, 'must not contain an API key'],
      [Buffer.from([0x61, 0xff]), 'must be UTF-8'],
    ] as const) {
      const raw = formOf([
        { name: 'name', value: name },
        { name: 'file', fileName: 'a.html', value: Buffer.from('<h1>Hello</h1>') },
      ]);
      const answer = await h.call('POST', '/sites', { as: root, raw });
      expect([answer.status, answer.error?.message]).toEqual([400, `name: ${problem}`]);
    }
    expect(await contents(h)).toEqual(before);
  });

  test('SO-02 a key that destroys itself comes alone: not with a second one', async () => {
    const { statusCode, json } = await h.app.web.inject({
      method: 'POST',
      url: '/api/v2/auth/revoke-self',
      headers: { authorization: [`Bearer ${key.value}`, `Bearer ${key.value}`] as unknown as string },
    });
    expect([statusCode, json().error.code]).toEqual([400, 'ambiguous_credential']);
    expect((await context(`Bearer ${key.value}`)).status).toBe(200);
  });

  test('SO-02 a key that destroys itself comes alone: not with a session beside it', async () => {
    const answer = await h.call('POST', '/auth/revoke-self', {
      as: key,
      headers: { cookie: `__Host-postern_session=${ada.cookie}` },
    });
    expect([answer.status, answer.error.code]).toEqual([400, 'ambiguous_credential']);
    expect((await context(`Bearer ${key.value}`)).status).toBe(200);
  });

  test('the challenge for bearer tokens goes to callers who sent no session', async () => {
    const dead = await h.call('GET', '/me/tokens', { headers: { cookie: '__Host-postern_session=ended' } });
    expect([dead.status, dead.headers['www-authenticate']]).toEqual([401, undefined]);
    const nothing = await h.call('GET', '/me/tokens');
    expect(nothing.headers['www-authenticate']).toBe('Bearer realm="postern"');
  });
});
