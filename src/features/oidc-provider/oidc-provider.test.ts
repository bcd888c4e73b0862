import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemAuditContext } from '../../core/caller.ts';
import { day, minute } from '../../core/clock.ts';
import {
  admin,
  authorizeProgram,
  Browser,
  frozenTime,
  type IdentityApp,
  openIdentityApp,
  programRedirect as redirectUri,
  sessionSecrets,
  uiOrigin,
  withAdministrator,
} from '../../../test/identity.ts';
import { sql } from '../../platform/database/sql.ts';
import { builtinDirectory } from '../accounts/builtin-directory.ts';
import { createOidcClient } from '../people/oidc-client.ts';
import { clientSecretFor, principalSyncClientId } from './clients.ts';
import { secretDigest } from '../../platform/encrypted-text.ts';
import { inProcessFetch } from './in-process.ts';

const clock = frozenTime();
let open: IdentityApp;
let browser: Browser;
let program: Browser;

beforeAll(async () => {
  open = await openIdentityApp(clock);
  await withAdministrator(open);
});
afterAll(() => open.close());
beforeEach(() => {
  clock.advance(20 * minute);
  browser = new Browser(open.app);
  program = new Browser(open.app);
});

const cli = { client_id: 'postern-cli' };
type Tokens = { access_token: string; refresh_token: string; error?: string };

/** What a command line posts: no cookies, no Origin. */
async function post(path: string, form: Record<string, string>, headers: Record<string, string> = {}) {
  const answer = await program.post(`/identity${path}`, form, {
    accept: 'application/json',
    origin: '',
    ...headers,
  });
  return {
    status: answer.status,
    body: (answer.text === '' ? {} : answer.json()) as Tokens & Record<string, unknown>,
  };
}

async function introspect(token: string, clientId = principalSyncClientId) {
  const secret = clientSecretFor(sessionSecrets[0] ?? '', clientId);
  const authorization = `Basic ${Buffer.from(`${clientId}:${secret}`).toString('base64')}`;
  return await post('/token/introspection', { token }, { authorization });
}

const authorize = (scope: string, person = admin, decision: 'allow' | 'deny' = 'allow') =>
  authorizeProgram(browser, scope, person, decision);

async function connect(scope = 'openid offline_access sites:write', person = admin) {
  const { answer, verifier } = await authorize(scope, person);
  const code = answer.searchParams.get('code') ?? '';
  return await post('/token', {
    ...cli,
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectUri,
    code_verifier: verifier,
  });
}

const refresh = (token: string) =>
  post('/token', { ...cli, grant_type: 'refresh_token', refresh_token: token });

async function makePerson(email: string) {
  const password = 'a long enough password';
  const input = { email, name: 'Person', roles: ['user'] as const, groups: [], enabled: true, password };
  const { account } = await open.identity.accounts.create(systemAuditContext, input);
  return { email, password, account };
}

