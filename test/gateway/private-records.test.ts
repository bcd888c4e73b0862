import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { minute, second } from '../../src/core/clock.ts';
import { AppError } from '../../src/core/errors.ts';
import { systemRandom } from '../../src/core/ids.ts';
import { createInstanceRegistry, createGrantSigner } from '../../src/features/grants/grants.ts';
import { writeGrant } from '../../src/features/grants/records.ts';
import { maxPathLength, safePath } from '../../src/features/grants/return-path.ts';
import type { Kv } from '../../src/platform/kv/kv.ts';
import { memoryKv } from '../../src/platform/kv/memory-kv.ts';
import { FakeClock } from '../clock.ts';
import { contentUrl, type Harness, openHarness, type Person } from '../harness.ts';
import { upload } from '../api/sites/uploads.ts';
import { type Browser, browserOf, grantCookie, privateSite } from './private.ts';

/** A store whose answers a test can take away or change. */
const storeClock = new FakeClock();
let trouble: (() => Promise<never>) | undefined;
/** What it is that fails; undefined = everything. */
let troubledWith: readonly string[] | undefined;
let skewMs = 0;
/** The kind of each round trip that changes something. */
const written: string[] = [];
/** The number of keys in each round trip of the gateway. */
const asked: number[] = [];
const kept = new Map<string, string>();

function troubledKv(): Kv {
  const real = memoryKv({ clock: { now: () => storeClock.now() + skewMs } });
  const unless = async <T>(kind: string, work: () => Promise<T>): Promise<T> =>
    trouble && (troubledWith?.includes(kind) ?? true) ? await trouble() : await work();
  const write = async <T>(kind: string, key: string, work: () => Promise<T>): Promise<T> => {
    written.push(`${kind} ${key}`);
    return await unless(kind, work);
  };
  return {
    ...real,
    get: (key) => unless('get', () => real.get(key)),
    take: (key) => write('take', key, () => real.take(key)),
    time: () => unless('time', () => real.time()),
    getAll(keys) {
      asked.push(keys.length);
      return unless('getAll', async () => await real.getAll(keys));
    },
    delete: (key) => write('delete', key, () => real.delete(key)),
    set: (key, value, options) =>
      write('set', key, async () => {
        kept.set(key, value);
        await real.set(key, value, options);
      }),
    setIfNewer: (key, value, options) =>
      write('setIfNewer', key, async () => {
        kept.set(key, `${value.revision} ${value.text}`);
        return await real.setIfNewer(key, value, options);
      }),
    setIfAbsent: (key, value, options) =>
      write('setIfAbsent', key, async () => {
        const isStored = await real.setIfAbsent(key, value, options);
        if (isStored) kept.set(key, value);
        return isStored;
      }),
  };
}

let h: Harness;
let ada: Person;
let kv: Kv;
beforeAll(async () => {
  kv = troubledKv();
  h = await openHarness({ changesPerMinute: 10_000, kv });
  ada = await h.person('Ada');
});
afterEach(() => {
  trouble = undefined;
  troubledWith = undefined;
  skewMs = 0;
});
afterAll(() => h.close());

function advance(ms: number): void {
  h.clock.advance(ms);
  storeClock.advance(ms);
}

async function opened(): Promise<{
  site: Awaited<ReturnType<typeof privateSite>>;
  browser: Browser;
  grantKey: string;
}> {
  const site = await privateSite(h, ada);
  advance(minute);
  const browser = browserOf(h, ada);
  expect((await browser.open(site.url)).status).toBe(200);
  const grantKey = [...kept.keys()].findLast((key) => key.startsWith('grant:')) ?? '';
  return { site, browser, grantKey };
}

const ttl = { ttlMs: 10 * minute };

