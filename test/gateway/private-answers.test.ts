import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemAuditContext } from '../../src/core/caller.ts';
import { minute, second } from '../../src/core/clock.ts';
import type { Kv } from '../../src/platform/kv/kv.ts';
import { memoryKv } from '../../src/platform/kv/memory-kv.ts';
import { dump } from '../api/access/cast.ts';
import { upload } from '../api/sites/uploads.ts';
import { FakeClock } from '../clock.ts';
import { type Harness, openHarness, type Person } from '../harness.ts';
import { browserCookie, browserOf, grantCookie, navigation, privateSite } from './private.ts';

/** What private content and the pages around it say, in every case, and what they leave behind nowhere. */
let h: Harness;
let root: Person;
let ada: Person;
/** Everything that was ever written to the key-value store. */
const written: string[] = [];
const storeClock = new FakeClock();
let isStoreAway = false;

function watchedKv(): Kv {
  const real = memoryKv({ clock: storeClock });
  return {
    ...real,
    async getAll(keys) {
      if (isStoreAway) return await new Promise<never>(() => {});
      return await real.getAll(keys);
    },
    async set(key, value, options) {
      written.push(key, value);
      await real.set(key, value, options);
    },
    async setIfNewer(key, value, options) {
      written.push(key, value.text);
      return await real.setIfNewer(key, value, options);
    },
  };
}

beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 100_000, kv: watchedKv() });
  root = await h.person('Root', { admin: true });
  ada = await h.person('Ada');
  await new Promise<void>((resolve) => h.app.gateway.listen(0, '127.0.0.1', resolve));
});
afterAll(() => h.close());

function advance(ms: number): void {
  h.clock.advance(ms);
  storeClock.advance(ms);
}

const passkeysOff = 'publickey-credentials-get=(), publickey-credentials-create=()';

const files = {
  'index.html': '<!doctype html><title>secret</title>the secret page',
  'notes.txt': 'twelve bytes',
  'docs/index.html': 'docs',
  _redirects: '/old /docs/ 302\n',
};

async function opened(more: Record<string, Buffer> = {}) {
  const site = await privateSite(h, ada, { ...files, ...more });
  advance(minute);
  const browser = browserOf(h, ada);
  expect((await browser.open(site.url)).status).toBe(200);
  return { site, browser };
}

const ask = (url: string, headers: Record<string, string>, method: 'GET' | 'HEAD' | 'POST' = 'GET') =>
  h.open(url, { method, headers: { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'empty', ...headers } });

