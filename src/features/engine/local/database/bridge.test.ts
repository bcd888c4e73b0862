import { once } from 'node:events';
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Backend, openBackend } from './backend.ts';
import { createBridge } from './bridge.ts';
import { messageOf, queryMessage, startupPacket, syncMessage, takeFrom, takeMessage } from './messages.ts';

const password = 'password-of-the-test';
let backend: Backend;
beforeAll(async () => {
  backend = await openBackend();
});
afterAll(() => backend.close());

let bridge: Server;
let failures: unknown[];
const open: (pg.Client | Socket)[] = [];

async function start(of: Backend = backend): Promise<void> {
  failures = [];
  bridge = createBridge({
    backend: of,
    password,
    maxMessageBytes: 2 ** 20,
    onFailure: (error) => void failures.push(error),
  });
  bridge.listen(0, '127.0.0.1');
  await once(bridge, 'listening');
}
beforeEach(() => start());
afterEach(async () => {
  const closed = once(bridge, 'close');
  for (const one of open.splice(0)) {
    if (one instanceof pg.Client) await one.end();
    else one.destroy();
  }
  bridge.close();
  await closed;
  if (failures.length > 0) throw new Error('PGlite failed.', { cause: failures[0] });
});

// A listening server has a port.
const port = () => (bridge.address() as AddressInfo).port;

async function client(changes: pg.ClientConfig = {}): Promise<pg.Client> {
  const made = new pg.Client({
    host: '127.0.0.1',
    port: port(),
    user: 'postgres',
    database: 'postgres',
    password,
    ...changes,
  });
  made.on('error', () => undefined);
  await made.connect();
  open.push(made);
  return made;
}

async function rows(from: pg.Client, text: string | pg.QueryConfig): Promise<unknown[]> {
  return (await from.query<Record<string, unknown>>(text)).rows.map((row) => Object.values(row)[0]);
}

/** A connection that sends these bytes. */
function raw(...sent: Buffer[]): Socket {
  const socket = connect(port(), '127.0.0.1').on('error', () => undefined);
  open.push(socket);
  for (const one of sent) socket.write(one);
  return socket;
}

/** Messages before the first query. */
const signIn = [startupPacket({ user: 'postgres', database: 'postgres' }), messageOf('p', `${password}\0`)];

/** SQLSTATE of the last error before the connection ends. */
async function refusalOf(socket: Socket): Promise<string | undefined> {
  const said = (await buffer(socket)).toString('latin1');
  return [...said.matchAll(/C(\w{5})\0M/g)].at(-1)?.[1];
}

test('clients that use the same names of prepared statements, or none, get the rows of their own', async () => {
  const [one, two] = [await client(), await client()];
  const named = (text: string) => ({ name: 'mine', text });
  expect(await rows(one, named('select 1'))).toEqual([1]);
  expect(await rows(two, named('select 2'))).toEqual([2]);
  expect(await rows(one, named('select 1'))).toEqual([1]);
  const all = Array.from({ length: 20 }, (_, at) => at);
  const asked = all.map((at) => rows(at % 2 === 0 ? one : two, { text: 'select $1::int', values: [at] }));
  expect(await Promise.all(asked)).toEqual(all.map((at) => [at]));
});

test('a statement without a name stays that of its client while others ask', async () => {
  const first = raw(...signIn, messageOf('P', '\0select 11\0', Buffer.alloc(2)), syncMessage);
  const take = takeFrom(first);
  const until = async (type: string) => {
    for (;;) {
      const message = await takeMessage(take, 2 ** 20);
      if (message === undefined || message.toString('latin1', 0, 1) === type) return message;
    }
  };
  await until('1');
  await until('Z');
  const other = await client();
  expect(await rows(other, { text: 'select $1::int', values: [12] })).toEqual([12]);
  first.write(messageOf('B', '\0\0', Buffer.alloc(6)));
  first.write(messageOf('E', '\0', Buffer.alloc(4)));
  first.write(syncMessage);
  expect((await until('D'))?.toString('latin1')).toContain('11');
});

test('others wait while a transaction is open, and see it when it is committed', async () => {
  const [one, two] = [await client(), await client()];
  await one.query('create table waits (a int)');
  await one.query('begin');
  await one.query('insert into waits values (1)');
  let isAnswered = false;
  const asked = rows(two, 'select count(*)::int from waits').finally(() => {
    isAnswered = true;
  });
  for (let count = 0; count < 10; count += 1) await rows(one, 'select 1');
  await one.query('insert into waits values (2)');
  expect(isAnswered).toBe(false);
  await one.query('commit');
  expect(await asked).toEqual([2]);
  await one.query('drop table waits');
});