test('T12 a record with more than five minutes is corrupt, although it is signed', async () => {
  const { site, browser, grantKey } = await opened();
  const signer = createGrantSigner(['grant-secret-of-the-tests-0123456789abcd'], systemRandom);
  const now = storeClock.now();
  const grant = {
    targetId: site.id,
    userId: ada.user.id,
    host: new URL(site.url).host,
    epoch: 1,
    generation: 1,
    issuedAt: now,
  };
  await kv.set(grantKey, writeGrant(signer, grantKey, { ...grant, endsAt: now + 5 * minute }), ttl);
  expect((await browser.asset(site.url)).status).toBe(200);
  const before = await corruptCount();
  await kv.set(grantKey, writeGrant(signer, grantKey, { ...grant, endsAt: now + 5 * minute + 1 }), ttl);
  expect((await browser.asset(site.url)).status).toBe(401);
  expect(await corruptCount()).toBe(before + 1);
});

test('T14 a wrong clock never makes a grant last longer than five minutes', async () => {
  // The clocks of web and gateway play no part: the store's decides.
  for (const clockOffBy of [-60 * second, 60 * second]) {
    const { site, browser } = await opened();
    const other = await h.another({ clockOffBy });
    const cookie = browser.cookies(site.url);
    advance(299 * second);
    expect((await other.open(site.url, { headers: { cookie } })).statusCode).toBe(200);
    advance(second);
    expect((await other.open(site.url, { headers: { cookie } })).statusCode).not.toBe(200);
    await other.close();
  }
  for (const off of [-60 * second, 60 * second]) {
    skewMs = 0;
    const { site, browser } = await opened();
    // The store fails over to a machine with another clock.
    skewMs = off;
    let served = 0;
    for (let at = 0; at < 360; at += 10) {
      if ((await browser.asset(site.url)).status === 200) served = at;
      advance(10 * second);
    }
    expect(served).toBeLessThan(300);
  }
});

test('T15 GR-08 ten thousand changed records give no access, and nothing breaks', {
  tags: 'flood',
}, async () => {
  const { site, browser, grantKey } = await opened();
  const keys = [grantKey, `site:{${site.id}}:state`, 'sites:switch'];
  const originals = new Map(keys.map((key) => [key, kept.get(key) ?? '']));
  const { privateSites } = h.app.services.gatewaySide;
  const served = await h.app.services.read.sites.find(site.id);
  const at = { host: new URL(site.url).host, label: site.label, target: '/', known: served };
  const request = {
    method: 'GET',
    url: '/',
    headers: { cookie: browser.cookies(site.url) },
    rawHeaders: [],
    socket: {},
  };
  // Only what the steps read of a request.
  const ask = () => privateSites.authorize(request as never, at as never);
  expect((await ask()).kind).toBe('granted');

  const mutation = fc.oneof(
    fc.record({ kind: fc.constant('flip' as const), at: fc.nat(), bit: fc.nat({ max: 6 }) }),
    fc.record({ kind: fc.constant('cut' as const), at: fc.nat() }),
    fc.record({
      kind: fc.constant('insert' as const),
      at: fc.nat(),
      text: fc.string({ minLength: 1, maxLength: 3 }),
    }),
    fc.record({ kind: fc.constant('replace' as const), text: fc.oneof(fc.string(), fc.json()) }),
  );
  const apply = (text: string, change: Parameters<Parameters<typeof mutation.map>[0]>[0]): string => {
    if (change.kind === 'replace') return change.text;
    const where = change.at % text.length;
    if (change.kind === 'cut') return text.slice(0, where);
    if (change.kind === 'insert') return text.slice(0, where) + change.text + text.slice(where);
    const flipped = String.fromCharCode(text.charCodeAt(where) ^ (1 << change.bit));
    return text.slice(0, where) + flipped + text.slice(where + 1);
  };
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...keys), mutation, async (key, change) => {
      const original = originals.get(key) ?? '';
      const changed = apply(original, change);
      // The number before a blank orders writers; one with more zeros in front is the same number.
      if (changed === original || changed.replace(/^0+(?=\d)/, '') === original) return;
      await kv.set(key, changed, ttl);
      const verdict = await ask();
      await kv.set(key, original, ttl);
      if (verdict.kind === 'granted') throw new Error(`${key} let someone in: ${changed}`);
      if (verdict.answer.status !== 303) throw new Error(`${key} broke: ${verdict.answer.status}`);
    }),
    { numRuns: 10_000 },
  );
  expect((await ask()).kind).toBe('granted');

  // Swapped and moved to another key.
  const other = await opened();
  const [mine, theirs] = [originals.get(grantKey) ?? '', kept.get(other.grantKey) ?? ''];
  await kv.set(grantKey, theirs, ttl);
  expect((await browser.asset(site.url)).status).toBe(401);
  await kv.set(other.grantKey, mine, ttl);
  expect((await other.browser.asset(other.site.url)).status).toBe(401);
  await kv.delete('sites:switch');
  await h.app.jobs.runNow('sites-switch');
});

