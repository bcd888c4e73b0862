import { createHash, randomBytes } from 'node:crypto';
import { memoryUsage } from 'node:process';
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  request as httpRequest,
  type Server,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { minute } from '../../src/core/clock.ts';
import { page } from '../api/sites/uploads.ts';
import { type Harness, openHarness, type Person } from '../harness.ts';
import {
  change,
  changeAccess,
  environmentCookie,
  environmentOf,
  type Made,
  type Service,
  setService,
  switchEnvironments,
} from './environment.ts';
import { browserOf, browserCookie, grantCookie } from './private.ts';

/** Processes of Environments behind a gateway that listens, over real connections. */
let h: Harness;
let ada: Person;
let port: number;
let tenant: Server;
let address: string;
type Handle = (request: IncomingMessage, response: ServerResponse) => void;
let handle: Handle;
let upgraded: (request: IncomingMessage, socket: Socket, head: Buffer) => void;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 10_000 });
  ada = await h.person('Ada', { admin: true });
  await new Promise<void>((resolve) => h.app.gateway.listen(0, '127.0.0.1', resolve));
  ({ port } = h.app.gateway.address() as AddressInfo);
  tenant = createServer((request, response) => handle(request, response));
  // Only the gateway decides when a connection is over.
  tenant.keepAliveTimeout = 0;
  tenant.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) =>
    upgraded(request, socket, head),
  );
  await new Promise<void>((resolve) => tenant.listen(0, '127.0.0.1', resolve));
  address = `127.0.0.1:${(tenant.address() as AddressInfo).port}`;
  await switchEnvironments(h, ada);
});
beforeEach(() => {
  handle = (request, response) => response.end(`${request.method} ${request.url}`);
});
afterAll(async () => {
  tenant.closeAllConnections();
  tenant.close();
  await h.close();
});

type Asked = {
  /** Port of the gateway. */
  at?: number;
  method?: string;
  path?: string;
  headers?: Record<string, string>;
  body?: string;
  cookie?: string;
};
type Heard = { status: number; headers: IncomingMessage['headers']; raw: string[]; body: string };

const nextLook = () => wait(5);
const hostOf = (made: Made, service = 'api') => new URL(made.urlOf(service)).host;

/** With `keep-alive` the gateway reads a GET itself, with `close` node:http does (decision 0032). */
let connection = 'close';

function begin(host: string, { method = 'GET', path = '/', headers = {}, cookie, at = port }: Asked = {}) {
  return httpRequest({
    host: '127.0.0.1',
    port: at,
    method,
    path,
    agent: false,
    headers: { host, connection, ...(cookie === undefined ? {} : { cookie }), ...headers },
  });
}

async function ask(host: string, asked: Asked = {}): Promise<Heard> {
  const request = begin(host, asked);
  request.end(asked.body);
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  const { statusCode = 0, headers, rawHeaders } = answer;
  return { status: statusCode, headers, raw: rawHeaders, body: await text(answer) };
}

const process = (more: Service = {}): Service => ({ kind: 'process', address, ...more });
const shown = (services: Record<string, Service> = { api: process() }) => environmentOf(h, ada, { services });

/** An Environment of members, and the cookies of a browser with a grant for one of its services. */
async function hidden(services: Record<string, Service> = { api: process() }, person = ada, service = 'api') {
  const made = await environmentOf(h, person, { access: 'members', services });
  h.clock.advance(minute);
  const browser = browserOf(h, person);
  const first = await browser.navigate(made.urlOf(service));
  const { target, code } = await browser.handOver(first.headers['location'] ?? '');
  expect((await browser.redeem(target, code)).status).toBe(303);
  return { made, cookie: browser.cookies(made.urlOf(service)) };
}

