// @module-tag sql
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { second } from '../../../src/core/clock.ts';
import { defaultKeyPolicy } from '../../../src/features/keys/key-policy.ts';
import type { Route } from '../../../src/platform/http.ts';
import { type Harness, type Person, type TestKey, uiOrigin } from '../../harness.ts';
import { Browser } from '../../identity.ts';
import { absentPath, contents, manyChanges, noLimits, openFrozenHarness, setPolicy } from './cast.ts';
import { defaultSitesConfig } from '../../../src/features/sites/sites.ts';
import { defaultMcpPolicy } from '../../../src/features/agents/mcp-policy.ts';
import { defaultEnvironmentPolicy } from '../../../src/features/environments/policy/environment-policy.ts';
import { createAuthenticator } from '../../fakes/authenticator.ts';
import { idleEngine } from '../../fakes/idle-engine.ts';
import { newRepository, type TestRepository } from '../../git-repository.ts';
import { githubRule, trustingGithub } from '../federation/platforms.ts';
import { archiveOf, page, upload } from '../sites/uploads.ts';

/** What a browser session is worth: alone, live, from our own page, and under our own cookie name only. */
let h: Harness;
let ada: Person;
let root: Person;
let key: TestKey;
let source: TestRepository;
beforeAll(async () => {
  source = newRepository();
  source.commit({ 'README.md': 'A shop' });
  h = await openFrozenHarness({
    ...manyChanges,
    allowsFileRepositories: true,
    engine: async () => idleEngine,
  });
  await setPolicy(h, noLimits);
  ada = await h.person('Ada');
  root = await h.person('Root', { admin: true });
  key = await h.key(ada);
});
afterAll(async () => {
  source.remove();
  await h.close();
  vi.useRealTimers();
});

const sessionName = '__Host-postern_session';
const cookieOf = (person: Person) => `${sessionName}=${person.cookie}`;
const minimal = { name: 'a key', scopes: ['repos:read'], repositoryAccess: { mode: 'all' } };

describe('one credential', () => {
  test('SO-02 a key together with a session is refused on every route, even if one of them would suffice', async () => {
    const before = await contents(h);
    for (const route of h.app.routes.filter(({ policy }) => typeof policy.callers !== 'string')) {
      const answer = await h.call(route.method, absentPath(route.path), {
        as: key,
        headers: { cookie: cookieOf(root), origin: uiOrigin },
      });
      expect([route.path, answer.status, answer.error?.code]).toEqual([
        route.path,
        400,
        'ambiguous_credential',
      ]);
    }
    expect(await contents(h)).toEqual(before);
  });

  test('SO-02 a valid session does not replace a bad Authorization header, nor a valid key a bad session', async () => {
    for (const [authorization, cookie] of [
      ['Basic YWRhOmFkYQ==', cookieOf(ada)],
      ['Bearer nothing', cookieOf(ada)],
      ['', cookieOf(ada)],
      [`Bearer ${key.value}`, `${sessionName}=ended`],
      [`Bearer ${key.value}`, `${sessionName}=`],
    ] as const) {
      const answer = await h.call('GET', '/auth/context', { headers: { authorization, cookie } });
      expect([answer.status, answer.error.code]).toEqual([400, 'ambiguous_credential']);
    }
  });
});

