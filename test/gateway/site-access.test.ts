import { afterAll, beforeAll, expect, test } from 'vitest';
import { minute } from '../../src/core/clock.ts';
import { type Answer, type CallOptions, type Harness, openHarness, type Person } from '../harness.ts';
import { upload } from '../api/sites/uploads.ts';
import { browserOf, navigation, privateSite } from './private.ts';

let h: Harness;
let ada: Person;
let admin: Person;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 10_000 });
  ada = await h.person('Ada');
  admin = await h.person('Root', { admin: true });
});
afterAll(() => h.close());

const html = { accept: 'text/html' };
const read = (id: string, as?: CallOptions['as']) =>
  h.call('GET', `/s/${id}/access`, { ...(as === undefined ? {} : { as }), headers: html });
const form = { type: 'application/x-www-form-urlencoded', bytes: '' };
const end = (id: string, as: CallOptions['as'], headers: Record<string, string> = {}) =>
  h.call('POST', `/s/${id}/access`, {
    ...(as === undefined ? {} : { as }),
    raw: form,
    headers: { ...html, ...headers },
  });

/** Without the id of the request, which differs each time. */
const shown = ({ status, text }: Answer) => [status, text.replace(/Request [\w-]+/, '')];

async function opened() {
  const site = await privateSite(h, ada);
  h.clock.advance(minute);
  const browser = browserOf(h, ada);
  expect((await browser.open(site.url)).status).toBe(200);
  return { site, browser };
}

async function count(event: string, target: string): Promise<number> {
  await h.app.doors.denials.flush({ all: true });
  return (await h.call('GET', '/audit/events', { as: admin, query: { event, target } })).data.length;
}

test('the owner reads every check in plain words, and who was let in until when', async () => {
  const { site } = await opened();
  const page = await read(site.id, ada);
  expect(page.status).toBe(200);
  const api = await h.call('GET', `/sites/${site.id}/access`, { as: ada });
  expect(api.data.checks).toHaveLength(9);
  for (const { detail } of api.data.checks) expect(page.text).toContain(detail);
  expect(page.text).toContain('It opens for you, its owner, and nobody else.');
  expect(page.text).toContain(`<time datetime="${api.data.grants[0].endsAt}">`);
  expect(page.text).toContain('>Live</strong>');
  expect(page.headers['content-security-policy']).toContain("frame-ancestors 'none'");
  expect(page.text).not.toMatch(/<script|[\w-]{43}[^\w=-]/);
});

test('what fails is said, with a browser in short words and nothing of it as markup', async () => {
  const made = await upload(h, ada, { 'index.html': 'short' }, { visibility: 'private', ttlHours: '1' });
  const browser = browserOf(h, ada);
  const { headers } = await browser.navigate(made.data.url);
  const to = new URL(headers['location'] ?? '');
  for (const agent of [
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/146.0.0.0 Safari/537.36',
    '<b>odd</b>',
  ])
    await h.call('GET', to.pathname + to.search, { as: ada, headers: { ...html, 'user-agent': agent } });
  h.clock.advance(61 * minute);
  const page = await read(made.data.id, ada);
  expect(page.text).toContain('It does not open now: one check fails.');
  expect(page.text).toContain('The site has expired.');
  expect(page.text).toContain('Chrome on Linux');
  expect(page.text).toContain('&lt;b&gt;odd&lt;/b&gt;');
  expect(page.text).not.toContain('>Live</strong>');
  const link = await h.call('GET', `/s/${made.data.id}`, { as: ada, headers: html });
  expect([link.status, link.text.includes(`href="/s/${made.data.id}/access"`)]).toEqual([410, true]);
});

test('for everybody but the owner it is a site that is not there, private or public', async () => {
  const { site, browser } = await opened();
  const open = await upload(h, ada, { 'index.html': 'hello' }, { visibility: 'public' });
  const unknown = 'aaaaaaaaaa';
  for (const as of [admin, undefined]) {
    const [none, noneEnded] = [shown(await read(unknown, as)), shown(await end(unknown, as, own))];
    expect([none[0], noneEnded[0]]).toEqual(as === admin ? [404, 404] : [303, 303]);
    for (const id of [site.id, open.data.id]) {
      expect(shown(await read(id, as))).toEqual(none);
      expect(shown(await end(id, as, own))).toEqual(noneEnded);
    }
  }
  const key = await h.key(ada, { scopes: ['sites:read', 'sites:write'] });
  expect((await read(site.id, key)).status).toBe(403);
  expect((await end(site.id, key, own)).status).toBe(403);
  expect((await browser.fetch(site.url)).status).toBe(200);
  expect(await count('site.grants_ended', site.id)).toBe(0);
});
const own = { origin: 'http://localhost:3000' };

test('the button ends every grant at once, and leaves the event that the API leaves', async () => {
  const { site, browser } = await opened();
  const done = await end(site.id, ada, { 'sec-fetch-site': 'same-origin' });
  expect([done.status, done.headers['location']]).toEqual([303, `/s/${site.id}/access`]);
  expect((await browser.fetch(site.url)).status).toBe(401);
  const page = await read(site.id, ada);
  expect([page.text.includes('>Ended</strong>'), page.text.includes('>Live</strong>')]).toEqual([
    true,
    false,
  ]);
  expect(await count('site.grants_ended', site.id)).toBe(1);
});

test('CS-01 a form of another origin, or of none, ends nothing and is in the trail', async () => {
  const { site, browser } = await opened();
  for (const headers of [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: site.url.slice(0, -1) },
    { ...own, 'sec-fetch-site': 'same-site' },
  ]) {
    const refused = await end(site.id, ada, headers);
    expect([refused.status, refused.text.includes('This did not work')]).toEqual([403, true]);
  }
  expect((await browser.fetch(site.url)).status).toBe(200);
  expect(await count('site.grants_ended', site.id)).toBe(0);
});

test('ID-05 whose sign-in has ended reads nothing and ends nothing', async () => {
  const eve = await h.person('Eve');
  const site = await privateSite(h, eve);
  h.revokeToken(eve);
  const signedOut = await read(site.id, eve);
  expect([signedOut.status, signedOut.text.includes(site.label)]).toEqual([401, false]);
  expect((await end(site.id, eve)).headers['location']).toMatch(/^\/auth\/login/);
  expect(await count('site.grants_ended', site.id)).toBe(0);
});

test('T27 what asks for a way in without being a page that opens gets no code, and nothing is written', async () => {
  const site = await privateSite(h, ada);
  h.clock.advance(minute);
  const { headers } = await browserOf(h, ada).navigate(site.url);
  const to = new URL(headers['location'] ?? '');
  const ask = (how: Record<string, string>, method = 'GET') =>
    h.call(method, to.pathname + to.search, { as: ada, headers: { ...html, ...how } });
  for (const how of [
    { ...navigation, 'sec-purpose': 'prefetch' },
    { ...navigation, 'sec-purpose': 'prefetch;prerender' },
    { ...navigation, 'sec-fetch-dest': 'iframe' },
    { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
    { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
  ])
    expect((await ask(how)).status).toBe(403);
  expect((await ask({}, 'HEAD')).status).toBe(403);
  expect(await count('site.grant_issued', site.id)).toBe(0);
  expect((await ask(navigation)).status).toBe(200);
});
