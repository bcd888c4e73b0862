import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { day, hour, minute, second } from '../../src/core/clock.ts';
import { systemAuditContext } from '../../src/core/caller.ts';
import { type Harness, openHarness, type Person, type TestKey } from '../harness.ts';
import { page, replace, upload } from '../api/sites/uploads.ts';

let h: Harness;
let ada: Person;
let key: TestKey;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 10_000 });
  ada = await h.person('Ada');
  key = await h.serviceKey({ scopes: ['sites:write'] });
});
afterAll(() => h.close());

const site = {
  'index.html': page('home'),
  'about.html': page('about'),
  'docs/index.html': page('docs'),
  'docs/404.html': page('no such page of the docs'),
  '404.html': page('no such page'),
  'app.3f9c2a71.js': 'console.log(1)',
  'data.bin.gz': Buffer.from([0x1f, 0x8b]),
  LICENSE: 'free',
  'photo.png': '<script>alert(1)</script>',
  'ü b.txt': 'umlaut',
};

describe('what a public site answers', () => {
  let url: string;
  beforeAll(async () => {
    const { 'data.bin.gz': _broken, ...files } = site;
    const made = await upload(h, key, files);
    url = made.data.url;
  });

  test.each([
    ['', 200, 'home', 'text/html; charset=utf-8'],
    ['index.html', 200, 'home', 'text/html; charset=utf-8'],
    ['about', 200, 'about', 'text/html; charset=utf-8'],
    ['docs/', 200, 'docs', 'text/html; charset=utf-8'],
    ['nothing', 404, 'no such page<', 'text/html; charset=utf-8'],
    ['docs/deep/nothing', 404, 'no such page of the docs', 'text/html; charset=utf-8'],
    ['app.3f9c2a71.js', 200, 'console.log', 'text/javascript; charset=utf-8'],
    ['LICENSE', 200, 'free', 'application/octet-stream'],
    ['photo.png', 200, 'alert', 'image/png'],
    ['%C3%BC%20b.txt', 200, 'umlaut', 'text/plain; charset=utf-8'],
  ])('T44 /%s is %i and has the type of its name', async (path, status, text, type) => {
    const answer = await h.open(url + path);
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([status, type]);
    expect(answer.body).toContain(text);
    expect(answer.headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'origin-agent-cluster': '?1',
      'cache-control': 'public, max-age=0, must-revalidate',
      etag: expect.stringMatching(/^"[0-9a-f]{32}"$/),
    });
    expect(answer.headers['content-disposition']).toBe(path === 'LICENSE' ? 'attachment' : undefined);
  });

  test('a folder opens with its slash, a page without, and the query is kept', async () => {
    const folder = await h.open(`${url}docs?x=1`);
    expect([folder.statusCode, folder.headers['location']]).toEqual([301, '/docs/?x=1']);
    const bare = await h.open(`${url}about/`);
    expect([bare.statusCode, bare.headers['location']]).toEqual([301, '/about']);
  });

  test('a client that already has the file gets 304, and one with another version gets the file', async () => {
    const first = await h.open(url);
    const tag = String(first.headers['etag']);
    const again = await h.open(url, { headers: { 'if-none-match': `"other", W/${tag}` } });
    expect([again.statusCode, again.body]).toEqual([304, '']);
    expect(again.headers['etag']).toBe(tag);
    expect((await h.open(url, { headers: { 'if-none-match': '"other"' } })).statusCode).toBe(200);
  });

  test('T53 one range returns that part, several or invalid ranges return the whole file, one past the end is 416', async () => {
    const part = async (range: string, more: Record<string, string> = {}) => {
      const answer = await h.open(`${url}LICENSE`, { headers: { range, ...more } });
      return [answer.statusCode, answer.body, answer.headers['content-range']];
    };
    expect(await part('bytes=1-2')).toEqual([206, 're', 'bytes 1-2/4']);
    expect(await part('bytes=-1')).toEqual([206, 'e', 'bytes 3-3/4']);
    expect(await part('bytes=2-')).toEqual([206, 'ee', 'bytes 2-3/4']);
    expect(await part('bytes=9-')).toEqual([416, '', 'bytes */4']);
    expect(await part(`bytes=${Array.from({ length: 1_000 }, () => '0-1').join(',')}`)).toEqual([
      200,
      'free',
      undefined,
    ]);
    expect(await part('bytes=2-1')).toEqual([200, 'free', undefined]);
    expect(await part('bytes=1-2', { 'if-range': '"old"' })).toEqual([200, 'free', undefined]);
  });

  test('HEAD answers like GET, and other methods are refused', async () => {
    const head = await h.open(`${url}LICENSE`, { method: 'HEAD' });
    expect([head.statusCode, head.body, head.headers['content-length']]).toEqual([200, '', '4']);
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS'] as const) {
      const answer = await h.open(url, { method });
      expect([method, answer.statusCode, answer.headers['allow']]).toEqual([method, 405, 'GET, HEAD']);
    }
  });

  test('T24 headers that claim another host or address change nothing', async () => {
    const plain = await h.open(url);
    for (const name of ['x-forwarded-host', 'x-original-url', 'x-rewrite-url', 'forwarded', 'x-host']) {
      const answer = await h.open(url, { headers: { [name]: 'evil.example' } });
      expect([name, answer.body, answer.headers['etag']]).toEqual([name, plain.body, plain.headers['etag']]);
    }
  });
});

