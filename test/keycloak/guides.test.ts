import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../scripts/local-servers.ts';
import { certificateOfUnknownAuthority } from '../certificate.ts';
import { missingTools, samplesOf, typeIn } from '../guides/guides.ts';
import { type Installation, openInstallation, WebBrowser } from './installation.ts';
import { keycloakUrl, openRealm, password, type Realm } from './realm.ts';

// The guides for curl with Keycloak, typed letter by letter: its real sign-in form, its real endpoints, and Postern at the address
// that the pages name.
const origin = 'https://postern.example.com';
const isLeftOut = keycloakUrl === null || missingTools().length > 0;

describe.skipIf(isLeftOut)('the samples of the guides with Keycloak', () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-keycloak-guides-'));
  let realm: Realm;
  let postern: Installation;
  let secure: Server;
  beforeAll(async () => {
    realm = await openRealm((file) => {
      const client = file.clients.find((one: { clientId: string }) => one.clientId === 'postern-web');
      client.redirectUris = [`${origin}/auth/callback`];
      client.attributes['post.logout.redirect.uris'] = `${origin}/auth/signed-out`;
    });
    const contentUrl = 'https://sites.example.net';
    postern = await (await openInstallation(realm, { uiUrl: origin, contentUrl })).start();
    secure = createServer(certificateOfUnknownAuthority(), (request, response) => {
      postern.app.web.server.emit('request', request, response);
    }).listen(0, '127.0.0.1');
    await once(secure, 'listening');
    const address = secure.address();
    if (address === null || typeof address === 'string') throw new Error('The proxy has no port.');
    // The name and the certificate are those of a test.
    writeFileSync(
      join(folder, '.curlrc'),
      `insecure\nconnect-to = "postern.example.com:443:127.0.0.1:${address.port}"\n`,
    );
  });
  afterAll(async () => {
    secure?.close();
    secure?.closeAllConnections();
    await postern?.close();
    await realm?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const sessionPage = 'how-to/get-a-session-by-curl.md';
  const programPage = 'how-to/sign-in-from-a-program.md';
  const begin = `BASE=${origin}\n`;
  const own = (sample: string, person: { email: string }) =>
    sample.replace('ada@example.com', person.email).replace('at least twelve', password);
  async function signIn(person: { email: string }, change = (sample: string) => sample): Promise<string> {
    const [sample = ''] = await samplesOf(sessionPage, '## With a password, Keycloak');
    return await typeIn(folder, change(own(sample, person)));
  }
  const issuerSample = async () => {
    const [issuer = ''] = await samplesOf(programPage);
    return `${issuer.replace(/^ISSUER=.*$/m, `ISSUER=${realm.issuer}`).replace(/^BASE=.*$/m, begin)}\n`;
  };

  test('get a session by curl: through Keycloak’s form, copied from a browser, and ended', async () => {
    const person = await realm.person();
    const [copy = '', look = '', end = ''] = await samplesOf(sessionPage, '## The browser’s session');
    expect(await signIn(person)).toBe('200\n');
    expect(await typeIn(folder, begin + look)).toContain('"kind": "user"');

    const value = /__Host-postern_session\t(\S+)/.exec(readFileSync(join(folder, 'jar'), 'utf8'))?.[1];
    expect(await typeIn(folder, `rm jar\n${copy}${look}`, { input: `${value}\n` })).toContain(
      '"kind": "user"',
    );
    expect(await typeIn(folder, `cp jar copy\n${begin}${end}mv copy jar\n${look}rm jar`)).toMatch(
      /^20\d\nnull\n$/,
    );
  });

  test('get a session by curl: a wrong password gives no session', async () => {
    const person = await realm.person();
    // Keycloak shows its form again.
    expect(await signIn(person, (sample) => sample.replace(password, 'not the password'))).toBe('200\n');
    const [look = ''] = await samplesOf(sessionPage, '## Look who it is');
    expect(await typeIn(folder, `${begin}${look}rm jar`)).toBe('null\n');
  });

  test('sign in from a program by a code: tokens, refreshed and revoked', async () => {
    const person = await realm.person();
    const issuer = await issuerSample();
    const [, start = '', poll = ''] = await samplesOf(programPage);
    const [use = '', refresh = '', handBack = '', list = ''] = await samplesOf(programPage, '## Use it');
    const browser = new WebBrowser(postern);
    async function allow(address: string, code: string): Promise<void> {
      const form = await browser.open(address);
      const login = await browser.submit(form, { device_user_code: code });
      const consent = await browser.submit(login, { username: person.username, password });
      await browser.submit(consent, { accept: 'Yes' });
    }
    let visit: Promise<void> | undefined;
    const printed = await typeIn(folder, `${issuer}${start}${poll}`, {
      said(so) {
        const [, address, code] = /^Open (\S+) and type (\S+)$/m.exec(so) ?? [];
        if (address !== undefined && code !== undefined) visit ??= allow(address, code);
      },
    });
    await visit;
    expect(printed).toMatch(/"error": null,\s*"expires_in": (?:29\d|300)/);
    expect(await typeIn(folder, issuer + use)).toContain('"repos:read"');
    await typeIn(folder, issuer + refresh);
    expect(await typeIn(folder, issuer + use)).toContain('"repos:read"');

    await signIn(person);
    const listed = await typeIn(folder, issuer + list);
    expect(listed).toMatch(/postern-cli[^]*"state_conflict"/);
    expect(
      await typeIn(folder, `cp tokens.json before.json\n${issuer}${handBack}mv before.json tokens.json`),
    ).toBe('');
    expect(await typeIn(folder, issuer + use)).toContain('"invalid_credential"');
  });

  test('sign in from a program by a redirect: the program gets the code and exchanges it for tokens', async () => {
    const person = await realm.person();
    const [wait = '', redeem = ''] = await samplesOf(programPage, '## By a redirect');
    const [use = ''] = await samplesOf(programPage, '## Use it');
    const port = await freePort();
    const browser = new WebBrowser(postern);
    async function allow(address: string): Promise<void> {
      const login = await browser.open(address);
      const consent = await browser.submit(login, { username: person.username, password });
      const { url } = await browser.submit(consent, { accept: 'Yes' });
      await fetch(url);
    }
    let visit: Promise<void> | undefined;
    const program = `${await issuerSample()}${wait.replace('PORT=45123', `PORT=${port}`)}${redeem}${use}`;
    const printed = await typeIn(folder, program, {
      said(so) {
        const address = /^http\S+client_id=postern-cli\S+$/m.exec(so)?.[0];
        if (address !== undefined) visit ??= allow(address);
      },
    });
    await visit;
    expect(printed).toMatch(/^\/callback\?\S*code=/m);
    expect(printed).toMatch(/"error": null,[^]*offline_access[^]*"authMethod"/);
  });
});