describe('a request to a process', () => {
  test.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    '%s arrives as it was sent',
    async (method) => {
      const made = await shown();
      let seen = '';
      handle = (request, response) =>
        void text(request).then((body) => {
          seen = `${request.method} ${request.url} ${body}`;
          response.writeHead(418, { 'x-own': 'yes' });
          response.end('tea');
        });
      const hasBody = ['POST', 'PUT', 'PATCH'].includes(method);
      const answer = await ask(hostOf(made), {
        method,
        path: '/a%20b?q=1',
        ...(hasBody ? { body: 'the body' } : {}),
      });
      expect([answer.status, answer.headers['x-own'], answer.body]).toEqual([
        418,
        'yes',
        method === 'HEAD' ? '' : 'tea',
      ]);
      expect(seen).toBe(`${method} /a%20b?q=1 ${hasBody ? 'the body' : ''}`);
    },
  );

  test('names its sender and its host, whatever the client claims', async () => {
    const made = await shown();
    let seen: IncomingMessage['headers'] = {};
    handle = (request, response) => {
      seen = request.headers;
      response.end();
    };
    await ask(hostOf(made), {
      headers: {
        'x-forwarded-for': '192.0.2.1',
        'x-forwarded-host': 'evil.example.com',
        'x-forwarded-prefix': '/evil',
        forwarded: 'for=192.0.2.1',
        'x-real-ip': '192.0.2.1',
        te: 'trailers',
        connection: 'close, x-hop',
        'x-hop': 'one',
        'x-own': 'yes',
        authorization: 'Bearer of-the-application',
      },
    });
    expect(seen).toMatchObject({
      host: hostOf(made),
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': hostOf(made),
      'x-forwarded-proto': 'http',
      'x-forwarded-port': '3001',
      'x-own': 'yes',
      authorization: 'Bearer of-the-application',
    });
    for (const name of ['forwarded', 'x-real-ip', 'te', 'x-hop', 'x-forwarded-prefix'])
      expect(seen[name]).toBeUndefined();
  });

  test('has none of Postern’s cookies and keys', async () => {
    const { made, cookie } = await hidden();
    expect(cookie).toContain(environmentCookie);
    let seen: string | undefined = 'nothing';
    handle = (request, response) => {
      seen = request.headers.cookie;
      response.end();
    };
    const more = `theirs=1; ${cookie}; ${grantCookie}=x; __host-POSTERN_session=y; =${browserCookie}=z; last=2`;
    expect((await ask(hostOf(made), { cookie: more })).status).toBe(200);
    expect(seen).toBe('theirs=1; last=2');
    await ask(hostOf(made), { cookie });
    expect(seen).toBeUndefined();
    const key = await h.serviceKey();
    seen = 'not asked';
    for (const headers of [{ authorization: `Bearer ${key.value}` }, { 'x-key': key.value }])
      expect((await ask(hostOf(made), { cookie, headers })).status).toBe(400);
    expect((await ask(hostOf(made), { cookie, path: `/?key=${key.value}` })).status).toBe(400);
    expect(seen).toBe('not asked');
  });

  test('is read by the gateway itself if it is plain, on a connection that also requests files', async () => {
    const made = await shown({ api: process(), web: { files: { 'index.html': page('static') } } });
    const socket = connect({ host: '127.0.0.1', port });
    let heard = '';
    socket.on('data', (chunk: Buffer) => (heard += chunk.toString()));
    let rest: ServerResponse | undefined;
    handle = (request, response) => {
      response.write(request.url ?? '');
      // The rest of the first comes when the client has its beginning.
      if (request.url === '/first') rest = response;
      else response.end(' in one go');
    };
    const fast = async () => {
      const metrics = await h.app.services.metrics.registry.metrics();
      const line = /visibility="environment",status="2xx",reader="fast"\} (\d+)/.exec(metrics);
      return Number(line?.[1] ?? 0);
    };
    const before = await fast();
    const hear = async (service: string, path: string, end: string) => {
      heard = '';
      socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostOf(made, service)}\r\n\r\n`);
      await expect.poll(() => heard).toContain(end);
    };
    await hear('web', '/', 'static');
    await hear('api', '/first', '\r\n6\r\n/first\r\n');
    rest?.end(' in chunks');
    await expect.poll(() => heard).toContain('/first\r\na\r\n in chunks\r\n0\r\n\r\n');
    await hear('api', '/second', '\r\n\r\n/second in one go');
    expect(heard).toContain('Content-Length: 17');
    await hear('web', '/', 'static');
    expect((await fast()) - before).toBe(4);
    socket.destroy();
  });

  test('that the client cancels ends at the process, with either reader', async () => {
    const made = await shown();
    for (const more of ['', 'Connection: close\r\n']) {
      const given = Promise.withResolvers<void>();
      const left = Promise.withResolvers<void>();
      handle = (request) => {
        request.once('close', left.resolve);
        given.resolve();
      };
      const socket = connect({ host: '127.0.0.1', port });
      socket.write(`GET / HTTP/1.1\r\nHost: ${hostOf(made)}\r\n${more}\r\n`);
      await given.promise;
      socket.destroy();
      await expect(left.promise).resolves.toBeUndefined();
    }
  });

  test('that waits behind another buffers only the bytes of its process', async () => {
    const made = await shown();
    let sent = 0;
    handle = (request, response) => {
      // Single bytes, each read before the next.
      const send = () => {
        if (response.destroyed || sent === 12_000) return;
        sent += 1;
        response.write('x', () => setImmediate(send));
      };
      if (request.url === '/behind') send();
    };
    const socket = connect({ host: '127.0.0.1', port });
    const asked = (path: string) => `GET ${path} HTTP/1.1\r\nHost: ${hostOf(made)}\r\n\r\n`;
    const before = memoryUsage().arrayBuffers;
    socket.write(asked('/never') + asked('/behind'));
    await expect.poll(() => sent).toBe(12_000);
    // 64 KiB for each read would be some 250 MiB.
    expect((memoryUsage().arrayBuffers - before) / 1_048_576).toBeLessThan(60);
    socket.destroy();
  });

  test('waits behind the previous one on its connection', async () => {
    const made = await shown();
    const waiting: ServerResponse[] = [];
    handle = (_request, response) => void waiting.push(response);
    const socket = connect({ host: '127.0.0.1', port });
    let heard = '';
    socket.on('data', (chunk: Buffer) => (heard += chunk.toString()));
    const plain = (path: string) => `GET ${path} HTTP/1.1\r\nHost: ${hostOf(made)}\r\n\r\n`;
    socket.write(plain('/1'));
    await expect.poll(() => waiting.length).toBe(1);
    socket.write(plain('/2'));
    await new Promise((resolve) => setImmediate(resolve));
    expect(waiting).toHaveLength(1);
    waiting[0]?.end('first');
    await expect.poll(() => waiting.length).toBe(2);
    waiting[1]?.end('second');
    await expect.poll(() => heard).toMatch(/first[^]*second/);
    socket.destroy();
  });

  test('streams both ways: the process reads the beginning of a body before its end, and so does the client of an answer', async () => {
    const made = await shown();
    handle = (request, response) => request.pipe(response);
    const request = begin(hostOf(made), { method: 'POST' });
    request.write('first');
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    const [chunk] = (await once(answer, 'data')) as [Buffer];
    expect(chunk.toString()).toBe('first');
    request.end('last');
    expect(await text(answer)).toBe('last');
  });

  test('has a framed body even without a length, for any method: it is no second request on a shared connection', async () => {
    const made = await shown();
    const seen: string[] = [];
    handle = (request, response) =>
      void text(request).then((body) => {
        seen.push(`${request.method} ${request.url} ${body}`);
        response.end('ok');
      });
    const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
    for (const method of ['DELETE', 'GET', 'OPTIONS']) {
      const request = begin(hostOf(made), { method, headers: { 'transfer-encoding': 'chunked' } });
      request.end(smuggled);
      const [answer] = (await once(request, 'response')) as [IncomingMessage];
      expect(await text(answer)).toBe('ok');
      await ask(hostOf(made), { path: '/next' });
    }
    expect(seen).toEqual(
      ['DELETE', 'GET', 'OPTIONS'].flatMap((method) => [`${method} / ${smuggled}`, 'GET /next ']),
    );
  });

  test.each(['GET', 'POST', 'DELETE'])(
    'T52 keeps its framing, whatever the client sends: %s',
    async (method) => {
      const made = await shown();
      const seen: string[] = [];
      handle = (request, response) =>
        void text(request).then((body) => {
          seen.push(`${request.method} ${request.url} ${body.length}`);
          response.end();
        });
      const body = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n';
      const headers = { connection: 'close, Content-Length, Host', 'content-length': String(body.length) };
      expect((await ask(hostOf(made), { method, headers, body })).status).toBe(200);
      expect((await ask(hostOf(made), { path: '/next' })).status).toBe(200);
      expect(seen).toEqual([`${method} / ${body.length}`, 'GET /next 0']);
    },
  );

  test('with a body opens no WebSocket, and its body is no second request', async () => {
    const made = await shown();
    const seen: string[] = [];
    handle = (request, response) => {
      seen.push(`${request.url} ${request.headers.upgrade ?? 'plain'}`);
      request.resume();
      response.end('heard');
    };
    const socket = connect({ host: '127.0.0.1', port });
    let heard = '';
    socket.on('data', (chunk: Buffer) => (heard += chunk.toString()));
    socket.write(
      `GET /first HTTP/1.1\r\nHost: ${hostOf(made)}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    );
    await expect.poll(() => heard).toContain('heard');
    for (let count = 0; count < 5; count += 1)
      expect((await ask(hostOf(made), { path: '/next' })).status).toBe(200);
    expect(seen).toEqual(['/first plain', ...Array.from({ length: 5 }, () => '/next plain')]);
    socket.destroy();
  });

  test('for an event stream gets the head before the first event', async () => {
    const made = await shown();
    let send: (line: string) => void = () => undefined;
    handle = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.flushHeaders();
      send = (line) => void response.write(line);
    };
    const request = begin(hostOf(made));
    request.end();
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    expect(answer.headers['content-type']).toBe('text/event-stream');
    send('data: 1\n\n');
    expect(String((await once(answer, 'data'))[0])).toBe('data: 1\n\n');
    request.destroy();
  });
});

