import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  FastRequest,
  FastResponse,
  FastServer,
  type HttpListener,
  type HttpRequest,
  type HttpResponse,
} from '../../src/platform/fast-http/fast-server.ts';
import { isAnswering } from '../../src/platform/turns.ts';

/**
 * Conversations of several requests, whole, in pieces or all at once, with answers that take a while, between a client
 * and two servers: the gateway's (decisions 0032 and 0034) and plain node:http. Both must say the same bytes.
 *
 * These differences are named, and no other is taken:
 * - `read ahead`: node:http meets a request that ends the connection (a broken one, CONNECT or PRI) before those in front
 *   of it are answered, and drops their answers. The gateway's server answers those first. For the same reason node:http
 *   writes `100 Continue` into the answer before it.
 * - `reset`: a server that ends a connection on which the client still sends may take away what the client has not read
 *   (RFC 9112 section 9.6), sooner or later.
 * - `cut`: the gateway's server ends a connection on which a broken request comes behind an answer under way.
 * - A client that ended its side gets `Connection: close` from the gateway's server, and `keep-alive` from node:http,
 *   which closes too. Without `httpAllowHalfOpen`, which both have here, node:http answers nothing to it.
 * - node:http drops what follows an upgrade that nobody makes. No conversation here has one.
 */
const total = Number(process.env['HTTP_CONVERSATIONS'] ?? 20_000);
const seed = Number(process.env['FUZZ_SEED'] ?? 20_261_123);
const atOnce = 24;
/** Looks at a difference, each with more patience: a busy machine may tear a conversation apart. */
const looks = [100, 400, 1_600];

