// @module-tag sql
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { minute } from '../../core/clock.ts';
import { type Database, openDatabase } from './database.ts';
import { sql } from './sql.ts';
import { postgresPool } from './postgres.ts';

/**
 * A server that lets everyone in and answers every statement with nothing, until it goes silent: the bytes arrive
 * and no answer comes, as from a host behind a firewall that forgot the connection.
 */
const deadlineMs = minute;
const sockets = new Set<Socket>();
let server: Server;
let database: Database;
let silentOn: RegExp | null;
/** SQLSTATE with which PostgreSQL refuses connections or statements. */
let refusesAll: string | null;
let refusesStatements: string | null;

const message = (type: string, body: Buffer) => {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
};
const ready = message('Z', Buffer.from('I'));
const failure = (code: string) => message('E', Buffer.from(`SERROR\0C${code}\0Mrefused\0\0`));
const welcome = Buffer.concat([message('R', Buffer.alloc(4)), ready]);
const done = Buffer.concat([message('C', Buffer.from('SELECT 0\0')), ready]);

function serve(socket: Socket) {
  sockets.add(socket);
  let isIn = false;
  socket.on('error', () => undefined);
  socket.on('close', () => sockets.delete(socket));
  socket.on('data', (data) => {
    if (refusesAll !== null) return void socket.end(failure(refusesAll));
    const answer = refusesStatements === null ? done : Buffer.concat([failure(refusesStatements), ready]);
    // The timers of this side are fake: only a statement without an answer reaches its deadline.
    if (isIn && silentOn?.test(data.toString('latin1'))) return void vi.advanceTimersByTime(deadlineMs);
    if (isIn) socket.write(answer);
    if (!isIn) socket.write(welcome);
    isIn = true;
  });
}

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  silentOn = null;
  refusesAll = null;
  refusesStatements = null;
  server = createServer(serve).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  database = openDatabase(postgresPool(`postgres://ada@127.0.0.1:${port}/db`, { max: 1, deadlineMs }));
});
afterEach(async () => {
  vi.useRealTimers();
  for (const socket of sockets) socket.destroy();
  await database.close();
  server.close();
});

const unavailable = { code: 'store_unavailable' };

test('FT-08 a server that goes silent is 503, and its connection is gone when it is back', async () => {
  await database.ping();
  silentOn = /select/;
  await expect(database.ping()).rejects.toMatchObject(unavailable);
  await expect(database.ping()).rejects.toMatchObject(unavailable);
  silentOn = null;
  await database.ping();
  await expect.poll(() => sockets.size).toBe(1);
});

test.each(['begin', 'select', 'commit'])(
  'FT-08 a server that goes silent at the %s of a transaction is 503, and the next transaction works',
  async (statement) => {
    const work = () => database.tx((tx) => sql`select 1`.run(tx));
    silentOn = new RegExp(statement);
    await expect(work()).rejects.toMatchObject(unavailable);
    silentOn = null;
    await work();
  },
);

test('FT-08 a connection that breaks inside a transaction is 503 and does not end the process', async () => {
  const broken = database.tx(async (tx) => {
    for (const socket of sockets) socket.destroy();
    await sql`select 1`.run(tx);
  });
  await expect(broken).rejects.toMatchObject(unavailable);
  await database.ping();
});

test.each([
  ['the password was changed', '28P01'],
  ['nobody may connect any more', '28000'],
  ['the database is gone', '3D000'],
  ['no place is left', '53300'],
  ['what no list knows', 'XX000'],
])('FT-04 not being let in because %s is 503, and over as soon as one is', async (_, code) => {
  refusesAll = code;
  await expect(database.ping()).rejects.toMatchObject(unavailable);
  await expect(database.tx((tx) => sql`select 1`.run(tx))).rejects.toMatchObject(unavailable);
  refusesAll = null;
  await database.ping();
});

test.each([
  ['only reads since another took its place', '25006'],
  ['is going', '57P01'],
])('FT-04 a connection to a server that %s is not used again', async (_, code) => {
  await database.ping();
  const [before] = sockets;
  refusesStatements = code;
  await expect(database.ping()).rejects.toMatchObject(unavailable);
  refusesStatements = null;
  await database.ping();
  await expect.poll(() => [...sockets].includes(before as Socket)).toBe(false);
});

test('two transactions that waited for each other: the one that was ended may be sent again, and keeps its connection', async () => {
  await database.ping();
  const before = [...sockets];
  refusesStatements = '40P01';
  await expect(database.ping()).rejects.toMatchObject(unavailable);
  refusesStatements = null;
  await database.ping();
  expect([...sockets]).toEqual(before);
});