test('GW-01 T35 an unknown host gets 404 or 421, never another site', async () => {
  const made = await upload(h, key, { 'index.html': page('one') });
  const { host } = new URL(made.data.url);
  const label = host.split('.')[0] ?? '';
  const status = async (name: string) =>
    (await h.open(made.data.url, { headers: { host: name } })).statusCode;
  expect(await status(host.toUpperCase())).toBe(200);
  expect(await status('sites.localhost:3001')).toBe(404);
  expect(await status(`${'a'.repeat(17)}.sites.localhost:3001`)).toBe(404);
  for (const name of [
    `${label}.sites.localhost`,
    `${label}.sites.localhost:3000`,
    `${label}.sites.localhost.:3001`,
    `${label}.sites.localhost:3001.evil.example`,
    `x.${label}.sites.localhost:3001`,
    `${label}.evil.example:3001`,
    'localhost:3000',
    'xn--sites-localhost:3001',
    '',
  ]) {
    expect([name, await status(name)]).toEqual([name, 421]);
  }
});

test('T31 unknown, expired, deleted, taken down and now private addresses answer the same helpful page', async () => {
  const boss = await h.person('Boss', { admin: true });
  const make = async () => (await upload(h, key, { 'index.html': page('x') }, { ttlHours: '1' })).data;
  const [expired, deleted, down] = [await make(), await make(), await make()];
  await h.call('DELETE', `/sites/${deleted.id}`, { as: key });
  await h.call('POST', `/sites/${down.id}/take-down`, { as: boss, body: { reason: 'phishing' } });
  h.clock.advance(3_600 * second - 1);
  expect((await h.open(expired.url)).statusCode).toBe(200);
  h.clock.advance(1);
  const visibility = { visibility: 'public' };
  const hidden = (await upload(h, ada, { 'index.html': page('x') }, visibility)).data;
  await h.call('PATCH', `/sites/${hidden.id}`, { as: ada, body: { visibility: 'private' } });
  const unknown = await h.open(`http://${'q'.repeat(17)}.sites.localhost:3001/`);
  expect(unknown.body).toContain('ask for the link of the site');
  const shape = (answer: typeof unknown) => [answer.statusCode, answer.body, { ...answer.headers, date: '' }];
  for (const { url } of [expired, deleted, down, hidden])
    expect(shape(await h.open(url))).toEqual(shape(unknown));
  await h.call('POST', `/sites/${down.id}/put-back`, { as: boss, body: { reason: 'cleaned' } });
});

test('GW-06 while Sites is off nothing is served or accepted, and afterwards everything works as before', async () => {
  const made = await upload(h, key, { 'index.html': page('x') });
  const { sitesConfig } = h.app.services.sitesServices;
  const before = await sitesConfig.read();
  const off = await sitesConfig.put(systemAuditContext, before.etag, { ...before.value, enabled: false });
  expect((await h.open(made.data.url)).statusCode).toBe(404);
  const refused = await upload(h, key, { 'index.html': page('y') });
  expect([refused.status, refused.error.code]).toEqual([403, 'sites_disabled']);
  const mine = await h.call('GET', '/sites/capabilities', { as: key });
  expect(mine.data.enabled).toBe(false);
  await sitesConfig.put(systemAuditContext, off.etag, before.value);
  expect((await h.open(made.data.url)).statusCode).toBe(200);
  expect((await h.call('GET', `/sites/${made.data.id}`, { as: key })).data.url).toBe(made.data.url);
});

