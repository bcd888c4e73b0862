import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { minute } from '../../src/core/clock.ts';
import type { Person } from '../harness.ts';
import { launch, openWorld, sessionCookie, setCookie, signIn, type World } from './real-ports.ts';

/** What a hosted page can do to other sites and to the UI, tried in Chromium where it can do most: see real-ports.ts. */
let w: World;
let ada: Person;
let eve: Person;
let root: Person;
beforeAll(async () => {
  w = await openWorld();
  ada = await w.h.person('Ada');
  eve = await w.h.person('Eve');
  root = await w.h.person('Root', { admin: true });
});
afterAll(() => w.close());
beforeEach(async () => {
  // A fresh minute for the limit of grants.
  await w.advance(minute);
  w.seen.length = 0;
});

const grantCookie = '__Host-postern_grant';

const secret = {
  'index.html': '<!doctype html><title>secret</title><p id="text">the secret page</p>',
  'data.js': 'window.leaked = "the secret data"',
  'a.css': 'p{color:rgb(1, 2, 3)}',
  'picture.svg': '<svg xmlns="http://www.w3.org/2000/svg" width="7" height="9"/>',
  'deep/page.html': '<!doctype html><p id="text">deep</p>',
  'sw.js': 'self.addEventListener("fetch", () => undefined)',
};
const hostile = { 'index.html': '<!doctype html><title>hostile</title>', 'sw.js': '1' };

const secretSite = () => w.publish(ada, 'private', secret);
/** What an attacker publishes for everyone. */
const trap = () => w.publish(eve, 'public', hostile);

async function open(page: Page, site: { url: string; link: string }): Promise<void> {
  await page.goto(site.link);
  await page.waitForURL(site.url);
}

/** Runs in the page; each way of reaching for an address resolves with all that the page learns by it. */
const reaching = `
  const settled = (make) => new Promise((resolve) => {
    const element = make();
    element.addEventListener('load', () => resolve('load'));
    element.addEventListener('error', () => resolve('error'));
    document.body.append(element);
  });
  const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
  const fetched = (url, options) => fetch(url, { credentials: 'include', ...options }).then(
    async (answer) => [answer.type, answer.status, answer.redirected, await answer.text()].join(),
    (error) => error.name,
  );
  const framed = async (url) => {
    const frame = make('iframe', { src: url });
    const event = await settled(() => frame);
    let text = 'closed';
    try { text = frame.contentDocument?.body.textContent ?? 'closed'; } catch {}
    let frames = 'closed';
    try { frames = frame.contentWindow.length; } catch {}
    return [event, text, frames].join();
  };
  const timed = (url) => {
    const [entry] = performance.getEntriesByName(url).slice(-1);
    return entry && [entry.responseStatus, entry.transferSize, entry.encodedBodySize, entry.nextHopProtocol,
      entry.contentType, entry.redirectStart, entry.initiatorType].join();
  };
  const reach = async (url) => ({
    fetch: await fetched(url),
    'fetch without CORS': await fetched(url, { mode: 'no-cors' }),
    'fetch that follows no redirect': await fetched(url, { mode: 'no-cors', redirect: 'manual' }),
    HEAD: await fetched(url, { mode: 'no-cors', method: 'HEAD' }),
    'from the cache': await fetched(url, { mode: 'no-cors', cache: 'force-cache' }),
    timing: timed(url),
    script: await settled(() => make('script', { src: url })),
    leaked: String(window.leaked),
    style: await settled(() => make('link', { rel: 'stylesheet', href: url })),
    rules: [...document.styleSheets].filter((sheet) => sheet.href === url).length,
    preload: await settled(() => make('link', { rel: 'preload', as: 'image', href: url })),
    picture: await (async () => {
      const image = make('img', { src: url });
      return [await settled(() => image), image.naturalWidth, image.naturalHeight].join();
    })(),
    media: await new Promise((resolve) => {
      const video = make('video', { src: url });
      video.addEventListener('error', () => resolve(['error', video.error?.code].join()));
      video.addEventListener('loadedmetadata', () => resolve('loaded'));
    }),
    object: await settled(() => make('object', { data: url })),
    frame: await framed(url),
  });`;

const inPage = <T>(page: Page, text: string): Promise<T> =>
  page.evaluate<T>(`(async () => { ${reaching}\n${text} })()`);

