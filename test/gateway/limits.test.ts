import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { minute, second } from '../../src/core/clock.ts';
import { page, upload } from '../api/sites/uploads.ts';
import { type Harness, openHarness, type Person } from '../harness.ts';
import { browserOf, privateSite } from './private.ts';

/** A gateway that takes few requests in a minute, so that a test can send more. */
const gatewayLimits = { perAddress: 5, perHost: 12 };
let h: Harness;
let ada: Person;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 10_000, gatewayLimits });
  ada = await h.person('Ada');
  await new Promise<void>((resolve) => h.app.gateway.listen(0, '127.0.0.1', resolve));
});
afterAll(() => h.close());

async function publicSite(): Promise<string> {
  const made = await upload(h, ada, { 'index.html': page('x') }, { visibility: 'public' });
  return made.data.url;
}

/** The answers to as many requests, one after another; `from(n)` is where the nth comes from. */
async function ask(url: string, times: number, from: (nth: number) => string) {
  const answers = [];
  for (let nth = 0; nth < times; nth += 1) answers.push(await h.open(url, { from: from(nth) }));
  return answers;
}
const statuses = (answers: Awaited<ReturnType<typeof ask>>) => answers.map(({ statusCode }) => statusCode);
const times = (count: number, status: number) => Array.from({ length: count }, () => status);

test('an address with too many requests gets 429 with Retry-After at every site; other addresses are served', async () => {
  const [one, other] = [await publicSite(), await publicSite()];
  const flood = () => '192.0.2.1';
  h.clock.advance(minute + second);
  expect(statuses(await ask(one, 5, flood))).toEqual(times(5, 200));
  h.clock.advance(20 * second);
  const [excess] = await ask(one, 1, flood);
  expect([excess?.statusCode, excess?.payload]).toEqual([429, 'Too many requests.\n']);
  const wait = Number(excess?.headers['retry-after']);
  expect([wait > 39, wait <= 41]).toEqual([true, true]);
  expect(statuses(await ask(other, 1, flood))).toEqual([429]);
  expect(statuses(await ask(one, 1, () => '192.0.2.2'))).toEqual([200]);
  h.clock.advance(wait * second);
  expect(statuses(await ask(one, 1, flood))).toEqual([200]);
});

test('a site with too many requests in total gets 429, and other sites are served', async () => {
  const [one, other] = [await publicSite(), await publicSite()];
  h.clock.advance(minute + second);
  expect(statuses(await ask(one, 12, (nth) => `198.51.100.${nth}`))).toEqual(times(12, 200));
  const [excess] = await ask(one, 1, () => '203.0.113.1');
  expect(excess?.statusCode).toBe(429);
  expect(Number(excess?.headers['retry-after'])).toBeGreaterThan(50);
  expect(statuses(await ask(other, 1, () => '203.0.113.1'))).toEqual([200]);
  h.clock.advance(minute + second);
  expect(statuses(await ask(one, 1, () => '203.0.113.1'))).toEqual([200]);
});

test.each([
  ['one request after the other', 1],
  ['many requests at once', 100],
])('a 429 ends the connection of a client that sends %s', async (_what, atOnce) => {
  const { host } = new URL(await publicSite());
  const { port } = h.app.gateway.address() as AddressInfo;
  h.clock.advance(minute + second);
  await h.app.services.feed.poll();
  const socket = connect({ host: '127.0.0.1', port });
  const request = `GET / HTTP/1.1\r\nhost: ${host}\r\n\r\n`.repeat(atOnce);
  let heard = '';
  socket.on('data', (chunk: Buffer) => {
    heard += chunk.toString();
    if (atOnce === 1) socket.write(request);
  });
  socket.on('error', () => undefined);
  socket.write(request);
  await once(socket, 'close');
  expect(heard.match(/HTTP\/1\.1 \d+/g)).toEqual(
    [...times(5, 200), 429].map((status) => `HTTP/1.1 ${status}`),
  );
  expect(heard.slice(heard.indexOf('HTTP/1.1 429')).toLowerCase()).toContain('connection: close');
});

test('a limit of 0 means no limit', async () => {
  const free = await openHarness({ changesPerMinute: 10_000, gatewayLimits: { perAddress: 0, perHost: 0 } });
  const made = await upload(
    free,
    await free.person('Bob'),
    { 'index.html': page('x') },
    { visibility: 'public' },
  );
  for (let count = 0; count < 20; count += 1)
    expect((await free.open(made.data.url, { from: '192.0.2.1' })).statusCode).toBe(200);
  await free.close();
});

test('the limits also apply to private sites and to unknown names', async () => {
  const site = await privateSite(h, ada);
  const nowhere = site.url.replace(site.label, 'p-aaaaaaaaaaaaaaaaa');
  for (const url of [site.url, nowhere, 'http://sites.localhost:3001/']) {
    h.clock.advance(minute + second);
    const answers = statuses(await ask(url, 6, () => '192.0.2.9'));
    expect([url, answers.slice(0, 5).includes(429), answers[5]]).toEqual([url, false, 429]);
  }
  h.clock.advance(minute + second);
  const inside = browserOf(h, ada);
  expect((await inside.open(site.url)).status).toBe(200);
});