test('GR-08 a record of another version gives no access, although it is signed', async () => {
  const { site, browser, grantKey } = await opened();
  const signer = createGrantSigner(['grant-secret-of-the-tests-0123456789abcd'], systemRandom);
  const stateKey = `site:{${site.id}}:state`;
  const keys = [grantKey, stateKey, 'sites:switch'];
  const originals = new Map(keys.map((key) => [key, kept.get(key) ?? '']));
  for (const key of keys) {
    const original = originals.get(key) ?? '';
    const [, revision = '', record = ''] = /^(\d+ )?(.*)$/s.exec(original) ?? [];
    const signedFor = `${key} ${revision}`.trim();
    const [version, ...fields] = JSON.parse(record.slice(44));
    const written = (list: readonly unknown[]) => revision + signer.sign(signedFor, JSON.stringify(list));
    expect([version, written([version, ...fields])]).toEqual([1, original]);
    for (const other of [[0, ...fields], [2, ...fields], ['1', ...fields], fields, [null, ...fields]]) {
      const before = await corruptCount();
      await kv.set(key, written(other), ttl);
      const refused = await browser.asset(site.url);
      expect([key, other[0], refused.status, refused.text]).toEqual([key, other[0], 401, '']);
      expect(await corruptCount()).toBe(before + 1);
      await kv.set(key, original, ttl);
      expect((await browser.asset(site.url)).status).toBe(200);
    }
  }
});

test('GR-08 a corrupt record is audited once, by the worker, within its next turn', async () => {
  const { site, browser, grantKey } = await opened();
  await kv.set(grantKey, 'nonsense', ttl);
  for (let nth = 0; nth < 5; nth += 1) expect((await browser.asset(site.url)).status).toBe(401);
  await h.app.jobs.runNow('gateway-news');
  await h.app.jobs.runNow('gateway-news-desk');
  const admin = await h.person(`Auditor${site.id}`, { admin: true });
  const read = await h.call('GET', '/audit/events', {
    as: admin,
    query: { target: site.id, event: 'site.grant_refused' },
  });
  expect(read.data).toMatchObject([{ reason: 'corrupt_grant', outcome: 'denied', details: { count: 1 } }]);
});

test('a refusal just before a stop is in the audit log afterwards, with its repetitions', async () => {
  const { site, browser, grantKey } = await opened();
  const thief = await privateSite(h, ada);
  const other = await h.another();
  const cookie = browser.cookies(site.url);
  const steal = async () =>
    expect(
      (await other.open(thief.url, { headers: { cookie, 'sec-fetch-mode': 'no-cors' } })).statusCode,
    ).toBe(401);
  await steal();
  await other.app.jobs.runNow('gateway-news');
  await steal();
  await steal();
  await kv.set(grantKey, 'nonsense', ttl);
  await other.open(site.url, { headers: { cookie } });
  await other.close();
  const admin = await h.person(`Reader${site.id}`, { admin: true });
  const read = await h.call('GET', '/audit/events', {
    as: admin,
    query: { target: site.id, outcome: 'denied' },
  });
  const found = read.data.map(({ reason, details }: { reason: string; details: { count: number } }) => [
    reason,
    details.count,
  ]);
  expect(found.sort()).toEqual([
    ['corrupt_grant', 1],
    ['grant_of_another_host', 1],
    ['grant_of_another_host', 2],
  ]);
});

