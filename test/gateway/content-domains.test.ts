import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { generateEnvironmentLabel } from '../../src/features/environments/environment/labels.ts';
import { createVisitor } from '../../src/operations/drill/visitor.ts';
import { systemRandom } from '../../src/core/ids.ts';
import { page, upload } from '../api/sites/uploads.ts';
import { contentUrl, type Harness, openHarness, type Person, uiOrigin } from '../harness.ts';
import { environmentCookie, environmentOf, switchEnvironments } from './environment.ts';
import { browserOf, grantCookie, navigation, privateSite } from './private.ts';

/** Environments below a content domain of their own. */
const environmentsContentUrl = 'http://branches.localhost:3001';

let h: Harness;
let ada: Person;
let tenant: Server;
let address: string;
beforeAll(async () => {
  h = await openHarness({ environmentsContentUrl, changesPerMinute: 10_000 });
  ada = await h.person('Ada', { admin: true });
  tenant = createServer((request, response) =>
    response.end(`process at ${String(request.headers['x-forwarded-proto'])}://${request.headers.host}`),
  );
  for (const server of [tenant, h.app.gateway]) {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  }
  address = `127.0.0.1:${portOf(tenant)}`;
  await switchEnvironments(h, ada);
});
afterAll(async () => {
  tenant.closeAllConnections();
  tenant.close();
  await h.close();
});

const portOf = (server: Server) => (server.address() as AddressInfo).port;
const files = { 'index.html': page('static') };
const services = () => ({ web: { files }, api: { kind: 'process' as const, address } });
/** The same label below the other domain. */
const moved = (url: string) => {
  const [from, to] = [new URL(contentUrl).host, new URL(environmentsContentUrl).host];
  return url.includes(from) ? url.replace(from, to) : url.replace(to, from);
};

/** Sends a request over a connection: what processes answer does not come through `h.open`. */
async function fetch(
  gateway: Server,
  method: string,
  url: string,
  headers: Record<string, string>,
  body = '',
) {
  const { host, pathname, search } = new URL(url);
  const to = { host: '127.0.0.1', port: portOf(gateway), agent: false };
  const asked = httpRequest({ ...to, method, path: pathname + search, headers: { ...headers, host } });
  asked.end(body);
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  return { status: answer.statusCode ?? 0, headers: answer.headers, text: await text(answer) };
}

/** Ada's browser, over connections. */
function connected() {
  return createVisitor(uiOrigin, async (method, url, { headers, body }) => {
    if (!url.startsWith(`${uiOrigin}/`))
      return await fetch(h.app.gateway, method, url, headers, body?.toString());
    const answer = await h.call(method, url.slice(uiOrigin.length), { as: ada, headers });
    return { status: answer.status, headers: answer.headers, text: answer.text };
  });
}

test('a static and a process Environment open with a grant at the domain of Environments, a site at that of sites', async () => {
  const made = await environmentOf(h, ada, { access: 'members', services: services() });
  const site = await privateSite(h, ada, { 'index.html': page('site') });
  const browser = connected();
  const [web, api] = [made.urlOf('web'), made.urlOf('api')];
  expect(new URL(web).host).toBe(`web-${made.label}.branches.localhost:3001`);
  expect(new URL(site.url).host).toBe(`${site.label}.sites.localhost:3001`);

  const asked = await browser.navigate(web);
  const { target } = await browser.handOver(String(asked.headers['location']));
  expect(target).toBe(`${web}.postern/redeem`);
  expect(await browser.open(web)).toMatchObject({ status: 200, text: page('static') });
  expect(await browser.open(api)).toMatchObject({
    status: 200,
    text: `process at http://${new URL(api).host}`,
  });
  expect(await browser.open(site.url)).toMatchObject({ status: 200, text: page('site') });
  expect(browser.cookies(web)).toContain(environmentCookie);
  expect(browser.cookies(site.url)).not.toContain(environmentCookie);

  const link = await h.call('GET', `/e/${made.id}`, { as: ada, headers: navigation });
  expect([link.status, link.headers['location']]).toEqual([302, web]);
  const time = await browser.asset(`${web}.postern/grant`);
  expect(JSON.parse(time.text)).toMatchObject({ link: `${uiOrigin}/e/${made.id}` });
});

