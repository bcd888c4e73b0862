import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { hour, minute, second } from '../../src/core/clock.ts';
import { AppError } from '../../src/core/errors.ts';
import { systemRandom } from '../../src/core/ids.ts';
import { createGrantSigner, environmentGrants, siteGrants } from '../../src/features/grants/grants.ts';
import { readGrant, writeGrant } from '../../src/features/grants/records.ts';
import { memoryKv } from '../../src/platform/kv/memory-kv.ts';
import { page } from '../api/sites/uploads.ts';
import { FakeClock } from '../clock.ts';
import { type Harness, openHarness, type Person, uiOrigin } from '../harness.ts';
import {
  change,
  changeAccess,
  environmentCookie,
  environmentOf,
  type Made,
  switchEnvironments,
  unusedUrl,
  urlOf,
} from './environment.ts';
import { type Browser, browserOf, grantCookie, navigation, privateSite, subresource } from './private.ts';

let h: Harness;
let admin: Person;
let ben: Person;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 10_000 });
  admin = await h.person('Ada', { admin: true });
  ben = await h.person('Ben');
});
beforeEach(() => switchEnvironments(h, admin, { enabled: true, grantMinutes: 5 }));
afterAll(() => h.close());

const web = { web: { files: { 'index.html': page('secret'), 'a.css': 'p{}' } } };
const members = (creator: Person = admin) => environmentOf(h, creator, { access: 'members', services: web });
const link = (made: Made) => `${uiOrigin}/e/${made.id}`;

/** A browser that has a grant. */
async function opened(person: Person, made: Made): Promise<Browser> {
  // Ten grants a minute are allowed for each person and Environment.
  h.clock.advance(second);
  const browser = browserOf(h, person);
  const shown = await browser.open(made.urlOf('web'));
  expect([shown.status, shown.text]).toEqual([200, page('secret')]);
  return browser;
}

const sessionOf = ({ cookie }: Person) => `__Host-postern_session=${cookie}`;

const statusOf = async (browser: Browser, made: Made) => (await browser.asset(made.urlOf('web'))).status;

describe('who may open an Environment', () => {
  test('members: every person with the role user, through the web app', async () => {
    const made = await members();
    const browser = await opened(ben, made);
    const asset = await browser.asset(`${made.urlOf('web')}a.css`);
    expect([asset.status, asset.text]).toEqual([200, 'p{}']);
    expect(asset.headers).toMatchObject({
      'cache-control': 'private, no-store',
      'cdn-cache-control': 'no-store',
      'cross-origin-resource-policy': 'same-origin',
      'x-robots-tag': 'noindex',
    });
  });

  test('owner: only the creator; for other people the Environment does not exist', async () => {
    const made = await environmentOf(h, ben, { access: 'owner', services: web });
    await opened(ben, made);
    const first = await browserOf(h, admin).navigate(made.urlOf('web'));
    const refused = await h.call(
      'GET',
      new URL(first.headers['location'] ?? '').href.slice(uiOrigin.length),
      {
        as: admin,
        headers: navigation,
      },
    );
    const unknown = await browserOf(h, admin).navigate(unusedUrl());
    const missing = await h.call(
      'GET',
      new URL(unknown.headers['location'] ?? '').href.slice(uiOrigin.length),
      {
        as: admin,
        headers: navigation,
      },
    );
    const withoutId = (text: string) => text.replaceAll(/req_\w+|[0-9a-f-]{36}/g, '');
    expect([refused.status, withoutId(refused.text)]).toEqual([404, withoutId(missing.text)]);
  });

  test('owner: no one, if a service key created it', async () => {
    const made = await environmentOf(h, 'service_key', { access: 'owner', services: web });
    const first = await browserOf(h, admin).navigate(made.urlOf('web'));
    const path = (first.headers['location'] ?? '').slice(uiOrigin.length);
    expect((await h.call('GET', path, { as: admin, headers: navigation })).status).toBe(404);
  });

  test('the grant and its refusal are in the audit log', async () => {
    const made = await environmentOf(h, ben, { access: 'owner', services: web });
    await opened(ben, made);
    const first = await browserOf(h, admin).navigate(made.urlOf('web'));
    await h.call('GET', (first.headers['location'] ?? '').slice(uiOrigin.length), {
      as: admin,
      headers: navigation,
    });
    await h.app.services.denials.flush({ all: true });
    const events = await h.call('GET', '/audit/events', { as: admin, query: { target: made.id } });
    const seen = events.data.map(({ event, reason }: { event: string; reason: string | null }) => [
      event,
      reason,
    ]);
    expect(seen).toContainEqual(['environment.grant_issued', null]);
    expect(seen).toContainEqual(['environment.grant_refused', 'not_creator']);
  });
});

