// @module-tag sql
import { PassThrough } from 'node:stream';
import inject from 'light-my-request';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { day, hour, minute } from '../../src/core/clock.ts';
import { changesKeptMs, pruneChanges } from '../../src/platform/database/change-feed.ts';
import { archiveOf, page, replace, upload } from '../api/sites/uploads.ts';
import { type Harness, openHarness, type Person, type TestKey } from '../harness.ts';
import { browserOf, privateSite } from './private.ts';

/**
 * What one process changes, the gateway of another knows: public sites at the next reading of the change feed, of which
 * there are four a second (P11), private sites at the very next request. And what happens to a site when its key ends.
 */
let h: Harness;
let other: Harness;
let root: Person;
let ada: Person;
let key: TestKey;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 100_000 });
  other = await h.another();
  root = await h.person('Root', { admin: true });
  ada = await h.person('Ada');
  key = await h.serviceKey({ scopes: ['sites:write'] });
});
afterAll(async () => {
  await other.close();
  await h.close();
});

const files = { 'index.html': page('here') };
const asRoot = (path: string, body: object) => h.call('POST', path, { as: root, body });

async function setEnabled(enabled: boolean): Promise<void> {
  const { data, headers } = await h.call('GET', '/config/sites', { as: root });
  const put = await h.call('PUT', '/config/sites', {
    as: root,
    headers: { 'if-match': headers['etag'] ?? '' },
    body: { ...data.config, enabled },
  });
  expect(put.status).toBe(200);
}

/** The other process's gateway, before it reads any news. */
async function atOnce(url: string, headers: Record<string, string> = {}): Promise<number> {
  const { host, pathname } = new URL(url);
  const { statusCode } = await inject(
    (request, response) => void other.app.gateway.emit('request', request, response),
    { method: 'GET', url: pathname, headers: { host, 'sec-fetch-mode': 'no-cors', ...headers } },
  );
  return statusCode;
}

/** Its gateway after the next reading of the feed. */
const soon = async (url: string) => (await other.open(url)).statusCode;