describe('the provider', () => {
  test('MC-03 describes itself under both discovery paths, with this installation’s public address', async () => {
    const paths = [
      '/identity/.well-known/openid-configuration',
      '/.well-known/oauth-authorization-server/identity',
      '/.well-known/oauth-authorization-server',
    ];
    for (const path of paths) {
      const answer = await program.get(path, {
        host: '127.0.0.1:3000',
        'x-forwarded-host': 'attacker.example',
      });
      expect([path, answer.status]).toEqual([path, 200]);
      expect(answer.text).not.toContain('attacker');
      expect(answer.json()).toMatchObject({
        issuer: `${uiOrigin}/identity`,
        token_endpoint: `${uiOrigin}/identity/token`,
        device_authorization_endpoint: `${uiOrigin}/identity/device/auth`,
        code_challenge_methods_supported: ['S256'],
        authorization_response_iss_parameter_supported: true,
        response_types_supported: ['code'],
      });
      expect(answer.json()).not.toHaveProperty('registration_endpoint');
      expect((answer.json() as { grant_types_supported: string[] }).grant_types_supported).not.toContain(
        'password',
      );
    }
  });

  test('MC-03 refuses a redirect that is not registered, on its own page', async () => {
    const answer = await browser.get(
      `/identity/auth?client_id=postern-web&redirect_uri=https://evil.example/cb&response_type=code&scope=openid`,
    );
    expect(answer.status).toBe(400);
    expect(answer.location).toBeUndefined();
    expect(answer.text).toContain('The sign-in failed');
  });

  test('MC-03 refuses a request without PKCE', async () => {
    const query = new URLSearchParams({
      ...cli,
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: 'openid',
    });
    const answer = await browser.get(`/identity/auth?${query.toString()}`);
    expect(new URL(answer.location ?? '').searchParams.get('error')).toBe('invalid_request');
  });

  test('a program signs in by the loopback redirect after the person allowed it', async () => {
    const { consent, answer } = await authorize('openid offline_access sites:write');
    expect(consent.text).toContain('Allow Postern command line?');
    expect(consent.text).toContain('127.0.0.1:45123');
    expect(consent.text).toContain(`for you, <strong>${admin.email}</strong>`);
    expect(String(consent.headers['content-security-policy'])).toContain(
      "form-action 'self' http://127.0.0.1:45123",
    );
    expect(answer.searchParams.get('iss')).toBe(`${uiOrigin}/identity`);
    expect(answer.searchParams.get('state')).toBe('state-of-the-program');
    expect(answer.searchParams.get('code')).toBeTruthy();
  });

  test('a person who says no sends the program away with access_denied', async () => {
    const { answer } = await authorize('openid', admin, 'deny');
    expect(answer.searchParams.get('error')).toBe('access_denied');
  });

  test('access tokens are opaque, last five minutes, and name their scopes', async () => {
    const { body } = await connect();
    expect(body.access_token.split('.')).toHaveLength(1);
    const { body: answer } = await introspect(body.access_token);
    expect(answer).toMatchObject({
      active: true,
      client_id: 'postern-cli',
      scope: 'openid offline_access sites:write',
    });
    clock.advance(5 * minute);
    expect((await introspect(body.access_token)).body).toEqual({ active: false });
  });

  test('only the principal-sync client may introspect', async () => {
    const { body } = await connect();
    expect((await introspect(body.access_token, 'postern-web')).body).toEqual({ active: false });
    expect((await post('/token/introspection', { token: body.access_token, ...cli })).body).toEqual({
      active: false,
    });
  });

  test('MC-02 only an access token authorises a request: a refresh or ID token sent as one is inactive', async () => {
    const tokens = (await connect()).body as Tokens & { id_token: string };
    const { directory } = open.identity;
    expect(await directory.introspect(tokens.access_token)).toMatchObject({ kind: 'active' });
    expect(await directory.introspect(tokens.refresh_token)).toEqual({ kind: 'inactive' });
    expect((await introspect(tokens.refresh_token)).body).toEqual({ active: false });
    expect(tokens.id_token).toMatch(/^eyJ/);
    expect(await directory.introspect(tokens.id_token)).toEqual({ kind: 'inactive' });
    expect(await directory.introspect(tokens.refresh_token, 'refresh_token')).toMatchObject({
      kind: 'active',
      clientId: 'postern-cli',
    });
  });

  test('MC-02 a JWT, or anything else the provider never issues, is refused without asking it', async () => {
    let asked = 0;
    const directory = builtinDirectory({
      issuer: open.identity.issuer,
      client: { introspect: async () => ({ active: (asked += 1) < 0 }) },
      accounts: { findBySubject: async () => undefined, wasDeleted: async () => false },
      groups: { tree: async () => [] },
      feed: { subscribe: () => () => {} },
      isFresh: () => true,
      clock,
      timeoutMs: minute,
    });
    const jwt = (await connect()).body['id_token'] as string;
    for (const value of [jwt, 'never-was-a-token', 'x'.repeat(44), `${'x'.repeat(42)}.`, 'ü'.repeat(43)]) {
      expect(await directory.introspect(value)).toEqual({ kind: 'inactive' });
    }
    expect(asked).toBe(0);
    expect(await directory.introspect('x'.repeat(43))).toEqual({ kind: 'inactive' });
    expect(asked).toBe(1);
  });

  test('MC-02 a provider that refuses to introspect a kind of token has said no', async () => {
    const client = createOidcClient({
      issuer: open.identity.issuer,
      clientId: principalSyncClientId,
      clientSecret: clientSecretFor(sessionSecrets[0] ?? '', principalSyncClientId),
      redirectUri: '',
      fetch: inProcessFetch(() => (request, response) => {
        const path = (request.url ?? '/').replace(/^\/identity/, '');
        open.identity.serveProvider(request, response, { path, address: '127.0.0.1' });
      }),
      clock,
      timeoutSeconds: 60,
    });
    const jwt = (await connect()).body['id_token'] as string;
    expect(await client.introspect(jwt, 'access_token')).toEqual({ active: false });
  });

  test('the principal-sync client can get no token and end nobody else’s', async () => {
    const secret = clientSecretFor(sessionSecrets[0] ?? '', principalSyncClientId);
    const authorization = `Basic ${Buffer.from(`${principalSyncClientId}:${secret}`).toString('base64')}`;
    const own = await post('/token', { grant_type: 'client_credentials' }, { authorization });
    expect(own.status).toBe(400);
    const { body } = await connect();
    await post('/token/revocation', { token: body.refresh_token }, { authorization });
    expect((await refresh(body.refresh_token)).status).toBe(200);
  });
});

