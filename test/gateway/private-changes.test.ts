// @module-tag sql
import inject from 'light-my-request';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemAuditContext } from '../../src/core/caller.ts';
import { minute } from '../../src/core/clock.ts';
import type { Kv } from '../../src/platform/kv/kv.ts';
import { memoryKv } from '../../src/platform/kv/memory-kv.ts';
import { FakeClock } from '../clock.ts';
import { type Harness, openHarness, type Person } from '../harness.ts';
import { browserOf, privateSite } from './private.ts';

/** Two changes of one private site at the same time: what was true before either is never true again. */
const storeClock = new FakeClock();
/** Called once, before the next state of a site is withdrawn. */
let meanwhile: (() => Promise<unknown>) | undefined;

function kvWithPauses(): Kv {
  const kv = memoryKv({ clock: storeClock });
  return {
    ...kv,
    async delete(key) {
      const work = meanwhile;
      meanwhile = undefined;
      if (key.endsWith(':state')) await work?.();
      return await kv.delete(key);
    },
  };
}

let h: Harness;
let other: Harness;
let ada: Person;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 100_000, kv: kvWithPauses() });
  other = await h.another();
  ada = await h.person('Ada');
  const { sitesConfig } = h.app.services.sitesServices;
  const { etag, value } = await sitesConfig.read();
  await sitesConfig.put(systemAuditContext, etag, {
    ...value,
    visibility: { allowPublic: false, allowPrivate: true },
  });
});
afterAll(async () => {
  await other.close();
  await h.close();
});

async function letIn() {
  const site = await privateSite(h, ada);
  h.clock.advance(minute);
  storeClock.advance(minute);
  const browser = browserOf(other, ada);
  expect((await browser.open(site.url)).status).toBe(200);
  return { site, browser };
}

/** What a gateway answers that has not read the latest changes. */
async function unread(url: string, cookie: string): Promise<number> {
  const { host, pathname } = new URL(url);
  const headers = { host, 'sec-fetch-mode': 'no-cors', cookie };
  const handle: Parameters<typeof inject>[0] = (request, response) =>
    void other.app.gateway.emit('request', request, response);
  return (await inject(handle, { method: 'GET', url: pathname, headers })).statusCode;
}

/** Refused inside its transaction, after what is served was withdrawn. */
const refusedChange = (id: string) =>
  h.call('PATCH', `/sites/${id}`, { as: ada, body: { visibility: 'public' } });

test.each([
  ['the site is deleted', (id: string) => h.call('DELETE', `/sites/${id}`, { as: ada })],
  ['its grants are ended', (id: string) => h.call('DELETE', `/sites/${id}/grants`, { as: ada })],
])(
  'contract 10.3 GR-11 a refused change does not restore the state before another one: %s meanwhile',
  async (_what, change) => {
    const { site, browser } = await letIn();
    let first: { status: number } | undefined;
    meanwhile = async () => (first = await change(site.id));
    const second = await refusedChange(site.id);
    expect(first?.status).toBe(200);
    expect(second.status).toBeGreaterThanOrEqual(400);
    expect(await unread(site.url, browser.cookies(site.url))).not.toBe(200);
  },
);

test('a refused change leaves an open site open, and an unreadable one closed', async () => {
  const { site, browser } = await letIn();
  expect((await refusedChange(site.id)).status).toBe(422);
  expect((await browser.asset(site.url)).status).toBe(200);
  const { sites } = h.app.services.read;
  const { find } = sites;
  let asked = 0;
  const onceOnly = (id: string) => {
    asked += 1;
    return asked > 1 ? Promise.reject(new Error('away')) : find(id);
  };
  Object.assign(sites, { find: onceOnly });
  expect((await refusedChange(site.id)).status).toBe(422);
  Object.assign(sites, { find });
  expect((await browser.asset(site.url)).status).not.toBe(200);
});
