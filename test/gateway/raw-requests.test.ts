import { type AddressInfo, connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Harness, openHarness, uiOrigin } from '../harness.ts';
import { page, upload } from '../api/sites/uploads.ts';
import { browserOf, privateSite } from './private.ts';

/** What well-behaved clients never send, byte by byte over a socket. */
let h: Harness;
let host: string;
let hidden: { readonly host: string; readonly cookie: string };
const files = {
  'index.html': page('home'),
  'about.html': page('about'),
  'docs/index.html': page('docs'),
  '404.html': page('no such page'),
};
beforeAll(async () => {
  h = await openHarness();
  const key = await h.serviceKey({ scopes: ['sites:write'] });
  const made = await upload(h, key, files);
  ({ host } = new URL(made.data.url));
  const bob = await h.person('Bob');
  const { url } = await privateSite(h, bob, files);
  const browser = browserOf(h, bob);
  await browser.open(url);
  hidden = { host: new URL(url).host, cookie: browser.cookies(url) };
  await new Promise<void>((resolve) => h.app.gateway.listen(0, '127.0.0.1', resolve));
});
afterAll(() => h.close());

/** The whole answer as text. */
async function send(lines: readonly string[], body = ''): Promise<string> {
  await h.app.services.feed.poll();
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

/** None of these is the name of a file, though some reader makes one of it (web cache deception). */
const confused = [
  ...'//about /./about /docs/../about /docs/%2e%2e/about /docs%2findex.html /docs%5cindex.html'.split(' '),
  ...'/docs\\index.html /about%00 /about;x=1 /about.html/x.css /%61bout%2ehtml/x.css /%ff'.split(' '),
  ...'/.%2e/about /.../about /about/..;/x /about.html/ /about.html/x.js /about.html//x.css'.split(' '),
  ...'/about.html/.css /about.html%2fx.css /about.html%2Fx.css /about.html%5cx.css'.split(' '),
  ...'/about.html\\x.css /about.html;x.css /about.html;/x.css /about.html%3bx.css'.split(' '),
  ...'/about.html%3fx.css /about.html%23x.css /about.html%00.css /about.html%0a.css'.split(' '),
  ...'/about.html%0d%0ax.css /about.html%09.css /about.html%20 /about.html. /about.html~'.split(' '),
  ...'/about.html.css /about%2ehtml%2fx.css /about.html%252fx.css /about.html/../x.css'.split(' '),
  ...'/about.html/%2e%2e/x.css /about.html,x.css /about.html!x.css /about.html@x.css'.split(' '),
  ...'/about.html:x.css /about.html&x.css /about.html%E2%80%A8 /about.html%EF%BC%8Fx.css'.split(' '),
  ...'/x.css/../about.html /x.css/..%2fabout.html /x.css%2f..%2fabout.html'.split(' '),
  ...'/x.css/%2e%2e/about.html /x.css/%2e./about.html /x.css/..\\about.html'.split(' '),
  ...'/x.css/..%5cabout.html /x.css/%252e%252e/about.html /x.css/%u002e%u002e/about.html'.split(' '),
  ...'/x.css/%c0%ae%c0%ae/about.html /%2e/about.html /%2e%2fabout.html ///about.html'.split(' '),
  ...'/\\about.html /%5cabout.html /%2fabout.html /About.html /about.HTML /@about.html'.split(' '),
  ...'/index.html/about.html /docs/index.html/ /docs// /docs/./ /docs/.. /_headers'.split(' '),
  `/${'a/'.repeat(500)}x`,
];

test.each(confused)('T23 GW-02 %s leads to no file', async (target) => {
  const answer = await get(target);
  expect([statusOf(answer), answer.includes('no such page')]).toEqual([404, true]);
});

test('T23 at a private site such paths also lead to no file, and no cache may keep the answer', async () => {
  expect(confused.length).toBeGreaterThanOrEqual(60);
  const ask = (target: string, ...more: readonly string[]) =>
    send([`GET ${target} HTTP/1.1`, `host: ${hidden.host}`, ...more, 'connection: close']);
  const asset = ['sec-fetch-mode: no-cors', 'sec-fetch-dest: style'];
  const kept = 'cache-control: private, no-store';
  for (const target of confused) {
    const inside = await ask(target, `cookie: ${hidden.cookie}`, ...asset);
    expect([target, statusOf(inside), inside.includes('no such page')]).toEqual([target, 404, true]);
    expect([target, inside.toLowerCase().includes(kept)]).toEqual([target, true]);
    const outside = await ask(target, ...asset);
    expect([target, statusOf(outside), outside.includes('<')]).toEqual([target, 401, false]);
    expect([target, outside.toLowerCase().includes(kept)]).toEqual([target, true]);
  }
  // What only looks like another kind of file is the page, and is kept as little.
  for (const target of ['/about.html?x.css', '/about?/x.css', '/%61bout.html?a=.css']) {
    const inside = await ask(target, `cookie: ${hidden.cookie}`, ...asset);
    expect([target, statusOf(inside), inside.toLowerCase().includes(kept)]).toEqual([target, 200, true]);
    expect(statusOf(await ask(target, ...asset))).toBe(401);
  }
});

test('GW-02 a letter written as its code is the same letter', async () => {
  expect(await get('/%61bout')).toContain('<p>about</p>');
});

const post = ['POST / HTTP/1.1', 'host: HOST'];
const broken: readonly (readonly [what: string, lines: readonly string[]])[] = [
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
  ['length and chunks, the other way round', [...post, 'transfer-encoding: chunked', 'content-length: 5']],
  ['a length with a sign', [...post, 'content-length: +3']],
  ['a negative length', [...post, 'content-length: -3']],
  ['a hexadecimal length', [...post, 'content-length: 0x3']],
  ['a list of lengths', [...post, 'content-length: 3, 3']],
  ['an empty length', [...post, 'content-length:']],
  ['a length of a thousand digits', [...post, `content-length: ${'9'.repeat(1_000)}`]],
  ['chunks twice', [...post, 'transfer-encoding: chunked, chunked']],
  ['chunks that are not last', [...post, 'transfer-encoding: chunked, identity']],
  ['chunks behind a control character', [...post, 'transfer-encoding: \vchunked']],
  ['a host with a space', ['GET / HTTP/1.1', 'host: HOST x']],
  ['a host with a path', ['GET / HTTP/1.1', 'host: HOST/x']],
  ['a host with a name before it', ['GET / HTTP/1.1', 'host: a@HOST']],
  ['a list of hosts', ['GET / HTTP/1.1', 'host: HOST, evil.example']],
  ['an empty host', ['GET / HTTP/1.1', 'host:']],
  ['two hosts, spelled differently', ['GET / HTTP/1.1', 'Host: HOST', 'hOST: HOST']],
  ['no host, as HTTP/1.0 may', ['GET / HTTP/1.0']],
  ['a header without a name', ['GET / HTTP/1.1', 'host: HOST', ': x']],
  ['a header without a colon', ['GET / HTTP/1.1', 'host: HOST', 'nonsense']],
  ['a control character in a name', ['GET / HTTP/1.1', 'host: HOST', 'x\x01a: b']],
  ['a bare CR that hides a host', ['GET / HTTP/1.1', 'host: HOST', 'x-a: b\rhost: evil.example']],
  ['a bare LF that hides a host', ['GET / HTTP/1.1', 'host: HOST', 'x-a: b\nhost: evil.example']],
  ['a header before the first', ['GET / HTTP/1.1', ' x-a: b', 'host: HOST']],
  ['an unknown method', ['HACK / HTTP/1.1', 'host: HOST']],
  ['a method in small letters', ['get / HTTP/1.1', 'host: HOST']],
  ['HTTP/0.9', ['GET /']],
  ['HTTP/2 in the open', ['PRI * HTTP/2.0', '', 'SM']],
  ['a version that does not exist', ['GET / HTTP/1.9', 'host: HOST']],
  ['another protocol', ['GET / http/1.1', 'host: HOST']],
  ['tabs between the words', ['GET\t/\tHTTP/1.1', 'host: HOST']],
  ['a blank in the target', ['GET /a b HTTP/1.1', 'host: HOST']],
  ['a NUL in the target', ['GET /\0 HTTP/1.1', 'host: HOST']],
  ['a host as the target', ['GET evil.example:80 HTTP/1.1', 'host: HOST']],
  ['an absolute target of another kind', ['GET ftp://HOST/ HTTP/1.1', 'host: HOST']],
];

test.each(broken)('T52 GW-01 GW-09 %s is refused and never served', async (_what, lines) => {
  const answer = await send(
    [...lines.map((line) => line.replaceAll('HOST', host)), 'connection: close'],
    'x=1',
  );
  // A tunnel is not even answered.
  expect(answer === '' || statusOf(answer) >= 400).toBe(true);
  expect(answer).not.toContain('<p>');
});

test.each([
  ['no number', 'zz\r\n'],
  ['a negative number', '-1\r\n'],
  ['a number with 0x', '0x1\r\nx\r\n'],
  ['a number of 17 digits', '10000000000000000\r\n'],
  ['a blank before its number', ' 1\r\nx\r\n'],
  ['more bytes than it says', '1\r\nxyz\r\n'],
  ['a bare LF behind its number', '1\nx\n'],
  ['a bare LF in its extension', '1;a=\nb\r\nx\r\n'],
  ['a NUL in its number', '1\0\r\nx\r\n'],
])(
  'T52 GW-09 a chunk with %s ends the connection: the following bytes are no second request',
  async (_what, chunk) => {
    const next = `0\r\n\r\nGET / HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`;
    for (const target of ['/', '/.postern/redeem']) {
      for (const name of [host, hidden.host]) {
        const answer = await send(
          [
            `POST ${target} HTTP/1.1`,
            `host: ${name}`,
            `origin: ${uiOrigin}`,
            'content-type: application/x-www-form-urlencoded',
            'transfer-encoding: chunked',
          ],
          chunk + next,
        );
        expect([target, answer.includes('<p>'), statusOf(answer) >= 400]).toEqual([target, false, true]);
      }
    }
  },
);

test('T52 the suite has at least forty requests', () => {
  expect(broken.length).toBeGreaterThanOrEqual(40);
});

test('T32 headers that are too large are answered with a page that clears the cookies', async () => {
  const cookie = `cookie: ${Array.from({ length: 60 }, (_, at) => `junk${at}=${'x'.repeat(400)}`).join('; ')}`;
  const answer = await send(['GET / HTTP/1.1', `host: ${host}`, cookie]);
  expect(statusOf(answer)).toBe(431);
  expect(answer.toLowerCase()).toContain('clear-site-data: "cookies"');
});

test('T32 an address that is too long clears no cookies', async () => {
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

test('T07 a hand-over without an Origin, or with two, is refused before its code is read', async () => {
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

test('T51 a broken request is answered, and the connection is closed although its client keeps its side open', async () => {
  const { port } = h.app.gateway.address() as AddressInfo;
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
  let answer = '';
  socket.on('data', (chunk) => (answer += chunk.toString()));
  socket.write('no HTTP at all\r\n\r\n');
  socket.on('error', () => undefined);
  await expect.poll(() => statusOf(answer)).toBe(400);
  // The server's end of it goes, so it counts no connection any more.
  await expect.poll(connections).toBe(0);
  socket.destroy();
});

test('T52 a broken request behind an answer under way ends the connection, and no 400 gets into the body', async () => {
  const key = await h.serviceKey({ scopes: ['sites:write'] });
  // More than the buffers of both sides take.
  const large = 'x'.repeat(24 * 1024 * 1024);
  const made = await upload(h, key, { 'index.html': page('home'), 'large.txt': large });
  await h.app.services.feed.poll();
  const { port } = h.app.gateway.address() as AddressInfo;
  const socket = connect({ host: '127.0.0.1', port });
  const ended = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => undefined);
  let length = 0;
  let last = '';
  socket.on('data', (chunk: Buffer) => {
    if (length === 0) {
      socket.pause();
      socket.write('\0GARBAGE\r\n\r\n');
    }
    length += chunk.length;
    last = (last + chunk.toString('latin1')).slice(-1_000);
  });
  // Two cookies: what node:http reads.
  const { host: address } = new URL(made.data.url);
  socket.write(`GET /large.txt HTTP/1.1\r\nhost: ${address}\r\ncookie: a=b\r\ncookie: c=d\r\n\r\n`);
  await expect.poll(() => length).toBeGreaterThan(0);
  await expect.poll(connections).toBe(0);
  socket.resume();
  await ended;
  expect(length).toBeLessThan(large.length);
  expect(last).not.toContain('HTTP/1.1');
});

function connections(): Promise<number> {
  return new Promise((resolve, reject) =>
    h.app.gateway.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  );
}