test('a new version is served whole from the next request on, and hashed files of the old one for the grace', async () => {
  const made = await upload(h, key, {
    'index.html': page('old'),
    'app.3f9c2a71.js': 'old',
    'plain.js': 'old',
  });
  await replace(h, key, made.data.id, { 'index.html': page('new'), 'app.8d1e44b0.js': 'new' });
  expect((await h.open(made.data.url)).body).toContain('new');
  expect((await h.open(`${made.data.url}app.3f9c2a71.js`)).body).toBe('old');
  expect((await h.open(`${made.data.url}plain.js`)).statusCode).toBe(404);
  h.clock.advance(60 * minute);
  expect((await h.open(`${made.data.url}app.3f9c2a71.js`)).statusCode).toBe(404);
});

test('T21 a site that becomes private leaves its old address permanently', async () => {
  const mine = await h.key(ada, { scopes: ['sites:write'] });
  const made = await upload(h, mine, { 'index.html': page('x') }, { visibility: 'public' });
  expect((await h.open(made.data.url)).statusCode).toBe(200);
  const hidden = await h.call('PATCH', `/sites/${made.data.id}`, {
    as: mine,
    body: { visibility: 'private' },
  });
  expect(hidden.data.url).not.toBe(made.data.url);
  expect((await h.open(made.data.url)).statusCode).toBe(404);
  expect((await h.open(hidden.data.url)).body).not.toContain('<p>');
  const shown = await h.call('PATCH', `/sites/${made.data.id}`, { as: mine, body: { visibility: 'public' } });
  expect(new Set([made.data.url, hidden.data.url, shown.data.url]).size).toBe(3);
  expect((await h.open(made.data.url)).statusCode).toBe(404);
});

test('a version has a preview at its own address for a day', async () => {
  const made = await upload(h, key, { 'index.html': page('first') });
  await replace(h, key, made.data.id, { 'index.html': page('second') });
  const made2 = await h.call('POST', `/sites/${made.data.id}/versions/1/preview`, { as: key });
  const answer = await h.open(made2.data.url);
  expect(answer.body).toContain('first');
  expect(answer.headers['x-robots-tag']).toBe('noindex');
  h.clock.advance(day);
  expect((await h.open(made2.data.url)).statusCode).toBe(404);
});

test('a site has a hundred previews in any day, each valid to its end, and the next one must wait', {
  tags: 'flood',
}, async () => {
  const { id } = (await upload(h, key, { 'index.html': page('first') })).data;
  const preview = () => h.call('POST', `/sites/${id}/versions/1/preview`, { as: key });
  const first = await preview();
  h.clock.advance(hour);
  for (let count = 1; count < 100; count += 1) expect((await preview()).status).toBe(201);
  const more = await preview();
  expect([more.status, more.error.code, more.headers['retry-after']]).toEqual([
    429,
    'rate_limited',
    String(23 * 3_600),
  ]);
  expect(more.error.hint).toContain('Use an existing preview');
  h.clock.advance(23 * hour - 1);
  expect((await h.open(first.data.url)).statusCode).toBe(200);
  expect((await preview()).status).toBe(429);
  h.clock.advance(1);
  expect((await preview()).status).toBe(201);
  expect((await preview()).status).toBe(429);
  const other = (await upload(h, key, { 'index.html': page('other') })).data;
  expect((await h.call('POST', `/sites/${other.id}/versions/1/preview`, { as: key })).status).toBe(201);
});

test('an app that routes in the browser gets its start page for documents, and 404 for missing parts', async () => {
  const made = await upload(h, key, { 'index.html': page('app') }, { spa: 'true' });
  const asPage = { headers: { accept: 'text/html', 'sec-fetch-dest': 'document' } };
  expect((await h.open(`${made.data.url}any/where`, asPage)).body).toContain('app');
  const script = await h.open(`${made.data.url}missing.js`, { headers: { 'sec-fetch-dest': 'script' } });
  expect(script.statusCode).toBe(404);
});

