import { generateKeyPair, exportJWK, SignJWT } from 'jose';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { minute } from '../../core/clock.ts';
import { createKeycloakClient } from './keycloak-client.ts';
import type { Fetch } from '../../platform/fetch.ts';
import { keycloakDirectory } from './keycloak-directory.ts';

// What Keycloak answers in form is tested against a real one (test/keycloak); here is what it never should answer.
const issuer = 'https://id.example/realms/people';
const subject = '0b5c7a9e-0000-4000-8000-000000000001';
const jsonType = { 'content-type': 'application/json' };
const json = (body: unknown, status = 200) =>
  new Response(JSON.stringify(body), { status, headers: jsonType });

type Answers = {
  user?: () => Response | Promise<Response>;
  roles?: () => Response | Promise<Response>;
  introspection?: () => Response | Promise<Response>;
  token?: () => Response;
  role?: () => Response;
};

let privateKey: Awaited<ReturnType<typeof generateKeyPair>>['privateKey'];
let keys: { keys: unknown[] };
let good: string;
beforeAll(async () => {
  const pair = await generateKeyPair('RS256', { extractable: true });
  privateKey = pair.privateKey;
  keys = { keys: [{ ...(await exportJWK(pair.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' }] };
  good = await signed({ aud: 'postern-principal-sync' });
});

const signed = async (claims: Record<string, unknown>, ends = '5m', key = privateKey) =>
  await new SignJWT({ iss: issuer, sub: subject, ...claims })
    .setProtectedHeader({ alg: 'RS256', kid: 'one' })
    .setExpirationTime(ends)
    .sign(key);

const active = (change: Record<string, unknown> = {}) =>
  json({
    active: true,
    iss: issuer,
    sub: subject,
    client_id: 'postern-cli',
    token_type: 'Bearer',
    scope: 'openid',
    exp: Math.floor(Date.now() / 1_000) + 300,
    ...change,
  });

const silence = () => new Promise<Response>(() => undefined);

/**
 * Between two questions more time passes than an answer is shared for, unless a test holds it still. Only a provider that
 * does not answer has a short limit.
 */
function open(answers: Answers = {}, { isProven = true, isStill = false, timeoutMs = 0 } = {}) {
  timeoutMs ||= Object.values<unknown>(answers).includes(silence) ? 50 : minute;
  let now = Date.now();
  let steadyMs = 0;
  const asked: string[] = [];
  const clock = { now: () => now };
  const fetch: Fetch = async (url, { signal }) => {
    const path = url.replace('https://id.example', '');
    asked.push(path);
    const late = new Promise<never>((_, reject) => {
      signal?.addEventListener('abort', () => reject(new DOMException('late', 'TimeoutError')));
    });
    return await Promise.race([late, Promise.resolve(answer(path))]);
  };
  function answer(path: string): Response | Promise<Response> {
    if (path.endsWith('/token')) return answers.token?.() ?? json({ access_token: 'own', expires_in: 300 });
    if (path.endsWith('/introspect')) return answers.introspection?.() ?? active();
    if (path.endsWith('/certs')) return json(keys);
    if (path.endsWith('/composite')) return answers.roles?.() ?? json([{ name: 'user' }, { name: 'other' }]);
    if (path.includes('/roles/')) return answers.role?.() ?? json({ name: 'user' });
    return answers.user?.() ?? json({ id: subject, username: 'ada', enabled: true });
  }
  const known = new Set<string>();
  const directory = keycloakDirectory({
    issuer,
    clientId: 'postern-principal-sync',
    roleNames: { user: 'user', admin: 'admin' },
    client: createKeycloakClient({
      issuer,
      principalSync: { id: 'postern-principal-sync', secret: 'a secret' },
      fetch,
      clock,
      timeoutMs,
    }),
    known: { has: async (one) => known.has(one), note: (one) => void known.add(one) },
    isProven: async () => isProven,
    clock,
    steady: { now: () => (isStill ? steadyMs : (steadyMs += 1_000)) },
    timeoutMs,
  });
  return {
    directory,
    asked,
    known,
    pass: (ms: number) => void (steadyMs += ms),
    advance: (ms: number) => void (now += ms),
  };
}

const broken = Object.assign(new TypeError('fetch failed'), {
  cause: Object.assign(new Error('reset'), { code: 'ECONNRESET' }),
});

/** Bodies and states that mean neither yes nor no, for any endpoint. */
const nonsense: [string, () => Response | Promise<Response>][] = [
  ['a refused connection', () => Promise.reject(new TypeError('fetch failed'))],
  ['no answer', silence],
  ['500', () => json({ error: 'unknown_error' }, 500)],
  ['429', () => json({}, 429)],
  [
    'a redirect',
    () => new Response(null, { status: 302, headers: { location: 'https://elsewhere.example' } }),
  ],
  ['a page of HTML', () => new Response('<html>maintenance</html>', { status: 200 })],
  ['an empty object', () => json({})],
  ['truncated JSON', () => new Response('{"active":tr', { status: 200, headers: jsonType })],
  ['null', () => json(null)],
];

describe('ID-10 what cannot be told is unavailable, never a yes and never a no', () => {
  test.each(nonsense)('%s about a token', async (_, introspection) => {
    expect(await open({ introspection }).directory.introspect(good)).toMatchObject({ kind: 'unavailable' });
  });

  test.each([...nonsense, ['401', () => json({}, 401)], ['403', () => json({}, 403)]] as const)(
    '%s about a person',
    async (_, user) => {
      expect(await open({ user }).directory.principal(subject)).toMatchObject({ kind: 'unavailable' });
    },
  );

  test.each([
    ...nonsense,
    ['403', () => json({}, 403)],
    ['404', () => json({ error: 'User not found' }, 404)],
    ['roles without names', () => json([{ id: 'x' }])],
  ] as const)('%s about their roles', async (_, roles) => {
    expect(await open({ roles }).directory.principal(subject)).toMatchObject({ kind: 'unavailable' });
  });

  test.each([
    ['a page that is not there', new Response('<html>404</html>', { status: 404 })],
    ['a realm that is not there', json({ error: 'Realm not found.' }, 404)],
    ['someone else', json({ id: 'someone-else', enabled: true })],
    ['a person of whom it is not said whether they are enabled', json({ id: subject })],
    ['"enabled" as text', json({ id: subject, enabled: 'true' })],
  ])('%s in place of a person', async (_, answer) => {
    const found = await open({ user: () => answer }).directory.principal(subject);
    expect(found).toMatchObject({ kind: 'unavailable' });
  });

  test.each([
    ['refused', () => json({ error: 'unauthorized_client' }, 401)],
    ['garbled', () => json({ access_token: 7 })],
  ])('its own token %s', async (_, token) => {
    expect(await open({ token }).directory.principal(subject)).toMatchObject({ kind: 'unavailable' });
  });

  test('a realm that has not passed the self-test is not asked', async () => {
    const { directory, asked } = open({}, { isProven: false });
    expect(await directory.principal(subject)).toEqual({
      kind: 'unavailable',
      reason: 'self_test_not_passed',
    });
    expect(await directory.introspect(good)).toMatchObject({ kind: 'unavailable' });
    expect(asked).toEqual([]);
  });
});

describe('ID-11 an answer about a token counts only in form and for this realm', () => {
  test.each([
    ['active as text', { active: 'true' }, 'unavailable'],
    ['without a subject', { sub: undefined }, 'unavailable'],
    ['another issuer', { iss: 'https://id.example/realms/others' }, 'inactive'],
    ['over already', { exp: 1_000_000 }, 'inactive'],
    ['not a bearer', { token_type: 'Refresh' }, 'inactive'],
  ])('%s', async (_, change, kind) => {
    const { directory } = open({ introspection: () => active(change) });
    expect(await directory.introspect(good)).toMatchObject({ kind });
  });

  test.each(['', 'garbage', 'a.b.c', `app_pat_${'x'.repeat(50)}`])(
    'what is no token of the realm (%s) is refused without a question',
    async (value) => {
      const { directory, asked } = open();
      expect(await directory.introspect(value)).toEqual({ kind: 'inactive' });
      expect(asked).toEqual([]);
    },
  );
});

describe('ID-17 inactive because it was made for others (contract 10.1)', () => {
  const inactive = { introspection: () => json({ active: false }) };

  test('MC-02 a token that Keycloak calls active, and that is for someone else, is not believed', async () => {
    const kindOf = async (token: string, aud?: unknown) => {
      const { directory } = open({ introspection: () => active(aud === undefined ? {} : { aud }) });
      const found = await directory.introspect(token);
      return found.kind === 'unavailable' ? found.reason : found.kind;
    };
    expect(await kindOf(good, ['account', 'postern-principal-sync'])).toBe('active');
    expect(await kindOf(good, 'account')).toBe('token_audience');
    expect(await kindOf(good)).toBe('active');
    expect(await kindOf(await signed({ aud: 'account' }))).toBe('token_audience');
    // ID-17: a lightweight token says nothing of it; then the answer has to.
    expect(await kindOf(await signed({}))).toBe('token_audience');
    expect(await kindOf(await signed({}), 'postern-principal-sync')).toBe('active');
  });

  test('a good token without our client in its audience is a mistake of the realm', async () => {
    const token = await signed({ aud: ['account', 'someone'] });
    expect(await open(inactive).directory.introspect(token)).toEqual({
      kind: 'unavailable',
      reason: 'token_audience',
    });
  });

  test('a token made for us that is inactive was revoked', async () => {
    expect(await open(inactive).directory.introspect(good)).toEqual({ kind: 'inactive' });
  });

  test('one that is over, or that someone else signed, is no mistake of the realm', async () => {
    const { directory } = open(inactive);
    expect(await directory.introspect(await signed({ aud: 'x' }, '-1m'))).toEqual({ kind: 'inactive' });
    const other = await generateKeyPair('RS256');
    const forged = await signed({ aud: 'x' }, '5m', other.privateKey);
    expect(await directory.introspect(forged)).toEqual({ kind: 'inactive' });
  });
});

describe('people', () => {
  test('who is disabled is, whatever becomes of their roles', async () => {
    const { directory } = open({
      user: () => json({ id: subject, enabled: false }),
      roles: () => json({}, 500),
    });
    expect(await directory.principal(subject)).toEqual({ kind: 'disabled' });
  });

  test('who has no role has none only where the role itself can be seen', async () => {
    const roles = () => json([]);
    expect(await open({ roles }).directory.principal(subject)).toMatchObject({ kind: 'active', roles: [] });
    const hidden = open({ roles, role: () => json({}, 403) });
    expect(await hidden.directory.principal(subject)).toMatchObject({ kind: 'unavailable' });
  });

  test('a subject cannot lead anywhere else', async () => {
    const { directory, asked } = open({ user: () => json({ error: 'User not found' }, 404) });
    for (const one of ['', '.', '..'])
      expect(await directory.principal(one)).toEqual({ kind: 'missing', wasKnown: false });
    expect(asked).toEqual([]);
    await directory.principal('../clients?x=1#y');
    expect(
      asked.every((path) => !path.includes('/admin') || path.includes('/users/..%2Fclients%3Fx%3D1%23y')),
    ).toBe(true);
  });

  test('only those it has met can have been deleted', async () => {
    let isThere = true;
    const { directory, advance } = open({
      user: () => (isThere ? json({ id: subject, enabled: true }) : json({ error: 'User not found' }, 404)),
    });
    expect(await directory.principal('never-was')).toMatchObject({ kind: 'unavailable' });
    expect(await directory.principal(subject)).toMatchObject({ kind: 'active' });
    isThere = false;
    advance(1_000);
    expect(await directory.principal(subject)).toEqual({ kind: 'missing', wasKnown: true });
    expect(await directory.principal('never-was')).toEqual({ kind: 'missing', wasKnown: false });
  });

  test('a connection that broke is tried once more, and nothing else is', async () => {
    let times = 0;
    const { directory } = open({
      user: () => ((times += 1) === 1 ? Promise.reject(broken) : json({ id: subject, enabled: true })),
    });
    expect(await directory.principal(subject)).toMatchObject({ kind: 'active' });
    const failing = open({ user: () => json({}, 500) });
    await failing.directory.principal(subject);
    expect(failing.asked.filter((path) => path.endsWith(subject))).toHaveLength(1);
  });
});

describe('ID-13 a provider in trouble', () => {
  test('a hundred questions to a silent one are over in the time of one', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { directory } = open({ user: silence }, { timeoutMs: minute });
    const answers: string[] = [];
    const ask = async (index: number) => answers.push((await directory.principal(`person-${index}`)).kind);
    const asking = Array.from({ length: 100 }, (_, index) => ask(index));
    await vi.advanceTimersByTimeAsync(59_999);
    expect(answers).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(answers).toEqual(Array.from({ length: 100 }, () => 'unavailable'));
    await Promise.all(asking);
  });

  test('after five failures it is not asked for a second, and then asked again', async () => {
    let isUp = false;
    const { directory, asked, advance } = open({
      introspection: () => (isUp ? active() : json({}, 503)),
    });
    for (let time = 0; time < 5; time += 1) await directory.introspect(good);
    const before = asked.length;
    expect(await directory.introspect(good)).toEqual({ kind: 'unavailable', reason: 'circuit_open' });
    expect(asked).toHaveLength(before);
    isUp = true;
    advance(1_000);
    expect(await directory.introspect(good)).toMatchObject({ kind: 'active' });
    expect(await directory.introspect(good)).toMatchObject({ kind: 'active' });
  });

  test('questions at the same moment about one person are one question', async () => {
    const { directory, asked } = open({}, { isStill: true });
    await Promise.all(Array.from({ length: 20 }, async () => await directory.principal(subject)));
    expect(asked.filter((path) => path.endsWith(subject))).toHaveLength(1);
  });
});

describe('what is asked again within 100 ms is asked once', () => {
  const aboutPeople = (asked: readonly string[]) => asked.filter((path) => path.includes('/users/')).length;
  const aboutTokens = (asked: readonly string[]) =>
    asked.filter((path) => path.endsWith('/introspect')).length;

  test('a positive answer is good until 100 ms after its question, and not for one more', async () => {
    let enabled = true;
    let isTokenGood = true;
    const { directory, asked, pass } = open(
      {
        user: () => json({ id: subject, username: 'ada', enabled }),
        introspection: () => (isTokenGood ? active() : json({ active: false })),
      },
      { isStill: true },
    );
    expect(await directory.principal(subject)).toMatchObject({ kind: 'active' });
    expect(await directory.introspect(good)).toMatchObject({ kind: 'active' });
    [enabled, isTokenGood] = [false, false];
    pass(99);
    expect(await directory.principal(subject)).toMatchObject({ kind: 'active' });
    expect(await directory.introspect(good)).toMatchObject({ kind: 'active' });
    // Keycloak was asked about the person and the roles; sharing does not prolong the answer.
    expect([aboutPeople(asked), aboutTokens(asked)]).toEqual([2, 1]);
    pass(1);
    expect(await directory.principal(subject)).toEqual({ kind: 'disabled' });
    expect(await directory.introspect(good)).toEqual({ kind: 'inactive' });
  });

  test('it counts from the question: an answer that comes late is shared for less', async () => {
    let answerUser: (answer: Response) => void = () => undefined;
    let isFirst = true;
    const { directory, pass } = open(
      {
        user: () => {
          if (!isFirst) return json({ id: subject, enabled: false });
          isFirst = false;
          return new Promise((resolve) => (answerUser = resolve));
        },
      },
      { isStill: true },
    );
    const first = directory.principal(subject);
    pass(60);
    const second = directory.principal(subject);
    pass(40);
    expect(await directory.principal(subject)).toEqual({ kind: 'disabled' });
    answerUser(json({ id: subject, username: 'ada', enabled: true }));
    for (const shared of [first, second]) expect(await shared).toMatchObject({ kind: 'active' });
    expect(await directory.principal(subject)).toEqual({ kind: 'disabled' });
  });

  test('a clock of the machine that is set back prolongs nothing', async () => {
    let enabled = true;
    const user = () => json({ id: subject, username: 'ada', enabled });
    const { directory, advance, pass } = open({ user }, { isStill: true });
    expect(await directory.principal(subject)).toMatchObject({ kind: 'active' });
    enabled = false;
    advance(-1_000);
    pass(100);
    expect(await directory.principal(subject)).toEqual({ kind: 'disabled' });
  });

  test('no answer is shared with another person, with another token, or as another kind of token', async () => {
    const other = '0b5c7a9e-0000-4000-8000-000000000002';
    const asked: string[] = [];
    const { directory } = open(
      {
        introspection: () => {
          asked.push('token');
          return asked.length === 1 ? active() : json({ active: false });
        },
      },
      { isStill: true },
    );
    expect(await directory.principal(subject)).toMatchObject({ kind: 'active' });
    // The answer says nothing about people that it does not name.
    expect(await directory.principal(other)).toMatchObject({ kind: 'unavailable' });
    expect(await directory.introspect(good)).toMatchObject({ kind: 'active' });
    const second = await signed({ aud: 'postern-principal-sync', jti: 'another' });
    expect(await directory.introspect(second)).toEqual({ kind: 'inactive' });
    expect(await directory.introspect(good, 'refresh_token')).toEqual({ kind: 'inactive' });
    expect(asked).toHaveLength(3);
  });

  test('who asks for an answer of their own gets one', async () => {
    const { directory, asked } = open({}, { isStill: true });
    await directory.principal(subject);
    await directory.principal(subject, { isOwn: true });
    expect(aboutPeople(asked)).toBe(4);
  });
});