describe.each(['close', 'keep-alive'])('an answer of a process (%s)', (kept) => {
  beforeAll(() => (connection = kept));
  afterAll(() => (connection = 'close'));
  const headers = {
    'set-cookie': [
      'own=1; Path=/; Domain=sites.localhost; HttpOnly',
      `${environmentCookie}=forged; Path=/`,
      ` =${grantCookie}=forged; Path=/`,
      'other=2; domain=.example.com',
    ],
    'clear-site-data': '"cookies"',
    'cache-control': 'public, max-age=31536000',
    'cdn-cache-control': 'max-age=60',
    expires: 'Thu, 01 Jan 2099 00:00:00 GMT',
    'service-worker-allowed': '/',
    'x-robots-tag': 'all',
    'strict-transport-security': 'max-age=63072000; includeSubDomains; preload',
    'alt-svc': 'h3=":443"',
    'keep-alive': 'timeout=99',
    'X-Accel-Redirect': '/internal/key.txt',
    'x-accel-limit-rate': '1',
    'X-Sendfile': '/etc/passwd',
    'x-litespeed-location': '/internal/key.txt',
    'x-reproxy-url': 'http://127.0.0.1/',
    'x-lighttpd-send-file': '/etc/passwd',
    'edge-control': 'max-age=60',
    'surrogate-control': 'max-age=60',
    nel: '{"report_to":"x","max_age":60}',
    'report-to': '{"group":"x","max_age":60,"endpoints":[]}',
  };

  test('sets no cookie of other hosts or of Postern, and clears nothing', async () => {
    const made = await shown();
    handle = (_request, response) => void response.writeHead(200, headers).end('x');
    const answer = await ask(hostOf(made));
    expect(answer.headers['set-cookie']).toEqual(['own=1; Path=/; HttpOnly', 'other=2']);
    expect(answer.headers).toMatchObject({
      'cache-control': headers['cache-control'],
      'x-robots-tag': 'noindex',
    });
    for (const name of ['clear-site-data', 'strict-transport-security', 'alt-svc'])
      expect(answer.headers[name]).toBeUndefined();
  });

  test('gives no command to the proxy in front, and has no reports sent', async () => {
    const made = await shown();
    handle = (_request, response) => void response.writeHead(200, headers).end('x');
    const { 'x-accel-buffering': buffering, ...answered } = (await ask(hostOf(made))).headers;
    expect(buffering).toBe('no');
    const commands = /^(x-(accel|sendfile|litespeed|reproxy|lighttpd)|edge-|surrogate-|nel|report-to)/;
    expect(Object.keys(answered).filter((name) => commands.test(name))).toEqual([]);
  });

  test('is not cached and allows no service worker, unless the Environment is public', async () => {
    const { made, cookie } = await hidden();
    handle = (_request, response) => void response.writeHead(200, headers).end('x');
    const answer = await ask(hostOf(made), { cookie });
    expect(answer.headers).toMatchObject({
      'cache-control': 'private, no-store',
      'cdn-cache-control': 'no-store',
      'x-robots-tag': 'noindex',
    });
    for (const name of ['expires', 'service-worker-allowed', 'clear-site-data'])
      expect(answer.headers[name]).toBeUndefined();
    const worker = await ask(hostOf(made), { cookie, headers: { 'service-worker': 'script' } });
    expect(worker.status).toBe(403);
  });

  test('is 502 when the process ends during the request, and is cut, never shortened, when it ends later', async () => {
    const made = await shown();
    handle = (request) => void request.socket.destroy();
    const refused = await ask(hostOf(made));
    expect([refused.status, refused.body]).toEqual([502, expect.stringContaining('did not answer')]);
    handle = (request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('a part', () => request.socket.destroy());
    };
    await expect(ask(hostOf(made))).rejects.toThrow('aborted');
  });

  test('that arrives before the end of the upload reaches the client', async () => {
    const made = await shown();
    handle = (request, response) => {
      response.writeHead(413, { connection: 'close' });
      response.end('too large', () => request.socket.destroySoon());
    };
    const request = begin(hostOf(made), { method: 'POST' });
    request.on('error', () => undefined);
    request.write('a'.repeat(100_000));
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    expect([answer.statusCode, await text(answer)]).toEqual([413, 'too large']);
    request.destroy();
  });

  test.each(['/length', '/chunks'])(
    'arrives unchanged, however slowly the client takes it (%s)',
    async (path) => {
      const made = await shown();
      const bytes = randomBytes(24 * 1_048_576);
      let sent = 0;
      handle = (request, response) => {
        if (request.url === '/length') response.setHeader('Content-Length', bytes.length);
        // Small pieces, each read before the next: several can wait for the client at the same time.
        const send = () => {
          if (sent >= bytes.length) return void response.end();
          const piece = bytes.subarray(sent, sent + 9_973);
          sent += piece.length;
          response.write(piece, () => setImmediate(send));
        };
        send();
      };
      const request = begin(hostOf(made), { path });
      request.end();
      const [answer] = (await once(request, 'response')) as [IncomingMessage];
      const hash = createHash('sha256');
      let taken = 0;
      for await (const piece of answer as AsyncIterable<Buffer>) {
        hash.update(piece);
        taken += piece.length;
        // Reads on when all buffers between here and the process are full.
        for (let before = -1; taken < bytes.length / 4 && sent !== before; await nextLook()) before = sent;
      }
      expect(hash.digest('hex')).toBe(createHash('sha256').update(bytes).digest('hex'));
    },
  );

  test.each([
    'HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n',
    'HTTP/1.1 101 Switching\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    'HTTP/1.1 200 OK\r\nBad header\r\n\r\n',
    'SSH-2.0-OpenSSH\r\n',
  ])('that is invalid is 502: %j', async (bytes) => {
    const odd = createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.end(bytes, 'latin1'));
    });
    await new Promise<void>((resolve) => odd.listen(0, '127.0.0.1', resolve));
    const made = await shown({
      api: process({ address: `127.0.0.1:${(odd.address() as AddressInfo).port}` }),
    });
    expect((await ask(hostOf(made))).status).toBe(502);
    odd.close();
  });

  test('is 502 when nothing listens at the address', async () => {
    const gone = createServer();
    await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve));
    const { port: closed } = gone.address() as AddressInfo;
    await new Promise((resolve) => gone.close(resolve));
    const made = await shown({ api: process({ address: `127.0.0.1:${closed}` }) });
    expect((await ask(hostOf(made))).status).toBe(502);
    // The next start of the process has another address.
    await setService(h, made.id, 'api', { address });
    expect((await ask(hostOf(made))).status).toBe(200);
    await setService(h, made.id, 'api', { address: null, status: 'starting' });
    expect((await ask(hostOf(made))).status).toBe(503);
  });

  test('arrives although the process closed the idle connection meanwhile', async () => {
    const made = await shown();
    const sockets = new Set<Socket>();
    let first = true;
    handle = (request, response) => {
      sockets.add(request.socket);
      // The second request on a connection finds it closing.
      if (!first && sockets.size === 1) return void request.socket.resetAndDestroy();
      first = false;
      response.end('here');
    };
    expect((await ask(hostOf(made))).body).toBe('here');
    const again = await ask(hostOf(made));
    expect([again.status, again.body, sockets.size]).toEqual([200, 'here', 2]);
  });
});

