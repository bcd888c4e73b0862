import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../scripts/local-servers.ts';
import { archiveOf } from '../api/sites/uploads.ts';
import { certificateOfUnknownAuthority } from '../certificate.ts';
import { type Installation, openInstallation } from './installation.ts';
import { keycloakUrl, openRealm, password, type Realm } from './realm.ts';

/** Keycloak's own pages in Chromium, with Postern on real ports: what a browser follows and what it refuses. */
describe.skipIf(keycloakUrl === null)('a browser at Postern with Keycloak', () => {
  let realm: Realm;
  let postern: Installation;
  let secure: Server;
  let browser: Browser;
  beforeAll(async () => {
    const port = await freePort();
    const uiUrl = `https://postern.test:${port}`;
    const contentUrl = `https://sites.postern-content.test:${port}`;
    realm = await openRealm((file) => {
      const client = file.clients.find((one: { clientId: string }) => one.clientId === 'postern-web');
      client.redirectUris = [`${uiUrl}/auth/callback`];
    });
    postern = await (await openInstallation(realm, { uiUrl, contentUrl })).start();
    const { web, gateway, services } = postern.app;
    // What a proxy with TLS does: private sites need https where people sign in elsewhere.
    secure = createServer(certificateOfUnknownAuthority(), (request, response) => {
      const isWeb = request.headers.host === new URL(uiUrl).host;
      // No job polls here, and a gateway that hears nothing for long refuses.
      void services.feed.poll().then(() => (isWeb ? web.server : gateway).emit('request', request, response));
    });
    secure.listen(port, '127.0.0.1');
    await once(secure, 'listening');
    browser = await chromium.launch({
      executablePath: '/usr/bin/chromium',
      args: ['--headless', '--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP *.test 127.0.0.1'],
    });
  });
  afterAll(async () => {
    await browser?.close();
    secure?.close();
    secure?.closeAllConnections();
    await postern?.close();
    await realm?.close();
  });

  /** A page of a browser with no cookies, and what the browser says about content security policies. */
  async function freshPage(javaScriptEnabled = true): Promise<{ page: Page; refusals: () => string[] }> {
    const context = await browser.newContext({ javaScriptEnabled, ignoreHTTPSErrors: true });
    const page = await context.newPage();
    const said: string[] = [];
    page.on('console', (message) => void said.push(message.text()));
    return { page, refusals: () => said.filter((text) => /Content Security Policy|Refused/.test(text)) };
  }

  async function fillIn(page: Page, username: string): Promise<void> {
    await page.fill('input[name=username]', username);
    await page.fill('input[name=password]', password);
    await page.click('[name=login]');
  }

  async function signedIn() {
    const person = await realm.person();
    const { page, refusals } = await freshPage();
    await page.goto(`${postern.uiUrl}/auth/login`);
    await fillIn(page, person.username);
    await page.waitForURL(`${postern.uiUrl}/`);
    return { person, page, refusals };
  }

  async function privateSite(page: Page): Promise<{ id: string; url: string; link: string }> {
    const { type, bytes } = archiveOf({ 'index.html': '<!doctype html><p id="text">the private page</p>' });
    const answer = await page.evaluate<{ data: { id: string; url: string; link: string } }>(`(async () => {
      const body = Uint8Array.from(atob('${bytes.toString('base64')}'), (letter) => letter.charCodeAt(0));
      const headers = { 'content-type': '${type}' };
      return (await fetch('/api/v2/sites?visibility=private', { method: 'POST', headers, body })).json();
    })()`);
    return answer.data;
  }

  test.each([
    ['with scripts', true],
    ['without scripts', false],
  ])(
    'the link of a private site leads a fresh browser through Keycloak’s form to the site, %s',
    async (_how, javaScriptEnabled) => {
      const { person, page } = await signedIn();
      const site = await privateSite(page);
      const { page: visitor, refusals } = await freshPage(javaScriptEnabled);
      await visitor.goto(site.link);
      await fillIn(visitor, person.username);
      // Without scripts the last step is a button.
      if (!javaScriptEnabled) await visitor.click('text=Open the site');
      await visitor.waitForURL(site.url);
      expect(await visitor.textContent('#text')).toBe('the private page');
      expect(refusals()).toEqual([]);
      await visitor.context().close();
      await page.context().close();
    },
  );

  test('signing out in the web app ends on its page, and the next sign-in asks for the password', async () => {
    const { person, page, refusals } = await signedIn();
    await page.getByRole('button', { name: /^Ada Number/ }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.waitForURL('**/auth/signed-out');
    await page.click('text=Sign in again');
    await fillIn(page, person.username);
    await page.waitForURL(`${postern.uiUrl}/`);
    expect(refusals()).toEqual([]);
    await page.context().close();
  });
});
