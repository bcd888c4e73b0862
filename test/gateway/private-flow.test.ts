import { afterAll, beforeAll, expect, test } from 'vitest';
import { minute, second } from '../../src/core/clock.ts';
import { type Harness, openHarness, type Person } from '../harness.ts';
import { browserCookie, browserOf, grantCookie, navigation, privateSite, subresource } from './private.ts';

let h: Harness;
let ada: Person;
let bob: Person;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 10_000 });
  ada = await h.person('Ada');
  bob = await h.person('Bob');
});
afterAll(() => h.close());

test('GR-04 the link of a private site leads its owner through the UI to the requested page', async () => {
  const site = await privateSite(h, ada, { 'index.html': 'start', 'docs/a.html': 'the page' });
  const browser = browserOf(h, ada);
  const link = await h.call('GET', new URL(site.link).pathname, { as: ada });
  expect([link.status, link.headers['location']]).toEqual([302, site.url]);
  const shown = await browser.open(`${site.url}docs/a.html?q=1`);
  expect([shown.status, shown.text]).toEqual([200, 'the page']);
  expect(shown.headers['cache-control']).toBe('private, no-store');
  expect((await browser.asset(`${site.url}docs/a.html`)).status).toBe(200);
});

test('the answer with the grant sets a Lax cookie for this host only and clears the cache', async () => {
  const site = await privateSite(h, ada);
  const browser = browserOf(h, ada);
  const first = await browser.navigate(`${site.url}a.css?x=1`);
  expect(first.status).toBe(303);
  expect(first.setCookies).toEqual([
    expect.stringMatching(
      /^__Host-postern_browser=[\w-]{22}; Path=\/; Secure; HttpOnly; SameSite=None; Max-Age=3600$/,
    ),
  ]);
  const { target, code } = await browser.handOver(first.headers['location'] ?? '');
  expect(target).toBe(`${site.url}.postern/redeem`);
  const redeemed = await browser.redeem(target, code);
  expect([redeemed.status, redeemed.headers['location']]).toEqual([303, `${site.url}a.css?x=1`]);
  expect(redeemed.headers).toMatchObject({
    'clear-site-data': '"cache"',
    'cache-control': 'private, no-store',
  });
  const grant = redeemed.setCookies.find((line) => line.startsWith(grantCookie));
  expect(grant).toMatch(
    /^__Host-postern_grant=1\.[\w-]{43}\.[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=\d+$/,
  );
});

test('T01 T03 T06 GR-05 a code works once, at its host, in its browser, for thirty seconds', async () => {
  const site = await privateSite(h, ada);
  const other = await privateSite(h, ada);
  let browser = browserOf(h, ada);
  const start = async () => {
    browser = browserOf(h, ada);
    h.clock.advance(minute);
    const first = await browser.navigate(site.url);
    return await browser.handOver(first.headers['location'] ?? '');
  };
  const twenty = await start();
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => browser.redeem(twenty.target, twenty.code)),
  );
  expect(answers.filter(({ status }) => status === 303)).toHaveLength(1);
  expect(answers.filter(({ status }) => status === 403)).toHaveLength(49);

  const elsewhere = await start();
  await browser.navigate(other.url);
  expect((await browser.redeem(`${other.url}.postern/redeem`, elsewhere.code)).status).toBe(403);
  // It was used up by the attempt.
  expect((await browser.redeem(elsewhere.target, elsewhere.code)).status).toBe(403);

  const stolen = await start();
  const thief = browserOf(h, ada);
  await thief.navigate(site.url);
  expect((await thief.redeem(stolen.target, stolen.code)).status).toBe(403);

  const late = await start();
  h.clock.advance(31 * second);
  expect((await browser.redeem(late.target, late.code)).status).toBe(403);

  await h.app.jobs.runNow('gateway-news');
  await h.app.jobs.runNow('gateway-news-desk');
  const admin = await h.person('Auditor', { admin: true });
  const events = await h.call('GET', '/audit/events', {
    as: admin,
    query: { event: 'site.grant_refused', limit: '100' },
  });
  const found = events.data.map((event: { reason: string; details: { count: number } }) => [
    event.reason,
    event.details.count,
  ]);
  expect(found).toEqual(
    expect.arrayContaining([
      ['code_of_another_host', 1],
      ['code_of_another_browser', 1],
    ]),
  );
  expect(
    found
      .filter(([reason]: [string]) => reason === 'code_unknown')
      .reduce((sum: number, [, count]: [string, number]) => sum + count, 0),
  ).toBe(51);
});

test('T05 T07 a post from a foreign page is refused, whatever its content', async () => {
  const site = await privateSite(h, ada);
  for (const headers of [
    { origin: 'null' },
    { origin: '' },
    { origin: 'http://evil.example' },
    { origin: 'http://localhost:3001' },
    { origin: `http://${new URL(site.url).host}` },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-mode': 'cors' },
    { 'content-type': 'text/plain' },
    { 'content-type': 'multipart/form-data; boundary=x' },
  ]) {
    h.clock.advance(10 * second);
    const browser = browserOf(h, ada);
    const first = await browser.navigate(site.url);
    const { target, code } = await browser.handOver(first.headers['location'] ?? '');
    const refused = await browser.redeem(target, code, headers);
    expect([headers, refused.status, refused.setCookies]).toEqual([headers, 403, []]);
    // Refused before the code was read: the right post still works.
    expect((await browser.redeem(target, code)).status).toBe(303);
  }
});