describe('codes and refresh tokens', () => {
  test('MC-04 of eight parallel uses of one code one succeeds, and the copy ends what it got', async () => {
    const { answer, verifier } = await authorize('openid offline_access sites:write');
    const form = {
      ...cli,
      grant_type: 'authorization_code',
      code: answer.searchParams.get('code') ?? '',
      redirect_uri: redirectUri,
      code_verifier: verifier,
    };
    const answers = await Promise.all(Array.from({ length: 8 }, () => post('/token', form)));
    const won = answers.filter(({ status }) => status === 200);
    expect(won).toHaveLength(1);
    expect(answers.filter(({ body }) => body.error === 'invalid_grant')).toHaveLength(7);
    expect((await introspect(won[0]?.body.access_token ?? '')).body).toEqual({ active: false });
    expect((await refresh(won[0]?.body.refresh_token ?? '')).status).toBe(400);
  });

  test('MC-04 eight parallel uses of one refresh token at two processes all get the same successor', async () => {
    const other = await open.another();
    const programs = [program, new Browser(other.app)];
    const { body } = await connect();
    const answers = await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        program = programs[index % 2] ?? program;
        return await refresh(body.refresh_token);
      }),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200));
    expect(new Set(answers.map((answer) => answer.body.refresh_token)).size).toBe(1);
    for (const answer of answers)
      expect((await introspect(answer.body.access_token)).body).toMatchObject({ active: true });
    expect((await refresh(answers[0]?.body.refresh_token ?? '')).status).toBe(200);
    await other.close();
  });

  test('MC-04 a rotated refresh token that comes back after thirty seconds ends the family', async () => {
    const first = (await connect()).body;
    const second = (await refresh(first.refresh_token)).body;
    expect(second.refresh_token).not.toBe(first.refresh_token);
    clock.advance(29_999);
    // A use in the window answers the same, and moves the end of the window nowhere.
    expect((await refresh(first.refresh_token)).body.refresh_token).toBe(second.refresh_token);
    clock.advance(1);
    expect((await refresh(first.refresh_token)).body.error).toBe('invalid_grant');
    expect((await refresh(second.refresh_token)).status).toBe(400);
    expect((await introspect(second.access_token)).body).toEqual({ active: false });
  });

  test('MC-04 a rotated refresh token answers no other client, and nobody once its grant has ended', async () => {
    const first = (await connect()).body;
    const second = (await refresh(first.refresh_token)).body;
    const asOther = {
      client_id: 'postern-mcp',
      grant_type: 'refresh_token',
      refresh_token: first.refresh_token,
    };
    expect((await post('/token', asOther)).body.error).toBe('invalid_grant');
    expect((await refresh(first.refresh_token)).body.refresh_token).toBe(second.refresh_token);
    await post('/token/revocation', { ...cli, token: second.refresh_token });
    expect((await refresh(first.refresh_token)).body.error).toBe('invalid_grant');
    const rows = await sql`
      select 1 from oidc_records where model = 'RefreshSuccessor'
         and id_hash = ${secretDigest(first.refresh_token)}`.all(open.database.sql);
    expect(rows).toEqual([]);
  });

  test('MC-04 a rotated refresh token is no live token to those who introspect it', async () => {
    const first = (await connect()).body;
    await refresh(first.refresh_token);
    expect(await open.identity.directory.introspect(first.refresh_token, 'refresh_token')).toEqual({
      kind: 'inactive',
    });
  });

  test('an offline grant lives thirty idle days, and sixty days however busy', async () => {
    const idle = (await connect()).body;
    clock.advance(30 * day);
    expect((await refresh(idle.refresh_token)).status).toBe(400);
    let { body } = await connect();
    for (const days of [25, 25, 9]) {
      clock.advance(days * day);
      ({ body } = await refresh(body.refresh_token));
      expect(body.refresh_token).toBeTruthy();
    }
    clock.advance(1 * day);
    expect((await refresh(body.refresh_token)).status).toBe(400);
  });

  test('a disabled account’s tokens are inactive and cannot be refreshed', async () => {
    const person = await makePerson('disabled@example.com');
    const { body } = await connect('openid offline_access sites:write', person);
    await open.identity.accounts.change(systemAuditContext, person.account.userId, { enabled: false });
    expect((await introspect(body.access_token)).body).toEqual({ active: false });
    expect((await refresh(body.refresh_token)).status).toBe(400);
  });
});