test(`R6 ${total} conversations are the same bytes to the gateway and to node:http`, async () => {
  const fast = await listening(new FastServer(options, answer));
  fastPort = fast.port;
  // Its listeners take one of the two kinds of objects, which have the same members.
  const plain = await listening(createServer(options, answer as RequestListener));
  // By itself node:http answers 417, outside of every limit; both ignore what they do not know (RFC 9110 section 10.1.1).
  plain.server.on('checkExpectation', (request, response) => plain.server.emit('request', request, response));
  const different: string[] = [];
  let named = 0;
  let left = total;
  const worker = async (nth: number) => {
    while (left > 0 && different.length < 10) {
      const numRuns = Math.min(100, left);
      left -= numRuns;
      for (const talk of fc.sample(conversation, { numRuns, seed: seed + left + nth * total })) {
        const found = await compare(talk, fast.port, plain.port);
        if (found === undefined) continue;
        if (names.includes(found)) named += 1;
        else different.push(found);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, (_, nth) => worker(nth)));
  for (const { server } of [fast, plain]) {
    server.close();
    server.closeAllConnections();
  }
  expect(different).toEqual([]);
  // A fuzzer that one reader answers alone proves nothing, nor does one that the name excuses. How many requests the fast
  // reader takes depends on the machine: on a busy one more of them arrive together, and those go to node:http.
  expect(Math.min(seen.fast, seen.node)).toBeGreaterThan(total / 20);
  expect(named).toBeLessThan(total * 0.4);
});

const names = ['read ahead', 'cut', 'reset'];
const options = { maxHeaderSize: 16_384, requestTimeout: 10_000, optimizeEmptyRequests: true };
const interim = 'HTTP/1.1 100 Continue\r\n\r\n';
const brokenAnswer = 'HTTP/1.1 400 Broken\r\n';

async function listening(server: Server): Promise<{ server: Server; port: number }> {
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on('clientError', (error: Error & { code?: string }, socket: Socket) => {
    if (isAnswering(socket) && socket.remotePort !== undefined) cut.add(socket.remotePort);
    if (error.code === 'ECONNRESET' || !socket.writable || isAnswering(socket)) return void socket.destroy();
    socket.end(`${brokenAnswer}Connection: close\r\n\r\n${error.code ?? ''}`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

/** Ports of clients whose connection the gateway's server ended because a broken request came behind an answer under way. */
const cut = new Set<number>();
/** Requests of the gateway's server, by who read them. */
let fastPort = 0;
const seen = { fast: 0, node: 0 };
const bodies = { '/text': 'B'.repeat(300_000), '/buffer': Buffer.alloc(200_000, 'z') };

const answer: HttpListener = (request, response) => {
  if (request instanceof FastRequest) seen.fast += 1;
  else if (request.socket.localPort === fastPort) seen.node += 1;
  const wait = Number(/delay=(\d+)/.exec(request.url ?? '')?.[1] ?? -1);
  const go = (body: string) => {
    if (wait < 0) void respond(request, response, body);
    else if (wait === 0) queueMicrotask(() => void respond(request, response, body));
    else setTimeout(() => void respond(request, response, body), wait);
  };
  if (request instanceof FastRequest || request.url?.startsWith('/unread') === true) {
    request.resume();
    return go('');
  }
  bodyOf(request).then(go, () => undefined);
};

function bodyOf(request: IncomingMessage): Promise<string> {
  // One without a body has ended before anyone listens (optimizeEmptyRequests).
  return request.readableEnded ? Promise.resolve('') : text(request);
}

async function respond(request: HttpRequest, response: HttpResponse, body: string): Promise<void> {
  const { method, url = '', headers, rawHeaders } = request;
  const end = (content: string | Buffer, encoding: BufferEncoding = 'utf8') =>
    void (method === 'HEAD' ? response.end() : response.end(content, encoding));
  const [path = ''] = url.split('?', 1);
  if (path === '/304') {
    response.writeHead(304, ['etag', '"x"']);
    return void response.end();
  }
  if (path === '/empty') {
    response.writeHead(200, { 'x-a': ['1', '2'], 'content-length': 0 });
    return void response.end();
  }
  if (path === '/text' || path === '/buffer') {
    response.writeHead(200, ['content-length', String(bodies[path].length)]);
    return end(bodies[path], 'latin1');
  }
  if (path === '/stream') {
    response.writeHead(200, ['content-length', '150000']);
    if (method === 'HEAD') return void response.end();
    const source = Readable.from(Array.from({ length: 15 }, (_, at) => Buffer.alloc(10_000, 65 + at)));
    // The rest of a closed connection is not read.
    await pipeline(source, response instanceof FastResponse ? response.body() : response).catch(
      () => undefined,
    );
    return;
  }
  const echo = JSON.stringify({ method, url, headers, rawHeaders, body });
  response.writeHead(200, ['content-length', String(Buffer.byteLength(echo))]);
  end(echo);
}

type Heard = { readonly bytes: string; readonly port: number; readonly isReset: boolean };
type Talk = {
  readonly pieces: readonly string[];
  readonly waits: readonly number[];
  readonly endsItsSide: boolean;
};

/** Undefined: the same bytes. */
async function compare(talk: Talk, fastPort: number, plainPort: number): Promise<string | undefined> {
  let [mine, reference] = ['', ''];
  let isCut = false;
  let isReset = false;
  for (const quietMs of looks) {
    const said = await Promise.all([hear(fastPort, talk, quietMs), hear(plainPort, talk, quietMs)]);
    [mine = '', reference = ''] = said.map(({ bytes }) => (talk.endsItsSide ? withoutEnd(bytes) : bytes));
    if (mine === reference) return undefined;
    isCut = cut.has(said[0].port);
    isReset = said.some((one) => one.isReset);
  }
  const broken = reference.indexOf(brokenAnswer);
  const before = broken < 0 ? reference : reference.slice(0, broken);
  if (broken >= 0 && mine.startsWith(before)) return 'read ahead';
  if (isCut && before.startsWith(mine)) return 'cut';
  if (mine.replaceAll(interim, '') === reference.replaceAll(interim, '')) return 'read ahead';
  const isPart = mine.startsWith(reference) || reference.startsWith(mine);
  if (isPart && /CONNECT|PRI/.test(talk.pieces.join(''))) return 'read ahead';
  if (isPart && isReset) return 'reset';
  let at = 0;
  while (mine[at] === reference[at]) at += 1;
  const from = Math.max(0, at - 80);
  const show = (said: string) => `${said.length} bytes, … ${said.slice(from, at + 200)}`;
  const pieces = talk.pieces.map((piece) => piece.replaceAll(/(.)\1{50,}/g, '$1…'));
  return JSON.stringify(
    { talk: { ...talk, pieces }, at, gateway: show(mine), node: show(reference) },
    null,
    2,
  );
}

/** Without what an answer says about the end of the connection. */
function withoutEnd(said: string): string {
  return said.replaceAll(/^Connection: (?:close|keep-alive\r\nKeep-Alive: timeout=5)\r\n/gm, '');
}

/** All that comes back until the server ends the connection, or says nothing for `quietMs`. */
async function hear(port: number, { pieces, waits, endsItsSide }: Talk, quietMs: number): Promise<Heard> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
  const heard: Buffer[] = [];
  const closed = new Promise((resolve) => socket.once('close', resolve));
  let quiet: NodeJS.Timeout | undefined;
  const listen = () => {
    clearTimeout(quiet);
    quiet = setTimeout(() => socket.destroy(), quietMs);
  };
  let isReset = false;
  socket.on('error', () => (isReset = true));
  socket.on('end', () => socket.end());
  socket.on('data', (chunk: Buffer) => {
    heard.push(chunk);
    if (quiet !== undefined) listen();
  });
  await once(socket, 'connect');
  const ownPort = socket.localPort ?? 0;
  for (const [nth, piece] of pieces.entries()) {
    if (socket.destroyed) break;
    socket.write(piece, 'latin1');
    await new Promise((resolve) => setTimeout(resolve, waits[nth % waits.length]));
  }
  if (endsItsSide) socket.end();
  listen();
  await closed;
  clearTimeout(quiet);
  const bytes = Buffer.concat(heard).toString('latin1');
  return { bytes: bytes.replaceAll(/^Date: .*\r\n/gm, ''), port: ownPort, isReset };
}

const oneOf = (words: readonly string[]) => fc.constantFrom(...words);
/** Null nine times out of ten. */
const seldom = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: value });
const paths = [
  ...'/ /a?b=c /a?delay=0 /a?delay=1 /a?delay=5 /a?delay=12 /text /text?delay=2 /buffer /buffer?delay=1'.split(
    ' ',
  ),
  ...'/stream /stream?delay=2 /304 /empty /empty?delay=1 /unread /unread?delay=4 /x#y //evil /* /%00%2e'.split(
    ' ',
  ),
  '/[]{}|\\^`"<>',
];
const plainHeaders = [
  'X-A: 1',
  'Accept: */*',
  'Cookie: a=b',
  'Connection: keep-alive',
  'Sec-Fetch-Dest: document',
  'constructor: x',
  `X-Long: ${'l'.repeat(3_000)}`,
];
const oddHeaders = [
  'host:b',
  'Host:',
  'Host: a, b',
  'X-A:\t2 \t',
  'Cookie: c=d; e',
  'X:',
  ': empty',
  'novalue',
  '"q": 1',
  'X(: 1',
  'Connection: close',
  'Connection: Keep-Alive, X-A',
  'Connection:',
  'Connection: Upgrade',
  'Upgrade: h2c',
  'Proxy-Connection: keep-alive',
  'Keep-Alive: timeout=99',
  'Expect: 100-continue',
  'Expect: foo',
  'Trailer: X',
  'Content-Length: 0',
  'Content-Length: 3',
  'Content-Length: +3',
  'Content-Length: 3, 3',
  'Content_Length: 3',
  'Content-Length : 3',
  ' Content-Length: 3',
  'Content-Length\t: 3',
  'TE: trailers',
  'HTTP2-Settings: x',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding: chunked, identity',
  'Transfer-Encoding:\x0bchunked',
  'Transfer_Encoding: chunked',
  'X: y\nTransfer-Encoding: chunked',
  'X: y\rTransfer-Encoding: chunked',
  ' folded',
  '\tfolded',
  'X-\xe9: 1',
  'X-B: \xe9',
  'X-B: a\0b',
  'X-C:a\x7fb',
  'X-C:a\x01b',
  '__proto__: x',
  'Set-Cookie: a',
  'set-cookie: b',
  'Range: bytes=0-1',
  'ETag: z',
  'Age: 1',
  'Date: x',
  `X-Long2: ${'l'.repeat(5_200)}`,
  `X-Huge: ${'h'.repeat(17_000)}`,
  "!#$%&'*+.^_`|~: 1",
];
const chunked = [
  '3\r\nabc\r\n0\r\n\r\n',
  '3;e=1\r\nabc\r\n0\r\n\r\n',
  '0\r\n\r\n',
  '0\r\nX: y\r\n\r\n',
  '5\r\n\r\n\r\n!\r\n0\r\n\r\n',
];
const oddBodies = [
  '3;e="\r\n"\r\nabc\r\n0\r\n\r\n',
  '3\nabc\n0\n\n',
  '0x3\r\nabc\r\n0\r\n\r\n',
  '+3\r\nabc\r\n0\r\n\r\n',
  'abc',
  '\r\n\r\n',
  '3 \r\nabc\r\n0\r\n\r\n',
  'ffffffffffffffff1\r\nabc',
  'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n',
];

const plainRequest = fc
  .tuple(oneOf(paths), fc.uniqueArray(oneOf(plainHeaders), { maxLength: 3 }))
  .map(
    ([path, headers]) => `GET ${path} HTTP/1.1\r\n${['Host: a.example', ...headers, '', ''].join('\r\n')}`,
  );

const oddRequest = fc
  .record({
    method: oneOf([
      'GET',
      'GET',
      'GET',
      'HEAD',
      'POST',
      'POST',
      'PUT',
      'OPTIONS',
      'CONNECT',
      'PRI',
      'get',
      'GET\t',
    ]),
    target: oneOf([
      ...paths,
      ...paths,
      'http://a.example/',
      '*',
      'a:80',
      '',
      '/a b',
      '/\xe9',
      `/${'u'.repeat(9_000)}`,
    ]),
    version: oneOf([...Array<string>(5).fill('1.1'), '1.0', '2.0', '1.2', '0.9', '01.1', '1.1 ']),
    headers: fc.array(oneOf([...oddHeaders, ...plainHeaders, ...Array<string>(20).fill('Host: a.example')]), {
      maxLength: 6,
    }),
    hasHost: fc.integer({ min: 0, max: 4 }).map((dice) => dice > 0),
    lineEnd: oneOf([...Array<string>(19).fill('\r\n'), '\n']),
    chunks: oneOf(chunked),
    odd: seldom(oneOf(oddBodies)),
    damage: seldom(
      fc.tuple(
        fc.nat(),
        oneOf(['\r', '\n', '\0', ' ', ':', '\r\n', '\r\n\r\n', '\xff', 'GET / HTTP/1.1\r\n']),
      ),
    ),
  })
  .map(({ method, target, version, headers, hasHost, lineEnd, chunks, odd, damage }) => {
    const lines =
      hasHost && !headers.some((line) => /^host/i.test(line)) ? ['Host: a.example', ...headers] : headers;
    const body = lines.includes('Transfer-Encoding: chunked')
      ? chunks
      : lines.includes('Content-Length: 3')
        ? 'abc'
        : '';
    const whole = `${method} ${target} HTTP/${version}${lineEnd}${[...lines, '', ''].join('\r\n')}${odd ?? body}`;
    if (damage === null) return whole;
    const at = damage[0] % whole.length;
    return whole.slice(0, at) + damage[1] + whole.slice(at + (damage[0] % 2));
  });

const conversation: fc.Arbitrary<Talk> = fc
  .record({
    plain: fc.array(plainRequest, { maxLength: 4 }),
    others: fc.array(fc.oneof(plainRequest, oddRequest), { minLength: 1, maxLength: 2 }),
    form: oneOf(['each', 'each', 'at once', 'cut']),
    cuts: fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
    waits: fc.array(fc.constantFrom(0, 0, 2, 4, 8, 20), { minLength: 1, maxLength: 5 }),
    endsItsSide: fc.boolean(),
  })
  .map(({ plain, others, form, cuts, waits, endsItsSide }) => {
    const requests = [...plain, ...others];
    const whole = requests.join('');
    const places = [0, ...cuts.map((cut) => cut % whole.length).sort((a, b) => a - b), whole.length];
    const cut = places.slice(1).map((place, at) => whole.slice(places[at], place));
    const pieces = form === 'each' ? requests : form === 'at once' ? [whole] : cut;
    return { pieces: pieces.filter((piece) => piece !== ''), waits, endsItsSide };
  })
  // What follows an upgrade that nobody makes: see above.
  .filter(
    ({ pieces }) => !/connection: upgrade/i.test(pieces.join('')) || !/\nupgrade:/i.test(pieces.join('')),
  );