test('T16 GR-09 without the store, private content says so within 150 ms, public content is served, and no new grant is issued', async () => {
  const { site, browser } = await opened();
  const open = await upload(h, ada, { 'index.html': 'for all' }, { visibility: 'public' });
  const failures: Record<string, () => Promise<never>> = {
    down: async () => {
      throw new AppError('store_unavailable');
    },
    // Never answers.
    slow: () => new Promise<never>(() => undefined),
  };
  for (const [what, failure] of Object.entries(failures)) {
    trouble = failure;
    const refused = await browser.asset(site.url);
    const page = await browser.navigate(site.url);
    expect([what, refused.status, page.status, refused.headers['retry-after']]).toEqual([
      what,
      503,
      503,
      '5',
    ]);
    expect((await h.open(open.data.url)).statusCode).toBe(200);
    trouble = undefined;
    expect((await browser.asset(site.url)).status).toBe(200);
  }
  trouble = failures['down'];
  const refused = await h.call('GET', '/sites/open?label=x', { as: ada });
  expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5']);
  const change = await h.call('PATCH', `/sites/${site.id}`, { as: ada, body: { visibility: 'public' } });
  expect([change.status, change.error.code]).toEqual([503, 'store_unavailable']);
});

const down = async (): Promise<never> => {
  throw new AppError('store_unavailable');
};

test('T16 GR-09 a code that is redeemed while the store fails gives no access, at whichever step it fails', async () => {
  const neverAnswers = () => new Promise<never>(() => undefined);
  for (const [step, failure, isUsed] of [
    ['take', down, false],
    ['getAll', down, true],
    ['getAll', neverAnswers, true],
    ['setIfAbsent', down, true],
  ] as const) {
    const site = await privateSite(h, ada);
    advance(minute);
    const browser = browserOf(h, ada);
    const first = await browser.navigate(site.url);
    const { target, code } = await browser.handOver(first.headers['location'] ?? '');
    const grants = () => [...kept.keys()].filter((key) => key.startsWith('grant:')).length;
    const before = grants();
    [trouble, troubledWith] = [failure, [step]];
    const refused = await browser.redeem(target, code);
    expect([step, refused.status, refused.headers['retry-after'], refused.setCookies]).toEqual([
      step,
      503,
      '5',
      [],
    ]);
    trouble = undefined;
    expect([grants(), (await browser.asset(site.url)).status]).toEqual([before, 401]);
    // A code that was not taken reveals nothing; a taken one is used up.
    expect([step, (await browser.redeem(target, code)).status]).toEqual([step, isUsed ? 403 : 303]);
  }
});

test('GR-09 while the store is read-only, no new grant is issued, and an existing one runs out', async () => {
  const { site, browser } = await opened();
  const other = await opened();
  const late = browserOf(h, ada);
  const first = await late.navigate(site.url);
  const { target, code } = await late.handOver(first.headers['location'] ?? '');
  const open = await upload(h, ada, { 'index.html': 'for all' }, { visibility: 'public' });
  await kv.set(other.grantKey, 'nonsense', ttl);
  [trouble, troubledWith] = [down, ['take', 'delete', 'set', 'setIfNewer', 'setIfAbsent']];
  expect([(await browser.asset(site.url)).status, (await h.open(open.data.url)).statusCode]).toEqual([
    200, 200,
  ]);
  const unredeemed = await late.redeem(target, code);
  expect([unredeemed.status, unredeemed.headers['retry-after'], unredeemed.setCookies]).toEqual([
    503,
    '5',
    [],
  ]);
  // What is corrupt cannot be taken away now, and is believed as little.
  expect((await other.browser.asset(other.site.url)).status).toBe(503);
  const { status, code: none } = await late.handOver(first.headers['location'] ?? '');
  expect([status, none]).toEqual([503, '']);
  for (const [method, path, body] of [
    ['PATCH', `/sites/${site.id}`, { visibility: 'public' }],
    ['DELETE', `/sites/${site.id}/grants`, undefined],
  ] as const) {
    const change = await h.call(method, path, { as: ada, ...(body === undefined ? {} : { body }) });
    expect([path, change.status, change.error?.code]).toEqual([path, 503, 'store_unavailable']);
  }
  advance(5 * minute);
  expect((await browser.asset(site.url)).status).toBe(401);
  trouble = undefined;
  advance(minute);
  expect((await browserOf(h, ada).open(site.url)).status).toBe(200);
});