describe('T31 without a grant', () => {
  test('a label in use is answered like an ended or an unknown one', async () => {
    const used = await members();
    const owned = await environmentOf(h, ben, { access: 'owner', services: web });
    const building = await environmentOf(h, ben, {
      access: 'members',
      status: 'building',
      services: { web: { kind: 'process', status: 'building' } },
    });
    const gone = await members();
    await change(h, gone.id, { status: 'torn_down' });
    const urls = [used, owned, building, gone].map((made) => made.urlOf('web'));
    urls.push(used.urlOf('nothing'), unusedUrl());
    const requests = [
      { headers: navigation },
      { headers: subresource },
      { method: 'POST' as const, body: 'a=b' },
      { method: 'PUT' as const, body: '{}' },
      { headers: { 'service-worker': 'script' } },
      { headers: { cookie: `${environmentCookie}=1.${'a'.repeat(43)}.${'b'.repeat(43)}` } },
    ];
    for (const request of requests) {
      const answers = await Promise.all(
        urls.map(async (url) => {
          const { statusCode, headers, body } = await h.open(url, request);
          const { date: _date, location = '', 'set-cookie': cookie, ...rest } = headers;
          return JSON.stringify([
            statusCode,
            rest,
            body,
            String(location).replace(/label=[^&]+|ticket=[^&]+|binding=[^&]+/g, ''),
            String(cookie).replace(/browser=[^;]+/, ''),
          ]);
        }),
      );
      expect(new Set(answers).size).toBe(1);
      expect(answers[0]).toMatch(/^\[(?:303|401|403),/);
    }
  });

  test('the step of an Environment is not visible', async () => {
    const made = await environmentOf(h, admin, {
      access: 'members',
      status: 'building',
      statusMessage: 'secret step',
      services: { web: { status: 'building', reason: 'secret reason' } },
    });
    for (const headers of [navigation, subresource]) {
      const { statusCode, body } = await h.open(made.urlOf('web'), { headers });
      expect([303, 401]).toContain(statusCode);
      expect(body).not.toContain('secret');
    }
    const shown = await browserOf(h, ben).open(made.urlOf('web'));
    expect([shown.status, shown.text]).toEqual([503, expect.stringContaining('secret reason')]);
  });
});

describe('the two kinds of grants', () => {
  test('a grant of a site opens no Environment, and the reverse, under either name', async () => {
    const site = await privateSite(h, ben);
    const made = await members(ben);
    const atSite = browserOf(h, ben);
    expect((await atSite.open(site.url)).status).toBe(200);
    const atEnvironment = await opened(ben, made);
    const valueOf = (browser: Browser, url: string, name: string) =>
      new RegExp(`${name}=([^;]+)`).exec(browser.cookies(url))?.[1] ?? '';
    const ofSite = valueOf(atSite, site.url, grantCookie);
    const ofEnvironment = valueOf(atEnvironment, made.urlOf('web'), environmentCookie);
    expect([ofSite, ofEnvironment]).not.toContain('');
    for (const [url, value] of [
      [made.urlOf('web'), ofSite],
      [site.url, ofEnvironment],
    ] as const)
      for (const name of [grantCookie, environmentCookie]) {
        const { statusCode } = await h.open(url, { headers: { ...subresource, cookie: `${name}=${value}` } });
        expect([url, name, statusCode]).toEqual([url, name, 401]);
      }
  });

  test('a code of one kind cannot be redeemed at a host of the other', async () => {
    const site = await privateSite(h, ben);
    const made = await members(ben);
    const browser = browserOf(h, ben);
    for (const [from, to] of [
      [site.url, made.urlOf('web')],
      [made.urlOf('web'), site.url],
    ] as const) {
      const first = await browser.navigate(from);
      const { code } = await browser.handOver(first.headers['location'] ?? '');
      await browser.navigate(to);
      const refused = await browser.redeem(`${to}.postern/redeem`, code);
      expect([refused.status, refused.setCookies]).toEqual([403, []]);
    }
  });

  test('neither kind verifies what the other signs, and five minutes stay the maximum of sites', () => {
    const secrets = ['grant-secret-of-the-tests-0123456789abcd'];
    const sites = createGrantSigner(secrets, systemRandom, siteGrants);
    const environments = createGrantSigner(secrets, systemRandom, environmentGrants);
    const { cookie, key } = sites.grantOf('code');
    expect(environments.grantKeyOf(cookie)).toBeUndefined();
    expect(environments.grantOf('code').key).not.toBe(key);
    expect(environments.verify(key, sites.sign(key, 'text'))).toBeUndefined();
    expect(environments.codeKeyOf('code')).not.toBe(sites.codeKeyOf('code'));
    const grant = { targetId: 'one', userId: 'usr', host: 'a', epoch: 1, generation: 0, issuedAt: 0 };
    const lasting = (signer: typeof sites, endsAt: number) =>
      readGrant(signer, 'k', writeGrant(signer, 'k', { ...grant, endsAt }));
    expect(lasting(sites, 5 * minute)).toBeDefined();
    expect(lasting(sites, 5 * minute + 1)).toBeUndefined();
    expect(lasting(environments, 60 * minute)).toBeDefined();
    expect(lasting(environments, 60 * minute + 1)).toBeUndefined();
  });
});

describe('how long a grant lasts', () => {
  test.each([5, 60])('%i minutes, when the policy says so', async (grantMinutes) => {
    await switchEnvironments(h, admin, { enabled: true, grantMinutes });
    const made = await members();
    const browser = await opened(ben, made);
    h.clock.advance(grantMinutes * minute - 1);
    expect(await statusOf(browser, made)).toBe(200);
    h.clock.advance(1);
    expect(await statusOf(browser, made)).toBe(401);
    // Renewed by the next navigation.
    expect((await browser.open(made.urlOf('web'))).status).toBe(200);
  });

  test('never longer than the token of the session', async () => {
    const cleo = await h.person('Cleo', { tokenMs: 3 * minute });
    const made = await members();
    const browser = await opened(cleo, made);
    h.clock.advance(3 * minute - second - 1);
    expect(await statusOf(browser, made)).toBe(200);
    h.clock.advance(1);
    expect(await statusOf(browser, made)).toBe(401);
  });

  test('a page of the Environment can read its remaining time and the link', async () => {
    const made = await members();
    const browser = await opened(ben, made);
    h.clock.advance(minute);
    const asked = await browser.asset(`${made.urlOf('web')}.postern/grant`);
    expect(JSON.parse(asked.text)).toEqual({ secondsLeft: 240, link: link(made) });
  });

  test('never longer than the lease', async () => {
    const made = await environmentOf(h, admin, { access: 'members', services: web, ttlMs: 2 * minute });
    const browser = await opened(ben, made);
    h.clock.advance(2 * minute - second - 1);
    expect(await statusOf(browser, made)).toBe(200);
    h.clock.advance(1);
    expect([401, 410]).toContain(await statusOf(browser, made));
  });
});

describe('what ends a grant at once', () => {
  test('a change of access, and the old address does not exist', async () => {
    const made = await members();
    const browser = await opened(ben, made);
    const label = await changeAccess(h, made, 'owner');
    const old = await browser.navigate(made.urlOf('web'));
    expect([old.status, old.text]).toEqual([410, expect.stringContaining('has ended')]);
    const back = await changeAccess(h, { ...made, label }, 'members');
    expect(await statusOf(browser, made)).toBe(410);
    expect((await browser.asset(urlOf(`web-${back}`))).status).toBe(401);
  });

  test.each(['tearing_down', 'torn_down'])('the status %s, which the browser is told', async (status) => {
    const made = await members();
    const browser = await opened(ben, made);
    await change(h, made.id, { status });
    expect(await statusOf(browser, made)).toBe(410);
    // Without a grant, the web app says so, to a person who could open it.
    const first = await browserOf(h, ben).navigate(made.urlOf('web'));
    const shown = await h.call('GET', (first.headers['location'] ?? '').slice(uiOrigin.length), {
      as: ben,
      headers: navigation,
    });
    expect(shown.status).toBe(410);
  });

  test('a disabled account', async () => {
    const dora = await h.person('Dora');
    const made = await members();
    const [hers, his] = [await opened(dora, made), await opened(ben, made)];
    const change = await h.call('PATCH', `/users/${dora.user.id}`, { as: admin, body: { enabled: false } });
    expect(change.status).toBe(200);
    await h.settle();
    expect([await statusOf(hers, made), await statusOf(his, made)]).toEqual([401, 200]);
  });

  test.each([
    ['disabled', 'Gil', 'PATCH', { enabled: false }],
    ['deleted', 'Hal', 'DELETE', undefined],
  ] as const)('owner: a creator who is %s, and no one gets another grant', async (_, name, method, body) => {
    const creator = await h.person(name);
    const made = await environmentOf(h, creator, { access: 'owner', services: web });
    const browser = await opened(creator, made);
    const ended = await h.call(method, `/users/${creator.user.id}`, { as: admin, body });
    expect(ended.status).toBeLessThan(300);
    await h.settle();
    expect(await statusOf(browser, made)).toBe(401);
    for (const person of [creator, admin])
      expect((await browserOf(h, person).open(made.urlOf('web'))).text).not.toContain('secret');
  });

  test('a lost role', async () => {
    const emil = await h.person('Emil');
    const made = await members();
    const browser = await opened(emil, made);
    const change = await h.call('PATCH', `/users/${emil.user.id}`, { as: admin, body: { roles: [] } });
    expect(change.status).toBe(200);
    await h.settle();
    expect(await statusOf(browser, made)).toBe(401);
  });

  test('the end of the session behind it', async () => {
    const fay = await h.person('Fay');
    const made = await members();
    const browser = await opened(fay, made);
    h.revokeToken(fay);
    expect(await statusOf(browser, made)).toBe(200);
    // The sweep finds that the provider revoked the token.
    await h.app.jobs.runNow('environment-grant-sweep');
    await h.settle();
    expect(await statusOf(browser, made)).toBe(401);
  });

  test('a code that is under way when the person is disabled', async () => {
    const hal = await h.person('Hal');
    const made = await members();
    const browser = browserOf(h, hal);
    const first = await browser.navigate(made.urlOf('web'));
    const { target, code } = await browser.handOver(first.headers['location'] ?? '');
    await h.call('PATCH', `/users/${hal.user.id}`, { as: admin, body: { enabled: false } });
    await h.settle();
    const refused = await browser.redeem(target, code);
    expect([refused.status, refused.setCookies]).toEqual([403, []]);
  });

  test('the switch, permanently', async () => {
    const made = await members();
    const browser = await opened(ben, made);
    await switchEnvironments(h, admin, { enabled: false });
    expect(await statusOf(browser, made)).toBe(404);
    await switchEnvironments(h, admin, { enabled: true });
    expect(await statusOf(browser, made)).toBe(401);
    expect((await browser.open(made.urlOf('web'))).status).toBe(200);
    // Another change of the policy ends nothing.
    await switchEnvironments(h, admin, { grantMinutes: 10 });
    expect(await statusOf(browser, made)).toBe(200);
  });
});

describe('a page of another origin', () => {
  test('gets nothing with the grant of the browser, though it may be a sibling', async () => {
    const made = await members();
    const browser = await opened(ben, made);
    const url = made.urlOf('web');
    for (const headers of [
      { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
      { origin: 'http://web-eaaaaaaaaaaaaaaaaa.sites.localhost:3001', 'sec-fetch-mode': 'cors' },
      { origin: 'null', 'sec-fetch-mode': 'cors' },
    ])
      expect((await browser.asset(url, headers)).status).toBe(401);
    const own = { origin: new URL(url).origin, 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' };
    expect((await browser.asset(url, own)).status).toBe(200);
    expect((await browser.navigate(url, { 'sec-fetch-site': 'cross-site' })).status).toBe(200);
  });

  test('cannot register a service worker', async () => {
    const made = await members();
    const browser = await opened(ben, made);
    const worker = await browser.asset(`${made.urlOf('web')}sw.js`, { 'service-worker': 'script' });
    expect(worker.status).toBe(403);
  });
});

describe('the permanent link', () => {
  test('leads to the first exposed service', async () => {
    const made = await environmentOf(h, admin, {
      access: 'members',
      services: {
        db: { kind: 'postgres' },
        api: { kind: 'process', isExposed: false },
        ...web,
        other: web.web,
      },
    });
    const shown = await h.app.web.inject({
      url: new URL(link(made)).pathname,
      headers: { host: new URL(uiOrigin).host, cookie: sessionOf(ben), ...navigation },
    });
    expect([shown.statusCode, shown.headers.location]).toEqual([302, made.urlOf('web')]);
  });

  test('asks for a sign-in only if the access requires it, in the same way for all non-public ones', async () => {
    const open = async (id: string, cookie?: string) => {
      const { statusCode, headers } = await h.app.web.inject({
        url: `/e/${id}`,
        headers: { host: new URL(uiOrigin).host, ...navigation, ...(cookie === undefined ? {} : { cookie }) },
      });
      return [statusCode, String(headers.location).replace(/env_\w+/, '')];
    };
    const shown = await environmentOf(h, admin, { services: web });
    expect(await open(shown.id)).toEqual([302, shown.urlOf('web')]);
    const hidden = await environmentOf(h, admin, { access: 'owner', services: web });
    const signIn = await open(hidden.id);
    expect(signIn).toEqual([303, expect.stringContaining('/auth/login?returnTo=')]);
    expect(await open('env_12345678901234567890')).toEqual(signIn);
    expect((await open(hidden.id, sessionOf(ben)))[0]).toBe(404);
    expect((await open('env_12345678901234567890', sessionOf(ben)))[0]).toBe(404);
    await change(h, shown.id, { status: 'torn_down' });
    expect((await open(shown.id))[0]).toBe(410);
    h.clock.advance(hour);
  });
});

test('while a check is impossible, nothing opens and no grant is issued: 503', async () => {
  let opened: Harness | undefined;
  const real = memoryKv({ clock: { now: () => opened?.clock.now() ?? new FakeClock().now() } });
  let isAway = false;
  const away = () => Promise.reject(new AppError('store_unavailable'));
  const other = (opened = await openHarness({
    kv: {
      ...real,
      getAll: (keys) => (isAway ? away() : real.getAll(keys)),
      time: () => (isAway ? away() : real.time()),
    },
  }));
  const root = await other.person('Root', { admin: true });
  await switchEnvironments(other, root);
  const made = await environmentOf(other, root, { access: 'members', services: web });
  const browser = browserOf(other, root);
  expect((await browser.open(made.urlOf('web'))).status).toBe(200);
  const first = await browserOf(other, root).navigate(made.urlOf('web'));
  const path = (first.headers['location'] ?? '').slice(uiOrigin.length);
  isAway = true;
  const refused = await browser.asset(made.urlOf('web'));
  expect([refused.status, refused.text.includes('secret')]).toEqual([503, false]);
  expect((await other.open(unusedUrl(), { headers: navigation })).statusCode).toBe(503);
  expect((await other.call('GET', path, { as: root, headers: navigation })).status).toBe(503);
  isAway = false;
  expect((await browser.asset(made.urlOf('web'))).status).toBe(200);
  await other.close();
});

test('while the identity service does not answer, no grant is issued: 503', async () => {
  let isAway = false;
  let subject = '';
  const other = await openHarness({
    directory: (builtin) => ({
      introspect: async () => ({
        kind: 'active',
        issuer: `${uiOrigin}/identity`,
        clientId: 'postern-web',
        scopes: ['openid'],
        audiences: [],
        grantId: null,
        subject,
        expiresAt: Number.MAX_SAFE_INTEGER,
      }),
      principal: (...args) => (isAway ? { kind: 'unavailable', reason: 'away' } : builtin.principal(...args)),
    }),
  });
  const root = await other.person('Root', { admin: true });
  ({ subject } = root);
  await switchEnvironments(other, root);
  const made = await environmentOf(other, root, { access: 'members', services: web });
  const first = await browserOf(other, root).navigate(made.urlOf('web'));
  isAway = true;
  for (const path of [(first.headers['location'] ?? '').slice(uiOrigin.length), `/e/${made.id}`])
    expect((await other.call('GET', path, { as: root, headers: navigation })).status).toBe(503);
  await other.close();
});