test('a transaction whose client goes is rolled back, also in the middle of a batch', async () => {
  const [one, two] = [await client(), await client()];
  await two.query('create table goes (a int)');
  await one.query('begin');
  await one.query('insert into goes values (1)');
  one.connection.stream.destroy();
  const batch = raw(...signIn, queryMessage('begin'), queryMessage('insert into goes values (2)'));
  batch.write(messageOf('P', 'half\0select nothing from nowhere\0', Buffer.alloc(2)));
  await once(batch, 'data');
  batch.end();
  expect(await rows(two, 'select count(*)::int from goes')).toEqual([0]);
  await two.query('drop table goes');
});

test('an error ends the transaction of its client alone, and the connection stays', async () => {
  const [one, two] = [await client(), await client()];
  await expect(one.query('select nothing from nowhere')).rejects.toMatchObject({ code: '42P01' });
  await expect(one.query('select $1::int', ['x'])).rejects.toMatchObject({ code: '22P02' });
  await one.query('begin');
  await expect(one.query('select 1/0')).rejects.toMatchObject({ code: '22012' });
  await expect(one.query('select 1')).rejects.toMatchObject({ code: '25P02' });
  await one.query('rollback');
  expect([await rows(one, 'select 1'), await rows(two, 'select 2')]).toEqual([[1], [2]]);
});

test('what a client set or made for its session ends with the last client', async () => {
  const one = await client();
  await one.query(`set timezone = 'Asia/Tokyo'; create temporary table mine (a int)`);
  await one.end();
  const two = await client();
  expect(await rows(two, 'show timezone')).not.toEqual(['Asia/Tokyo']);
  await expect(two.query('select * from mine')).rejects.toMatchObject({ code: '42P01' });
});

test('COPY FROM STDIN is refused, and the connection stays', async () => {
  const one = await client();
  await one.query('create table copied (a int)');
  await expect(one.query('copy copied from stdin')).rejects.toThrow('PGlite cannot COPY FROM STDIN');
  expect(await rows(one, 'select count(*)::int from copied')).toEqual([0]);
  await one.query('drop table copied');
});

test('a long answer arrives whole', async () => {
  const one = await client();
  const [text] = await rows(one, `select repeat('x', 3000000)`);
  expect(String(text)).toHaveLength(3_000_000);
});

test.each([
  ['another password', { password: 'wrong' }, '28P01'],
  ['no password', { password: '' }, '28P01'],
  ['another role', { user: 'admin' }, '28P01'],
  ['another database', { database: 'other' }, '3D000'],
])('%s is refused', async (_title, changes, code) => {
  await expect(client(changes)).rejects.toMatchObject({ code, severity: 'FATAL' });
});

test('the bridge tells a client that requires TLS that it has none', async () => {
  await expect(client({ ssl: true })).rejects.toThrow('does not support SSL');
});

test('more than 20 connections are refused, and there is place again when one ends', async () => {
  const all: pg.Client[] = [];
  for (let count = 0; count < 20; count += 1) all.push(await client());
  await expect(client()).rejects.toMatchObject({ code: '53300' });
  await all[0]?.end();
  await expect
    .poll(() =>
      client().then(
        () => 'connected',
        ({ code }) => String(code),
      ),
    )
    .toBe('connected');
});