describe('P11 two processes', () => {
  test('P11 T47 a site that is taken down is not served by the other’s gateway, and served again when it is reinstated', async () => {
    const made = await upload(h, key, files);
    const { id, url } = made.data;
    expect(await soon(url)).toBe(200);
    await asRoot(`/sites/${id}/take-down`, { reason: 'Phishing, reported by the bank' });
    expect(await soon(url)).toBe(404);
    const told = await h.call('GET', `/sites/${id}`, { as: key });
    expect(told.data).toMatchObject({
      status: 'taken_down',
      takeDownReason: 'Phishing, reported by the bank',
      owner: { kind: 'service_key', id: key.id },
    });
    await asRoot(`/sites/${id}/put-back`, { reason: 'The page was cleaned' });
    expect(await soon(url)).toBe(200);
  });

  test('P11 a site that becomes private leaves its old address, and its new one opens only to its owner', async () => {
    const made = await upload(h, ada, files, { visibility: 'public' });
    expect(await soon(made.data.url)).toBe(200);
    const hidden = await h.call('PATCH', `/sites/${made.data.id}`, {
      as: ada,
      body: { visibility: 'private' },
    });
    expect(await soon(made.data.url)).toBe(404);
    expect((await other.open(hidden.data.url)).payload).not.toContain('here');
    h.clock.advance(minute);
    expect((await browserOf(other, ada).open(hidden.data.url)).status).toBe(200);
  });

  test('P11 T21 the other process serves a new version, a deletion and a restoration', async () => {
    const { id, url } = (await upload(h, key, files)).data;
    expect(await soon(url)).toBe(200);
    await replace(h, key, id, { 'index.html': page('newer') });
    expect((await other.open(url)).payload).toContain('newer');
    await h.call('DELETE', `/sites/${id}`, { as: key });
    expect(await soon(url)).toBe(404);
    await h.call('POST', `/sites/${id}/restore`, { as: key });
    expect(await soon(url)).toBe(200);
  });

  test('P11 a process that missed changes for longer than they are kept rereads everything', async () => {
    const { id, url } = (await upload(h, key, files)).data;
    expect([await soon(url), (await other.call('GET', '/sites', { as: key })).status]).toEqual([200, 200]);
    await h.call('DELETE', `/sites/${id}`, { as: key });
    const before = await h.call('GET', '/config/api-keys', { as: root });
    const put = (policy: object, etag = '') =>
      h.call('PUT', '/config/api-keys', { as: root, headers: { 'if-match': etag }, body: policy });
    const { policy } = before.data;
    const off = await put(
      { ...policy, authentication: { ...policy.authentication, service: false } },
      before.headers['etag'],
    );
    h.clock.advance(changesKeptMs + minute);
    await pruneChanges(h.app.services.database, h.clock.now() - changesKeptMs);
    expect(await soon(url)).toBe(404);
    const refused = await other.call('GET', '/sites', { as: key });
    expect([refused.status, refused.error.code]).toEqual([403, 'api_keys_disabled']);
    expect((await put(policy, off.headers['etag'])).status).toBe(200);
  });

  test('P11 GW-06 Sites switched off at one is off at the other, and on again unchanged, but earlier grants stay ended', async () => {
    const { url } = (await upload(h, key, files)).data;
    const site = await privateSite(h, ada);
    h.clock.advance(minute);
    const inside = browserOf(other, ada);
    expect([await soon(url), (await inside.open(site.url)).status]).toEqual([200, 200]);
    await setEnabled(false);
    // Private content is closed by the store before the other has heard of anything.
    expect(await atOnce(site.url, { cookie: inside.cookies(site.url) })).not.toBe(200);
    // Having heard of it, it reads the document; that takes a moment.
    await expect.poll(() => soon(url)).toBe(404);
    expect((await inside.asset(site.url)).status).toBe(404);
    const refused = await other.call('GET', '/sites', { as: key });
    expect([refused.status, refused.error.code]).toEqual([403, 'sites_disabled']);
    await setEnabled(true);
    await expect.poll(() => soon(url)).toBe(200);
    expect((await inside.asset(site.url)).status).toBe(401);
    expect((await inside.open(site.url)).status).toBe(200);
  });

  test.each<[string, (id: string) => Promise<{ status: number }>]>([
    ['its owner ends every grant', (id) => h.call('DELETE', `/sites/${id}/grants`, { as: ada })],
    ['it goes public', (id) => h.call('PATCH', `/sites/${id}`, { as: ada, body: { visibility: 'public' } })],
    ['it is deleted', (id) => h.call('DELETE', `/sites/${id}`, { as: ada })],
    ['it is taken down', (id) => asRoot(`/sites/${id}/take-down`, { reason: 'reported' })],
  ])('P11 a private site is closed at the other with the very next request when %s', async (_what, close) => {
    const site = await privateSite(h, ada);
    h.clock.advance(minute);
    const inside = browserOf(other, ada);
    expect((await inside.open(site.url)).status).toBe(200);
    const headers = { cookie: inside.cookies(site.url) };
    expect(await atOnce(site.url, headers)).toBe(200);
    expect((await close(site.id)).status).toBe(200);
    expect([401, 404]).toContain(await atOnce(site.url, headers));
    expect([401, 404]).toContain((await inside.asset(site.url)).status);
  });
});

test('T49 in a thousand reads while versions replace each other, every answer is from one current version', {
  tags: 'flood',
}, async () => {
  const versions = 20;
  const bodies = Array.from({ length: versions }, (_, at) => `version ${at} `.repeat(4_000 + 37 * at));
  const contentOf = (at: number) => ({ 'index.html': bodies[at] ?? '', [`only-${at}.txt`]: String(at) });
  const { id, url } = (await upload(h, key, contentOf(0))).data;
  let published = 0;
  let reads = 0;
  const seen = new Set<number>();
  async function read(from: Harness): Promise<void> {
    const oldest = published;
    const { statusCode, payload, headers } = await from.open(url);
    const at = bodies.indexOf(payload);
    reads += 1;
    seen.add(at);
    if (statusCode !== 200 || at < oldest || Number(headers['content-length']) !== payload.length)
      throw new Error(`A read that began at version ${oldest} got ${statusCode} of version ${at}.`);
  }
  async function replaceAll(): Promise<void> {
    for (let at = 1; at < versions; at += 1) {
      expect((await replace(h, key, id, contentOf(at))).status).toBe(200);
      published = at;
    }
  }
  let isDone = false;
  const readers = [h, other, h, other].map(async (from) => {
    while (!isDone || reads < 1_000) await read(from);
    // Whatever was under way at the last publish: one read that began after it, from each.
    await read(from);
  });
  await replaceAll();
  isDone = true;
  await Promise.all(readers);
  expect(reads).toBeGreaterThanOrEqual(1_000);
  expect([seen.size > 1, seen.has(-1), seen.has(versions - 1)]).toEqual([true, false, true]);
  const gone = await h.open(`${url}only-0.txt`);
  expect([gone.statusCode, (await h.open(`${url}only-19.txt`)).payload]).toEqual([404, '19']);
});