describe('a device without a browser', () => {
  async function startDevice() {
    const { body } = await post('/device/auth', { ...cli, scope: 'openid offline_access sites:read' });
    return body as unknown as { device_code: string; user_code: string; verification_uri: string };
  }
  const poll = (deviceCode: string) =>
    post('/token', {
      ...cli,
      grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
      device_code: deviceCode,
    });
  const valueOf = (text: string, name: string) =>
    new RegExp(`name="${name}" value="([^"]*)"`).exec(text)?.[1] ?? '';

  async function enterCode(userCode: string) {
    const page = await browser.get('/identity/device');
    expect(page.text).toContain('Connect a device');
    return await browser.post('/identity/device', {
      xsrf: valueOf(page.text, 'xsrf'),
      user_code: userCode,
    });
  }

  async function confirm(text: string, choice: Record<string, string>) {
    return await browser.follow(
      await browser.post('/identity/device', {
        xsrf: valueOf(text, 'xsrf'),
        user_code: valueOf(text, 'user_code'),
        ...choice,
      }),
    );
  }

  test('MC-05 is connected by typing its code, confirming, signing in and allowing', async () => {
    const device = await startDevice();
    expect(device.verification_uri).toBe(`${uiOrigin}/identity/device`);
    expect((await poll(device.device_code)).body.error).toBe('authorization_pending');
    const asked = await enterCode(device.user_code.toLowerCase());
    expect(asked.text).toContain('Is this your device?');
    expect(asked.text).toContain(device.user_code);
    let page = await confirm(asked.text, { confirm: 'yes' });
    const action = () => /<form method="post" action="([^"]+)"/.exec(page.text)?.[1] ?? '';
    page = await browser.follow(await browser.post(action(), { ...admin, decision: 'sign-in' }));
    expect(page.text).toContain('Allow Postern command line?');
    page = await browser.follow(await browser.post(action(), { decision: 'allow' }));
    expect(page.text).toContain('Connected');
    const { status, body } = await poll(device.device_code);
    expect(status).toBe(200);
    expect((await introspect(body.access_token)).body).toMatchObject({
      active: true,
      scope: 'openid offline_access sites:read',
    });
    expect((await poll(device.device_code)).status).toBe(400);
  });

  test('MC-05 guessing codes is stopped after thirty tries from one address', async () => {
    const first = await browser.get('/identity/device');
    let xsrf = valueOf(first.text, 'xsrf');
    const statuses: number[] = [];
    for (let count = 0; count < 31; count += 1) {
      const answer = await browser.post('/identity/device', { xsrf, user_code: 'BBBB-BBBB' });
      statuses.push(answer.status);
      xsrf = valueOf(answer.text, 'xsrf');
    }
    expect(statuses.slice(0, 30)).not.toContain(429);
    expect(statuses[30]).toBe(429);
  });

  test('MC-05 the sixty-first device of a minute from one address waits', async () => {
    const statuses: number[] = [];
    for (let count = 0; count < 61; count += 1) {
      statuses.push((await post('/device/auth', { ...cli, scope: 'openid' })).status);
    }
    expect(statuses.slice(0, 60).every((status) => status === 200)).toBe(true);
    expect(statuses[60]).toBe(429);
  });

  test('MC-05 the link with the code in it submits itself, by the one script the page’s policy names', async () => {
    const { user_code: userCode } = await startDevice();
    const page = await browser.get(`/identity/device?user_code=${userCode}`);
    const script = /<script>([^]*?)<\/script>/.exec(page.text)?.[1] ?? '';
    const hash = createHash('sha256').update(script).digest('base64');
    expect(String(page.headers['content-security-policy'])).toContain(`'sha256-${hash}'`);
    expect(page.text).toContain('<noscript>');
  });

  test('MC-05 a device that asks again and again while it waits is not taken for a guesser', async () => {
    const device = await startDevice();
    for (let count = 0; count < 125; count += 1)
      expect((await poll(device.device_code)).body.error).toBe('authorization_pending');
  });

  test('MC-05 gets access_denied when the person stops it', async () => {
    const device = await startDevice();
    const asked = await enterCode(device.user_code);
    const page = await confirm(asked.text, { abort: 'yes' });
    expect(page.text).toContain('declined');
    expect((await poll(device.device_code)).body.error).toBe('access_denied');
  });

  test('MC-05 a wrong code says so, and an old one that it has expired', async () => {
    expect((await enterCode('BBBB-BBBB')).text).toContain('not correct');
    const device = await startDevice();
    clock.advance(10 * minute);
    const answer = await enterCode(device.user_code);
    expect(answer.text).toMatch(/expired|not correct/);
    expect((await poll(device.device_code)).status).toBe(400);
  });
});