describe('T35 a label below the other domain is an unknown host', () => {
  test.each(['web', 'api'])('T35 the label of an Environment with the service %s', async (service) => {
    for (const access of ['public', 'members'] as const) {
      const made = await environmentOf(h, ada, { access, services: services() });
      const browser = connected();
      const url = made.urlOf(service);
      expect((await browser.open(url)).status).toBe(200);
      await expectNothing(moved(url), browser.cookies(url));
    }
  });

  test('T35 the label of a site, public or private', async () => {
    const open = await upload(h, ada, files, { visibility: 'public' });
    const hidden = await privateSite(h, ada);
    const browser = browserOf(h, ada);
    for (const { url } of [open.data, hidden]) {
      expect((await browser.open(url)).status).toBe(200);
      await expectNothing(moved(url), browser.cookies(url));
    }
    expect(browser.cookies(hidden.url)).toContain(grantCookie);
  });

  /** In this process and at a separate gateway: the same answer as at an impossible host. */
  async function expectNothing(url: string, cookie: string): Promise<void> {
    const { host } = new URL(url);
    const never = url.replace(host, `nothing.${host.slice(host.indexOf('.') + 1)}`);
    const alone = await h.gatewayAlone();
    const headers = { ...navigation, cookie };
    for (const open of [h.open, alone.open])
      for (const method of ['GET', 'POST'] as const) {
        const [found, missing] = [
          await open(url, { method, headers }),
          await open(never, { method, headers }),
        ];
        expect([url, found.statusCode]).toEqual([url, 404]);
        const { date: _date, ...same } = missing.headers;
        expect([found.body, found.headers]).toMatchObject([missing.body, same]);
      }
    await alone.stop();
  }
});

test.each([
  ['https://sites.example.net', environmentsContentUrl],
  [contentUrl, 'https://branches.example.org'],
])(
  'with sites at %s and Environments at %s, the address of each decides its HTTPS headers',
  async (sites, branches) => {
    const other = await openHarness({ contentUrl: sites, environmentsContentUrl: branches });
    const bob = await other.person('Bob', { admin: true });
    await switchEnvironments(other, bob);
    const site = await upload(other, bob, files, { visibility: 'public' });
    const made = await environmentOf(other, bob, { services: services() });
    const label = generateEnvironmentLabel(systemRandom);
    for (const [url, base] of [
      [site.data.url, sites],
      [site.data.url.replace(/\/\/[^.]+/, '//p-bbbbbbbbbbbbbbbbb'), sites],
      [made.urlOf('web'), branches],
      [made.urlOf('web').replace(made.label, label), branches],
    ]) {
      const answer = await other.open(url, { headers: navigation });
      expect([200, 303]).toContain(answer.statusCode);
      const isHttps = base.startsWith('https:');
      expect([url, 'strict-transport-security' in answer.headers]).toEqual([url, isHttps]);
    }
    other.app.gateway.listen(0, '127.0.0.1');
    await once(other.app.gateway, 'listening');
    const api = made.urlOf('api');
    const { origin } = new URL(api);
    expect(await fetch(other.app.gateway, 'GET', api, {})).toMatchObject({
      status: 200,
      text: `process at ${origin}`,
    });
    await other.close();
  },
);

test('GW-05 if the domain of Environments cannot isolate them, only public ones open, and private sites still open', async () => {
  // The web app has no HTTPS, which is allowed only where the content has none either.
  const other = await openHarness({ environmentsContentUrl: 'https://branches.example.org' });
  const bob = await other.person('Bob', { admin: true });
  await switchEnvironments(other, bob);
  const made = await environmentOf(other, bob, { access: 'members', services: services() });
  const open = await environmentOf(other, bob, { services: services() });
  const site = await privateSite(other, bob);
  const browser = browserOf(other, bob);
  expect((await browser.open(made.urlOf('web'))).status).toBe(404);
  expect((await browser.open(open.urlOf('web'))).status).toBe(200);
  expect((await browser.open(site.url)).status).toBe(200);
  await other.app.services.denials.flush({ all: true });
  const refused = await other.call('GET', '/audit/events', {
    as: bob,
    query: { target: made.id, event: 'environment.grant_refused' },
  });
  expect(refused.data).toMatchObject([{ reason: 'private_environments_unavailable' }]);
  await other.close();
});