describe('when the key of a site is revoked', () => {
  test.each<[string, (mortal: TestKey) => Promise<unknown>]>([
    ['RV-02 a key that is revoked', (mortal) => h.call('DELETE', `/me/tokens/${mortal.id}`, { as: ada })],
    ['EX-02 a key that expires', async () => h.clock.advance(hour)],
    [
      'RV-02 a key that loses its scope',
      (mortal) => h.call('PATCH', `/me/tokens/${mortal.id}`, { as: ada, body: { scopes: ['sites:read'] } }),
    ],
    [
      'GW-06 Sites that is switched off',
      async () => {
        await setEnabled(false);
      },
    ],
  ])(
    '%s while the archive is on its way: nothing is published, and the old version stays',
    async (what, end) => {
      const mortal = await h.key(ada, { scopes: ['sites:write', 'sites:read'], ttlHours: 1 });
      const { id } = (await upload(h, ada, files)).data;
      const { type, bytes } = archiveOf({ 'index.html': page('too late') });
      const body = new PassThrough();
      const going = h.app.web.inject({
        method: 'PUT',
        url: `/api/v2/sites/${id}/content`,
        headers: { host: 'localhost:3000', authorization: `Bearer ${mortal.value}`, 'content-type': type },
        payload: body,
      });
      // Sent by light-my-request once someone waits for it.
      const answered = Promise.resolve(going);
      body.write(bytes.subarray(0, 30));
      await expect.poll(() => body.readableLength).toBe(0);
      await end(mortal);
      body.end(bytes.subarray(30));
      const { statusCode, headers } = await answered;
      // The key was good when the request began.
      expect(headers['ratelimit']).toBeDefined();
      if (what.includes('switched off')) await setEnabled(true);
      expect([401, 403]).toContain(statusCode);
      const after = await h.call('GET', `/sites/${id}/versions`, { as: ada });
      expect(after.data.map(({ number }: { number: number }) => number)).toEqual([1]);
    },
  );

  test('RV-03 a revoked service key manages nothing; its site is served until it expires or an administrator takes it down', async () => {
    const mortal = await h.serviceKey({ scopes: ['sites:write'] });
    const one = (await upload(h, mortal, files, { ttlHours: '48' })).data;
    const two = (await upload(h, mortal, files)).data;
    await h.call('DELETE', `/tokens/${mortal.id}`, { as: root });
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/extend'],
      ['POST', '/versions/1/preview'],
    ] as const) {
      const refused = await h.call(method, `/sites/${one.id}${path}`, { as: mortal });
      expect([refused.status, refused.error.code]).toEqual([401, 'invalid_credential']);
    }
    expect((await replace(h, mortal, one.id, { 'index.html': page('after') })).status).toBe(401);
    expect((await h.open(one.url)).payload).toContain('here');
    for (const as of [root, ada]) {
      const refused = await h.call('DELETE', `/sites/${one.id}`, { as });
      expect([refused.status, refused.error.code]).toEqual([403, 'not_owner']);
    }
    await asRoot(`/sites/${two.id}/take-down`, { reason: 'left behind' });
    expect((await h.open(two.url)).statusCode).toBe(404);
    h.clock.advance(2 * day - 1);
    expect((await h.open(one.url)).statusCode).toBe(200);
    h.clock.advance(1);
    expect((await h.open(one.url)).statusCode).toBe(404);
  });
});