describe('strangers', () => {
  const wrongToken = 'x'.repeat(43);
  const sessionsKept = async () => {
    const row = await sql<{ kept: number }>`
      select count(*)::int as kept from oidc_records
       where model = 'Session' and expires_at > ${new Date(clock.now())}`.first(open.database.sql);
    return row?.kept ?? 0;
  };

  test('who opens a page of the provider and goes leaves nothing behind after a quarter of an hour', async () => {
    const before = await sessionsKept();
    for (const path of ['/identity/device', '/identity/session/end', '/identity/session/end?state=x'])
      expect((await new Browser(open.app).get(path)).status).toBe(200);
    expect(await sessionsKept()).toBe(before + 3);
    clock.advance(15 * minute);
    expect(await sessionsKept()).toBeLessThanOrEqual(before);
  });

  test('a person allows a client something only with a fresh sign-in', async () => {
    await browser.signIn(admin.email, admin.password);
    const allowed = async (password: string) => {
      const { answer } = await authorize('openid sites:read', { ...admin, password });
      return answer.searchParams.has('code');
    };
    clock.advance(119 * minute);
    expect(await allowed('not asked for')).toBe(true);
    clock.advance(2 * minute);
    expect(await allowed('not the password')).toBe(false);
    expect(await allowed(admin.password)).toBe(true);
  });

  test.each(['/session/end', '/device', '/device/auth', `/auth/${'a'.repeat(43)}`, '/session/end/success'])(
    'the hundred-and-twenty-first GET of /identity%s in a minute from one address waits',
    async (path) => {
      const statuses: number[] = [];
      for (let count = 0; count < 121; count += 1)
        statuses.push((await new Browser(open.app).get(`/identity${path}`)).status);
      expect(statuses.slice(0, 120)).not.toContain(429);
      expect(statuses[120]).toBe(429);
      clock.advance(1 * minute);
      expect((await new Browser(open.app).get(`/identity${path}`)).status).not.toBe(429);
    },
  );

  test('the hundred-and-twenty-first wrong token of a minute from one address waits; right ones do not count', async () => {
    const { body } = await connect();
    const bearer = (token: string) =>
      program.get('/identity/me', { accept: 'application/json', authorization: `Bearer ${token}` });
    for (let count = 0; count < 130; count += 1) expect((await bearer(body.access_token)).status).toBe(200);
    for (let count = 0; count < 120; count += 1) expect((await bearer(wrongToken)).status).toBe(401);
    expect((await bearer(wrongToken)).status).toBe(429);
    expect((await refresh(wrongToken)).status).toBe(429);
    clock.advance(1 * minute);
    expect((await refresh(wrongToken)).status).toBe(400);
  });

  test.each(['/auth', '/session/end', '/device', '/device/auth'])(
    'a parameter of /identity%s that is too long to keep is refused by name, on a page and to a program',
    async (path) => {
      const before = await sessionsKept();
      for (const name of ['state', 'nonce', 'user_code']) {
        const at = (length: number) => `/identity${path}?${name}=${'x'.repeat(length)}`;
        const page = await browser.get(at(1_025));
        expect([name, page.status]).toEqual([name, 400]);
        expect(page.text).toContain(`The parameter &quot;${name}&quot; is longer than 1024 characters.`);
        expect(page.text).not.toContain('xxxx');
        const told = (await program.get(at(1_025), { accept: 'application/json' })).json();
        expect(told).toMatchObject({ error: { code: 'invalid_query' } });
      }
      expect(await sessionsKept()).toBe(before);
      expect((await browser.get(`/identity${path}?state=${'x'.repeat(1_024)}`)).text).not.toContain(
        'is longer',
      );
    },
  );

  test('a form that is too long to keep is refused, and so is one that does not say how long it is', async () => {
    const state = 'x'.repeat(8_192);
    expect((await post('/device/auth', { ...cli, scope: 'openid', state })).status).toBe(413);
    expect((await post('/auth', { ...cli, state })).status).toBe(413);
    expect((await post('/device/auth', { ...cli, scope: 'openid' })).status).toBe(200);
    const unmeasured = await post('/device/auth', cli, { 'transfer-encoding': 'chunked' });
    expect([unmeasured.status, unmeasured.body]).toMatchObject([400, { error: { code: 'invalid_body' } }]);
  });

  test.each<['GET' | 'HEAD' | 'POST', string]>([
    ['POST', '/identity/device'],
    ['GET', '/identity/device/auth'],
    ['HEAD', '/identity/device/auth'],
    ['GET', `/identity/device/${'b'.repeat(43)}`],
    ['HEAD', `/identity/device/${'b'.repeat(43)}`],
  ])(
    'a step of connecting a device that nobody began, %s %s, is told to start again',
    async (method, url) => {
      const form = { origin: uiOrigin, 'content-type': 'application/x-www-form-urlencoded' };
      const payload = method === 'POST' ? { payload: 'xsrf=1&user_code=A' } : {};
      const ask = (accept: string) =>
        new Browser(open.app).send({ method, url, headers: { ...form, accept }, ...payload });
      const page = await ask('text/html');
      expect(page.status).toBe(400);
      expect(page.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
      expect(page.headers['content-type']).toContain('text/html');
      expect((await ask('*/*')).status).toBe(400);
    },
  );

  test('a device’s step that nobody began offers a person the way back, and tells a program what is wrong', async () => {
    const url = '/identity/device/auth';
    const page = await new Browser(open.app).get(url);
    expect(page.text).toContain('Start again');
    expect(page.text).toContain(String(page.headers['x-request-id']));
    expect((await program.get(url, { accept: '*/*' })).json()).toMatchObject({ error: 'invalid_request' });
  });

  test('where the provider has nothing, a person gets a page and a program an error, with the request id', async () => {
    for (const path of ['/identity/nothing', '/identity/token', '/identity/session/end/confirm']) {
      const page = await browser.get(path);
      expect([path, page.status]).toEqual([path, 404]);
      expect(page.text).toContain(String(page.headers['x-request-id']));
      const told = await program.get(path, { accept: 'application/json' });
      expect([told.status, told.json()]).toMatchObject([404, { error: 'not_found' }]);
    }
  });

  test('a device’s form from another page is told to start again, and the right one still works', async () => {
    const page = await browser.get('/identity/device');
    const stale = await browser.post('/identity/device', { xsrf: '00', user_code: 'BBBB-BBBB' });
    expect([stale.status, stale.text]).toEqual([400, expect.stringContaining('Start again')]);
    expect(page.status).toBe(200);
    const xsrf = /name="xsrf" value="([^"]*)"/.exec((await browser.get('/identity/device')).text)?.[1] ?? '';
    const typed = await browser.post('/identity/device', { xsrf, user_code: 'BBBB-BBBB' });
    expect(typed.text).toContain('This code is not correct');
  });
});

