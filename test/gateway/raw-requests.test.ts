import { type AddressInfo, connect } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type Harness, openHarness, uiOrigin } from '../harness.ts';
import { page, upload } from '../api/sites/uploads.ts';
import { browserOf, privateSite } from './private.ts';

/** What well-behaved clients never send, byte by byte over a socket. */
let h: Harness;
let host: string;
beforeAll(async () => {
  h = await openHarness();
  const key = await h.serviceKey({ scopes: ['sites:write'] });
  const made = await upload(h, key, {
    'index.html': page('home'),
    'about.html': page('about'),
    'docs/index.html': page('docs'),
    '404.html': page('no such page'),
  });
  ({ host } = new URL(made.data.url));
  await new Promise<void>((resolve) => h.app.gateway.listen(0, '127.0.0.1', resolve));
});
afterAll(() => h.close());

/** The whole answer as text. */
async function send(lines: readonly string[], body = ''): Promise<string> {
  await h.app.doors.feed.poll();
  const { port } = h.app.gateway.address() as AddressInfo;
  const socket = connect({ host: '127.0.0.1', port });
  let answer = '';
  socket.on('data', (chunk) => (answer += chunk.toString()));
  socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`);
  await new Promise((resolve) => socket.once('close', resolve));
  return answer;
}

const get = (target: string) => send([`GET ${target} HTTP/1.1`, `host: ${host}`, 'connection: close']);
const statusOf = (answer: string) => Number(answer.split(' ')[1]);

test.each([
  '//about',
  '/./about',
  '/docs/../about',
  '/docs/%2e%2e/about',
  '/docs%2findex.html',
  '/docs%5cindex.html',
  '/docs\\index.html',
  '/about%00',
  '/about;x=1',
  '/about.html/x.css',
  '/%61bout%2ehtml/x.css',
  '/%ff',
  '/.%2e/about',
  '/.../about',
  '/about/..;/x',
  `/${'a/'.repeat(500)}x`,
])('T23 GW-02 %s leads to no file', async (target) => {
  const answer = await get(target);
  expect([statusOf(answer), answer.includes('no such page')]).toEqual([404, true]);
});

test('GW-02 a letter written as its code is the same letter', async () => {
  expect(await get('/%61bout')).toContain('<p>about</p>');
});

test.each([
  ['two hosts', [`GET / HTTP/1.1`, 'host: HOST', 'host: HOST']],
  ['two hosts, the second foreign', ['GET / HTTP/1.1', 'host: HOST', 'host: evil.example']],
  ['no host', ['GET / HTTP/1.1']],
  ['an absolute target', ['GET http://HOST/ HTTP/1.1', 'host: HOST']],
  ['an absolute target elsewhere', ['GET http://evil.example/ HTTP/1.1', 'host: HOST']],
  ['a target without a slash', ['GET about HTTP/1.1', 'host: HOST']],
  ['an asterisk', ['GET * HTTP/1.1', 'host: HOST']],
  ['a proxy request', ['CONNECT evil.example:443 HTTP/1.1', 'host: HOST']],
  ['a trace', ['TRACE / HTTP/1.1', 'host: HOST']],
  ['length and chunks', ['POST / HTTP/1.1', 'host: HOST', 'content-length: 5', 'transfer-encoding: chunked']],
  ['two lengths', ['POST / HTTP/1.1', 'host: HOST', 'content-length: 5', 'content-length: 6']],
  ['an odd coding', ['POST / HTTP/1.1', 'host: HOST', 'transfer-encoding: xchunked']],
  ['a folded header', ['GET / HTTP/1.1', 'host: HOST', 'x-a: b', ' c']],
  ['a space before the colon', ['GET / HTTP/1.1', 'host : HOST']],
  ['a NUL in a header', ['GET / HTTP/1.1', 'host: HOST', 'x-a: a\0b']],
  ['no HTTP at all', ['hello']],
])('T52 GW-01 GW-09 %s is refused and never served', async (_what, lines) => {
  const answer = await send(
    [...lines.map((line) => line.replaceAll('HOST', host)), 'connection: close'],
    'x=1',
  );
  // A tunnel is not even answered.
  expect(answer === '' || statusOf(answer) >= 400).toBe(true);
  expect(answer).not.toContain('<p>');
});

test('T32 headers that are too large are answered with a page that clears the cookies', async () => {
  const cookie = `cookie: ${Array.from({ length: 60 }, (_, at) => `junk${at}=${'x'.repeat(400)}`).join('; ')}`;
  const answer = await send(['GET / HTTP/1.1', `host: ${host}`, cookie]);
  expect(statusOf(answer)).toBe(431);
  expect(answer.toLowerCase()).toContain('clear-site-data: "cookies"');
});

test('T32 an address that is too long takes nobody’s cookies away', async () => {
  const answer = await send([`GET /${'x'.repeat(20_000)} HTTP/1.1`, `host: ${host}`, 'connection: close']);
  expect(statusOf(answer)).toBe(414);
  expect(answer.toLowerCase()).not.toContain('clear-site-data');
});

test('a hand-over without a body is answered at once, and the connection stays good', async () => {
  const label = `p-${'a'.repeat(17)}`;
  const [, ...domain] = host.split('.');
  const answer = await send([
    'POST /.postern/redeem HTTP/1.1',
    `host: ${[label, ...domain].join('.')}`,
    `origin: ${uiOrigin}`,
    'content-type: application/x-www-form-urlencoded',
    '',
    'GET / HTTP/1.1',
    `host: ${host}`,
    'connection: close',
  ]);
  expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 403', 'HTTP/1.1 200']);
});

test('T07 a hand-over without an Origin, or with two, is refused before its code is looked at', async () => {
  const ada = await h.person('Ada');
  const site = await privateSite(h, ada);
  const browser = browserOf(h, ada);
  const first = await browser.navigate(site.url);
  const { code } = await browser.handOver(first.headers['location'] ?? '');
  const body = `code=${code}`;
  const post = (...origins: string[]) =>
    send(
      [
        'POST /.postern/redeem HTTP/1.1',
        `host: ${new URL(site.url).host}`,
        `cookie: ${browser.cookies(site.url)}`,
        ...origins.map((origin) => `origin: ${origin}`),
        'content-type: application/x-www-form-urlencoded',
        `content-length: ${body.length}`,
        'connection: close',
      ],
      body,
    );
  for (const origins of [
    [],
    [uiOrigin, uiOrigin],
    [uiOrigin, 'http://evil.example'],
    ['http://evil.example', uiOrigin],
  ]) {
    const refused = await post(...origins);
    expect([origins, statusOf(refused), refused.includes('set-cookie')]).toEqual([origins, 403, false]);
  }
  const taken = await post(uiOrigin);
  expect([statusOf(taken), taken.includes('__Host-postern_grant=')]).toEqual([303, true]);
});

test('T51 a broken request is answered, and the connection goes although its client keeps its side open', async () => {
  const { port } = h.app.gateway.address() as AddressInfo;
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
  let answer = '';
  socket.on('data', (chunk) => (answer += chunk.toString()));
  socket.write('no HTTP at all\r\n\r\n');
  socket.on('error', () => undefined);
  await vi.waitFor(() => expect(statusOf(answer)).toBe(400), 5_000);
  // The server's end of it goes, so it counts no connection any more.
  await vi.waitFor(async () => expect(await connections()).toBe(0), 5_000);
  socket.destroy();
});

function connections(): Promise<number> {
  return new Promise((resolve, reject) =>
    h.app.gateway.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  );
}
