import { type IncomingMessage, request as httpRequest } from 'node:http';
import { Duplex } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AnswerReader } from './answer-reader.ts';

type Read = { status: number; reason: string; rawHeaders: readonly string[]; body: string };

/** What the reader makes of these pieces; null when it refuses them or the answer has no end. */
function read(pieces: readonly string[], method = 'GET'): (Read & { isKept: boolean; rest: string }) | null {
  const reader = new AnswerReader({ method, isUpgrade: false });
  const body: Buffer[] = [];
  try {
    for (const piece of pieces) if (!reader.isOver) body.push(...reader.read(Buffer.from(piece, 'latin1')));
  } catch {
    return null;
  }
  const { isKept } = reader;
  reader.end();
  if (!reader.isOver || reader.head === undefined) return null;
  return {
    ...reader.head,
    body: Buffer.concat(body).toString('latin1'),
    isKept,
    rest: reader.rest.toString(),
  };
}

/** The result of node:http for the same bytes. */
async function readByNode(pieces: readonly string[], method: string): Promise<Read | null> {
  const from = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  const request = httpRequest({ createConnection: () => from, host: 'a', method, maxHeaderSize: 65_536 });
  request.end();
  const answered = new Promise<IncomingMessage | null>((resolve) => {
    request
      .once('response', resolve)
      .once('error', () => resolve(null))
      .once('upgrade', () => resolve(null));
  });
  for (const piece of pieces) from.push(Buffer.from(piece, 'latin1'));
  from.push(null);
  const answer = await answered;
  if (answer === null) return null;
  const body = await buffer(answer).catch(() => null);
  if (body === null || !answer.complete) return null;
  const { statusCode = 0, statusMessage = '', rawHeaders } = answer;
  return { status: statusCode, reason: statusMessage, rawHeaders, body: body.toString('latin1') };
}

const ok = 'HTTP/1.1 200 OK\r\n';
const length = (body: string) => `Content-Length: ${body.length}\r\n\r\n${body}`;
const chunked = 'Transfer-Encoding: chunked\r\n\r\n';

