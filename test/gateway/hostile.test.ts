import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { day, systemClock } from '../../src/core/clock.ts';
import { createOpenStreams } from '../../src/surfaces/gateway/open-streams.ts';
import { createPipeline, type GatewayDeps } from '../../src/surfaces/gateway/pipeline.ts';
import { sendFile } from '../../src/surfaces/gateway/send.ts';
import { type Harness, openHarness, type Person } from '../harness.ts';
import { page, replace, upload } from '../api/sites/uploads.ts';
import { navigation } from './private.ts';

/** What an attacker without any right tries at the gateway, and at the pages that lead to it. */
let h: Harness;
let ada: Person;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 10_000 });
  ada = await h.person('Ada');
});
afterAll(() => h.close());

test('T20 files that were replaced while a site was private are not reachable when it becomes public', async () => {
  const files = { 'index.html': page('one'), 'salaries-20260101.csv': 'ada,1' };
  const made = await upload(h, ada, files, { visibility: 'private' });
  await replace(h, ada, made.data.id, { 'index.html': page('two'), 'app.3f9c2a71.js': '1' });
  h.clock.advance(1_000);
  const { data } = await h.call('PATCH', `/sites/${made.data.id}`, {
    as: ada,
    body: { visibility: 'public' },
  });
  expect((await h.open(`${data.url}salaries-20260101.csv`)).statusCode).toBe(404);
  // What was live at this address stays within reach for a while.
  await replace(h, ada, made.data.id, { 'index.html': page('three') });
  expect((await h.open(`${data.url}app.3f9c2a71.js`)).statusCode).toBe(200);
});

test.each(['/s/%00', '/s/%00%00', '/sites/open?label=%00&binding=x&ticket=x'])(
  '%s gets 404, and is no failure of the server',
  async (path) => {
    const nobody = await h.call('GET', path, { headers: navigation });
    const someone = await h.call('GET', path, { as: ada, headers: navigation });
    expect([nobody.status, someone.status]).toEqual([303, path.startsWith('/sites') ? 403 : 404]);
  },
);

test('an idle connection is cut, even in the middle of an answer', () => {
  expect(h.app.gateway.timeout).toBe(30_000);
});

test('a host that cannot be a label is not cached by its name', () => {
  const limited = vi.fn<GatewayDeps['limited']>(() => null);
  const { respond: serve } = createPipeline({
    contentUrl: 'https://sites.example.com',
    environmentsContentUrl: 'https://sites.example.com',
    limited,
    isEnabled: () => true,
    isInformed: () => true,
    exposures: { mentions: () => false, report: () => undefined },
    count: () => undefined,
    clock: systemClock,
    catalog: { find: () => undefined },
  } as unknown as GatewayDeps);
  const response = { writeHead: () => undefined, end: () => undefined } as unknown as ServerResponse;
  for (const label of ['x'.repeat(10_000), 'abcdefghijklmnopq']) {
    const rawHeaders = ['Host', `${label}.sites.example.com`];
    const request = { rawHeaders, headers: {}, url: '/', method: 'GET', resume: () => undefined };
    serve(request as unknown as IncomingMessage, response);
  }
  expect(limited.mock.calls.map(([, label]) => label)).toEqual([null, 'abcdefghijklmnopq']);
});

test('a private body is cut when its site changed between the check and its first byte', async () => {
  const streams = createOpenStreams({
    subscribe: () => undefined,
    topic: 'site',
    epochOf: async () => 2,
    isEnabled: () => true,
    readEnabled: async () => true,
  });
  const destroy = vi.fn<() => void>();
  const leave = streams.enter(destroy, { targetId: 's', label: 'p-a', epoch: 1, msLeft: 60_000 });
  await expect.poll(() => destroy).toHaveBeenCalledOnce();
  leave();
  const later = streams.enter(destroy, { targetId: 's', label: 'p-a', epoch: 2, msLeft: 60_000 });
  await Promise.resolve();
  later();
  expect(destroy).toHaveBeenCalledOnce();
});

test('each body is cut at its time limit, and all when the switch cannot be read', async () => {
  vi.useFakeTimers();
  try {
    let isAway = true;
    let tell = (_change: { topic: string; subject: string }) => undefined as void;
    const streams = createOpenStreams({
      subscribe: (listener) => (tell = listener),
      topic: 'site',
      epochOf: () => 1,
      isEnabled: () => true,
      readEnabled: () =>
        isAway ? Promise.reject(new Error('The database is unavailable.')) : Promise.resolve(false),
    });
    const cut: string[] = [];
    const begin = (name: string, msLeft: number) =>
      streams.enter(() => void cut.push(name), {
        targetId: 's',
        label: 'a',
        epoch: 1,
        msLeft,
      });
    begin('endless', Infinity);
    begin('long', 40 * day);
    const soon = begin('soon', 5_000);
    const sooner = begin('sooner', 1_000);
    begin('done', 2_000)();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(cut).toEqual(['sooner']);
    sooner();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(cut).toEqual(['sooner', 'soon']);
    soon();
    tell({ topic: 'config', subject: 'sites' });
    await vi.advanceTimersByTimeAsync(0);
    expect(cut).toEqual(['sooner', 'soon', 'endless', 'long']);
    // What began while it could not be read is cut by the next look.
    begin('late', 60_000);
    isAway = false;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(cut.filter((name) => name === 'late')).toHaveLength(1);
  } finally {
    vi.useRealTimers();
  }
});

test.each([
  ['at once', 0, 0],
  ['slowly', 100, 1],
])(
  'a small private body read %s, of which %i bytes wait, is checked %i times',
  async (_how, writableLength, watched) => {
    const onStream = vi.fn<() => () => void>(() => () => undefined);
    const response = {
      writeHead: () => undefined,
      end: () => undefined,
      once: () => undefined,
      writableLength,
      req: { socket: { destroyed: false } },
    };
    const file = { digest: 'a'.repeat(64), size: 3, path: 'a.txt', variants: [] };
    await sendFile(
      { headers: {}, method: 'GET' } as unknown as IncomingMessage,
      response as unknown as ServerResponse,
      {
        kind: { isPrivate: true, isUnlisted: false, isHttps: true },
        content: { spa: false, files: new Map(), skew: new Map(), redirects: [], headers: [] },
        file,
        status: 200,
        onStream,
      },
      { cache: { get: () => 'abc' }, blobs: { read: () => Promise.reject(new Error('not asked')) } },
    );
    expect(onStream).toHaveBeenCalledTimes(watched);
  },
);

test('T50 compressed forms of the same content of another owner are not visible', async () => {
  const ben = await h.person('Ben');
  const files = { 'index.html': page('the same '.repeat(500)) };
  const encoding = async (url: string) =>
    (await h.open(url, { headers: { 'accept-encoding': 'br' } })).headers['content-encoding'];
  const encode = () => h.app.services.sitesServices.siteEncoder.run();
  const first = await upload(h, ada, files, { visibility: 'public' });
  while ((await encoding(first.data.url)) !== 'br') await encode();
  const same = await upload(h, ben, files, { visibility: 'public' });
  expect(await encoding(same.data.url)).toBeUndefined();
  await encode();
  expect(await encoding(same.data.url)).toBe('br');
});
