import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { archiveOf } from '../api/sites/uploads.ts';
import {
  type Installation,
  openInstallation,
  type Page,
  programRedirect,
  WebBrowser,
} from './installation.ts';
import { keycloakUrl, openRealm, password, type Realm, uiUrl } from './realm.ts';
import { openNetwork, type Trouble } from './trouble.ts';

describe.skipIf(keycloakUrl === null)('Postern with Keycloak', () => {
  let realm: Realm;
  let network: Awaited<ReturnType<typeof openNetwork>>;
  let postern: Installation;
  beforeAll(async () => {
    realm = await openRealm();
    network = await openNetwork();
    postern = await (await openInstallation(realm, { fetch: network.fetch })).start();
  });
  afterAll(async () => {
    await postern.close();
    await network.close();
    await realm.close();
  });

  /** Signed in through Keycloak's own pages. */
  async function signedIn(roles: readonly string[] = ['user']) {
    const person = await realm.person(roles);
    const browser = new WebBrowser(postern);
    await browser.signIn(person, password);
    return { person, browser };
  }

  const newSite = async (browser: WebBrowser) => {
    const { type, bytes } = archiveOf({ 'index.html': '<!doctype html><title>t</title>the private page' });
    const answer = await browser.send(
      'POST',
      `${uiUrl}/api/v2/sites?visibility=private`,
      { 'content-type': type, origin: uiUrl, accept: 'application/json', 'sec-fetch-site': 'same-origin' },
      bytes,
    );
    return { status: answer.status, ...JSON.parse(answer.text) };
  };

  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const statusFor = async (token: string, path = '/sites') => {
    const answer = await new WebBrowser(postern).send('GET', `${uiUrl}/api/v2${path}`, {
      accept: 'application/json',
      ...bearer(token),
    });
    return answer.status;
  };

  test('a person signs in on Keycloak’s page and returns to the requested page, with their roles', async () => {
    const person = await realm.person(['user', 'admin']);
    const browser = new WebBrowser(postern);
    const end = await browser.signIn(person, password, '/api/v2/docs?from=here');
    expect(end.status).toBe(200);
    expect(end.url.href).toBe(`${uiUrl}/api/v2/docs?from=here`);
    const { data } = await browser.api('GET', '/auth/context');
    expect(data).toMatchObject({
      principal: { kind: 'user', name: expect.stringContaining('Ada Number') },
      authMethod: 'session',
      roles: ['user', 'admin'],
    });
  });

  test('a wrong password stays on Keycloak’s page, and a code of another browser signs nobody in', async () => {
    const person = await realm.person();
    const browser = new WebBrowser(postern);
    const page = await browser.signIn(person, 'not the password');
    expect(page.url.href).toContain(realm.issuer);
    const stranger = new WebBrowser(postern);
    stranger.cookies.set(
      new URL(realm.issuer).host,
      browser.cookies.get(new URL(realm.issuer).host) ?? new Map(),
    );
    const back = await stranger.submit(page, { username: person.username, password });
    expect(back).toMatchObject({ status: 400, url: { pathname: '/auth/callback' } });
    expect((await stranger.api('GET', '/auth/context')).status).toBe(401);
  });

  test('signing out ends the session at Keycloak too: the next sign-in asks for the password', async () => {
    const { browser } = await signedIn();
    const out = await browser.signOut();
    expect(out.headers['location']).toBe('/auth/signed-out');
    expect((await browser.api('GET', '/auth/context')).status).toBe(401);
    expect((await browser.open(`${uiUrl}/auth/login`)).text).toContain('name="password"');
  });

  test('signing out while Keycloak is unavailable ends the local session, and logs what could not be done', async () => {
    const { browser } = await signedIn();
    network.set('down');
    try {
      expect((await browser.signOut()).headers['location']).toBe('/auth/signed-out');
    } finally {
      network.set('none');
    }
    expect((await browser.api('GET', '/auth/context')).status).toBe(401);
    expect(postern.logged.some((line) => line.includes('could not end the session there'))).toBe(true);
    // Keycloak still knows the browser. Postern accepts only a proof from after the sign-out.
    const page = await browser.open(`${uiUrl}/auth/login?returnTo=/api/v2/docs`);
    expect(page.text).toContain('name="password"');
    expect((await browser.api('GET', '/auth/context')).status).toBe(401);
    // Keycloak gives the time of a proof in whole seconds, so one within the second of the sign-out is refused.
    let shown = page;
    const submit = async () => {
      shown = await browser.submit(shown, { password });
      return shown.url.pathname;
    };
    await expect.poll(submit, { interval: 200, timeout: 10_000 }).toBe('/api/v2/docs');
  });

  test('a session that a person or an administrator ends must be signed in at Keycloak again', async () => {
    const { browser, person } = await signedIn();
    const { browser: boss } = await signedIn(['user', 'admin']);
    const [one, two] = [new WebBrowser(postern), new WebBrowser(postern)];
    await one.signIn(person, password);
    const other = (await browser.api('GET', '/me/sessions')).data.find(
      ({ isCurrent }: { isCurrent: boolean }) => !isCurrent,
    );
    expect(Date.parse(other.authenticatedAt)).toBeGreaterThan(Date.now() - 10 * 60_000);
    expect((await browser.api('DELETE', `/me/sessions/${other.id}`)).status).toBe(200);
    await two.signIn(person, password);
    const { data: me } = await browser.api('GET', '/auth/context');
    expect((await boss.api('DELETE', `/users/${me.principal.id}/sessions`)).data).toEqual({ ended: 2 });
    for (const ended of [one, two, browser]) {
      expect((await ended.api('GET', '/auth/context')).status).toBe(401);
      expect((await ended.open(`${uiUrl}/auth/login`)).text).toContain('name="password"');
    }
  });

  test('a fresh sign-in sends Keycloak the greatest age of a proof, and the address of the person', async () => {
    const { browser, person } = await signedIn();
    const start = await browser.send('GET', `${uiUrl}/auth/login?fresh=true`, { accept: 'text/html' });
    const { searchParams } = new URL(start.headers['location'] ?? '');
    expect([searchParams.get('max_age'), searchParams.get('login_hint')]).toEqual(['7200', person.email]);
    const { data } = await browser.api('GET', '/auth/context');
    expect(Date.parse(data.freshUntil)).toBeGreaterThan(Date.now());
  });

  test('an administrator sees the known people, and what Keycloak says about them now', async () => {
    const { browser: boss } = await signedIn(['user', 'admin']);
    const { browser, person } = await signedIn();
    const { data: me } = await browser.api('GET', '/auth/context');
    const found = await boss.api('GET', `/people?search=${encodeURIComponent(person.email)}`);
    expect(found.data).toEqual([
      expect.objectContaining({ id: me.principal.id, issuer: realm.issuer, subject: person.subject }),
    ]);
    const account = async () => (await boss.api('GET', `/people/${me.principal.id}/account`)).data;
    expect(await account()).toEqual({ state: 'active', roles: ['user'] });
    await realm.setEnabled(person.subject, false);
    expect(await account()).toEqual({ state: 'disabled', roles: [] });
    await realm.remove(person.subject);
    expect(await account()).toEqual({ state: 'missing', roles: [] });
    expect((await boss.api('GET', '/users')).status).toBe(409);
    expect((await browser.api('GET', '/people')).status).toBeOneOf([401, 403]);
  });

  test('a session that Keycloak ended creates no key, changes no policy and lists none with its old cookie', async () => {
    const { browser, person } = await signedIn(['user', 'admin']);
    const [creating, changing, listing] = [browser, new WebBrowser(postern), new WebBrowser(postern)];
    await changing.signIn(person, password);
    await listing.signIn(person, password);
    const { browser: witness } = await signedIn(['user', 'admin']);
    const before = await witness.api('GET', '/config/api-keys');
    const { policy } = before.data;
    await realm.admin('POST', `/users/${person.subject}/logout`);
    const key = { name: 'stolen', scopes: ['repos:read'], repositoryAccess: { mode: 'all' } };
    expect((await creating.api('POST', '/tokens', key)).status).toBe(401);
    const wider = { ...policy, rateLimitPerMinute: policy.rateLimitPerMinute + 1 };
    const match = { 'if-match': before.headers['etag'] ?? '' };
    expect((await changing.api('PUT', '/config/api-keys', wider, match)).status).toBe(401);
    expect((await listing.api('GET', '/tokens')).status).toBe(401);
    expect((await witness.api('GET', '/tokens?search=stolen')).data).toEqual([]);
    expect((await witness.api('GET', '/config/api-keys')).data).toEqual(before.data);
  });

  test('ID-01 disabling a person shows at the next request, with session, key and token', async () => {
    const { browser, person } = await signedIn();
    const key = await browser.api('POST', '/me/tokens', {
      name: 'k',
      scopes: ['sites:read'],
      repositoryAccess: { mode: 'all' },
    });
    const { access } = await realm.tokens(person.username, ['openid', 'sites:read']);
    expect((await browser.api('GET', '/sites')).status).toBe(200);
    expect(await statusFor(key.data.token)).toBe(200);
    expect(await statusFor(access)).toBe(200);
    await realm.setEnabled(person.subject, false);
    expect((await browser.api('GET', '/sites')).status).toBeOneOf([401, 403]);
    expect(await statusFor(key.data.token)).toBe(403);
    expect(await statusFor(access)).toBe(401);
    await realm.setEnabled(person.subject, true);
    expect(await statusFor(key.data.token)).toBe(200);
  });

  test('ID-02 a role that is taken away shows at the next request, with session and key', async () => {
    const { browser, person } = await signedIn();
    const key = await browser.api('POST', '/me/tokens', {
      name: 'k',
      scopes: ['sites:read'],
      repositoryAccess: { mode: 'all' },
    });
    await realm.setRoles(person.subject, []);
    expect(await browser.api('GET', '/sites')).toMatchObject({
      status: 403,
      error: { code: 'role_required' },
    });
    expect(await statusFor(key.data.token)).toBe(403);
  });

  test('a private site opens for its owner, until Keycloak has ended the session', async () => {
    const { browser, person } = await signedIn();
    const site = await newSite(browser);
    expect(site).toMatchObject({ status: 201, data: { visibility: 'private' } });
    const shown = await throughHandOver(browser, site.data.url);
    expect(shown).toMatchObject({ status: 200, text: expect.stringContaining('the private page') });
    await realm.admin('POST', `/users/${person.subject}/logout`);
    // ID-06: the grant there is lives on; a new one is not given, and the session here is over.
    expect(await browser.open(site.data.url)).toMatchObject({ status: 200 });
    const again = new WebBrowser(postern);
    again.cookies.set(new URL(uiUrl).host, browser.cookies.get(new URL(uiUrl).host) ?? new Map());
    expect((await again.open(site.data.url)).text).not.toContain('the private page');
    expect((await browser.api('GET', '/auth/context')).status).toBe(401);
  });

  test('ID-05 a token that was revoked is refused', async () => {
    const person = await realm.person();
    const { access } = await realm.tokens(person.username, ['openid', 'sites:read']);
    expect(await statusFor(access)).toBe(200);
    await realm.revoke(access);
    expect(await statusFor(access)).toBe(401);
  });

  test('ID-07 an offline grant outlives the sign-out of the browser, and is listed as a connection', async () => {
    const { browser, person } = await signedIn();
    const { access, refresh } = await realm.tokens(person.username, [
      'openid',
      'offline_access',
      'sites:read',
    ]);
    const connections = await browser.api('GET', '/me/clients');
    expect(connections.data).toMatchObject([{ clientId: 'test-grants', since: expect.any(String) }]);
    expect(await browser.api('DELETE', '/me/clients/test-grants')).toMatchObject({
      status: 409,
      error: {
        code: 'state_conflict',
        hint: expect.stringContaining(`${realm.issuer}/account/applications`),
      },
    });
    await browser.signOut();
    expect(await statusFor(access)).toBe(200);
    const next = await realm.refresh(refresh);
    expect(await statusFor(String(next['access_token']))).toBe(200);
  });

  test('ID-08 an offline grant that is revoked, by its program or by an administrator, ends its tokens', async () => {
    const person = await realm.person();
    const scopes = ['openid', 'offline_access', 'sites:read'];
    const revoked = await realm.tokens(person.username, scopes);
    await realm.revoke(revoked.refresh);
    expect(await statusFor(revoked.access)).toBe(401);
    const removed = await realm.tokens(person.username, scopes);
    const sessions = await realm.find(
      `/users/${person.subject}/offline-sessions/${await realm.clientId('test-grants')}`,
    );
    for (const { id } of sessions) await realm.admin('DELETE', `/sessions/${id}?isOffline=true`);
    expect(await statusFor(removed.access)).toBe(401);
  });

  test('ID-08 a program signs its person in by the client in the realm file, and withdrawing the consent ends it', async () => {
    const person = await realm.person();
    const verifier = randomBytes(32).toString('base64url');
    const query = new URLSearchParams({
      client_id: 'postern-cli',
      redirect_uri: programRedirect.href,
      response_type: 'code',
      scope: 'openid offline_access sites:read',
      state: 'of-the-program',
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    });
    const browser = new WebBrowser(postern);
    const login = await browser.open(`${realm.issuer}/protocol/openid-connect/auth?${query.toString()}`);
    const consent = await browser.submit(login, { username: person.username, password });
    expect(consent.text).toContain('Read your sites');
    const { url } = await browser.submit(consent, { accept: 'Yes' });
    expect(url.searchParams.get('state')).toBe('of-the-program');
    const answer = await fetch(`${realm.issuer}/protocol/openid-connect/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        client_id: 'postern-cli',
        code: url.searchParams.get('code') ?? '',
        redirect_uri: programRedirect.href,
        code_verifier: verifier,
      }),
    });
    const { access_token: access } = (await answer.json()) as { access_token: string };
    expect(await statusFor(access)).toBe(200);
    expect(await statusFor(access, '/repositories')).toBe(403);
    await realm.admin('DELETE', `/users/${person.subject}/consents/postern-cli`);
    expect(await statusFor(access)).toBe(401);
  });

  test('ID-09 an offline grant is refused while its person is disabled, and works again afterwards', async () => {
    const person = await realm.person();
    const { refresh } = await realm.tokens(person.username, ['openid', 'offline_access', 'sites:read']);
    await realm.setEnabled(person.subject, false);
    expect(await realm.refresh(refresh)).toMatchObject({ error: 'invalid_grant' });
    await realm.setEnabled(person.subject, true);
    const next = await realm.refresh(refresh);
    expect(await statusFor(String(next['access_token']))).toBe(200);
  });

  test('ID-15 a person is (issuer, subject): a new e-mail address changes nothing', async () => {
    const { browser, person } = await signedIn();
    const before = (await browser.api('GET', '/auth/context')).data.principal.id;
    await realm.admin('PUT', `/users/${person.subject}`, {
      email: 'another@example.com',
      emailVerified: true,
    });
    const second = new WebBrowser(postern);
    await second.signIn(person, password);
    expect((await second.api('GET', '/auth/context')).data.principal.id).toBe(before);
  });

  test('Keycloak manages accounts, groups and passkeys: a request for them names it', async () => {
    const { browser } = await signedIn(['user', 'admin']);
    for (const [method, path] of [
      ['GET', '/users'],
      ['GET', '/groups'],
      ['POST', '/users/usr_none/reset-passkeys'],
      ['GET', '/me/passkeys'],
      ['POST', '/me/passkeys/options'],
      ['DELETE', '/me/passkeys/psk_none'],
    ] as const) {
      expect(await browser.api(method, path)).toMatchObject({
        status: 409,
        error: { code: 'state_conflict', hint: expect.stringContaining(realm.issuer) },
      });
    }
    expect(await browser.api('POST', '/me/recovery-codes')).toMatchObject({
      status: 409,
      error: { code: 'state_conflict', hint: expect.stringContaining(realm.issuer) },
    });
    const required = { signInsPerAddressPerMinute: 600, secondFactor: 'everyone' };
    expect(await browser.api('PUT', '/config/access', required, { 'if-match': '*' })).toMatchObject({
      status: 422,
      error: { code: 'config_invalid', hint: expect.stringContaining(realm.issuer) },
    });
    const page = await browser.send('GET', `${uiUrl}/identity/auth`, { accept: 'application/json' });
    expect(page.status).toBe(404);
    expect(page.text).toContain(realm.issuer);
  });

  test('a person who was deleted in Keycloak is refused at the next request, as a deleted one', async () => {
    const { browser, person } = await signedIn();
    const key = await browser.api('POST', '/me/tokens', {
      name: 'k',
      scopes: ['sites:read'],
      repositoryAccess: { mode: 'all' },
    });
    await realm.remove(person.subject);
    expect(await statusFor(key.data.token)).toBe(403);
    expect(await postern.app.services.identity.directory.principal(person.subject)).toEqual({
      kind: 'missing',
      wasKnown: true,
    });
    await postern.app.services.sweep.run();
    expect(await statusFor(key.data.token)).toBe(401);
  });

  test.each<[string, Trouble]>([
    ['down', 'down'],
    ['answering 500', (_, response) => response.writeHead(500).end()],
    ['in front of a separate page', (_, response) => response.end('<html>maintenance</html>')],
  ])(
    'ID-10 with Keycloak %s nothing is done and nobody is signed out; it heals by itself',
    async (_, how) => {
      const { browser, person } = await signedIn();
      const { access } = await realm.tokens(person.username, ['openid', 'sites:read']);
      const site = await newSite(browser);
      expect(await throughHandOver(browser, site.data.url)).toMatchObject({ status: 200 });
      network.set(how);
      try {
        const refused = await browser.api('GET', '/sites');
        expect(refused).toMatchObject({ status: 503, error: { code: 'identity_unavailable' } });
        expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
        expect(await statusFor(access)).toBe(503);
        expect((await newSite(browser)).status).toBe(503);
        // What was granted is served on.
        expect(await browser.open(site.data.url)).toMatchObject({ status: 200 });
      } finally {
        network.set('none');
      }
      await expect.poll(async () => (await browser.api('GET', '/sites')).status).toBe(200);
      const { data } = await browser.api('GET', '/sites');
      expect(data).toHaveLength(1);
    },
  );

  test('an expired access token of a session is refreshed once, for any number of requests', async () => {
    const own = await openRealm((file) => {
      // Less than the minute under which a token is not used any more.
      file.accessTokenLifespan = 45;
    });
    const other = await (await openInstallation(own)).start();
    const person = await own.person();
    const browser = new WebBrowser(other);
    await browser.signIn(person, password);
    const answers = await Promise.all(Array.from({ length: 6 }, () => browser.api('GET', '/sites')));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
    expect((await browser.api('GET', '/sites')).status).toBe(200);
    await other.close();
    await own.close();
  });
});

describe.skipIf(keycloakUrl === null)('starting with Keycloak', () => {
  test('a wrong configuration prevents the start, which names the failed check and the fix', async () => {
    const realm = await openRealm();
    await realm.give('manage-users');
    const postern = await openInstallation(realm);
    await expect(postern.start()).rejects.toMatchObject({
      name: 'KeycloakRefused',
      setting: 'PRINCIPAL_SYNC_CLIENT_ID',
      problem: expect.stringContaining('can do more than read (manage-users)'),
    });
    await postern.close();
    await realm.close();
  });

  test('an unavailable Keycloak does not prevent the start; nothing is trusted until it has passed the checks', async () => {
    const realm = await openRealm();
    const network = await openNetwork();
    network.set('down');
    const postern = await (await openInstallation(realm, { fetch: network.fetch })).start();
    const person = await realm.person();
    const { directory } = postern.app.services.identity;
    expect(await directory.principal(person.subject)).toMatchObject({ kind: 'unavailable' });
    expect((await new WebBrowser(postern).open(`${uiUrl}/auth/login`)).status).toBe(503);
    await realm.give('manage-users');
    network.set('none');
    // It is back, and must not be used.
    await expect
      .poll(() => directory.principal(person.subject))
      .toEqual({ kind: 'unavailable', reason: 'self_test_not_passed' });
    await realm.take('manage-users');
    await expect
      .poll(() => directory.principal(person.subject), { timeout: 90_000, interval: 500 })
      .toMatchObject({ kind: 'active', roles: ['user'] });
    await postern.close();
    await network.close();
    await realm.close();
  });

  test('ID-10 a Keycloak that is silent costs a limited time, not a request that hangs', async () => {
    const realm = await openRealm();
    const network = await openNetwork();
    const postern = await (await openInstallation(realm, { fetch: network.fetch })).start();
    const person = await realm.person();
    const { access } = await realm.tokens(person.username, ['openid', 'sites:read']);
    // The start of a healthy one has the same limit.
    const quick = await openInstallation(realm, { fetch: network.fetch, identityTimeoutMs: 10_000 });
    await quick.start();
    network.set('slow');
    const answer = await new WebBrowser(quick).send('GET', `${uiUrl}/api/v2/sites`, {
      accept: 'application/json',
      authorization: `Bearer ${access}`,
    });
    expect(answer.status).toBe(503);
    network.set('none');
    await quick.close();
    await postern.close();
    await network.close();
    await realm.close();
  });
});

/** The whole way to a private site: each form on it is sent by a script in a real browser. */
async function throughHandOver(browser: WebBrowser, url: string): Promise<Page> {
  const page = await browser.open(url);
  return page.text.includes('name="code"') ? await browser.submit(page, {}) : page;
}