describe('an answer', () => {
  test.each<
    [title: string, text: string, expected: Partial<NonNullable<ReturnType<typeof read>>>, method?: string]
  >([
    ['with a length', `${ok}${length('hello')}`, { body: 'hello', isKept: true, rest: '' }],
    ['without a body', `${ok}${length('')}`, { body: '', isKept: true }],
    [
      'in chunks',
      `${ok}${chunked}5\r\nhello\r\nA;x="y"\r\n0123456789\r\n0\r\n\r\n`,
      { body: 'hello0123456789', isKept: true },
    ],
    ['with trailers', `${ok}${chunked}1\r\na\r\n0\r\nX: y\r\nZ: 1\r\n\r\n`, { body: 'a', isKept: true }],
    ['to the end of the connection', `${ok}A: b\r\n\r\nall of it`, { body: 'all of it', isKept: false }],
    ['to HEAD', `${ok}Content-Length: 5\r\n\r\n`, { body: '', isKept: true }, 'HEAD'],
    [
      'that may have no body',
      'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n',
      { body: '', isKept: true },
    ],
    [
      'after interim ones',
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${ok}${length('a')}`,
      { rawHeaders: ['Content-Length', '1'], body: 'a' },
    ],
    ['that closes the connection', `${ok}Connection: x, Close\r\n${length('a')}`, { isKept: false }],
    ['of HTTP/1.0', `HTTP/1.0 200 OK\r\n${length('a')}`, { body: 'a', isKept: false }],
    [
      'with more behind it',
      `${ok}${length('a')}HTTP/1.1 200`,
      { body: 'a', isKept: false, rest: 'HTTP/1.1 200' },
    ],
    [
      'without a reason',
      `HTTP/1.1 200\r\nX: \tspaced out \t\r\n${length('')}`,
      { reason: '', rawHeaders: ['X', 'spaced out', 'Content-Length', '0'] },
    ],
    [
      'with bytes above ASCII',
      `${ok}X: \xa0caf\xe9\xa0\r\n${length('\xff\x00')}`,
      { rawHeaders: ['X', '\xa0caf\xe9\xa0', 'Content-Length', '2'], body: '\xff\x00' },
    ],
  ])('%s', (_title, text, expected, method) => {
    expect(read([text], method)).toMatchObject(expected);
    // The same byte by byte.
    expect(read(text.split(''), method)).toMatchObject({
      ...expected,
      ...(expected.rest && { isKept: true, rest: '' }),
    });
  });

  test.each<[title: string, text: string]>([
    ['no status', 'HTTP/1.1 99 Odd\r\n\r\n'],
    ['another protocol', 'HTTP/2 200 OK\r\n\r\n'],
    ['lines that end otherwise', 'HTTP/1.1 200 OK\nContent-Length: 0\n\n'],
    ['a line break in a value', `${ok}X: a\rb\r\n${length('')}`],
    ['a folded header', `${ok}X: a\r\n b\r\n${length('')}`],
    ['a name with a blank', `${ok}X : a\r\n${length('')}`],
    ['two lengths', `${ok}Content-Length: 1\r\n${length('a')}`],
    ['a list of lengths', `${ok}Content-Length: 1, 1\r\n\r\na`],
    ['a negative length', `${ok}Content-Length: -1\r\n\r\n`],
    ['a length and chunks', `${ok}Content-Length: 1\r\n${chunked}0\r\n\r\n`],
    ['another coding', `${ok}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    ['a chunk without a size', `${ok}${chunked}\r\na\r\n0\r\n\r\n`],
    ['a size with a sign', `${ok}${chunked}+1\r\na\r\n0\r\n\r\n`],
    ['a chunk that is longer than it says', `${ok}${chunked}1\r\nab\r\n0\r\n\r\n`],
    ['a protocol that was not asked for', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n'],
    ['less than its length', `${ok}Content-Length: 2\r\n\r\na`],
    ['a chunk too few', `${ok}${chunked}1\r\na\r\n`],
    ['a head without an end', `${ok}${'X: a\r\n'.repeat(20_000)}`],
    ['interim answers without an end', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(3_000)],
    ['a line without an end between two chunks', `${ok}${chunked}1;${'a'.repeat(5_000)}`],
    ['trailers without an end', `${ok}${chunked}0\r\n${'X: a\r\n'.repeat(20_000)}\r\n`],
  ])('is refused with %s', (_title, text) => {
    expect(read([text])).toBeNull();
  });

  test('small chunks are handed on in one go, and a long run of blanks is read once', () => {
    const reader = new AnswerReader({ method: 'GET', isUpgrade: false });
    expect(reader.read(Buffer.from(`${ok}${chunked}${'1\r\na\r\n'.repeat(1_000)}`))).toHaveLength(1_000);
    const blanks = `${ok}X: ${' '.repeat(60_000)}\x01\r\n\r\n`;
    // A pattern that scans the run again from each blank needs seconds for each, more than a test may take.
    for (let count = 0; count < 500; count += 1) expect(read([blanks])).toBeNull();
  });
});

test('T52 whatever arrives, and in whatever pieces: what it takes, node:http takes for the same', async () => {
  const body = fc.string({ unit: fc.constantFrom('a', '\r\n', '0', '\xe9'), maxLength: 12 });
  const line = fc.constantFrom(
    'X-A: b',
    'x-a:',
    'X-A:\t c \t',
    'Set-Cookie: a=1',
    'Set-Cookie: b=2',
    'Connection: close',
    'Connection: keep-alive',
    'Content-Length: 3',
    'Content-Length: 03',
    'Content-Length: 3, 3',
    'Content-Length: +3',
    'Content-Length:',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: Chunked',
    'Transfer-Encoding: identity',
    'Transfer-Encoding: chunked, chunked',
    'Trailer: X',
    ' folded',
    'X A: b',
    'X-A : b',
    ': b',
    'X-A: \x00',
    'X-A: \x7f',
    'X-A: \xff',
    'Upgrade: websocket',
  );
  const status = fc.constantFrom(
    'HTTP/1.1 200 OK',
    'HTTP/1.1 200 ',
    'HTTP/1.1 200',
    'HTTP/1.0 200 OK',
    'HTTP/1.1 204 No Content',
    'HTTP/1.1 304 x',
    'HTTP/1.1 404 N\xf6t',
    'HTTP/1.1 999 Odd',
    'HTTP/1.1 000 Odd',
    'HTTP/1.1  200 OK',
    'HTTP/1.1 2000',
    'http/1.1 200 OK',
    'HTTP/1.2 200 OK',
    'HTTP/1.1 101 S',
    ' HTTP/1.1 200 OK',
  );
  const interim = fc.constantFrom(
    '',
    '',
    '',
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 103 E\r\nLink: x\r\n\r\n',
    '\r\n',
  );
  const end = fc.constantFrom('\r\n', '\r\n', '\r\n', '\r\n', '\n', '\r');
  const coded = fc.oneof(
    body.map((text) => text),
    fc
      .array(fc.tuple(fc.constantFrom('', ';a', ';a=b', ' ', ' ;a', 'g', '\t'), body), { maxLength: 3 })
      .chain((chunks) =>
        fc.tuple(fc.constantFrom('', 'X: y\r\n', 'bad\r\n'), fc.constantFrom('0', '00', '0;x', '')).map(
          ([trailer, last]) =>
            `${chunks
              .filter(([, text]) => text !== '')
              .map(([more, text]) => `${text.length.toString(16)}${more}\r\n${text}\r\n`)
              .join('')}${last}\r\n${trailer}\r\n`,
        ),
      ),
  );
  const answer = fc
    .record({
      interim,
      status,
      lines: fc.array(line, { maxLength: 4 }),
      end,
      coded,
      method: fc.constantFrom('GET', 'GET', 'HEAD', 'POST'),
      isExact: fc.boolean(),
    })
    .map(({ interim: before, status: first, lines, end: by, coded: text, method, isExact }) => {
      // Most heads fit their body.
      const framed = isExact
        ? [
            ...lines.filter((one) => !/^(content-length|transfer)/i.test(one)),
            `Content-Length: ${text.length}`,
          ]
        : lines;
      return { method, text: `${before}${[first, ...framed].join(by)}${by}${by}${text}` };
    });
  let taken = 0;
  await fc.assert(
    fc.asyncProperty(answer, fc.array(fc.nat(200), { maxLength: 5 }), async ({ method, text }, cuts) => {
      const places = [0, ...cuts.filter((cut) => cut < text.length).sort((a, b) => a - b), text.length];
      const pieces = places
        .slice(1)
        .map((place, at) => text.slice(places[at], place))
        .filter((piece) => piece !== '');
      const ours = read(pieces, method);
      expect(ours?.body).toBe(read([text], method)?.body);
      if (ours === null) return;
      taken += 1;
      const { isKept: _kept, rest: _rest, ...same } = ours;
      expect(await readByNode(pieces, method)).toEqual(same);
    }),
    { numRuns: 2_000 },
  );
  // A test of refusals alone would prove nothing.
  expect(taken).toBeGreaterThan(100);
});
