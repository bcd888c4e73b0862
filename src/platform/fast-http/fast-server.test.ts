import { once } from 'node:events';
import { type RequestListener, Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { pipeline } from 'node:stream/promises';
import { text } from 'node:stream/consumers';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { minute } from '../../core/clock.ts';
import { drain } from '../drain.ts';
import { createFairServer } from '../turns.ts';
import { FastRequest, FastResponse, FastServer, type HttpListener } from './fast-server.ts';
import { readSection } from './head.ts';

const open: Server[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => drain(server, { patience: 0 })));
});

async function listening<S extends Server>(server: S): Promise<{ server: S; port: number }> {
  open.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

/** Answers with what it was asked, and counts which way requests came. */
function echo() {
  const seen = { fast: 0, slow: 0 };
  const listener: HttpListener = (request, response) => {
    seen[request instanceof FastRequest ? 'fast' : 'slow'] += 1;
    const { method, url, headers, rawHeaders } = request;
    const body = JSON.stringify({ method, url, headers, rawHeaders });
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    });
    response.end(body);
    request.resume();
  };
  return { seen, listener };
}

/** All that comes back for `pieces`, sent one after the other, until the server ends the connection. */
async function talk(port: number, pieces: readonly (string | Buffer)[]): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
  socket.on('error', () => undefined);
  const answer = text(socket).catch(() => '(cut)');
  for (const piece of pieces) {
    await new Promise<void>((resolve) => void socket.write(piece, 'latin1', () => resolve()));
    // The server reads between two turns of the event loop, so that pieces arrive as pieces.
    if (pieces.length > 1) await turn().then(() => turn());
  }
  socket.end();
  return await answer;
}

const withoutDate = (answer: string) => answer.replaceAll(/^Date: .*\r\n/gm, '');
const get = (target: string, more = '') => `GET ${target} HTTP/1.1\r\nHost: a.example\r\n${more}\r\n`;

async function both() {
  const [ours, theirs] = [echo(), echo()];
  const options = { optimizeEmptyRequests: true };
  const fast = await listening(new FastServer(options, ours.listener));
  const plain = await listening(createFairServer(options, theirs.listener as RequestListener));
  return {
    seen: ours.seen,
    ask: async (...pieces: (string | Buffer)[]) => {
      const [mine, reference] = await Promise.all([talk(fast.port, pieces), talk(plain.port, pieces)]);
      return { mine: withoutDate(mine), reference: withoutDate(reference) };
    },
  };
}