describe.each(['close', 'keep-alive'])('a connection to a process (%s)', (kept) => {
  beforeAll(() => (connection = kept));
  afterAll(() => (connection = 'close'));
  /** The connections on which `count` requests arrive, one after the other. */
  async function used(host: string, count: number, handler: Handle): Promise<Set<Socket>> {
    const sockets = new Set<Socket>();
    handle = (request, response) => {
      sockets.add(request.socket);
      handler(request, response);
    };
    for (let at = 0; at < count; at += 1) await ask(host);
    return sockets;
  }

  test('carries one request after the other', async () => {
    const made = await shown();
    expect((await used(hostOf(made), 3, (_request, response) => response.end('x'))).size).toBe(1);
    const chunked: Handle = (_request, response) => void (response.write('a'), response.end('b'));
    expect((await used(hostOf(made), 3, chunked)).size).toBe(1);
  });

  test('is not reused when the process is about to close it', async () => {
    const made = await shown();
    const soon: Handle = (_request, response) => response.writeHead(200, { 'keep-alive': 'timeout=1' }).end();
    expect((await used(hostOf(made), 2, soon)).size).toBe(2);
  });

  test('carries no request behind an upload that the process did not wait for', async () => {
    const made = await shown();
    const sockets: Socket[] = [];
    handle = (request, response) => {
      sockets.push(request.socket);
      response.end('early');
    };
    const upload = begin(hostOf(made), { method: 'POST', headers: { 'content-length': '100' } });
    upload.on('error', () => undefined);
    upload.write('GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n');
    const [answer] = (await once(upload, 'response')) as [IncomingMessage];
    expect(await text(answer)).toBe('early');
    expect((await ask(hostOf(made))).body).toBe('early');
    expect(sockets).toHaveLength(2);
    expect(sockets[1]).not.toBe(sockets[0]);
    upload.destroy();
  });
});