describe('connected clients', () => {
  test('a person sees the clients that act for them and disconnects one', async () => {
    const person = await makePerson('connected@example.com');
    const { body } = await connect('openid offline_access sites:write', person);
    const other = (await connect('openid offline_access sites:read', person)).body;
    await browser.follow(await browser.get('/auth/login'));
    const listed = (await browser.api('GET', '/me/clients')).json() as { data: unknown[] };
    expect(listed.data).toEqual([
      expect.objectContaining({
        clientId: 'postern-cli',
        name: 'Postern command line',
        scopes: ['openid', 'offline_access', 'sites:read', 'sites:write'],
      }),
    ]);
    expect((await browser.api('DELETE', '/me/clients/postern-cli')).status).toBe(200);
    for (const tokens of [body, other]) {
      expect((await introspect(tokens.access_token)).body).toEqual({ active: false });
      expect((await refresh(tokens.refresh_token)).status).toBe(400);
    }
    expect((await browser.api('GET', '/me/clients')).json()).toMatchObject({ data: [] });
    expect((await browser.api('DELETE', '/me/clients/postern-cli')).status).toBe(404);
    expect(open.audit.at(-1)).toMatchObject({ event: 'client.revoked', target: { id: 'postern-cli' } });
  });

  test('the web app itself is not among them, and logging out of it disconnects nobody', async () => {
    const person = await makePerson('logout@example.com');
    const { body } = await connect('openid offline_access', person);
    await browser.follow(await browser.get('/auth/login'));
    const listed = (await browser.api('GET', '/me/clients')).json() as { data: { clientId: string }[] };
    expect(listed.data.map(({ clientId }) => clientId)).toEqual(['postern-cli']);
    await browser.post('/auth/logout', {});
    expect((await introspect(body.access_token)).body).toMatchObject({ active: true });
    expect((await refresh(body.refresh_token)).status).toBe(200);
  });

  test('logging out of the web app ends no token of a program, online or offline', async () => {
    const person = await makePerson('online@example.com');
    const offline = (await connect('openid offline_access', person)).body;
    const online = (await connect('openid sites:read', person)).body;
    await browser.follow(await browser.get('/auth/login'));
    const own = browser.cookies.get('__Host-postern_sso');
    await browser.post('/auth/logout', {});
    expect(own).toBeTruthy();
    for (const { access_token: token } of [offline, online]) {
      expect((await introspect(token)).body).toMatchObject({ active: true });
    }
    expect((await refresh(offline.refresh_token)).status).toBe(200);
  });

  test('an administrator disconnects a client of someone else', async () => {
    const person = await makePerson('managed@example.com');
    const { body } = await connect('openid offline_access', person);
    const boss = new Browser(open.app);
    await boss.signIn(admin.email, admin.password);
    const path = `/users/${person.account.userId}/clients`;
    expect((await boss.api('GET', path)).json()).toMatchObject({ data: [{ clientId: 'postern-cli' }] });
    expect((await boss.api('DELETE', `${path}/postern-cli`)).status).toBe(200);
    expect((await refresh(body.refresh_token)).status).toBe(400);
    expect((await boss.api('GET', '/users/usr_nobody/clients')).status).toBe(404);
  });
});