describe('what is answered without node:http', () => {
  it.each([
    ['no header but the host', get('/')],
    ['a query and odd characters', get('/a/b.html?x=%20&y=[]{}|\\^`\'"<>#frag')],
    ['headers of a browser', get('/x', 'Accept: */*\r\nCookie: a=b; c=d\r\nsec-fetch-dest:document\r\n')],
    ['blanks around a value', get('/', 'X-A: \t padded \t \r\nX-Empty:\r\nX-Blank:   \r\n')],
    ['keep-alive in any letters', get('/', 'CONNECTION: Keep-Alive\r\n')],
    ['names that objects have', get('/', 'constructor: 1\r\ntoString: 2\r\n')],
  ])('%s, and in the same bytes', async (_, request) => {
    const { ask, seen } = await both();
    const { mine, reference } = await ask(request);
    expect(seen).toEqual({ fast: 1, slow: 0 });
    expect(JSON.parse(mine.slice(mine.indexOf('{')))).toMatchObject({ method: 'GET' });
    expect(mine).toBe(reference);
  });

  it.each([
    ['another method', 'HEAD / HTTP/1.1\r\nHost: a.example\r\n\r\n'],
    ['a body', get('/', 'Content-Length: 0\r\n')],
    ['a body in chunks', `${get('/', 'Transfer-Encoding: chunked\r\n')}0\r\n\r\n`],
    ['HTTP/1.0', 'GET / HTTP/1.0\r\nHost: a.example\r\n\r\n'],
    ['no host', 'GET / HTTP/1.1\r\nAccept: */*\r\n\r\n'],
    ['two hosts', get('/', 'Host: b.example\r\n')],
    ['a header twice', get('/', 'Cookie: a=b\r\ncookie: c=d\r\n')],
    ['a header on two lines', get('/', 'X-A: one\r\n two\r\n')],
    ['a bare line feed', 'GET / HTTP/1.1\nHost: a.example\n\n'],
    ['a bare carriage return', get('/', 'X-A: one\rX-B: two\r\n')],
    ['a blank before the colon', get('/', 'X-A : one\r\n')],
    ['bytes above ASCII', get('/', 'X-A: \xe9\r\n')],
    ['a zero byte', get('/', 'X-A: \0\r\n')],
    ['an upgrade', get('/', 'Connection: Upgrade\r\nUpgrade: websocket\r\n')],
    ['the last of its connection', get('/', 'Connection: close\r\n')],
    ['the last of its connection, said to a proxy', get('/', 'Proxy-Connection: close\r\n')],
    ['an absolute target', 'GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n'],
    ['a blank line before', `\r\n${get('/')}`],
    ['two requests at once', get('/1') + get('/2')],
    ['one and a half', get('/1') + get('/2').slice(0, 20)],
    ['a head longer than the short way takes', get('/', `X-A: ${'a'.repeat(9_000)}\r\n`)],
    ['a head longer than any', get('/', `X-A: ${'a'.repeat(20_000)}\r\n`)],
    ['a name that is none', get('/', '__proto__: 1\r\n')],
    ['nonsense', 'hello\r\n\r\n'],
    ['half a request', 'GET / HTT'],
  ])('not %s: that is node:http’s', async (_, request) => {
    const { ask, seen } = await both();
    const { mine, reference } = await ask(request);
    expect(seen.fast).toBe(0);
    expect(mine).toBe(reference);
  });

  it('a connection goes over to node:http in the middle, and nothing of it is lost', async () => {
    const { seen, listener } = echo();
    const { server, port } = await listening(new FastServer({}, listener));
    const accepted: Socket[] = [];
    server.on('connection', (socket: Socket) => void accepted.push(socket));
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    const answers = text(socket);
    let sent = 0;
    for (const piece of [get('/1'), get('/2').slice(0, 9), get('/2').slice(9), get('/3')]) {
      socket.write(piece);
      sent += piece.length;
      // Read as a separate piece.
      await until(() => accepted[0]?.bytesRead === sent);
    }
    socket.end();
    expect((await answers).match(/"url":"[^"]*"/g)).toEqual(
      ['/1', '/2', '/3'].map((url) => `"url":"${url}"`),
    );
    expect(seen).toEqual({ fast: 1, slow: 2 });
  });

  it('whatever the bytes, they mean what they mean to node:http', {
    tags: 'flood',
  }, async () => {
    const { ask } = await both();
    const piece = fc.constantFrom(
      'GET / HTTP/1.1\r\n',
      'GET /a?b HTTP/1.1\r\n',
      'POST /p HTTP/1.1\r\n',
      'Host: a.example\r\n',
      'host:b\r\n',
      'Content-Length: 3\r\n',
      'Content-Length: 0\r\n',
      'Transfer-Encoding: chunked\r\n',
      '3\r\nabc\r\n0\r\n\r\n',
      'Connection: close\r\n',
      'Connection: keep-alive\r\n',
      'X-A: 1\r\n',
      'X-A:\t2 \r\n',
      ' folded\r\n',
      'Cookie: a=b\r\n',
      'Expect: 100-continue\r\n',
      '\r\n',
      '\n',
      '\r',
      ' ',
      '\t',
      ':',
      '\0',
      '\x7f',
      '\xff',
      'abc',
      'HTTP/1.1',
      '/',
    );
    const request = fc
      .tuple(fc.array(piece, { maxLength: 12 }), fc.boolean(), fc.nat(), fc.array(piece, { maxLength: 3 }))
      .map(([pieces, isPlain, at, inside]) => {
        const whole = isPlain
          ? get('/plain', pieces.filter((one) => /^[\w-]+:.*\r\n$/.test(one)).join(''))
          : pieces.join('');
        const cut = at % (whole.length + 1);
        return whole.slice(0, cut) + inside.join('') + whole.slice(cut);
      });
    await fc.assert(
      fc.asyncProperty(request, fc.nat(), async (bytes, at) => {
        const cut = at % (2 * bytes.length + 1);
        const pieces = cut < bytes.length ? [bytes.slice(0, cut), bytes.slice(cut)] : [bytes];
        const { mine, reference } = await ask(...pieces.filter((one) => one !== ''));
        expect(mine).toBe(reference);
      }),
      { numRuns: 600, seed: 20_261_122 },
    );
  });
});

it('a long run of blanks is read once', () => {
  const section = `Host: a.example\r\nX: ${' '.repeat(8_000)}\x80\r\n\r\n`;
  // A pattern that scans the run again from each blank needs a tenth of a second for each, more than a test may take.
  for (let count = 0; count < 5_000; count += 1) expect(readSection(section)).toBeUndefined();
});