describe('roles are read live', () => {
  test('SO-03 a user’s session reads and changes nothing that belongs to administrators', async () => {
    const service = await h.serviceKey();
    const before = await contents(h);
    for (const [method, path, body] of [
      ['GET', '/tokens', undefined],
      ['GET', '/tokens?kind=personal', undefined],
      ['POST', '/tokens', minimal],
      ['GET', `/tokens/${service.id}`, undefined],
      ['GET', `/tokens/${key.id}`, undefined],
      ['PATCH', `/tokens/${service.id}`, { name: 'mine' }],
      ['DELETE', `/tokens/${service.id}`, undefined],
      ['DELETE', `/tokens/${key.id}`, undefined],
      ['POST', `/tokens/${service.id}/rotate`, {}],
      ['GET', `/tokens/${service.id}/usage`, undefined],
      ['GET', `/tokens/${service.id}/timeline`, undefined],
      ['GET', '/config/api-keys', undefined],
      ['PUT', '/config/api-keys', defaultKeyPolicy],
      ['GET', '/config/api-keys/history', undefined],
      ['POST', '/config/api-keys/revert', { version: 0 }],
    ] as const) {
      const answer = await h.call(method, path, { as: ada, body, headers: { 'if-match': '*' } });
      expect([path, answer.status, answer.error?.code]).toEqual([path, 403, 'forbidden_role']);
    }
    expect(await contents(h)).toEqual(before);
  });

  test('SO-05 a demoted administrator is refused at the next request, on the other process within a second', async () => {
    const other = await h.another();
    const eve = await h.person('Eve', { admin: true });
    const asEve = async (at: Harness) => (await at.call('GET', '/tokens', { as: eve })).status;
    expect([await asEve(h), await asEve(other)]).toEqual([200, 200]);
    const demoted = await h.call('PATCH', `/users/${eve.user.id}`, { as: root, body: { roles: ['user'] } });
    expect(demoted.status).toBe(200);
    const refused = await h.call('GET', '/tokens', { as: eve });
    expect([refused.status, refused.error.code]).toEqual([403, 'forbidden_role']);
    h.clock.advance(second + 1);
    expect(await asEve(other)).toBe(403);
    // The session itself lives on: what any user may do still works.
    expect((await h.call('GET', '/me/tokens', { as: eve })).status).toBe(200);
    await other.close();
  });

  test('SO-05 an administrator through a group loses the role with the group', async () => {
    const group = await h.call('POST', '/groups', {
      as: root,
      body: { name: 'Operators', roles: ['admin'] },
    });
    const gus = await h.person('Gus');
    const status = async () => (await h.call('GET', '/tokens', { as: gus })).status;
    expect(await status()).toBe(403);
    const body = { groups: [group.data.id] };
    await h.call('PATCH', `/users/${gus.user.id}`, { as: root, body });
    expect(await status()).toBe(200);
    await h.call('PATCH', `/groups/${group.data.id}`, { as: root, body: { roles: [] } });
    expect(await status()).toBe(403);
  });

  test('SO-05 a disabled user’s session and keys are refused at the next request, and keys work again when enabled', async () => {
    const dora = await h.person('Dora');
    const doras = await h.key(dora);
    const set = (enabled: boolean) =>
      h.call('PATCH', `/users/${dora.user.id}`, { as: root, body: { enabled } });
    expect((await set(false)).status).toBe(200);
    const session = await h.call('GET', '/me/tokens', { as: dora });
    expect([session.status, session.error.code]).toEqual([401, 'authentication_required']);
    await h.settle();
    const refused = await h.call('GET', '/repositories', { as: doras });
    expect([refused.status, refused.error.code]).toEqual([403, 'user_disabled']);
    await set(true);
    await h.settle();
    expect((await h.call('GET', '/repositories', { as: doras })).status).toBe(200);
    // Signing in is a new session; the old one stays ended.
    expect((await h.call('GET', '/me/tokens', { as: dora })).status).toBe(401);
  });
});

/** Requests of pages that are not ours, as browsers send them: with the cookie, and with what gives them away. */
const foreign: readonly [string, Record<string, string>][] = [
  ['no Origin', {}],
  ['Origin: null', { origin: 'null' }],
  ['an empty Origin', { origin: '' }],
  ['another site', { origin: 'https://evil.example' }],
  ['a site’s content host', { origin: 'http://x7k2m9q4.sites.localhost:3001' }],
  ['another port', { origin: 'http://localhost:3001' }],
  ['another scheme', { origin: 'https://localhost:3000' }],
  ['a look-alike', { origin: 'http://localhost:3000.evil.example' }],
  ['two origins', { origin: `${uiOrigin} https://evil.example` }],
  ['Sec-Fetch-Site: cross-site', { origin: uiOrigin, 'sec-fetch-site': 'cross-site' }],
  ['Sec-Fetch-Site: same-site', { origin: uiOrigin, 'sec-fetch-site': 'same-site' }],
  ['Sec-Fetch-Site: none', { origin: uiOrigin, 'sec-fetch-site': 'none' }],
];