test('T13 T27 ten thousand requests, and whatever a browser fetches ahead, write nothing to the store', {
  tags: 'flood',
}, async () => {
  const { site, browser, grantKey } = await opened();
  const endsAt = storeClock.now() + 5 * minute;
  const grant = kept.get(grantKey);
  written.length = 0;
  for (let nth = 0; nth < 10_000; nth += 1) {
    advance(29);
    const { status, setCookies } = await browser.asset(site.url);
    if (status !== 200 || setCookies.length > 0)
      throw new Error(`Request ${nth}: ${status} ${setCookies.join()}`);
  }
  await browser.navigate(site.url);
  await browser.asset(`${site.url}.postern/grant`);
  await browser.navigate(site.url, { 'sec-purpose': 'prefetch;prerender' });
  await browserOf(h, ada).navigate(site.url, { 'sec-purpose': 'prefetch' });
  await browserOf(h, ada).navigate(site.url);
  expect(written).toEqual([]);
  expect(kept.get(grantKey)).toBe(grant);
  advance(endsAt - storeClock.now() - 1);
  expect((await browser.asset(site.url)).status).toBe(200);
  advance(1);
  expect((await browser.asset(site.url)).status).toBe(401);
});

test('T31 each asset costs one query to the store, the same for used and unknown labels', async () => {
  const { site, browser } = await opened();
  const unknown = site.url.replace(site.label, 'p-aaaaaaaaaaaaaaaaa');
  const stranger = browserOf(h, ada);
  const questionsOf = async (work: () => Promise<unknown>) => {
    asked.length = 0;
    await work();
    return [...asked];
  };
  expect(await questionsOf(() => browser.asset(site.url))).toEqual([3]);
  for (const url of [site.url, unknown]) {
    expect(await questionsOf(() => stranger.asset(url))).toEqual([3]);
    expect(await questionsOf(() => stranger.navigate(url))).toEqual([3]);
  }
});

test('T31 without a grant, the gateway does not look up whether a label is used', async () => {
  const hidden = await privateSite(h, ada);
  const unknown = hidden.url.replace(hidden.label, 'p-bbbbbbbbbbbbbbbbb');
  const lookedUp = vi.spyOn(h.app.services.read.sites, 'findLabel');
  const stranger = browserOf(h, ada);
  for (const url of [hidden.url, unknown]) {
    await stranger.asset(url);
    await stranger.navigate(url);
    await stranger.asset(`${url}.postern/grant`);
    await stranger.redeem(`${url}.postern/redeem`, 'a'.repeat(43));
    stranger.set(url, grantCookie, `1.${'a'.repeat(43)}.${'b'.repeat(43)}`);
    await stranger.asset(url);
    await stranger.navigate(url);
  }
  expect(lookedUp).not.toHaveBeenCalled();
  expect((await browserOf(h, ada).open(hidden.url)).status).toBe(200);
  expect(lookedUp).toHaveBeenCalled();
  lookedUp.mockRestore();
});