test('T45 T46 redirects stay on the site and headers only tighten; other rules refuse the upload', async () => {
  const made = await upload(h, key, {
    'index.html': page('x'),
    'docs/index.html': page('d'),
    _redirects: '# old places\n/old /docs/ 302\n/blog/:slug /docs/?post=:slug\n/app/* /docs/:splat 307\n',
    _headers:
      "/docs/*\n  Content-Security-Policy: default-src 'self'\n  X-Robots-Tag: noindex\n  Permissions-Policy: gamepad=()\n",
  });
  expect(made.status).toBe(201);
  const { url } = made.data;
  const where = async (path: string) => {
    const answer = await h.open(url + path);
    return [answer.statusCode, answer.headers['location']];
  };
  expect(await where('old')).toEqual([302, '/docs/']);
  expect(await where('blog/hello')).toEqual([301, '/docs/?post=hello']);
  expect(await where('app/a/b')).toEqual([307, '/docs/a/b']);
  expect(await where('_redirects')).toEqual([404, undefined]);
  expect((await h.open(`${url}docs/`)).headers).toMatchObject({
    'content-security-policy': "default-src 'self'",
    'x-robots-tag': 'noindex',
    'permissions-policy':
      'gamepad=(), camera=(), microphone=(), geolocation=(), usb=(), payment=(), publickey-credentials-get=(), publickey-credentials-create=()',
  });
});

test('a redirect keeps the query of the request, before the fragment of its target', async () => {
  const _redirects = '/frag /docs/#sec\n/both /docs/?a=1#sec\n/odd /docs/#sec?b\n';
  const { data } = await upload(h, key, { 'index.html': page('x'), _redirects });
  const where = async (path: string) => (await h.open(data.url + path)).headers['location'];
  expect(await where('frag?x=1')).toBe('/docs/?x=1#sec');
  expect(await where('frag')).toBe('/docs/#sec');
  expect(await where('both?x=1')).toBe('/docs/?a=1#sec');
  expect(await where('odd?x=1')).toBe('/docs/?x=1#sec?b');
});

test('a rule matches an address however both are encoded, and a rule that can match none is named', async () => {
  const { data } = await upload(h, key, {
    'index.html': page('x'),
    'größe/index.html': page('g'),
    _redirects:
      '/caf%C3%A9 /1\n/old%20page /2\n/cafe\u0301s/* /3/:splat\n/x?a=1 /4\n/a%2Fb /5\n/%zz /6\n/%2A /7\n/%3Aa /8\n',
    _headers: '/gr%C3%B6%C3%9Fe/*\n  Content-Language: de\n/a?b\n  Content-Language: en\n',
  });
  const where = async (path: string) => (await h.open(data.url + path)).headers['location'];
  for (const path of ['caf%C3%A9', 'cafe%CC%81']) expect(await where(path)).toBe('/1');
  expect(await where('old%20page')).toBe('/2');
  expect(await where('caf%C3%A9s/a%20b')).toBe('/3/a%20b');
  expect(await where('anything')).toBeUndefined();
  expect((await h.open(`${data.url}gr%C3%B6%C3%9Fe/`)).headers['content-language']).toBe('de');
  const named = data.warnings.map(({ message }: { message: string }) => message.split(' is not ')[0]);
  expect(named).toEqual([
    ...[4, 5, 6, 7, 8].map((line) => `Line ${line} of _redirects`),
    'Line 3 of _headers',
  ]);
});

test('T45 T46 unsafe lines of _redirects and _headers are named and not applied, and the rest of the site works', async () => {
  const made = await upload(h, key, {
    'index.html': page('x'),
    _redirects:
      '/a https://evil.example\n/b //evil.example\n/c javascript:alert(1)\n/d /\\evil.example\n/old /new 301!\n/* /:splat 200\n',
    _headers:
      '/*\n  Set-Cookie: a=b\n  Access-Control-Allow-Credentials: true\n  Service-Worker-Allowed: /\n  Permissions-Policy: camera=*\n  Cache-Control: max-age=9\n  X-Frame-Options: DENY\n  X-Content-Type-Options: nosniff\n',
  });
  expect(made.status).toBe(201);
  const { id, url, warnings } = made.data;
  const named = warnings.map(({ message }: { message: string }) => message.split(' is not ')[0]);
  expect(named).toEqual([
    ...[1, 2, 3, 4, 5, 6].map((line) => `Line ${line} of _redirects`),
    ...[2, 3, 4, 5, 6].map((line) => `Line ${line} of _headers`),
  ]);
  const report = await h.call('GET', `/sites/${id}/versions/1`, { as: key });
  expect(report.data.report.warnings).toEqual(warnings);
  const { headers } = await h.open(url);
  expect(headers).toMatchObject({
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'cache-control': 'public, max-age=0, must-revalidate',
    'permissions-policy': expect.stringContaining('camera=()'),
  });
  for (const name of ['set-cookie', 'service-worker-allowed', 'access-control-allow-credentials'])
    expect(headers).not.toHaveProperty(name);
  for (const path of ['a', 'b', 'c', 'd']) expect((await h.open(url + path)).statusCode).toBe(404);
  const old = await h.open(`${url}old`);
  expect([old.statusCode, old.headers['location']]).toEqual([301, '/new']);
});