test('GR-07 T25 a hostile private site reads nothing of another site or of the UI, whatever its script tries', {
  tags: 'core',
}, async () => {
  const target = await secretSite();
  const evil = await w.publish(ada, 'private', hostile);
  const { context, page } = await w.signedIn(ada);
  await open(page, target);
  // What it reaches for is really there, for the site itself.
  const own = await inPage<string>(page, "return await fetched('/data.js')");
  expect(own).toContain('the secret data');

  await open(page, evil);
  const worker = await inPage<string>(
    page,
    "return await navigator.serviceWorker.register('/sw.js').then(() => 'registered', (error) => error.name)",
  );
  expect(worker).toBe('TypeError');
  expect((await w.answered(({ url }) => url === `${evil.url}sw.js`)).status).toBe(403);
  await expect.poll(() => inPage(page, 'return document.cookie')).toBe('');

  const addresses = ['', 'data.js', 'a.css', 'picture.svg', '.postern/grant'].map(
    (path) => target.url + path,
  );
  const found = await inPage<Record<string, string>[]>(
    page,
    `const found = [];
     for (const url of ${JSON.stringify([...addresses, `${w.uiUrl}/`, `${w.uiUrl}/api/v2/sites`])}) found.push(await reach(url));
     return found;`,
  );
  const learned = JSON.stringify(found);
  expect(learned).not.toMatch(/secret|basic|opaque|cors|loaded|"load"|"load,[^c]/);
  for (const one of found)
    expect(one).toMatchObject({ fetch: 'TypeError', 'fetch without CORS': 'TypeError', leaked: 'undefined' });

  // The other site's code is asked for with the cookie there, and is not taken by what has neither code nor Origin.
  const posted = await inPage<string>(
    page,
    `return await fetched('${target.url}.postern/redeem', {
       method: 'POST', mode: 'no-cors', body: new URLSearchParams({ code: 'a'.repeat(43) }) })`,
  );
  expect(posted).toBe('TypeError');
  const refused = await w.answered(
    ({ url, headers }) => url === `${target.url}.postern/redeem` && headers['sec-fetch-mode'] === 'no-cors',
  );
  expect([refused.status, refused.headers.cookie?.includes(grantCookie)]).toEqual([403, true]);

  // A window it opens is cut off from it on the way, so it can neither read nor steer it.
  const [popup] = await Promise.all([
    context.waitForEvent('page'),
    inPage(page, `window.popup = open('${target.url}'); return null`),
  ]);
  await popup.waitForURL(target.url);
  await popup.waitForSelector('#text');
  await expect.poll(() => popup.evaluate('String(window.opener)')).toBe('null');
  await expect.poll(() => page.evaluate('window.popup.closed')).toBe(true);
  await context.close();
});

test('CS-02 T34 a hosted page writes nothing through the API, though the browser sends the session along', {
  tags: 'core',
}, async () => {
  const { url } = await trap();
  const { context, page } = await w.signedIn(ada);
  const mine = await w.publish(ada, 'public', hostile);
  await page.goto(url);
  const api = `${w.uiUrl}/api/v2`;
  const before = await lastChange();
  const routes = w.h.app.routes.filter(
    ({ method, policy }) =>
      method !== 'GET' && typeof policy.callers !== 'string' && policy.callers.includes('session'),
  );
  expect(routes.length).toBeGreaterThan(30);
  const targets = routes.map(({ method, path }) => ({
    method,
    url: api + path.replace('/sites/{id}', `/sites/${mine.id}`).replaceAll(/\{\w+\*?\}/g, 'aaaaaaaaaa'),
  }));
  w.seen.length = 0;
  const outcomes = await inPage<string[]>(
    page,
    `const outcomes = [];
     for (const { method, url } of ${JSON.stringify(targets)}) {
       if (method === 'POST') outcomes.push(await fetched(url, { method, mode: 'no-cors', body: '{}' }));
       outcomes.push(await fetched(url, { method, body: '{}', headers: { 'content-type': 'application/json' } }));
     }
     outcomes.push(await fetched('${api}/me/tokens'));
     return outcomes;`,
  );
  expect([...new Set(outcomes)]).toEqual(['TypeError']);
  const posts = w.seen.filter(({ method }) => method === 'POST');
  expect(posts).toHaveLength(targets.filter(({ method }) => method === 'POST').length);
  for (const { status, headers } of posts) {
    expect([status, headers['sec-fetch-site']]).toEqual([403, 'same-site']);
    expect(headers.cookie).toContain(sessionCookie);
  }
  // Every other request needs a preflight, which is refused.
  await w.answered(({ method, url: asked }) => method === 'GET' && asked === `${api}/me/tokens`);
  const rest = w.seen
    .filter(({ method, url: asked }) => method !== 'POST' && asked.startsWith(api))
    .map(({ method, status }) => `${method} ${status}`);
  expect([...new Set(rest)].toSorted()).toEqual(['GET 200', 'OPTIONS 405']);

  // The form that signs out, posted as a form.
  const signOut = `${w.uiUrl}/auth/logout`;
  await page.goto(url);
  await inPage(
    page,
    `const form = make('form', { method: 'post', action: '${signOut}' });
     document.body.append(form); form.submit(); return null`,
  );
  await page.waitForURL(signOut);
  expect((await w.answered((one) => one.method === 'POST' && one.url === signOut)).status).toBe(403);
  expect(await lastChange()).toEqual(before);
  await context.close();
});

/** The newest change, by the audit log. */
async function lastChange(): Promise<unknown> {
  const { data } = await w.call('GET', '/audit/events', {
    as: root,
    query: { outcome: 'success', limit: '1' },
  });
  expect(data).toHaveLength(1);
  return data[0];
}

test('CS-05 T32 T33 a neighbour’s cookies change neither the session nor the grants', async () => {
  const site = await secretSite();
  const { url } = await trap();
  const { context, page } = await w.signedIn(ada);
  await open(page, site);
  await page.goto(url);
  await page.evaluate(`{
    const domains = ['', '; domain=app.localhost', '; domain=sites.app.localhost'];
    for (const name of ['__Host-postern_session', '__Host-postern_grant', '__Host-postern_browser', '__Secure-x', 'x'])
      for (const domain of domains)
        for (const before of ['', '=', ' ', '\\u00a0', '\\t='])
          document.cookie = before + name + '=tossed; path=/; secure' + domain;
  }`);
  w.seen.length = 0;
  await page.goto(`${site.url}deep/page`);
  await expect.poll(() => page.textContent('#text')).toBe('deep');
  await page.goto(`${w.uiUrl}/sites/${site.id}?tab=access`);
  await page.getByRole('heading', { name: 'It opens', exact: true }).waitFor();
  // They did arrive, those that a browser lets a neighbour set.
  const received = w.seen.filter((one) => !one.url.startsWith(url));
  expect(received.map(({ headers }) => headers.cookie).join()).toContain('x=tossed');
  for (const { headers } of received) expect(headers.cookie).not.toMatch(/(?:^|; )__Host-\w+=tossed/);
  await context.close();
});

test('T32 a site that a neighbour’s cookies made unreachable says so, removes them and opens again', async () => {
  const site = await secretSite();
  const { url } = await trap();
  const { context, page } = await w.signedIn(ada);
  await open(page, site);
  for (const [start, host] of [
    [`${site.url}deep/page`, 'content'],
    [`${w.uiUrl}/sites/${site.id}?tab=access`, 'UI'],
  ] as const) {
    await page.goto(url);
    await page.evaluate(`{
      for (let nth = 0; nth < 60; nth += 1)
        document.cookie = 'bomb' + nth + '=' + 'x'.repeat(4000) + '; path=/; domain=app.localhost';
    }`);
    // Chromium writes cookies in its own time.
    const planted = async () =>
      (await context.cookies(start)).filter(({ name }) => name.startsWith('bomb')).length;
    await expect.poll(planted).toBe(60);
    // It may send a request before it has read them again from where it wrote them.
    await expect.poll(async () => (await page.goto(start))?.status(), { message: host }).toBe(431);
    // The session was cleared too: the person signs in again, and everything works as before.
    await signIn(page, ada, w.uiUrl);
    await page.goto(start);
    await page.waitForURL(start);
    await page.getByText(host === 'UI' ? 'It opens' : 'deep', { exact: true }).waitFor();
  }
  await context.close();
});

test('T25 after its grant expires a private site shows nothing offline', async () => {
  const site = await secretSite();
  const { context, page } = await w.signedIn(ada);
  await open(page, site);
  await w.advance(6 * minute);
  await context.setOffline(true);
  await expect(page.reload()).rejects.toThrow('ERR_INTERNET_DISCONNECTED');
  await page.waitForURL('chrome-error://chromewebdata/');
  await expect.poll(() => page.content()).not.toContain('the secret page');
  await context.close();
});

test('GR-03 after its grant expires an opened page repeats the flow, and returns to its address', async () => {
  const site = await secretSite();
  const { context, page } = await w.signedIn(ada);
  await open(page, site);
  await w.advance(6 * minute);
  w.seen.length = 0;
  await page.goto(`${site.url}deep/page?q=1`);
  await page.waitForURL(`${site.url}deep/page?q=1`);
  await expect.poll(() => page.textContent('#text')).toBe('deep');
  const first = await w.answered((one) => one.url === `${site.url}deep/page?q=1`);
  expect([first.status, first.headers.cookie?.includes(grantCookie)]).toEqual([303, true]);
  await context.close();
});

test('T20 an earlier cookie opens nothing after private, public and private again', async () => {
  const site = await secretSite();
  const { context, page } = await w.signedIn(ada);
  await open(page, site);
  const change = (visibility: string) =>
    w.call('PATCH', `/sites/${site.id}`, { as: ada, body: { visibility } });
  await change('public');
  const again: string = (await change('private')).data.url;
  // At the old address the page that is still open, with its cookie; then at the new one, with the cookie carried over.
  const before = await inPage<string>(page, "return await fetched('/data.js')");
  expect(before).toContain('basic,401');
  expect((await w.answered(({ url }) => url === `${site.url}data.js`)).headers.cookie).toContain(grantCookie);
  const old = (await context.cookies(site.url)).find(({ name }) => name === grantCookie);
  await setCookie(page, again, `${grantCookie}=${old?.value}`);
  const after = await inPage<string>(page, "return await fetched('/data.js')");
  expect(after).toContain('basic,401');
  expect((await w.answered(({ url }) => url === `${again}data.js`)).headers.cookie).toContain(old?.value);
  expect(again).not.toBe(site.url);
  await context.close();
});

test('T29 neither the UI nor a private site can be framed', async () => {
  const site = await secretSite();
  const { url } = await trap();
  const { context, page } = await w.signedIn(ada);
  await open(page, site);
  await page.goto(url);
  const { uiUrl } = w;
  const asked = (await w.answered(({ url: at }) => at.startsWith(`${uiUrl}/sites/open`))).url;
  w.written.length = 0;
  for (const address of [
    site.url,
    `${uiUrl}/`,
    `${uiUrl}/sites/${site.id}?tab=access`,
    `${uiUrl}/auth/login`,
    asked,
  ]) {
    const known = new Set(page.frames());
    // Chromium's own error page takes its place: it loads, has an opaque origin, and reveals nothing of the answer.
    const learned = await inPage<string>(page, `return await framed('${address}')`);
    expect(learned).toBe('load,closed,0');
    const frame = page.frames().find((one) => !known.has(one));
    await frame?.waitForURL('chrome-error://chromewebdata/');
    expect(frame).toBeDefined();
  }
  // What was asked for in a frame did carry the cookies, and started no way in.
  expect(w.written).toEqual([]);
  await context.close();
});

test('T30 a dozen probes of an attacker’s page cannot tell a private site from a missing one', async () => {
  const site = await secretSite();
  const { url } = await trap();
  const missing = site.url.replace(/p-?\w+/, (label) =>
    label.replace(/.$/, (last) => (last === 'a' ? 'b' : 'a')),
  );
  expect(missing).not.toBe(site.url);
  const { context, page } = await w.signedIn(ada);
  const probe = async (address: string) => {
    await page.goto(url);
    const found = await inPage<Record<string, unknown>>(
      page,
      `const found = {};
       for (const path of ['', 'data.js', 'a.css', 'picture.svg', '.postern/grant', '.postern/redeem', 'nothing'])
         found[path] = await reach('${address}' + path);
       return found;`,
    );
    // A separate window, as far as the opener can still see it; then the flow completes by itself.
    const [popup] = await Promise.all([
      context.waitForEvent('page'),
      inPage(page, `window.popup = open('${address}'); return null`),
    ]);
    await popup.waitForSelector('#text, h1:has-text("does not open")');
    const seenOfPopup = await inPage(page, 'return [popup.closed, popup.length, history.length].join()');
    await popup.close();
    return { found, seenOfPopup };
  };
  const none = await probe(missing);
  // Once as a stranger to it, with the way in before her; once more with a grant that the browser sends along.
  await context.clearCookies({ name: grantCookie });
  expect(await probe(site.url)).toEqual(none);
  expect((await context.cookies(site.url)).some(({ name }) => name === grantCookie)).toBe(true);
  expect(await probe(site.url)).toEqual(none);
  await context.close();
});

test('T30 a window that an attacker opens on the UI does not reveal its redirects', async () => {
  const site = await secretSite();
  const { url } = await trap();
  const { context, page } = await w.signedIn(ada);
  await open(page, site);
  const way = (await w.answered(({ url: at }) => at.startsWith(`${w.uiUrl}/sites/open`))).url;
  const { label } = /label=(?<label>[^&]+)/.exec(way)?.groups ?? {};
  const seenOf = async (address: string) => {
    await page.goto(url);
    const [popup] = await Promise.all([
      context.waitForEvent('page'),
      inPage(page, `window.popup = open('${address}'); return null`),
    ]);
    await popup.waitForSelector('#text, h1');
    const seen = await inPage(page, 'return [popup.closed, popup.length, history.length].join()');
    await popup.close();
    return seen;
  };
  const none = await seenOf(`${w.uiUrl}/s/aaaaaaaaaa`);
  expect(none).toMatch(/^true,/);
  expect(await seenOf(`${w.uiUrl}/s/${site.id}`)).toBe(none);
  expect(await seenOf(way)).toBe(none);
  expect(await seenOf(way.replace(`label=${label}`, `label=p-${'a'.repeat(17)}`))).toBe(none);
  await context.close();
});

test('T27 prefetching and prerendering get no grant, create no code and write nothing', async () => {
  const ahead = (addresses: string[]) =>
    `<!doctype html><script type="speculationrules">${JSON.stringify({
      prefetch: [{ source: 'list', urls: addresses, eagerness: 'immediate' }],
      prerender: [{ source: 'list', urls: addresses, eagerness: 'immediate' }],
    })}</script><link rel="prefetch" href="${addresses[0]}"><p id="text">ahead</p>`;
  const site = await secretSite();
  const { context, page } = await w.signedIn(ada);
  await open(page, site);
  const way = (await w.answered(({ url }) => url.startsWith(`${w.uiUrl}/sites/open`))).url;
  const { url } = await w.publish(eve, 'public', {
    'index.html': ahead([site.url, way, `${w.uiUrl}/s/${site.id}`]),
  });
  await w.advance(6 * minute);
  w.seen.length = 0;
  w.written.length = 0;
  await page.goto(url);
  const asked = await Promise.all(
    [site.url, way, `${w.uiUrl}/s/${site.id}`].map((address) =>
      w.answered((one) => one.url === address && one.headers['sec-purpose'] !== undefined),
    ),
  );
  expect(asked.map(({ status }) => status)).toEqual([401, 403, 302]);
  expect(w.written).toEqual([]);
  await context.close();
});

test('T26 going back after the grant expires reloads the page, or shows it from memory without access', async () => {
  // The second as people run it: under test Chromium keeps no pages in memory. Recorded with Chromium 156: both ask
  // again, though the second does keep public pages. Promised is less: memory cannot be called back.
  const usual = await launch({ ignoreDefaultArgs: ['--disable-back-forward-cache'] });
  try {
    for (const [name, inside] of [
      ['Bea', w.browser],
      ['Cy', usual],
    ] as const) {
      const person = await w.h.person(name);
      const site = await w.publish(person, 'private', secret);
      const { url } = await trap();
      const { context, page } = await w.signedIn(person, inside);
      await open(page, site);
      await page.goto(url);
      await w.advance(6 * minute);
      w.h.revokeToken(person);
      w.seen.length = 0;
      await page.goBack({ waitUntil: 'commit' });
      await page.waitForSelector('#text, h1');
      const isKept = page.url() === site.url;
      // oxlint-disable-next-line browser-tests/no-reading-once -- either page stays, and the rest depends on which it is
      expect([name, isKept]).not.toEqual(['Bea', true]);
      await expect
        .poll(() =>
          isKept ? inPage<string>(page, "return await fetched('/data.js')") : page.textContent('h1'),
        )
        .toMatch(isKept ? /^basic,401/ : /^Sign in again$/);
      expect(w.seen.some((one) => one.url === site.url && one.status === 303)).toBe(!isKept);
      await context.close();
    }
  } finally {
    await usual.close();
  }
});