/** An Environment of a new repository, with a build that is under way. */
async function environmentOf(owner: Person, name: string): Promise<{ id: string; build: string }> {
  await h.call('PUT', '/config/api-environments', {
    as: owner,
    body: { ...defaultEnvironmentPolicy, enabled: true, maxPerOwner: 100 },
    headers: { 'if-match': '*' },
  });
  await h.call('POST', '/repositories', { as: owner, body: { fullName: name, cloneUrl: source.url } });
  const body = { repository: name, branch: 'main' };
  const { id } = (await h.call('POST', '/environments', { as: owner, body })).data;
  const [build] = (await h.call('GET', '/builds', { as: owner, query: { environment: id } })).data;
  return { id, build: build.id };
}

describe('requests of other pages', () => {
  const isSessionWrite = ({ method, policy }: Route) =>
    method !== 'GET' && typeof policy.callers !== 'string' && policy.callers.includes('session');

  async function newPasskey(): Promise<object> {
    const { data } = await h.call('POST', '/me/passkeys/options', { as: root });
    return { name: 'A laptop', response: createAuthenticator(uiOrigin).create(data) };
  }

  let made = 0;
  /** A request of the route that changes something when it is admitted. */
  let leavers = 0;
  async function effective(route: Route): Promise<{ path: string; body: object | undefined; who: Person }> {
    const service = await h.serviceKey();
    const roots = await h.key(root);
    made += 1;
    const victim = await h.person(`Victim${made}`);
    const repository = `acme/victim-${made}`;
    await h.repository(repository);
    if (route.operationId === 'removeRepositoryCredential')
      await h.call('PUT', `/repositories/${repository}/credential`, { as: root, body: { token: 'good' } });
    const group = await h.call('POST', '/groups', { as: root, body: { name: `Group ${made}` } });
    // Only for routes of one site: there are more routes than one owner may have sites.
    const site =
      route.path.includes('/sites/') && (await upload(h, root, { 'index.html': page('mine') })).data;
    if (route.path.endsWith('/restore')) await h.call('DELETE', `/sites/${site.id}`, { as: root });
    const link = { text: `Link ${made}`, icon: 'link', link: 'https://evil.example/' };
    const links = route.path.startsWith('/config/metadata/')
      ? (await h.call('POST', '/config/metadata', { as: root, body: link })).data.links
      : [];
    const agents = { name: `Agents ${made}`, purpose: 'Evil', tools: {}, clients: [] };
    const definition = route.path.startsWith('/config/agents/definitions/')
      ? (await h.call('POST', '/config/agents/definitions', { as: root, body: agents })).data
      : undefined;
    const server = { slug: `victim-${made}`, name: 'Evil', url: 'https://mcp.evil.example/', auth: 'none' };
    if (route.path === '/config/mcp/servers/{slug}')
      await h.call('POST', '/config/mcp/servers', { as: root, body: server });
    const environment = /^\/(?:environments$|environments\/\{|builds\/)/.test(route.path)
      ? await environmentOf(root, `acme/shop-${made}`)
      : undefined;
    if (route.path.includes('/trust')) await setPolicy(h, { ...noLimits, ...trustingGithub });
    if (route.path.endsWith('/retry'))
      await h.call('POST', `/builds/${environment?.build}/cancel`, { as: root });
    const bodies: Record<string, object> = {
      'POST /environments': { repository: `acme/shop-${made}`, branch: 'main' },
      'PATCH /environments/{id}': { autoTrack: true },
      'POST /environments/{id}/extend': {},
      'PATCH /builds/{id}': { trackDefaultBranches: true },
      'PATCH /builds/{id}/services': { serviceOverrides: [{ name: 'web', active: false }] },
      'POST /sites/{id}/uploads': { files: { 'index.html': { sha256: '0'.repeat(64), size: 1 } } },
      'PUT /config/sites': { ...defaultSitesConfig, enabled: true },
      'POST /config/sites/revert': { version: 0 },
      'PUT /config/access': { signInsPerAddressPerMinute: 61 },
      'POST /config/access/revert': { version: 0 },
      'PUT /config/api-environments': { ...defaultEnvironmentPolicy, enabled: true },
      'POST /config/api-environments/revert': { version: 0 },
      'PUT /config/mcp': { ...defaultMcpPolicy, enabled: true },
      'POST /config/mcp/revert': { version: 0 },
      'PATCH /config/mcp/clients/{id}': { status: 'blocked' },
      'PUT /config/agents/models': { models: [] },
      'POST /config/agents/models/revert': { version: 0 },
      'PUT /me/agents/sessions/{id}/definition': { definitionId: null },
      'POST /config/mcp/servers': server,
      'POST /config/mcp/servers/{slug}/tools/{name}/accept': { digest: '0'.repeat(64) },
      'POST /me/connections/{slug}/start': {},
      'POST /config/agents/definitions': agents,
      'PATCH /config/agents/definitions/{id}': { purpose: 'Other' },
      'POST /config/metadata': link,
      'PATCH /config/metadata/{id}': { text: 'Evil' },
      'POST /sites/{id}/take-down': { reason: 'evil' },
      'POST /sites/{id}/put-back': { reason: 'evil' },
      'POST /me/tokens': minimal,
      'POST /tokens': minimal,
      'POST /me/tokens/revoke-all': { confirm: 'revoke all' },
      'POST /tokens/revoke': { ids: [service.id] },
      'PUT /config/api-keys': { ...defaultKeyPolicy, ...noLimits, rateLimitPerMinute: 1 },
      'POST /config/api-keys/revert': { version: 1 },
      'POST /schema/validate': { content: '' },
      'POST /repositories': { fullName: 'evil/repo', cloneUrl: 'https://git.example.com/evil/repo.git' },
      'POST /users': { email: 'evil@example.com', name: 'Evil', roles: ['admin'] },
      'PATCH /users/{id}': { roles: ['admin'] },
      'PATCH /repositories/{owner}/{name}': { defaultBranch: 'evil' },
      'PUT /repositories/{owner}/{name}/credential': { token: 'evil' },
      'POST /users/{id}/reset-password': {},
      'POST /me/password': {
        currentPassword: 'correct horse battery',
        newPassword: 'evil horse battery',
      },
      'POST /me/tokens/{id}/rotate': {},
      'POST /tokens/{id}/rotate': {},
      'POST /tokens/{id}/trust': githubRule,
      'POST /tokens/{id}/trust/try': { rule: githubRule, claims: {} },
      'POST /groups': { name: 'Evil', roles: ['admin'] },
    };
    const path = route.path
      .replace('/me/tokens/{id}', `/me/tokens/${roots.id}`)
      .replace('/tokens/{id}', `/tokens/${service.id}`)
      .replace('/users/{id}', `/users/${victim.user.id}`)
      .replace('/groups/{id}', `/groups/${group.data.id}`)
      .replace('/environments/{id}', `/environments/${environment?.id}`)
      // Only POST is about a build; the others are what clients of the older system call with an Environment.
      .replace('/builds/{id}', `/builds/${route.method === 'POST' ? environment?.build : environment?.id}`)
      .replace('/sites/{id}', `/sites/${site.id}`)
      .replace('/definitions/{id}', `/definitions/${definition?.id}`)
      .replace(/\/mcp\/servers\/\{slug\}$/, `/mcp/servers/${server.slug}`)
      .replace('/metadata/{id}', `/metadata/${links.at(-1)?.id}`)
      .replace('{owner}/{name}', repository);
    const isBodiless =
      route.method === 'DELETE' ||
      /sign-out|read$|sites.*\/extend$|\/(?:content|restore|publish|preview|deploy|redeploy|destroy|cancel|retry|webhook|approve|refuse|end|reset-passkeys|passkeys\/options|recovery-codes)$/.test(
        route.path,
      );
    const isPasskey = `${route.method} ${route.path}` === 'POST /me/passkeys';
    const body = isPasskey
      ? await newPasskey()
      : (bodies[`${route.method} ${route.path}`] ?? (isBodiless ? undefined : { name: 'renamed' }));
    // A change of the password signs the user out.
    const who = route.path === '/me/password' ? await h.person(`Leaves ${(leavers += 1)}`) : root;
    return { path: absentPath(path), body, who };
  }

  test('CS-01 no write with a session’s cookie is accepted from a foreign page', {
    tags: 'flood',
  }, async () => {
    for (const route of h.app.routes.filter(isSessionWrite)) {
      const { path, body, who } = await effective(route);
      const before = await contents(h);
      for (const [what, headers] of foreign) {
        const answer = await h.call(route.method, path, {
          body,
          headers: { cookie: cookieOf(who), 'if-match': '*', ...headers },
        });
        expect([route.operationId, what, answer.status, answer.error?.code]).toEqual([
          route.operationId,
          what,
          403,
          'forbidden_origin',
        ]);
        expect(answer.headers['www-authenticate']).toBeUndefined();
      }
      expect(await contents(h)).toEqual(before);
      // The same request from our own page goes through: it was the page that was refused.
      const content = route.path.includes('/blobs')
        ? { raw: { type: route.uploads?.[0] ?? '', bytes: 'x' } }
        : route.path.endsWith('/content')
          ? { raw: archiveOf({ 'index.html': page('new') }) }
          : { body };
      const own = await h.call(route.method, path, { as: who, ...content, headers: { 'if-match': '*' } });
      const isOfThingsThatAreNotThere =
        /notices|clients|approvals|\/sessions\/|(?:uploads|servers|connections|passkeys|trust)\/nothingthere/.test(
          path,
        );
      expect([route.operationId, own.status]).toEqual([
        route.operationId,
        isOfThingsThatAreNotThere ? 404 : successOf(route),
      ]);
    }
    await setPolicy(h, noLimits);
  });

  const successOf = ({ success }: Route) => success.status;

  test('CS-01 content types of plain forms are refused from our own origin too, before the body is parsed as JSON', {
    tags: 'flood',
  }, async () => {
    for (const route of h.app.routes.filter(isSessionWrite)) {
      const { path, body } = await effective(route);
      const before = await contents(h);
      for (const type of [
        'text/plain',
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
      ].filter((one) => !route.uploads?.some((taken) => one.startsWith(taken)))) {
        const answer = await h.call(route.method, path, {
          as: root,
          body: body ?? {},
          headers: { 'content-type': type, 'if-match': '*' },
        });
        expect([route.operationId, type, answer.status, answer.error?.code]).toEqual([
          route.operationId,
          type,
          415,
          'unsupported_media_type',
        ]);
      }
      expect(await contents(h)).toEqual(before);
    }
  });

  test('CS-01 signing out and the first administrator’s form work only from our own pages', async () => {
    const lea = await h.person('Lea');
    for (const url of ['/auth/logout', '/auth/setup']) {
      for (const [what, headers] of foreign) {
        const answer = await h.app.web.inject({
          method: 'POST',
          url,
          headers: {
            host: 'localhost:3000',
            cookie: cookieOf(lea),
            'content-type': 'application/x-www-form-urlencoded',
            ...headers,
          },
          payload: 'token=x',
        });
        expect([url, what, answer.statusCode]).toEqual([url, what, 403]);
        expect(answer.headers['set-cookie']).toBeUndefined();
      }
    }
    expect((await h.call('GET', '/me/tokens', { as: lea })).status).toBe(200);
  });

  test('CS-01 a key needs no Origin: no browser attaches it by itself', async () => {
    const service = await h.serviceKey({ scopes: ['repos:write'] });
    const body = { fullName: 'acme/by-key', cloneUrl: 'https://git.example.com/acme/by-key.git' };
    const headers = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    expect((await h.call('POST', '/repositories', { as: service, body, headers })).status).toBe(201);
  });

  test('CS-01 no answer invites another origin to read it', async () => {
    for (const route of h.app.routes) {
      const headers = {
        origin: 'https://evil.example',
        'access-control-request-method': route.method,
        'access-control-request-headers': 'authorization',
      };
      const preflight = await h.call('OPTIONS', absentPath(route.path), { headers });
      expect(preflight.status).toBe(405);
      const read = await h.call('GET', absentPath(route.path), {
        headers: { ...headers, cookie: cookieOf(ada) },
      });
      for (const answer of [preflight, read])
        expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
      expect(read.headers['cross-origin-resource-policy']).toBe('same-origin');
    }
  });
});

describe('cookies', () => {
  /** RFC 6265bis 4.1.3.2, and what a browser keeps: 4096 bytes of name, value and attributes. */
  function holdToRules(line: string): void {
    const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
    const names = attributes.map((attribute) => attribute.toLowerCase());
    expect(pair).toMatch(/^__Host-postern_[A-Za-z0-9_.-]+=[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*$/);
    expect(names).toContain('secure');
    expect(names).toContain('httponly');
    expect(names).toContain('path=/');
    expect(names.filter((name) => /^samesite=(lax|strict)$/.test(name))).toHaveLength(1);
    expect(names.filter((name) => name.startsWith('domain'))).toEqual([]);
    expect(Buffer.byteLength(line)).toBeLessThanOrEqual(4_096);
  }

  const signIn = async (browser: Browser) => await browser.signIn('ada@example.com', 'correct horse battery');

  test('CS-03 the API sets no cookie for any caller, in any response', { tags: 'flood' }, async () => {
    for (const route of h.app.routes) {
      for (const as of [undefined, ada, root, key]) {
        if (route.operationId === 'revokeSelf' && as === key) continue;
        const answer = await h.call(route.method, absentPath(route.path), as ? { as } : {});
        expect([route.operationId, answer.headers['set-cookie']]).toEqual([route.operationId, undefined]);
      }
    }
  });

  test('CS-03 every cookie of signing in, consenting, connecting a device and signing out follows the rules', async () => {
    const browser = new Browser(h.app.web);
    await signIn(browser);
    await browser.follow(await browser.get('/auth/login?returnTo=/again'));
    const query = new URLSearchParams({
      client_id: 'postern-cli',
      redirect_uri: 'http://127.0.0.1:45123/callback',
      response_type: 'code',
      scope: 'openid repos:read',
      prompt: 'consent',
      code_challenge: 'x'.repeat(43),
      code_challenge_method: 'S256',
    });
    const consent = await browser.follow(await browser.get(`/identity/auth?${query.toString()}`));
    const action = /<form method="post" action="([^"]+)"/.exec(consent.text)?.[1] ?? '';
    await browser.follow(await browser.post(action, { decision: 'allow' }));
    await browser.get('/identity/device');
    await browser.get('/setup');
    await browser.get('/identity/session/end');
    await browser.post('/auth/logout', {});
    const names = new Set(browser.setCookies.map((line) => line.split('=', 1)[0]));
    expect(names).toContain(sessionName);
    expect(names).toContain('__Host-postern_sso');
    expect(names).toContain('__Host-postern_login');
    for (const line of browser.setCookies) holdToRules(line);
  });

  test('CS-04 the session id changes at login; an id planted before it is useless', async () => {
    const mallory = new Browser(h.app.web);
    await signIn(mallory);
    const planted = mallory.cookies.get(sessionName) ?? '';
    const victim = new Browser(h.app.web);
    victim.cookies.set(sessionName, planted);
    await signIn(victim);
    const own = victim.cookies.get(sessionName) ?? '';
    expect(own).not.toBe(planted);
    const status = async (value: string) =>
      (await h.call('GET', '/me/tokens', { headers: { cookie: `${sessionName}=${value}` } })).status;
    expect([await status(own), await status(planted)]).toEqual([200, 401]);
  });

  test('CS-04 a signed-out session is refused at once, and on the other process within a second', async () => {
    const other = await h.another();
    const browser = new Browser(h.app.web);
    await signIn(browser);
    const value = browser.cookies.get(sessionName) ?? '';
    const status = async (at: Harness) =>
      (await at.call('GET', '/me/tokens', { headers: { cookie: `${sessionName}=${value}` } })).status;
    expect([await status(h), await status(other)]).toEqual([200, 200]);
    expect((await browser.post('/auth/logout', {})).status).toBe(303);
    expect(await status(h)).toBe(401);
    h.clock.advance(second + 1);
    expect(await status(other)).toBe(401);
    expect(browser.cookies.has(sessionName)).toBe(false);
    await other.close();
  });

  test('CS-04 a session value that was altered, cut or signed by another installation is no session', async () => {
    const [id = '', signature = ''] = ada.cookie.split('.');
    const flipped = `${id.slice(0, -1)}${id.endsWith('A') ? 'B' : 'A'}`;
    for (const value of [
      `${flipped}.${signature}`,
      `${id}.${'A'.repeat(43)}`,
      id,
      `${id}.`,
      `.${signature}`,
      `${ada.cookie}.`,
      `${ada.cookie}x`,
      `${ada.sessionId}.${signature}`,
      '',
      'null',
      encodeURIComponent(`${ada.cookie}\0`),
    ]) {
      const answer = await h.call('GET', '/me/tokens', { headers: { cookie: `${sessionName}=${value}` } });
      expect([value, answer.status, answer.error.code]).toEqual([value, 401, 'authentication_required']);
    }
  });

  test('CS-06 two session cookies are refused, in any spelling a server could take for the name', async () => {
    for (const cookie of [
      `${cookieOf(ada)}; ${cookieOf(root)}`,
      `${cookieOf(ada)}; ${cookieOf(ada)}`,
      `${cookieOf(ada)};${sessionName}=`,
      `${cookieOf(ada)}; theme=dark; ${sessionName} =${root.cookie}`,
      `${cookieOf(ada)};\t${cookieOf(root)}`,
    ]) {
      const answer = await h.call('GET', '/me/tokens', { headers: { cookie } });
      expect([answer.status, answer.error.code]).toEqual([400, 'ambiguous_credential']);
    }
  });

  test.each([
    ['a no-break space before the name', `\u00A0${sessionName}`],
    ['a no-break space in UTF-8 before the name', `\u00C2\u00A0${sessionName}`],
    ['a no-break space after the name', `${sessionName}\u00A0`],
    ['another case', sessionName.toLowerCase()],
    ['the Secure prefix', sessionName.replace('__Host-', '__Secure-')],
    ['no prefix', sessionName.replace('__Host-', '')],
    ['a percent-encoded name', sessionName.replaceAll('_', '%5F')],
    ['a quoted name', `"${sessionName}"`],
    ['a vertical tab before the name', `\u000B${sessionName}`],
  ])(
    'CS-06 a cookie with %s is another cookie: worth nothing alone, harmless beside the real one',
    async (_what, name) => {
      const planted = `${name}=${root.cookie}`;
      const alone = await h.app.web.inject({
        method: 'GET',
        url: '/api/v2/me/tokens',
        headers: { host: 'localhost:3000', cookie: planted },
      });
      expect(alone.statusCode).toBe(401);
      const context = await h.call('GET', '/auth/context', {
        headers: { cookie: `${planted}; ${cookieOf(ada)}` },
      });
      expect([context.status, context.data.principal.id]).toEqual([200, ada.user.id]);
    },
  );
});