test('T31 with a grant for another site, or an ended one, the gateway does not look up whether a label is used', async () => {
  const { site, browser } = await opened();
  const hidden = await privateSite(h, ada);
  const unknown = hidden.url.replace(hidden.label, 'p-ccccccccccccccccc');
  const cookie = /__Host-postern_grant=([^;]+)/.exec(browser.cookies(site.url))?.[1] ?? '';
  expect(cookie).not.toBe('');
  const lookedUp = vi.spyOn(h.app.services.read.sites, 'findLabel');
  for (const laterMs of [0, 6 * minute]) {
    advance(laterMs);
    for (const url of [hidden.url, unknown]) {
      const stranger = browserOf(h, ada);
      stranger.set(url, grantCookie, cookie);
      expect((await stranger.asset(url)).status).toBe(401);
      expect((await stranger.navigate(url)).status).toBe(303);
    }
  }
  expect(lookedUp).not.toHaveBeenCalled();
  lookedUp.mockRestore();
});

test('GW-05 while a gateway has other settings no grant is issued, and the owner reads why', async () => {
  const { site, browser } = await opened();
  const odd = createInstanceRegistry({
    kv,
    signer: createGrantSigner(['grant-secret-of-the-tests-0123456789abcd'], systemRandom),
    holder: 'the odd one',
    workloads: ['gateway'],
    addresses: {
      uiUrl: 'http://localhost:3000',
      contentUrl,
      environmentsContentUrl: contentUrl,
      allowSharedApex: true,
    },
  });
  await odd.heartbeat();
  const first = await browserOf(h, ada).navigate(site.url);
  const { pathname, search } = new URL(first.headers['location'] ?? '');
  const refused = await h.call('GET', pathname + search, { as: ada, headers: { accept: 'text/html' } });
  expect([refused.status, refused.text.includes('has different settings')]).toEqual([503, true]);
  // Who is in stays until his time.
  expect((await browser.asset(site.url)).status).toBe(200);
  const why = await h.call('GET', `/sites/${site.id}/access`, { as: ada });
  expect(why.data.opens).toBe(false);
  expect(why.data.checks).toContainEqual({
    check: 'gateway_running',
    passed: false,
    detail: expect.stringContaining('different settings'),
  });
  const another = await h.call('POST', '/sites', { as: ada, body: {} });
  expect([another.status, another.error.code]).toEqual([422, 'private_sites_unavailable']);
  await odd.leave();
  expect((await browserOf(h, ada).open(site.url)).status).toBe(200);
});

test('GW-05 where private sites are impossible they are not offered, and never made public instead', async () => {
  const other = await openHarness({ contentUrl: 'https://sites.example.net' });
  const bob = await other.person('Bob');
  const { data } = await other.call('GET', '/sites/capabilities', { as: bob });
  expect(data).toMatchObject({ allowedVisibility: ['public'], defaultVisibility: 'private' });
  expect(data.visibilityReasons.private).toContain('SERVICE_UI_URL uses http');
  for (const query of [{}, { visibility: 'private' }]) {
    const refused = await upload(other, bob, { 'index.html': 'x' }, query as Record<string, string>);
    expect([refused.status, refused.error.code]).toEqual([422, 'private_sites_unavailable']);
    expect(refused.error.details.reason).toContain('HTTPS');
  }
  const open = await upload(other, bob, { 'index.html': 'x' }, { visibility: 'public' });
  const moved = await other.call('PATCH', `/sites/${open.data.id}`, {
    as: bob,
    body: { visibility: 'private' },
  });
  expect([moved.status, moved.error.code]).toEqual([422, 'private_sites_unavailable']);
  await other.close();
});

test('a lost state is restored when the link is opened, and when another process reads a change', async () => {
  const { site, browser } = await opened();
  await kv.delete(`site:{${site.id}}:state`);
  expect((await browser.asset(site.url)).status).toBe(401);
  advance(minute);
  expect((await browser.open(site.url)).status).toBe(200);
  await kv.delete(`site:{${site.id}}:state`);
  h.app.services.feed.announce({ topic: 'site', subject: site.id });
  await h.settle();
  expect((await browser.asset(site.url)).status).toBe(200);
});