test.each([
  ['/* /index.html 200', { 'index.html': page('start') }, 'start'],
  ['/* / 200', { 'index.html': page('start') }, 'start'],
  ['/* /index.html 200!', { 'index.html': page('start') }, 'start'],
  ['/* /200.html 200', { 'index.html': page('front'), '200.html': page('start') }, 'start'],
])(
  'the line “%s” shows the start page at every address of a page, as spa does',
  async (rules, files, text) => {
    const made = await upload(h, key, {
      ...files,
      'about.html': page('about'),
      _redirects: `/old /about\n${rules}\n`,
    });
    expect(made.status).toBe(201);
    expect(made.data.warnings).toHaveLength(rules.endsWith('!') ? 1 : 0);
    const asked = async (path: string, dest = 'document') =>
      await h.open(made.data.url + path, {
        headers: { 'sec-fetch-mode': dest === 'document' ? 'navigate' : 'no-cors', 'sec-fetch-dest': dest },
      });
    const deep = await asked('any/where');
    expect([deep.statusCode, deep.body.includes(text)]).toEqual([200, true]);
    expect((await asked('about')).body).toContain('about');
    expect((await asked('old')).statusCode).toBe(301);
    expect((await asked('gone.js', 'script')).statusCode).toBe(404);
  },
);

test('T36 a key sent to a site is refused, reported and in no log', async () => {
  const made = await upload(h, key, { 'index.html': page('x') });
  for (const options of [
    { path: `?token=${key.value}` },
    { path: `${key.value}/x` },
    { path: '', headers: { authorization: `Bearer ${key.value}` } },
    { path: '', headers: { cookie: `k=${key.value}` } },
    { path: '', headers: { 'x-api-key': key.value } },
    { path: '', headers: { [key.value]: 'x' } },
    { path: '', headers: { referer: `https://elsewhere.example/?k=${key.value}` } },
  ]) {
    const answer = await h.open(made.data.url + options.path, { headers: options.headers ?? {} });
    expect([answer.statusCode, answer.body.includes(key.value)]).toEqual([400, false]);
  }
  await h.app.services.alarms.flush();
  await h.app.services.denials.flush({ all: true });
  expect(h.logged.some((line) => line.includes(key.value))).toBe(false);
});

describe('a key in a request to a site', () => {
  let kim: Person;
  let nth = 0;
  beforeEach(async () => {
    nth += 1;
    kim = await h.person(`Kim${nth}`);
  });

  test.each<[string, (value: string) => { path?: string; headers?: Record<string, string> }]>([
    ['its address', (value) => ({ path: `?token=${value}` })],
    ['Authorization', (value) => ({ headers: { authorization: `Bearer ${value}` } })],
    ['a cookie', (value) => ({ headers: { cookie: `theme=dark; k=${value}` } })],
    ['another header', (value) => ({ headers: { 'x-api-key': value } })],
    ['Referer', (value) => ({ headers: { referer: `https://elsewhere.example/?k=${value}` } })],
  ])(
    'T36 KF-05 in %s, public or private, is in the audit log and told to its owner',
    async (_where, requestWith) => {
      for (const visibility of ['public', 'private']) {
        const made = await upload(h, kim, { 'index.html': page('x') }, { visibility });
        const exposed = await h.key(kim);
        const { path = '', headers = {} } = requestWith(exposed.value);
        expect((await h.open(made.data.url + path, { headers })).statusCode).toBe(400);
        // Each runs every second, so it takes at most four.
        for (const job of ['gateway-news', 'gateway-news-desk', 'alarms', 'denials'])
          await h.app.jobs.runNow(job);
        const timeline = await h.call('GET', `/me/tokens/${exposed.id}/timeline`, { as: kim });
        expect([visibility, timeline.data.map(({ event }: { event: string }) => event)]).toEqual([
          visibility,
          expect.arrayContaining(['api_key.exposed']),
        ]);
        const notices = await h.call('GET', '/me/notices', { as: kim, query: { limit: '100' } });
        expect(notices.data).toContainEqual(
          expect.objectContaining({ kind: 'key_exposed', keyId: exposed.id }),
        );
      }
    },
  );
});