describe('a connection from its beginning to its end', () => {
  const body = 'x'.repeat(100);
  const answer: HttpListener = (_request, response) => {
    response.writeHead(200, ['content-length', String(body.length)]);
    response.end(body, 'latin1');
  };

  async function dial(
    port: number,
  ): Promise<{ socket: Socket; heard: () => string; closed: Promise<unknown> }> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    let heard = '';
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => void (heard += chunk.toString('latin1')));
    const closed = once(socket, 'close');
    await once(socket, 'connect');
    return { socket, heard: () => heard, closed };
  }

  it('answers one request after the other, also when the next is sent before the answer', async () => {
    const order: string[] = [];
    const waiting: (() => void)[] = [];
    const { port } = await listening(
      new FastServer({}, (request, response) => {
        order.push(`asked ${request.url}`);
        waiting.push(() => {
          order.push(`answered ${request.url}`);
          answer(request, response);
        });
      }),
    );
    const { socket, heard, closed } = await dial(port);
    socket.write(get('/1'));
    await until(() => waiting.length === 1);
    socket.write(get('/2'));
    socket.write(get('/3'));
    // A round trip on another connection: whatever would have been read is read by then.
    const other = await dial(port);
    other.socket.write(get('/other'));
    await until(() => waiting.length === 2);
    expect(order).toEqual(['asked /1', 'asked /other']);
    waiting.shift()?.();
    await until(() => order.includes('asked /2'));
    expect(order.indexOf('asked /2')).toBeGreaterThan(order.indexOf('answered /1'));
    for (let left = 3; left > 0; left -= 1) {
      await until(() => waiting.length > 0);
      waiting.shift()?.();
    }
    await until(() => heard().split('HTTP/1.1 200').length === 4);
    socket.destroy();
    other.socket.destroy();
    await closed;
  });

  it('who sends no more still gets the answer, and the connection ends with it', async () => {
    let go: (() => void) | undefined;
    const { port } = await listening(
      new FastServer({}, (request, response) => void (go = () => answer(request, response))),
    );
    const told = talk(port, [get('/')]);
    await until(() => go !== undefined);
    go?.();
    expect(await told).toContain(body);
  });

  it('drained, it answers what is under way and says that this was the last', async () => {
    const waiting: (() => void)[] = [];
    const { server, port } = await listening(
      new FastServer({}, (request, response) => void waiting.push(() => answer(request, response))),
    );
    const [idle, busy, fresh] = [await dial(port), await dial(port), await dial(port)];
    idle.socket.write(get('/idle'));
    await until(() => waiting.length === 1);
    waiting.shift()?.();
    await until(() => idle.heard().endsWith(body));
    busy.socket.write(get('/busy'));
    await until(() => waiting.length === 1);
    const drained = drain(server, { patience: 60_000 });
    await idle.closed;
    // Its first request may have been on its way.
    fresh.socket.write(get('/fresh'));
    await until(() => waiting.length === 2);
    for (const go of waiting) go();
    await Promise.all([busy.closed, fresh.closed, drained]);
    expect(busy.heard()).toContain('Connection: keep-alive');
    expect(fresh.heard()).toContain('Connection: close');
    expect(fresh.heard()).toContain(body);
  });

  it('a long body goes as fast as the client takes it, and is cut with its connection', async () => {
    const piece = Buffer.alloc(64 * 1024, 'y');
    let given = 0;
    let closed = 0;
    const { port } = await listening(
      new FastServer({}, (_request, response) => {
        if (!(response instanceof FastResponse)) throw new Error('Not plain.');
        response.once('close', () => void (closed += 1));
        response.writeHead(200, ['content-length', String(10_000 * piece.length)]);
        const source = Readable.from(
          (function* pieces() {
            for (; given < 10_000; given += 1) yield piece;
          })(),
        );
        pipeline(source, response.body()).catch(() => undefined);
      }),
    );
    const { socket, heard } = await dial(port);
    socket.pause();
    socket.write(get('/'));
    let before = 0;
    // Until the buffers of both sides are full: nothing more is taken from the source.
    await until(() => {
      const isStill = given > 0 && given === before;
      before = given;
      return isStill;
    });
    expect(given).toBeLessThan(1_000);
    socket.resume();
    await until(() => heard().length > 5_000_000);
    socket.destroy();
    await until(() => closed === 1);
  });

  it('a body that ends early takes its connection along', async () => {
    const { port } = await listening(
      new FastServer({}, (_request, response) => {
        if (!(response instanceof FastResponse)) throw new Error('Not plain.');
        response.writeHead(200, ['content-length', '100']);
        const source = Readable.from(
          (function* pieces() {
            yield 'half';
            throw new Error('The disk is gone.');
          })(),
        );
        pipeline(source, response.body()).catch(() => undefined);
      }),
    );
    const { socket, heard, closed } = await dial(port);
    socket.write(get('/'));
    await closed;
    expect(heard()).not.toContain('HTTP/1.1 500');
  });

  it('who takes nothing of an answer is let go after the time of the server', async () => {
    const { server, port } = await listening(
      new FastServer({}, (_request, response) => {
        response.writeHead(200, ['content-length', String(64 * 1024 * 1024)]);
        response.end(Buffer.alloc(64 * 1024 * 1024));
      }),
    );
    server.setTimeout(minute);
    const accepted = once(server, 'connection');
    const { socket, closed } = await dial(port);
    socket.pause();
    socket.write(get('/'));
    await until(() => socket.readableLength > 0);
    const [atServer] = (await accepted) as [Socket];
    expect(atServer.timeout).toBe(minute);
    // Short only from here on, so that the request arrives in time.
    atServer.setTimeout(50);
    // A reset, or the end of what was sent: the connection is gone on the other side.
    await expect.poll(() => connectionsOf(server)).toBe(0);
    socket.destroy();
    await closed;
  });

  it('a connection that nobody uses is ended, not before the time it was promised', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const { server, port } = await listening(new FastServer({}, answer));
      const { socket, heard, closed } = await dial(port);
      socket.write(get('/1'));
      await until(() => heard().endsWith(body));
      expect(heard()).toContain('Keep-Alive: timeout=5');
      vi.advanceTimersByTime(5_500);
      socket.write(get('/2'));
      await until(() => heard().split('HTTP/1.1 200').length === 3);
      vi.advanceTimersByTime(5_500);
      expect(await connectionsOf(server)).toBe(1);
      vi.advanceTimersByTime(3_000);
      await closed;
    } finally {
      vi.useRealTimers();
    }
  });

  it('after an answer that took long, a connection is kept as long as it was promised', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const waiting: (() => void)[] = [];
      const { port } = await listening(
        new FastServer({}, (request, response) => void waiting.push(() => answer(request, response))),
      );
      const { socket, heard } = await dial(port);
      socket.write(get('/1'));
      await until(() => waiting.length === 1);
      vi.advanceTimersByTime(20_000);
      waiting.shift()?.();
      await until(() => heard().endsWith(body));
      vi.advanceTimersByTime(4_500);
      socket.write(get('/2'));
      await until(() => waiting.length === 1);
      expect(heard()).toContain('Keep-Alive: timeout=5');
      socket.destroy();
    } finally {
      vi.useRealTimers();
    }
  });

  it('who takes nothing does not keep an answer by sending a byte now and then', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      let isAsked = false;
      const { server, port } = await listening(
        new FastServer({}, (_request, response) => {
          isAsked = true;
          response.writeHead(200, ['content-length', String(64 * 1024 * 1024)]);
          response.end(Buffer.alloc(64 * 1024 * 1024));
        }),
      );
      const accepted: Socket[] = [];
      server.on('connection', (one: Socket) => void accepted.push(one));
      const { socket, closed } = await dial(port);
      // A write may meet the reset.
      closed.catch(() => undefined);
      socket.pause();
      socket.write(get('/'));
      await until(() => isAsked);
      for (let at = 0; at < 10 && accepted[0]?.destroyed === false; at += 1) {
        const before = accepted[0].bytesRead;
        socket.write('G');
        await until(() => accepted[0]?.bytesRead !== before);
        vi.advanceTimersByTime(1_000);
      }
      await expect.poll(() => connectionsOf(server)).toBe(0);
      socket.destroy();
    } finally {
      vi.useRealTimers();
    }
  });

  it('a value that is remembered does not keep the header section it came in', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const used = () => (collect(), process.memoryUsage().heapUsed);
    const before = used();
    const hosts = Array.from({ length: 5_000 }, (_, at) => {
      const section = Buffer.from(
        `Host: ${String(at).padStart(40, 'a')}\r\nX-A: ${'j'.repeat(7_900)}\r\n\r\n`,
      );
      return readSection(section.toString('latin1'))?.headers.host;
    });
    expect(used() - before).toBeLessThan(10_000_000);
    expect(hosts).toHaveLength(5_000);
  });

  it('who listens for the end of an answer that was sent at once hears of it too', async () => {
    const { server, port } = await listening(new FastServer({}, answer));
    const heard: string[] = [];
    server.on(
      'request',
      (request, response) => void response.once('close', () => heard.push(request.url ?? '')),
    );
    expect(await talk(port, [get('/1')])).toContain(body);
    expect(heard).toEqual(['/1']);
  });

  it('a header that node:http would not send is not sent', async () => {
    const refused: unknown[] = [];
    const { port } = await listening(
      new FastServer({}, (request, response) => {
        for (const headers of [['x-a', 'one\r\nx-b: two'], { 'x a': 'one' }, ['x-a', 'ÿĀ']]) {
          try {
            response.writeHead(200, headers);
          } catch (error) {
            refused.push(error);
          }
        }
        answer(request, response);
      }),
    );
    const answered = await talk(port, [get('/')]);
    expect(refused).toHaveLength(3);
    expect(answered).not.toContain('x-b');
  });
});

/** Unlike expect.poll, it leaves fake timers alone. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await wait(5);
}

function connectionsOf(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
  });
}