describe('bytes that no client sends', () => {
  const length = (bytes: number) => {
    const made = Buffer.alloc(4);
    made.writeInt32BE(bytes);
    return made;
  };
  const head = (type: string, bytes: number) => Buffer.concat([Buffer.from(type), length(bytes)]);

  test.each<[title: string, sent: Buffer[], code: string | undefined]>([
    ['a request of another protocol', [Buffer.from('GET / HTTP/1.1\r\nHost: db\r\n\r\n')], '08P01'],
    ['a first packet of no length', [length(0)], '08P01'],
    ['a first packet of a negative length', [length(-1)], '08P01'],
    ['a first packet that is too long', [length(10_001)], '08P01'],
    ['a protocol of the future', [length(8), length(99 * 65_536)], '0A000'],
    [
      'a first packet without an end',
      [length(12), length(196_608), Buffer.from('user'), messageOf('p', '\0')],
      '28P01',
    ],
    [
      'encryption asked for again and again',
      Array.from({ length: 4 }, () => [length(8), length(80_877_103)]).flat(),
      '08P01',
    ],
    ['a request to cancel', [length(16), length(80_877_102), length(1), length(2)], undefined],
    ['a query in place of a password', [signIn[0] ?? length(0), queryMessage('select 1')], '28P01'],
    ['a password that is too long', [signIn[0] ?? length(0), head('p', 10_001)], '08P01'],
    ['a message of an unknown type', [...signIn, messageOf('?')], '08P01'],
    ['a byte that is no type', [...signIn, messageOf('\0')], '08P01'],
    ['a message of a negative length', [...signIn, head('Q', -1)], '08P01'],
    ['a message shorter than its length', [...signIn, head('Q', 3)], '08P01'],
    ['a message that is too long', [...signIn, head('Q', 2 ** 20 + 1)], '08P01'],
    ['a message of the greatest length', [...signIn, head('B', 2 ** 31 - 1)], '08P01'],
  ])('%s is refused, and others are not disturbed', async (_title, sent, code) => {
    const other = await client();
    expect(await refusalOf(raw(...sent))).toBe(code);
    expect(await rows(other, 'select 1')).toEqual([1]);
  });

  test.each<[title: string, type: string, body: Buffer]>([
    ['Query without an end', 'Q', Buffer.from('select 1')],
    ['Query of nothing', 'Q', Buffer.alloc(0)],
    ['Parse of nothing', 'P', Buffer.alloc(0)],
    ['Parse without text', 'P', Buffer.from('name')],
    ['Parse with a thousand types and none', 'P', Buffer.from('a\0select 1\0\x03\xe8', 'latin1')],
    ['Bind of nothing', 'B', Buffer.alloc(0)],
    ['Bind without a statement', 'B', Buffer.from('portal\0')],
    ['Bind with values that are missing', 'B', Buffer.from('\0\0\xff\xff\xff\xff\xff\xff', 'latin1')],
    ['Describe of nothing', 'D', Buffer.alloc(0)],
    ['Describe of an unknown kind', 'D', Buffer.from('?name\0')],
    ['Describe without an end', 'D', Buffer.from('Sname')],
    ['Close without an end', 'C', Buffer.from('Sname')],
    ['Execute of nothing', 'E', Buffer.alloc(0)],
    ['FunctionCall of nothing', 'F', Buffer.alloc(0)],
    ['CopyData and nothing to copy', 'd', Buffer.from('1\n')],
    ['Flush', 'H', Buffer.alloc(0)],
    ['text that is not UTF-8', 'Q', Buffer.from("select '\xff\xfe'\0", 'latin1')],
  ])('%s gets an error at most, and others are not disturbed', async (_title, type, body) => {
    const other = await client();
    const hostile = raw(...signIn, messageOf(type, body), syncMessage);
    const take = takeFrom(hostile);
    let seen = '';
    // ReadyForQuery follows the sign-in and each Sync.
    while (seen.split('Z').length < 3)
      seen += (await takeMessage(take, 2 ** 20))?.toString('latin1', 0, 1) ?? 'ZZZ';
    expect(seen).not.toContain('ZZZ');
    hostile.destroy();
    expect(await rows(other, 'select 1')).toEqual([1]);
  });
});

test('a client does not reach a statement of another by the name that it has in PGlite', async () => {
  const [one, two] = [await client(), await client()];
  await one.query({ name: 'mine', text: `select 'secret'` });
  const { rows: known } = await two.query<{ name: string }>('select name from pg_prepared_statements');
  const bind = known.map(({ name }) => messageOf('B', `\0${name}\0`, Buffer.alloc(6)));
  expect(bind.length).toBeGreaterThan(0);
  const socket = raw(...signIn, ...bind, syncMessage, messageOf('X'));
  expect(await refusalOf(socket)).toBe('26000');
});

test('PGlite that does not answer ends the process, and no client gets an answer', async () => {
  bridge.close();
  await start({ ...backend, run: async () => Buffer.alloc(0) });
  const one = await client();
  await expect(one.query('select 1')).rejects.toThrow(/terminated|ended/);
  await setImmediate();
  expect(failures.splice(0)).not.toEqual([]);
});