test('a state that was changed back in the store does not override the database', async () => {
  const { site, browser } = await opened();
  const stateKey = `site:{${site.id}}:state`;
  const old = kept.get(stateKey) ?? '';
  await h.call('DELETE', `/sites/${site.id}/grants`, { as: ada });
  await kv.set(stateKey, old, ttl);
  expect((await browser.asset(site.url)).status).toBe(401);
});

test('T08 whatever a return path says, the browser stays on the host', () => {
  const origin = 'https://p-aaaaaaaaaaaaaaaaa.sites.example';
  const hosts = [
    'evil.example',
    'evil.example:443',
    'u:p@evil.example',
    '[::1]',
    '%65vil.example',
    'evil。example',
  ];
  const starts = [
    '//',
    '///',
    '/\\',
    '\\\\',
    '\\/',
    '/\t/',
    '/%09/',
    '/%2f',
    '/%5c',
    '/%20//',
    '/.//',
    '/..//',
    '/a/..//',
    '/%2e%2e//',
    '/;//',
    '/?//',
    '/#//',
    'https://',
    'https:',
    'http:/',
    '//%09',
    '/%0d%0aLocation:',
    '/\r\nLocation: //',
    '/%00//',
    '@',
    '/@',
    '.',
    '/x@',
    ' //',
    '/%E2%80%A8//',
    '/\u2028//',
    'javascript://',
    'data:,',
    '/%7f//',
    '/.postern/',
  ];
  const payloads = starts.flatMap((start) => hosts.map((host) => start + host));
  expect(payloads.length).toBeGreaterThanOrEqual(200);
  for (const payload of payloads) {
    const path = safePath(payload, origin);
    expect([payload, path.startsWith('/') && !path.startsWith('//'), new URL(origin + path).origin]).toEqual([
      payload,
      true,
      origin,
    ]);
    expect(new URL(path, origin).origin).toBe(origin);
    expect(path).not.toMatch(/[\r\n\t\\]|^\/\.postern\//);
  }
  for (const path of [
    '/',
    '/a/b.html',
    '/a%20b.html?q=1&r=%2F',
    '/a//b',
    '/@x',
    `/${'a'.repeat(maxPathLength - 1)}`,
  ])
    expect(safePath(path, origin)).toBe(path);
  expect(safePath(`/${'a'.repeat(maxPathLength)}`, origin)).toBe('/');
});

test('T01 no spelling of a host redeems but the exact one', async () => {
  const site = await privateSite(h, ada);
  const { host } = new URL(site.url);
  const variants = [
    `x${host}`,
    `x.${host}`,
    host.replace('p-', 'p.'),
    `${host}.`,
    host.replace(':3001', ''),
    host.replace(':3001', ':3002'),
    host.replace('.sites', '.sites.'),
    host.toUpperCase(),
    `${host}.evil.example`,
    `evil.example@${host}`,
    `user@${host}`,
    `xn--${host}`,
    `${host},${host}`,
    ` ${host}x`,
  ];
  for (const variant of variants) {
    const browser = browserOf(h, ada);
    advance(10 * second);
    const first = await browser.navigate(site.url);
    const { target, code } = await browser.handOver(first.headers['location'] ?? '');
    const cookie = browser.cookies(site.url);
    const answer = await h.open(target, {
      method: 'POST',
      headers: {
        host: variant,
        cookie,
        origin: 'http://localhost:3000',
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: `code=${code}`,
    });
    // Letter case is no part of a host (RFC 3986); everything else is another one.
    const isSame = variant === host.toUpperCase();
    const { statusCode, headers } = answer;
    expect([variant, statusCode === 303, headers['set-cookie'] !== undefined]).toEqual([
      variant,
      isSame,
      isSame,
    ]);
  }
});

async function corruptCount(): Promise<number> {
  const text = await h.app.services.metrics.registry.getSingleMetricAsString('postern_grants_corrupt_total');
  return Number(/_total (\d+)/.exec(text)?.[1]);
}