describe('routes', () => {
  test('the longest matching path of whole segments leads to a sibling, under the same host and grant', async () => {
    const { made, cookie } = await hidden(
      {
        web: {
          files: { 'index.html': page('static'), 'apis.html': page('apis') },
          routes: { '/api': 'api', '/api/v2': 'second', '/nothing': 'missing' },
        },
        api: process({ isExposed: false }),
        second: process({ isExposed: false, address: null, status: 'starting' }),
      },
      ada,
      'web',
    );
    const host = hostOf(made, 'web');
    const open = async (path: string, method = 'GET') => {
      const { status, body } = await ask(host, { path, method, cookie });
      return [status, body];
    };
    expect(await open('/')).toEqual([200, page('static')]);
    expect(await open('/apis')).toEqual([200, page('apis')]);
    expect(await open('/api')).toEqual([200, 'GET /api']);
    expect(await open('/api?x=1', 'POST')).toEqual([200, 'POST /api?x=1']);
    expect(await open('/api/orders')).toEqual([200, 'GET /api/orders']);
    expect(await open('/api/v2/orders')).toEqual([503, expect.stringContaining('second is starting')]);
    expect(await open('/api/v22')).toEqual([200, 'GET /api/v22']);
    expect((await open('/nothing'))[0]).toBe(404);
    expect((await ask(host, { path: '/api' })).status).toBe(303);
    expect((await ask(hostOf(made), { path: '/', method: 'POST', cookie })).status).toBe(401);
  });
});