describe('GW-08 the same check precedes every form of a request', () => {
  test('GW-08 ranges, HEAD and conditional requests reveal nothing without a grant, even after an earlier one', async () => {
    const { site, browser } = await opened();
    const url = `${site.url}notes.txt`;
    const cookie = browser.cookies(site.url);
    const etag = String((await ask(url, { cookie })).headers['etag']);
    const forms: [Record<string, string>, 'GET' | 'HEAD'][] = [
      [{}, 'GET'],
      [{}, 'HEAD'],
      [{ range: 'bytes=0-3' }, 'GET'],
      [{ range: 'bytes=900-' }, 'GET'],
      [{ range: 'bytes=0-3', 'if-range': etag }, 'GET'],
      [{ 'if-none-match': etag }, 'GET'],
      [{ 'if-none-match': '*' }, 'HEAD'],
    ];
    const granted = [];
    for (const [headers, method] of forms)
      granted.push((await ask(url, { cookie, ...headers }, method)).statusCode);
    expect(granted).toEqual([200, 200, 206, 416, 206, 304, 304]);

    const refusals = async (at: string, sent: Record<string, string>) => {
      const shapes = [];
      for (const [headers, method] of forms) {
        const { statusCode, payload, headers: told } = await ask(at, { ...sent, ...headers }, method);
        const { date: _date, ...rest } = told;
        shapes.push(JSON.stringify([statusCode, payload, rest]));
      }
      return [...new Set(shapes)];
    };
    const missing = await refusals(`${site.url}none.txt`, {});
    expect(missing).toHaveLength(1);
    expect(missing[0]).toMatch(/^\[401,""/);
    expect(await refusals(url, {})).toEqual(missing);
    advance(5 * minute);
    expect(await refusals(url, { cookie })).toEqual(missing);
    expect(await refusals(`${site.url}none.txt`, { cookie })).toEqual(missing);
  });

  test('GW-08 T22 with any status, no cache may keep the answer and no other origin may read it', async () => {
    const { site, browser } = await opened();
    const cookie = browser.cookies(site.url);
    const etag = String((await ask(site.url, { cookie })).headers['etag']);
    isStoreAway = true;
    const away = await ask(site.url, { cookie });
    isStoreAway = false;
    const answers = {
      200: await ask(site.url, { cookie }),
      206: await ask(`${site.url}notes.txt`, { cookie, range: 'bytes=0-1' }),
      301: await ask(`${site.url}docs`, { cookie }),
      302: await ask(`${site.url}old`, { cookie }),
      303: await ask(site.url, navigation),
      304: await ask(site.url, { cookie, 'if-none-match': etag }),
      401: await ask(site.url, {}),
      403: await ask(`${site.url}.postern/redeem`, {}, 'POST'),
      404: await ask(`${site.url}none.txt`, { cookie }),
      405: await ask(`${site.url}.postern/other`, {}, 'POST'),
      416: await ask(`${site.url}notes.txt`, { cookie, range: 'bytes=900-' }),
      503: away,
    };
    for (const [status, { statusCode, headers }] of Object.entries(answers)) {
      expect(statusCode).toBe(Number(status));
      expect({ status, ...headers }).toMatchObject({
        status,
        'cache-control': 'private, no-store',
        'cdn-cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'cross-origin-opener-policy': 'same-origin',
        'x-robots-tag': 'noindex',
        'permissions-policy': expect.stringContaining(passkeysOff),
        'content-security-policy': expect.stringContaining('frame-ancestors'),
      });
      const open = Object.keys(headers).filter((name) => /^(?:access-control|service-worker)/.test(name));
      expect([status, open]).toEqual([status, []]);
    }
  });

  test('T22 early refusals are also kept by no cache and listed nowhere', async () => {
    const { site } = await opened();
    const key = await h.key(ada);
    const { feed } = h.app.services;
    const { lastReadAt } = feed;
    Object.assign(feed, { lastReadAt: () => 0 });
    const silent = await ask(site.url, navigation);
    Object.assign(feed, { lastReadAt });
    const answers = {
      400: await ask(`${site.url}?k=${key.value}`, {}),
      405: await ask(site.url, {}, 'POST'),
      414: await ask(`${site.url}${'x'.repeat(8_300)}`, {}),
      503: silent,
    };
    for (const [status, { statusCode, headers }] of Object.entries(answers)) {
      expect([status, statusCode]).toEqual([status, Number(status)]);
      expect(headers).toMatchObject({
        'cache-control': 'private, no-store',
        'cdn-cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'x-robots-tag': 'noindex',
      });
    }
  });

  test('T22 a shared cache gives the answers of one person to no one else', async () => {
    const { site, browser } = await opened();
    const kept = new Map<string, string>();
    /** A cache as RFC 9111 has it: keeps what it may, also by its own rules, and answers everyone from it. */
    async function viaCache(url: string, cookie: string) {
      const hit = kept.get(url);
      if (hit !== undefined) return { status: 200, text: hit };
      const answer = await ask(url, cookie === '' ? {} : { cookie });
      const mayKeep = !/private|no-store/.test(String(answer.headers['cache-control'] ?? ''));
      if (answer.statusCode === 200 && mayKeep) kept.set(url, answer.payload);
      return { status: answer.statusCode, text: answer.payload };
    }
    const first = await viaCache(`${site.url}notes.txt`, browser.cookies(site.url));
    expect(first).toEqual({ status: 200, text: 'twelve bytes' });
    expect(await viaCache(`${site.url}notes.txt`, '')).toEqual({ status: 401, text: '' });
  });
});

/** A gateway answers the plainest requests without node:http, and all others with it (decision 0032). */
const ways = [
  { way: 'past node:http', last: '' },
  { way: 'by node:http', last: 'connection: close\r\n' },
];
const size = 24 * 1024 * 1024;
let site: Awaited<ReturnType<typeof privateSite>>;
let shown: { readonly id: string; readonly url: string };
beforeAll(async () => {
  const film = { ...files, 'film.webm': randomBytes(size) };
  site = await privateSite(h, ada, film);
  shown = (await upload(h, ada, film, { visibility: 'public' })).data;
});

describe.each(ways)('contract 10.10: a body under way $way', ({ last }) => {
  /** Asks for the film and stops reading after its first bytes, so that most of it has still to come. */
  async function begin(
    url: string,
    cookie = '',
    behind: readonly string[] = [],
  ): Promise<{ socket: Socket; status: number; received: () => number }> {
    const { port } = h.app.gateway.address() as AddressInfo;
    const socket = connect({ host: '127.0.0.1', port });
    let bytes = 0;
    let status = 0;
    socket
      .on('error', () => undefined)
      .on('data', (chunk: Buffer) => {
        if (bytes === 0) status = Number(chunk.toString('latin1', 9, 12));
        bytes += chunk.length;
      });
    const { host } = new URL(url);
    const ending = behind.length === 0 ? last : '';
    socket.write(
      `GET /film.webm HTTP/1.1\r\nhost: ${host}\r\ncookie: ${cookie}\r\n${ending}\r\n${behind.join('')}`,
    );
    await new Promise((begun) => socket.once('data', begun).once('close', begun));
    socket.pause();
    return { socket, status, received: () => bytes };
  }

  /** The remaining bytes, until the connection ends or the film has arrived. */
  async function rest({ socket, received }: Awaited<ReturnType<typeof begin>>): Promise<number> {
    socket.on('error', () => undefined);
    socket.on('data', () => void (received() > size && socket.destroy()));
    socket.resume();
    if (!socket.closed) await once(socket, 'close');
    return received();
  }

  const connections = () =>
    new Promise<number>((resolve, reject) =>
      h.app.gateway.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
    );

  /** The gateway has cut what is under way; its client reads nothing meanwhile, or all of it could be there before. */
  const letGo = async () => await expect.poll(connections).toBe(0);

  /** The cookies of a browser that has just got a grant. */
  async function enter(): Promise<string> {
    advance(minute);
    const browser = browserOf(h, ada);
    expect((await browser.open(site.url)).status).toBe(200);
    return browser.cookies(site.url);
  }

  test('10.10 arrives whole while its grant holds', async () => {
    expect(await rest(await begin(site.url, await enter()))).toBeGreaterThan(size);
  });

  test.each([
    ['the owner ends every grant', () => h.call('DELETE', `/sites/${site.id}/grants`, { as: ada })],
    [
      'an administrator takes the site down',
      async () => {
        const body = { reason: 'reported' };
        const done = await h.call('POST', `/sites/${site.id}/take-down`, { as: root, body });
        await h.call('POST', `/sites/${site.id}/put-back`, { as: root, body });
        return done;
      },
    ],
    [
      'Sites is switched off',
      async () => {
        const { sitesConfig } = h.app.services.sitesServices;
        const before = await sitesConfig.read();
        const off = await sitesConfig.put(systemAuditContext, before.etag, {
          ...before.value,
          enabled: false,
        });
        // On again only after everyone heard of it.
        await h.app.services.feed.poll();
        await letGo();
        await sitesConfig.put(systemAuditContext, off.etag, before.value);
        return { status: 200 };
      },
    ],
  ])('10.10 is cut when %s', async (_what, end) => {
    const film = await begin(site.url, await enter());
    expect(film.status).toBe(200);
    expect((await end()).status).toBe(200);
    await h.app.services.feed.poll();
    await letGo();
    expect(await rest(film)).toBeLessThan(size);
  });

  test('10.10 a public one is cut when its site is taken down', async () => {
    const taken = await begin(shown.url);
    expect(taken.status).toBe(200);
    await h.call('POST', `/sites/${shown.id}/take-down`, { as: root, body: { reason: 'reported' } });
    await h.app.services.feed.poll();
    await letGo();
    await h.call('POST', `/sites/${shown.id}/put-back`, { as: root, body: { reason: 'reported' } });
    await h.app.services.feed.poll();
    expect(await rest(taken)).toBeLessThan(size);
  });

  test('10.10 an answer that waits behind another on its connection is also cut', async () => {
    const cookie = await enter();
    const film = await begin(shown.url, '', [
      `GET /notes.txt HTTP/1.1\r\nhost: ${new URL(site.url).host}\r\ncookie: ${cookie}\r\n\r\n`,
    ]);
    expect(film.status).toBe(200);
    await h.settle();
    await h.call('DELETE', `/sites/${site.id}/grants`, { as: ada });
    await h.app.services.feed.poll();
    // What is under way of the public one goes too: nothing of the connection is left to send on.
    await letGo();
    expect(await rest(film)).toBeLessThan(size);
  });

  test('10.10 an answer that begins while Sites is being switched off is also cut', async () => {
    const { sitesConfig } = h.app.services.sitesServices;
    const before = await sitesConfig.read();
    const beginning = begin(site.url, await enter());
    const off = await sitesConfig.put(systemAuditContext, before.etag, { ...before.value, enabled: false });
    const film = await beginning;
    await h.app.services.feed.poll();
    await h.settle();
    // Refused, its connection stays open for the next request.
    if (film.status !== 200) film.socket.destroy();
    expect(await rest(film)).toBeLessThan(size);
    await sitesConfig.put(systemAuditContext, off.etag, before.value);
  });

  test('10.10 is cut when the grant runs out', async () => {
    const cookie = await enter();
    advance(5 * minute - second);
    await h.app.services.feed.poll();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const film = await begin(site.url, cookie);
    expect(film.status).toBe(200);
    film.socket.on('error', () => undefined);
    vi.advanceTimersByTime(second);
    // The body is held up by its reader; the gateway lets go of it by itself.
    await letGo();
    expect(await rest(film)).toBeLessThan(size);
  });
});

/** What a page of another site can make a browser ask, as the browser marks it (T30). */
const probes: Record<string, Record<string, string>> = Object.fromEntries(
  [
    ['image', 'no-cors'],
    ['script', 'no-cors'],
    ['script', 'cors'],
    ['style', 'no-cors'],
    ['font', 'cors'],
    ['video', 'no-cors'],
    ['audio', 'no-cors'],
    ['track', 'cors'],
    ['object', 'no-cors'],
    ['embed', 'no-cors'],
    ['manifest', 'cors'],
    ['worker', 'same-origin'],
    ['serviceworker', 'same-origin'],
    ['empty', 'no-cors'],
    ['empty', 'cors'],
    ['empty', 'websocket'],
    ['iframe', 'navigate'],
    ['frame', 'navigate'],
    ['object', 'navigate'],
    ['embed', 'navigate'],
    ['document', 'navigate'],
  ].map(([dest = '', mode = '']) => [
    `${dest} ${mode}`,
    { 'sec-fetch-dest': dest, 'sec-fetch-mode': mode, 'sec-fetch-site': 'cross-site' },
  ]),
);

test('T30 for every probe of a foreign page a private site answers byte for byte like an unknown label', {
  tags: 'flood',
}, async () => {
  const { site, browser } = await opened();
  const gone = await privateSite(h, ada, files);
  await h.call('DELETE', `/sites/${gone.id}`, { as: ada });
  const other = site.label.replace(/.$/, (last) => (last === 'a' ? 'b' : 'a'));
  const missing = site.url.replace(site.label, other);

  /** All that a network carries back; what is different with each answer to anyone by its length alone. */
  async function shapeOf(url: string, path: string, method: 'GET' | 'HEAD' | 'OPTIONS', sent: object) {
    const answer = await h.open(url + path, { method, headers: { origin: 'https://evil.example', ...sent } });
    const { date: _date, location, 'set-cookie': cookies, ...rest } = answer.headers;
    const label = new URL(url).host.split('.', 1)[0] ?? '';
    const withoutSecrets = (text: string) =>
      text
        .replaceAll(label, 'label')
        .replaceAll(/(binding|ticket|browser)=[\w.-]+/g, (all) => `${all.length}`);
    return {
      status: answer.statusCode,
      body: answer.payload,
      location: withoutSecrets(String(location)),
      cookies: [cookies ?? []].flat().map(withoutSecrets),
      rest,
    };
  }

  const cookie = browser.cookies(site.url);
  for (const [probe, headers] of Object.entries(probes)) {
    for (const path of ['', 'notes.txt', 'none.txt', 'docs', 'old', '.postern/grant', '.postern/redeem']) {
      for (const method of ['GET', 'HEAD', 'OPTIONS'] as const) {
        const none = await shapeOf(missing, path, method, headers);
        const where = [probe, path, method];
        expect([...where, await shapeOf(site.url, path, method, headers)]).toEqual([...where, none]);
        expect([...where, await shapeOf(gone.url, path, method, headers)]).toEqual([...where, none]);
        // A cookie that was never given, or was given at another label, changes nothing.
        const stray = { ...headers, cookie };
        expect([...where, await shapeOf(gone.url, path, method, stray)]).toEqual([
          ...where,
          await shapeOf(missing, path, method, stray),
        ]);
        if (method === 'OPTIONS') continue;
        // And no other origin may read it, run it, keep its window or put it in a frame.
        expect(none.rest).toMatchObject({
          'x-content-type-options': 'nosniff',
          'cross-origin-resource-policy': 'same-origin',
          'cross-origin-opener-policy': 'same-origin',
          'content-security-policy': expect.stringContaining("frame-ancestors 'none'"),
          'permissions-policy': expect.stringContaining(passkeysOff),
        });
        expect(Object.keys(none.rest).filter((name) => name.startsWith('access-control'))).toEqual([]);
      }
    }
  }
});

test('T30 the page that passes a code on posts it to that one site, and is invisible to openers and frames', async () => {
  const { url } = await privateSite(h, ada, files);
  const sent = await h.open(url, { headers: navigation });
  const to = new URL(String(sent.headers['location']));
  const headers = { ...navigation, accept: 'text/html' };
  const page = await h.call('GET', to.pathname + to.search, { as: ada, headers });
  expect(page.status).toBe(200);
  const policy = String(page.headers['content-security-policy']);
  expect(policy).toMatch(new RegExp(`form-action ${url.slice(0, -1)}(?:/\\.postern/redeem)?(?:;|$)`));
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(page.headers).toMatchObject({
    'x-content-type-options': 'nosniff',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': 'no-store',
  });
});

test('T54 no page of the service at a site’s host echoes its input, and none is compressed', async () => {
  const { site } = await opened();
  const canary = 'canary-7391';
  const headers = {
    'accept-encoding': 'gzip, br, zstd',
    'user-agent': canary,
    referer: `http://${canary}.example/`,
    cookie: `${canary}=${canary}; ${grantCookie}=${canary}; ${browserCookie}=${canary}`,
  };
  const post = (type: string, body: string) =>
    h.open(`${site.url}.postern/redeem?${canary}=${canary}`, {
      method: 'POST',
      headers: { ...headers, origin: 'http://localhost:3000', 'content-type': type },
      body,
    });
  const shown = [
    await h.open(`${site.url}.postern/grant?${canary}`, { headers }),
    await h.open(`${site.url}.postern/${canary}`, { headers: { ...headers, 'sec-fetch-mode': 'cors' } }),
    await h.open(`${site.url}${canary}?${canary}`, { headers: { ...headers, 'sec-fetch-mode': 'cors' } }),
    await post('application/x-www-form-urlencoded', `code=${canary}`),
    await post('application/x-www-form-urlencoded', `${canary}=${canary}`),
    await post(`text/${canary}`, canary),
  ];
  for (const { payload, headers: told } of shown) {
    expect(payload + JSON.stringify(told)).not.toContain(canary);
    expect(told['content-encoding']).toBeUndefined();
  }
  expect(shown.some(({ payload }) => payload.includes('<h1>'))).toBe(true);
});

test('SE-01 T55 what lets a browser in is in no log, no metric, no table, no event, and the store has hashes only', async () => {
  const site = await privateSite(h, ada);
  advance(minute);
  const browser = browserOf(h, ada);
  const first = await browser.navigate(`${site.url}a-secret-path?q=a-secret-query`);
  const to = new URL(first.headers['location'] ?? '');
  const { target, code } = await browser.handOver(to.href);
  expect((await browser.redeem(target, code)).status).toBe(303);
  const cookies = new Map(
    browser
      .cookies(site.url)
      .split('; ')
      .map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)] as const),
  );
  const grant = cookies.get(grantCookie) ?? '';
  const binding = cookies.get(browserCookie)?.split('.')[0] ?? '';
  // Used well, used again, used wrong, at the right host and at others, at the gateway and at the UI.
  const other = await privateSite(h, ada);
  const thief = browserOf(h, ada);
  for (const [name, value] of cookies) thief.set(other.url, name, value);
  await browser.asset(`${site.url}a-secret-path`);
  await browser.asset(`${site.url}.postern/grant`);
  await browser.redeem(target, code);
  await thief.asset(other.url);
  await thief.redeem(`${other.url}.postern/redeem`, code);
  await browser.redeem(target, `${code}x`, { origin: 'null' });
  for (const value of [grant, binding, code]) {
    await h.call('GET', '/auth/context', { headers: { cookie: `${grantCookie}=${value}` } });
    await h.call('GET', '/sites', { as: `Bearer ${value}` });
  }
  for (const job of ['gateway-news', 'gateway-news-desk', 'alarms', 'usage', 'seal'])
    await h.app.jobs.runNow(job);
  await h.app.services.denials.flush({ all: true });

  const secrets: Record<string, string> = {
    'the grant cookie': grant,
    'the grant’s id': grant.split('.')[1] ?? '',
    'the one-time code': code,
    'the ticket': to.searchParams.get('ticket') ?? '',
    'the binding value': binding,
    'the path': 'a-secret-path',
    'the query': 'a-secret-query',
  };
  for (const [name, secret] of Object.entries(secrets))
    expect([name, secret.length > 12]).toEqual([name, true]);
  const holds = (text: string, but: readonly string[] = []) =>
    Object.entries(secrets)
      .filter(([name, secret]) => !but.includes(name) && text.includes(secret))
      .map(([name]) => name);
  const metrics = await h.app.services.metrics.registry.metrics();
  const auditLog = (await h.call('GET', '/audit/export', { as: root, query: { format: 'ndjson' } })).text;
  expect(auditLog).toContain('site.grant_issued');
  expect(holds(h.logged.join('\n'))).toEqual([]);
  expect(holds(metrics)).toEqual([]);
  expect([metrics.includes(site.label), metrics.includes(site.id)]).toEqual([false, false]);
  expect(holds(auditLog)).toEqual([]);
  expect(holds(await dump(h))).toEqual([]);
  expect(written.length).toBeGreaterThan(4);
  // The ticket is sealed and lies beside its code, by design of step 4.
  expect(holds(written.join('\n'), ['the ticket'])).toEqual([]);
});