test('after half a minute without the change feed nothing is served', async () => {
  const made = await upload(h, key, { 'index.html': page('x') });
  await h.open(made.data.url);
  h.clock.advance(31 * second);
  const { feed } = h.app.services;
  const poll = feed.poll;
  Object.assign(feed, { poll: async () => undefined });
  const silent = await h.open(made.data.url);
  expect([silent.statusCode, silent.headers['retry-after']]).toEqual([503, '5']);
  Object.assign(feed, { poll });
  expect((await h.open(made.data.url)).statusCode).toBe(200);
});

test('T45 a 64 KiB value, a value that ends its line and a file longer than rules may be are not applied', async () => {
  const problemsOf = async (rules: string) => {
    const { status, data } = await upload(h, key, { 'index.html': page('x'), _headers: rules });
    expect(status).toBe(201);
    const { headers } = await h.open(data.url);
    expect([headers['set-cookie'], String(headers['content-security-policy']).length < 2_000]).toEqual([
      undefined,
      true,
    ]);
    return data.warnings.map(({ message }: { message: string }) => message);
  };
  const policy = '/*\n  Content-Security-Policy: ';
  const rest = 65_536 - policy.length;
  expect(await problemsOf(policy + 'x'.repeat(rest))).toEqual([
    'Line 2 of _headers is not applied as it is written: it must have a value of 1 to 2000 characters.',
  ]);
  expect(await problemsOf(policy + 'x'.repeat(rest + 1))).toEqual([
    'The file _headers is not applied as it is written: it is larger than 65536 bytes.',
  ]);
  expect(await problemsOf(`${policy}x\r\n  Set-Cookie: a=b\n`)).toEqual([
    expect.stringContaining('Line 3 of _headers is not applied as it is written: it sets set-cookie'),
  ]);
});

describe('UP-07 T44 files whose bytes have another type than their name', () => {
  const polyglot = '<!doctype html><svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>';
  const files = {
    'index.html': page('x'),
    'picture.svg': polyglot,
    'page.xhtml': `<html xmlns="http://www.w3.org/1999/xhtml"><script>alert(1)</script></html>`,
    'notes.txt': polyglot,
    'notes.md': polyglot,
    'data.json': polyglot,
    'data.csv': polyglot,
    'photo.png': polyglot,
    'photo.jpg': Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0]), Buffer.from(polyglot)]),
    'photo.gif': `GIF89a/*${polyglot}*/=1`,
    'clip.mp4': polyglot,
    'font.woff2': polyglot,
    'paper.pdf': `%PDF-1.7\n${polyglot}`,
    'code.wasm': polyglot,
    README: polyglot,
    'a.html/README': polyglot,
    '.htm': polyglot,
  };
  let url: string;
  let taken: string[];
  beforeAll(async () => {
    const made = await upload(h, key, files);
    ({ url } = made.data);
    taken = Object.keys(files);
  });

  test.each([
    ['picture.svg', 'image/svg+xml; charset=utf-8'],
    ['page.xhtml', 'application/xhtml+xml; charset=utf-8'],
    ['notes.txt', 'text/plain; charset=utf-8'],
    ['notes.md', 'text/markdown; charset=utf-8'],
    ['data.json', 'application/json; charset=utf-8'],
    ['data.csv', 'text/csv; charset=utf-8'],
    ['photo.png', 'image/png'],
    ['photo.jpg', 'image/jpeg'],
    ['photo.gif', 'image/gif'],
    ['clip.mp4', 'video/mp4'],
    ['font.woff2', 'font/woff2'],
    ['paper.pdf', 'application/pdf'],
    ['code.wasm', 'application/wasm'],
    ['README', 'application/octet-stream'],
    ['a.html/README', 'application/octet-stream'],
    ['.htm', 'application/octet-stream'],
  ])('%s is %s, and no browser may guess', async (path, type) => {
    expect(taken).toContain(path);
    // What a client would like or says of the bytes decides nothing.
    for (const headers of [
      {},
      { accept: 'text/html', 'content-type': 'text/html' },
      { range: 'bytes=0-1' },
    ]) {
      const answer = await h.open(url + path, { headers });
      expect(answer.headers).toMatchObject({ 'content-type': type, 'x-content-type-options': 'nosniff' });
      const isDownload = type === 'application/octet-stream';
      expect(answer.headers['content-disposition']).toBe(isDownload ? 'attachment' : undefined);
    }
  });
});