/** A connection that switched to another protocol. */
async function upgrade(host: string, asked: Asked = {}, at = port) {
  const request = begin(host, {
    at,
    ...asked,
    headers: {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      ...asked.headers,
    },
  });
  request.end();
  const outcome = await Promise.race([
    once(request, 'upgrade').then(([answer, socket, head]) => ({ answer, socket, head })),
    once(request, 'response').then(([answer]) => ({ answer, socket: undefined, head: '' })),
  ]);
  return outcome as { answer: IncomingMessage; socket: Socket | undefined; head: Buffer };
}

describe('a WebSocket', () => {
  beforeEach(() => {
    upgraded = (request, socket) => {
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\nSet-Cookie: ${environmentCookie}=forged\r\nX-Seen: ${request.headers.cookie ?? 'no cookie'}\r\n\r\nhello`,
      );
      socket.on('error', () => undefined);
      socket.pipe(socket);
    };
  });

  test('passes bytes both ways, with the grant and without our cookie', async () => {
    const { made, cookie } = await hidden();
    const { answer, socket, head } = await upgrade(hostOf(made), { cookie });
    expect(answer.statusCode).toBe(101);
    expect(answer.headers).toMatchObject({ 'sec-websocket-accept': 'x', 'x-seen': 'no cookie' });
    expect(answer.headers['set-cookie']).toBeUndefined();
    let heard = head.toString();
    socket?.on('data', (chunk: Buffer) => (heard += chunk.toString()));
    await expect.poll(() => heard).toBe('hello');
    socket?.write('a message');
    await expect.poll(() => heard).toBe('helloa message');
    socket?.destroy();
  });

  test('is refused without a grant, to a page of another origin, and at a site', async () => {
    const { made, cookie } = await hidden();
    expect((await upgrade(hostOf(made))).answer.statusCode).toBe(401);
    const foreign = { origin: 'http://evil.sites.localhost:3001' };
    expect((await upgrade(hostOf(made), { cookie, headers: foreign })).answer.statusCode).toBe(401);
    const own = { origin: `http://${hostOf(made)}` };
    const there = await upgrade(hostOf(made), { cookie, headers: own });
    expect(there.answer.statusCode).toBe(101);
    there.socket?.destroy();
    const files = await shown({ web: { files: { 'index.html': page('static') } } });
    expect((await upgrade(hostOf(files, 'web'))).answer.statusCode).toBe(200);
  });

  test('is the only protocol that a client can switch to', async () => {
    const made = await shown();
    let seen: IncomingMessage['headers'] = {};
    handle = (request, response) => {
      seen = request.headers;
      response.end();
    };
    const { answer } = await upgrade(hostOf(made), { headers: { upgrade: 'h2c' } });
    expect([answer.statusCode, seen.upgrade]).toEqual([200, undefined]);
  });

  test('is refused if the process refuses it', async () => {
    const made = await shown();
    upgraded = (_request, socket) =>
      void socket.end('HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno');
    const { answer } = await upgrade(hostOf(made));
    expect([answer.statusCode, await text(answer)]).toEqual([426, 'no']);
  });
});

describe.each(['close', 'keep-alive'])('a connection under way is cut (%s)', (kept) => {
  beforeAll(() => (connection = kept));
  afterAll(() => (connection = 'close'));
  type Ending = [what: string, end: (made: Made, person: Person) => Promise<unknown>];
  const endings: Ending[] = [
    ['the access changes', (made) => changeAccess(h, made, 'owner')],
    ['the Environment is torn down', (made) => change(h, made.id, { status: 'tearing_down' })],
    ['Environments are switched off', () => switchEnvironments(h, ada, { enabled: false })],
    [
      'the person is disabled',
      (_made, person) => h.call('PATCH', `/users/${person.user.id}`, { as: ada, body: { enabled: false } }),
    ],
    [
      'the session behind the grant ends',
      (_made, person) =>
        h.app.services.identity.sessions.end(
          {
            actor: { kind: 'system', id: null, name: 'test', credential: null },
            origin: { requestId: null, address: null, agent: null },
          },
          person.sessionId,
          'signed_out',
        ),
    ],
  ];
  let count = 0;

  test.each(endings)(
    'within one check, when %s: an answer, an upload and a WebSocket',
    async (_what, end) => {
      count += 1;
      const person = await h.person(`Person${count}${kept}`);
      const { made, cookie } = await hidden({ api: process() }, person);
      const uploads: Promise<unknown>[] = [];
      handle = (request, response) => {
        if (request.method === 'POST') uploads.push(new Promise((resolve) => request.once('close', resolve)));
        else response.write('for ever');
      };
      upgraded = (_request, socket) => {
        socket.on('error', () => undefined);
        socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
      };
      const download = begin(hostOf(made), { cookie });
      download.end();
      const [answer] = (await once(download, 'response')) as [IncomingMessage];
      answer.resume();
      const upload = begin(hostOf(made), { method: 'POST', cookie });
      upload.on('error', () => undefined);
      upload.write('a part');
      await expect.poll(() => uploads.length).toBe(1);
      const { socket } = await upgrade(hostOf(made), { cookie });
      socket?.on('error', () => undefined);
      // A socket that nothing reads does not notice its end.
      socket?.resume();
      const closed = Promise.all([
        once(answer, 'error'),
        new Promise((resolve) => upload.once('close', resolve)),
        new Promise((resolve) => socket?.once('close', resolve)),
        ...uploads,
      ]);
      await end(made, person);
      await h.app.services.feed.poll();
      await h.settle();
      await h.app.jobs.runNow('environment-streams');
      await closed;
      await switchEnvironments(h, ada);
    },
  );

  test('unless it belongs to another person or is still allowed', async () => {
    const { made, cookie } = await hidden();
    upgraded = (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
      socket.pipe(socket);
    };
    const { socket } = await upgrade(hostOf(made), { cookie });
    let heard = '';
    socket?.on('data', (chunk: Buffer) => (heard += chunk.toString()));
    const other = await h.person(`Ivy ${kept}`);
    await h.call('PATCH', `/users/${other.user.id}`, { as: ada, body: { enabled: false } });
    await h.settle();
    await h.app.jobs.runNow('environment-streams');
    socket?.write('still here');
    await expect.poll(() => heard).toContain('still here');
    socket?.destroy();
  });
});

test('when the gateway stops: it ends WebSockets, so that it need not wait for them', async () => {
  const other = await h.another();
  await new Promise<void>((resolve) => other.app.gateway.listen(0, '127.0.0.1', resolve));
  const made = await shown();
  upgraded = (_request, socket) => {
    socket.on('error', () => undefined);
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
  };
  const { port: its } = other.app.gateway.address() as AddressInfo;
  await other.app.services.feed.poll();
  const { socket } = await upgrade(hostOf(made), {}, its);
  const ended = new Promise((resolve) => socket?.once('close', resolve));
  socket?.on('error', () => undefined);
  socket?.resume();
  await Promise.all([other.close(), ended]);
  expect(other.app.gateway.listening).toBe(false);
});