test('T04 neither code nor cookie nor return path is in any log or address', async () => {
  const site = await privateSite(h, ada);
  const browser = browserOf(h, ada);
  h.clock.advance(minute);
  const first = await browser.navigate(`${site.url}a-private-path`);
  expect(first.headers['location']).not.toContain('a-private-path');
  const { target, code, text } = await browser.handOver(first.headers['location'] ?? '');
  expect([target.includes(code), text.split(code).length]).toEqual([false, 2]);
  await browser.redeem(target, code);
  await browser.asset(site.url);
  const grant = /__Host-postern_grant=([^;]+)/.exec(browser.cookies(site.url))?.[1] ?? 'none';
  const ticket = new URL(first.headers['location'] ?? '').searchParams.get('ticket') ?? 'none';
  const logged = h.logged.join('');
  for (const secret of [code, grant, ticket, 'a-private-path', site.label])
    expect([secret, logged.includes(secret)]).toEqual([secret, false]);
});

test('GR-06 T09 T10 a grant opens its own host only, and holds no data of the person', async () => {
  const site = await privateSite(h, ada);
  const other = await privateSite(h, ada);
  const browser = browserOf(h, ada);
  h.clock.advance(minute);
  expect((await browser.open(site.url)).status).toBe(200);
  const value = /__Host-postern_grant=([^;]+)/.exec(browser.cookies(site.url))?.[1] ?? '';
  const thief = browserOf(h, bob);
  thief.set(other.url, grantCookie, value);
  expect((await thief.asset(other.url)).status).toBe(401);
  expect((await thief.navigate(other.url)).status).toBe(303);
  const plain = Buffer.from(value.split('.')[1] ?? '', 'base64url').toString('latin1');
  expect(value + plain).not.toContain(ada.user.id);
  const atUi = await h.call('GET', '/auth/context', { headers: { cookie: `${grantCookie}=${value}` } });
  expect(atUi.status).toBe(401);
});

test('T27 T28 only a person who opens a page is sent to sign in; every other request gets an empty 401', async () => {
  const site = await privateSite(h, ada);
  const browser = browserOf(h, ada);
  const refused = [
    subresource,
    { ...navigation, 'sec-fetch-dest': 'iframe' },
    { ...navigation, 'sec-fetch-mode': 'cors' },
    { ...navigation, 'sec-fetch-mode': 'navigate, navigate' },
    { ...navigation, 'sec-purpose': 'prefetch' },
    { ...navigation, 'sec-purpose': 'prefetch;prerender' },
    { ...navigation, purpose: 'prefetch' },
  ];
  for (const headers of refused) {
    const answer = await h.open(site.url, { headers });
    expect([answer.statusCode, answer.payload, answer.headers['set-cookie']]).toEqual([401, '', undefined]);
  }
  expect((await h.open(site.url, { method: 'HEAD' })).statusCode).toBe(401);
  // A client that says nothing of itself.
  expect((await h.open(site.url)).statusCode).toBe(303);
  const worker = await browser.asset(`${site.url}sw.js`, { 'service-worker': 'script' });
  expect(worker.status).toBe(403);
  h.clock.advance(minute);
  await browser.open(site.url);
  expect((await browser.asset(`${site.url}a.css`, { 'sec-fetch-dest': 'serviceworker' })).status).toBe(403);
});

test('T31 an unknown label is answered like a used one', async () => {
  const site = await privateSite(h, ada);
  const deleted = await privateSite(h, ada);
  await h.call('DELETE', `/sites/${deleted.id}`, { as: ada });
  const unknown = site.url.replace(site.label, 'p-aaaaaaaaaaaaaaaaa');
  const shape = async (url: string, headers: Record<string, string>) => {
    const { statusCode, headers: sent, payload } = await h.open(url, { headers });
    const location = new URL(String(sent['location'] ?? 'http://none/'));
    const cookie = String(sent['set-cookie'] ?? '').replace(/=[\w-]{22}/, '=…');
    return {
      statusCode,
      payload,
      path: location.pathname,
      parameters: [...location.searchParams].map(([name, value]) => [name, value.length]),
      cookie,
      names: Object.keys(sent).sort(),
    };
  };
  for (const headers of [navigation, subresource]) {
    const real = await shape(site.url, headers);
    expect(await shape(unknown, headers)).toEqual(real);
    expect(await shape(deleted.url, headers)).toEqual(real);
  }
  for (const path of ['.postern/grant', '.postern/other', 'none.html']) {
    const real = await shape(site.url + path, subresource);
    expect(await shape(unknown + path, subresource)).toEqual(real);
  }
});