describe('what was proved before an account was signed out everywhere', () => {
  const boss = async () => {
    const signedIn = new Browser(open.app);
    await signedIn.signIn(admin.email, admin.password);
    return signedIn;
  };

  test.each([
    [
      'a new password',
      (id: string) => open.identity.accounts.resetPassword(systemAuditContext, id, 'a quite new password'),
    ],
    ['a sign-out', (id: string) => open.identity.accounts.signOut(systemAuditContext, id)],
    [
      'disabling and enabling',
      async (id: string) => {
        await open.identity.accounts.change(systemAuditContext, id, { enabled: false });
        await open.identity.accounts.change(systemAuditContext, id, { enabled: true });
      },
    ],
  ])('a sign-in whose last step waited through %s does not count', async (what, signOut) => {
    const person = await makePerson(`parked-${what.replaceAll(' ', '-')}@example.com`);
    const parked = new Browser(open.app);
    const proved = await parked.post(await parked.openSignIn(), {
      email: person.email,
      password: person.password,
      decision: 'sign-in',
    });
    expect(proved.status).toBe(303);
    clock.advance(1);
    await signOut(person.account.userId);
    clock.advance(1);
    const answer = await parked.follow(proved);
    expect(answer.location ?? '').not.toBe('/after');
    expect(answer.text).not.toContain('token');
    expect((await parked.api('GET', '/me/clients')).status).not.toBe(200);
  });

  test('the provider’s own session, brought back by a request that was under way, signs nobody in', async () => {
    const person = await makePerson('busy@example.com');
    const busy = new Browser(open.app);
    await busy.signIn(person.email, person.password);
    const rows = await sql<{ row: string }>`
      select row_to_json(r)::text as row from oidc_records r where model = 'Session'`.all(open.database.sql);
    clock.advance(1);
    await open.identity.accounts.resetPassword(
      systemAuditContext,
      person.account.userId,
      'a quite new password',
    );
    // What a request does that had read the session before and writes it back after.
    for (const { row } of rows)
      await sql`
        insert into oidc_records select * from json_populate_record(null::oidc_records, ${row}::json)
        on conflict do nothing`.run(open.database.sql);
    clock.advance(1);
    const page = await busy.follow(await busy.get('/auth/login?returnTo=/after'));
    expect(page.text).toContain('type="password"');
  });

  test('a code that is redeemed while the account is signed out starts no session', async () => {
    const person = await makePerson('late@example.com');
    const user = await open.identity.findUser(person.account.userId);
    if (user === undefined) throw new Error('The account has no user.');
    const provedAt = clock.now();
    clock.advance(1);
    await open.identity.accounts.signOut(systemAuditContext, person.account.userId);
    const begin = (authenticatedAt: number) =>
      open.identity.sessions.begin(
        systemAuditContext,
        user,
        {
          encryptedFor: () => 'sealed',
          accessExpiresAt: clock.now() + minute,
          authenticatedAt,
          methods: null,
          providerSession: null,
        },
        undefined,
      );
    expect(await begin(provedAt)).toEqual({ refused: 'signed_out' });
    clock.advance(1);
    expect(await begin(clock.now())).toHaveProperty('cookieValue');
  });

  test('signing in again works, and others are not concerned', async () => {
    const person = await makePerson('again@example.com');
    const other = await boss();
    await open.identity.accounts.resetPassword(
      systemAuditContext,
      person.account.userId,
      'a quite new password',
    );
    clock.advance(1);
    expect((await new Browser(open.app).signIn(person.email, 'a quite new password')).location).toBe(
      '/after',
    );
    expect((await other.api('GET', '/me/clients')).status).toBe(200);
  });

  test('MC-04 refresh tokens that come back while the account is signed out: both are done, and no token is left', async () => {
    const person = await makePerson('racing@example.com');
    const grants = await Promise.all([connect(undefined, person), connect(undefined, person)]);
    const replays = grants.flatMap(({ body }) => [1, 2, 3].map(() => refresh(body.refresh_token)));
    const [signedOut, ...answers] = await Promise.all([
      open.identity.accounts.signOut(systemAuditContext, person.account.userId).then(() => 'done'),
      ...replays,
    ]);
    expect(signedOut).toBe('done');
    for (const { status } of answers) expect([200, 400]).toContain(status);
    const winners = answers.filter(({ status }) => status === 200);
    for (const { body } of winners) {
      expect((await introspect(body.access_token)).body['active']).toBe(false);
      expect((await refresh(body.refresh_token)).body.error).toBe('invalid_grant');
    }
  });
});

