import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { hasTooManyCookies } from './oversized-head.ts';

const host = 'host: example.com\r\n';
const cookies = `cookie: ${Array.from({ length: 60 }, (_, at) => `name${at}=${'x'.repeat(400)}`).join('; ')}\r\n\r\n`;
const longAddress = `GET /${'a'.repeat(17_000)} HTTP/1.1\r\n${host}\r\n`;
const endlessAddress = `GET /${'a'.repeat(60_000)} HTTP/1.1\r\n${host}\r\n`;
const manyCookies = `GET / HTTP/1.1\r\n${host}${cookies}`;
/** One cookie as large as a browser keeps. */
const largeCookies = `GET / HTTP/1.1\r\n${host}cookie: ${Array.from({ length: 5 }, (_, at) => `name${at}=${'x'.repeat(4_090)}`).join('; ')}\r\n\r\n`;

/** What the server says of a head that arrives in pieces, cut at these places. */
async function saidOf(head: string, cuts: readonly number[]): Promise<boolean> {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  const said = once(server, 'clientError') as Promise<[Error, Socket]>;
  const connected = once(server, 'connection') as Promise<[Socket]>;
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').setNoDelay();
  client.on('error', () => undefined);
  const [socket] = await connected;
  let from = 0;
  for (const cut of cuts) {
    client.write(head.slice(from, cut));
    await expect.poll(() => socket.bytesRead).toBe(cut);
    from = cut;
  }
  client.write(head.slice(from));
  const [error] = await said;
  socket.destroy();
  client.destroy();
  expect(error).toMatchObject({ code: 'HPE_HEADER_OVERFLOW' });
  return hasTooManyCookies(error);
}

test.each([
  ['in one piece', []],
  ['in two', [14_600]],
  ['after a few bytes', [7]],
  ['in three', [5_000, 14_600]],
  ['cut before its end', [16_300]],
])('T32 an address that is too long is never taken for cookies, %s', async (_how, cuts) => {
  expect(await saidOf(longAddress, cuts)).toBe(false);
  expect(await saidOf(endlessAddress, cuts)).toBe(false);
});

test.each([
  ['in one piece', []],
  ['in two', [14_600]],
  ['after the request line', [16]],
  ['cut before the limit', [16_300]],
])('T32 cookies that are too many are found, %s', async (_how, cuts) => {
  expect(await saidOf(manyCookies, cuts)).toBe(true);
  expect(await saidOf(largeCookies, cuts)).toBe(true);
});