test('the grant clock tells its holder how long it lasts and where to renew it', async () => {
  const site = await privateSite(h, ada);
  const browser = browserOf(h, ada);
  h.clock.advance(minute);
  expect((await browser.asset(`${site.url}.postern/grant`)).status).toBe(401);
  await browser.open(site.url);
  h.clock.advance(100 * second);
  const clock = await browser.asset(`${site.url}.postern/grant`);
  expect(JSON.parse(clock.text)).toEqual({ secondsLeft: 200, link: site.link });
});

test('step 10 a browser that keeps no cookies is told so instead of being sent round', async () => {
  const site = await privateSite(h, ada);
  h.clock.advance(minute);
  const browser = browserOf(h, ada);
  const first = await browser.navigate(site.url);
  const { target, code } = await browser.handOver(first.headers['location'] ?? '');
  const without = await h.open(target, {
    method: 'POST',
    headers: {
      origin: 'http://localhost:3000',
      'content-type': 'application/x-www-form-urlencoded',
      'sec-fetch-site': 'cross-site',
    },
    body: `code=${code}`,
  });
  expect([without.statusCode, without.payload.includes('Cookies are blocked')]).toEqual([403, true]);

  // One that keeps the binding, but never the grant.
  let last = await browser.open(site.url);
  for (let round = 0; round < 4; round += 1) {
    browser.set(site.url, grantCookie, 'lost');
    last = await browser.open(site.url);
  }
  expect([last.status, last.text.includes('Cookies are blocked')]).toEqual([403, true]);
  h.clock.advance(minute);
  browser.set(site.url, grantCookie, 'lost');
  expect((await browser.open(site.url)).status).toBe(200);
});

test('two tabs that open at once share what binds the browser, and both arrive', async () => {
  const site = await privateSite(h, ada);
  const browser = browserOf(h, ada);
  h.clock.advance(minute);
  await browser.navigate(site.url);
  const before = browser.cookies(site.url);
  const one = await browser.navigate(site.url);
  const two = await browser.navigate(`${site.url}a.css`);
  expect(browser.cookies(site.url)).toBe(before);
  expect(before).toContain(browserCookie);
  for (const [tab, path] of [
    [one, ''],
    [two, 'a.css'],
  ] as const) {
    const { target, code } = await browser.handOver(tab.headers['location'] ?? '');
    expect((await browser.redeem(target, code)).headers['location']).toBe(site.url + path);
  }
});

test('a lost ticket, or one of another host, leads to the start page and not to an error', async () => {
  const site = await privateSite(h, ada);
  const other = await privateSite(h, ada);
  h.clock.advance(minute);
  const foreign = await browserOf(h, ada).navigate(`${other.url}secret-path`);
  const foreignTicket = new URL(foreign.headers['location'] ?? '').searchParams.get('ticket') ?? '';
  for (const ticket of ['', 'garbage', 'x'.repeat(9_000), foreignTicket]) {
    const browser = browserOf(h, ada);
    const first = await browser.navigate(`${site.url}a.css`);
    const to = new URL(first.headers['location'] ?? '');
    to.searchParams.set('ticket', ticket);
    const { target, code } = await browser.handOver(to.href);
    expect((await browser.redeem(target, code)).headers['location']).toBe(site.url);
  }
});

test('GR-06 T09 a grant of the site opens no preview of it, and a grant of the preview not the site', async () => {
  const site = await privateSite(h, ada);
  const made = await h.call('POST', `/sites/${site.id}/versions/1/preview`, { as: ada });
  const preview: string = made.data.url;
  const browser = browserOf(h, ada);
  for (const [own, other] of [
    [site.url, preview],
    [preview, site.url],
  ] as const) {
    h.clock.advance(minute);
    expect((await browser.open(own)).status).toBe(200);
    const value = /__Host-postern_grant=([^;]+)/.exec(browser.cookies(own))?.[1] ?? '';
    const thief = browserOf(h, bob);
    thief.set(other, grantCookie, value);
    expect((await thief.asset(other)).status).toBe(401);
    expect((await thief.asset(`${other}a.css`)).status).toBe(401);
    expect((await thief.navigate(other)).status).toBe(303);
    expect((await browser.asset(own)).status).toBe(200);
  }
});

test('T27 a request for access that does not open a page gets no code, and writes nothing', async () => {
  const root = await h.person('Root', { admin: true });
  const site = await privateSite(h, ada);
  h.clock.advance(minute);
  const { headers } = await browserOf(h, ada).navigate(site.url);
  const to = new URL(headers['location'] ?? '');
  const ask = (how: Record<string, string>, method = 'GET') =>
    h.call(method, to.pathname + to.search, { as: ada, headers: { accept: 'text/html', ...how } });
  for (const how of [
    { ...navigation, 'sec-purpose': 'prefetch' },
    { ...navigation, 'sec-purpose': 'prefetch;prerender' },
    { ...navigation, 'sec-fetch-dest': 'iframe' },
    { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
    { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
  ])
    expect((await ask(how)).status).toBe(403);
  expect((await ask({}, 'HEAD')).status).toBe(403);
  const query = { event: 'site.grant_issued', target: site.id };
  expect((await h.call('GET', '/audit/events', { as: root, query })).data).toEqual([]);
  expect((await ask(navigation)).status).toBe(200);
});