describe('in the audit log', () => {
  const connections = () =>
    open.audit
      .filter(({ event }) => event.startsWith('client.'))
      .map(({ event, reason, auditContext, details }) => ({ event, reason, auditContext, details }));
  beforeEach(() => {
    open.audit.length = 0;
  });

  test('a client that gets offline access is written down once, with who, where and what; rotation adds nothing', async () => {
    const { body } = await connect();
    await refresh(body.refresh_token);
    expect(connections()).toEqual([
      {
        event: 'client.connected',
        reason: undefined,
        auditContext: {
          actor: {
            kind: 'user',
            id: expect.stringMatching(/^usr_/),
            name: expect.any(String),
            credential: 'postern-cli',
          },
          origin: {
            requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
            address: '127.0.0.1',
            agent: expect.any(String),
          },
        },
        details: {
          userId: expect.stringMatching(/^usr_/),
          scopes: ['openid', 'offline_access', 'sites:write'],
        },
      },
    ]);
  });

  test('a sign-in that ends with the browser session connects nobody, and the web app is no client of anyone', async () => {
    await connect('openid sites:read');
    await new Browser(open.app).signIn(admin.email, admin.password);
    expect(connections()).toEqual([]);
  });

  test.each(['refresh_token', 'access_token'] as const)(
    'RFC 7009: a client that hands its %s back is disconnected, and that is written once',
    async (kind) => {
      const { body } = await connect();
      const { status } = await post('/token/revocation', { ...cli, token: body[kind] });
      expect(status).toBe(200);
      expect((await refresh(body.refresh_token)).body.error).toBe('invalid_grant');
      expect(connections().map(({ event, reason }) => [event, reason])).toEqual([
        ['client.connected', undefined],
        ['client.revoked', 'revoked_by_client'],
      ]);
    },
  );

  test('MC-04 a refresh token that comes back ends the connection once, however many bring it', async () => {
    const { body } = await connect();
    await refresh(body.refresh_token);
    clock.advance(30_000);
    await Promise.all(Array.from({ length: 8 }, () => refresh(body.refresh_token)));
    expect(connections().map(({ event, reason }) => [event, reason])).toEqual([
      ['client.connected', undefined],
      ['client.revoked', 'token_replayed'],
    ]);
  });

  test('a refused sign-in names the account that was tried, and only an account that there is', async () => {
    await new Browser(open.app).signIn(admin.email, 'not the password');
    await new Browser(open.app).signIn('nobody@example.com', 'not the password');
    expect(open.refusals.slice(-2)).toEqual([
      { reason: 'wrong_password', userId: expect.stringMatching(/^usr_/) },
      { reason: 'wrong_password', userId: null },
    ]);
  });
});

describe('at rest', () => {
  test('KF-03 no token, code, session, password or signing key can be read from the tables', async () => {
    const { body } = await connect();
    const next = (await refresh(body.refresh_token)).body;
    await browser.follow(await browser.get('/auth/login'));
    const secrets = [
      body.access_token,
      body.refresh_token,
      next.refresh_token,
      admin.password,
      (browser.cookies.get('__Host-postern_session') ?? '').split('.')[0] ?? '',
      browser.cookies.get('__Host-postern_sso') ?? '',
      browser.cookies.get('__Host-postern_login') ?? '',
    ];
    const tables = await Promise.all(
      [
        'oidc_records',
        'browser_sessions',
        'login_attempts',
        'accounts',
        'users',
        'provider_signing_keys',
      ].map(async (table) => {
        const rows = await sql<{ row: string }>`
            select to_jsonb(t)::text as row from ${sql.id(table)} t`.all(open.database.sql);
        return rows.map(({ row }) => row).join('\n');
      }),
    );
    const dump = tables.join('\n');
    expect(dump.length).toBeGreaterThan(1_000);
    for (const secret of secrets) {
      expect(secret.length).toBeGreaterThan(10);
      expect(dump).not.toContain(secret);
    }
    expect(dump).not.toContain('"kty"');
  });
});
