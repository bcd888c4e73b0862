import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { day, hour, minute, second } from '../../src/core/clock.ts';
import { createGrantSigner } from '../../src/features/grants/grants.ts';
import { systemRandom } from '../../src/core/ids.ts';
import type { Directory, Introspection, Principal } from '../../src/features/people/directory/directory.ts';
import { safeReturnTo } from '../../src/features/people/login/return-to.ts';
import { type Harness, openHarness, type Person } from '../harness.ts';
import { upload } from '../api/sites/uploads.ts';
import { browserOf, privateSite, subresource } from './private.ts';

/** The directory's answers can be replaced while a test runs. */
let principalIs: ((found: Principal) => Principal) | undefined;
let introspectionIs: ((found: Introspection) => Introspection) | undefined;
let asked = 0;
const directory =
  (h: () => Harness, tokens: Map<string, { subject: string; expiresAt: number }>) =>
  (builtin: Directory): Directory => ({
    async principal(subject) {
      const found = await builtin.principal(subject);
      return principalIs?.(found) ?? found;
    },
    async introspect(token, hint) {
      asked += 1;
      const known = tokens.get(token);
      const found: Introspection =
        known === undefined
          ? await builtin.introspect(token, hint)
          : {
              kind: 'active',
              issuer: 'http://localhost:3000/identity',
              clientId: 'postern-web',
              scopes: ['openid'],
              audiences: [],
              grantId: null,
              subject: known.subject,
              expiresAt: h().clock.now() + day,
            };
      return introspectionIs?.(found) ?? found;
    },
  });

let h: Harness;
let ada: Person;
let admin: Person;
const tokens = new Map<string, { subject: string; expiresAt: number }>();
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 10_000, directory: directory(() => h, tokens) });
  ada = await person('Ada');
  admin = await person('Root', true);
});
afterAll(() => h.close());

async function person(name: string, isAdmin = false): Promise<Person> {
  const made = await h.person(name, { admin: isAdmin });
  tokens.set(made.accessToken, { subject: made.subject, expiresAt: h.clock.now() + day });
  return made;
}

/** The page at the UI that decides, for a browser that stands before a private site. */
async function ask(url: string, as: Parameters<Harness['call']>[2] = { as: ada }) {
  const browser = browserOf(h, ada);
  const first = await browser.navigate(url);
  const to = new URL(first.headers['location'] ?? '');
  return await h.call('GET', to.pathname + to.search, {
    ...as,
    headers: { accept: 'text/html', ...as.headers },
  });
}

/** Without the id of the request, which differs each time. */
const bodyOf = (text: string) => text.replace(/Request [\w-]+/, '');

describe('at issue', () => {
  test.each<[string, () => void]>([
    ['a disabled account', () => (principalIs = () => ({ kind: 'disabled' }))],
    ['a deleted account', () => (principalIs = () => ({ kind: 'missing', wasKnown: true }))],
    ['no role', () => (principalIs = (found) => ({ ...found, roles: [] }) as Principal)],
    ['another role only', () => (principalIs = (found) => ({ ...found, roles: ['admin'] }) as Principal)],
    [
      'a token of another subject',
      () => (introspectionIs = (found) => ({ ...found, subject: 'x' }) as Introspection),
    ],
    [
      'a token of another issuer',
      () => (introspectionIs = (found) => ({ ...found, issuer: 'x' }) as Introspection),
    ],
    [
      'a token that ends in 4 seconds',
      () =>
        (introspectionIs = (found) => ({ ...found, expiresAt: h.clock.now() + 4 * second }) as Introspection),
    ],
  ])('T18 ID-01 ID-02 %s gives no access, and every refusal reads the same', async (_what, arrange) => {
    const site = await privateSite(h, ada);
    const unknown = site.url.replace(site.label, 'p-aaaaaaaaaaaaaaaaa');
    const nowhere = await ask(unknown);
    arrange();
    try {
      const refused = await ask(site.url);
      expect([refused.status, refused.headers['set-cookie']]).toEqual([403, undefined]);
      expect(bodyOf(refused.text)).toBe(bodyOf(nowhere.text));
    } finally {
      principalIs = undefined;
      introspectionIs = undefined;
    }
    h.clock.advance(minute);
    expect((await browserOf(h, ada).open(site.url)).status).toBe(200);
  });

  test('ID-05 a revoked token is refused, and the session ends with it', async () => {
    const eve = await person('Eve');
    const site = await privateSite(h, eve);
    tokens.delete(eve.accessToken);
    const refused = await ask(site.url, { as: eve });
    expect([refused.status, refused.text.includes('Sign in again')]).toEqual([401, true]);
    expect((await ask(site.url, { as: eve })).status).toBe(303);
  });

  test('T17 GR-10 while the identity service is down, no new grant is issued, and an existing one runs out', async () => {
    const site = await privateSite(h, ada);
    h.clock.advance(minute);
    const inside = browserOf(h, ada);
    expect((await inside.open(site.url)).status).toBe(200);
    introspectionIs = () => ({ kind: 'unavailable', reason: 'down' });
    const before = asked;
    try {
      const refused = await ask(site.url);
      expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5']);
      expect(asked).toBe(before + 1);
      h.clock.advance(299 * second);
      expect((await inside.asset(site.url)).status).toBe(200);
      h.clock.advance(second);
      expect((await inside.asset(site.url)).status).toBe(401);
      expect(asked).toBe(before + 1);
    } finally {
      introspectionIs = undefined;
    }
  });

  test('T19 an administrator, keys and tokens get no access, whatever their other rights', async () => {
    const site = await privateSite(h, ada);
    const key = await h.key(ada, { scopes: ['sites:read', 'sites:write'] });
    const service = await h.serviceKey({ scopes: ['sites:read'] });
    expect((await ask(site.url, { as: admin })).status).toBe(403);
    expect((await ask(site.url, { as: key })).status).toBe(403);
    expect((await ask(site.url, { as: service })).status).toBe(403);
    expect((await ask(site.url, { as: 'Bearer app_pat_nonsense' })).status).toBe(401);
    const program = await ask(site.url, { as: key, headers: { accept: 'application/json' } });
    expect(program.error.code).toBe('interactive_auth_required');
    await h.app.services.denials.flush({ all: true });
    const auditLog = await h.call('GET', '/audit/events', {
      as: admin,
      query: { target: site.id, outcome: 'denied' },
    });
    expect(auditLog.data).toMatchObject([
      { event: 'site.grant_refused', reason: 'not_owner', actor: { id: admin.user.id } },
    ]);
    for (const as of [admin, key]) {
      const link = await h.call('GET', `/s/${site.id}`, { as, headers: { accept: 'text/html' } });
      expect([link.status, link.text.includes(site.label)]).toEqual([as === admin ? 404 : 403, false]);
    }
  });

  test('T02 no part of the address changes where the code is posted', async () => {
    const site = await privateSite(h, ada);
    const evil = 'http://evil.example';
    const first = await browserOf(h, ada).navigate(site.url);
    const to = new URL(first.headers['location'] ?? '');
    for (const name of ['host', 'target', 'origin', 'url', 'redirect_uri', 'returnTo', 'action'])
      to.searchParams.set(name, evil);
    const shown = await h.call('GET', to.pathname + to.search, { as: ada });
    expect(/action="([^"]+)"/.exec(shown.text)?.[1]).toBe(`${site.url}.postern/redeem`);
    expect(shown.text).not.toContain('evil.example');
    expect(shown.headers).toMatchObject({
      'referrer-policy': 'strict-origin',
      'cache-control': 'no-store',
    });
    const policy = shown.headers['content-security-policy'] ?? '';
    expect(policy).toContain(`form-action ${site.url.slice(0, -1)};`);
    expect(policy).toContain("frame-ancestors 'none'");
    for (const label of [
      site.label.toUpperCase(),
      `${site.label}.`,
      `${site.label}@evil.example`,
      `x${site.label}`,
    ]) {
      to.searchParams.set('label', label);
      expect((await h.call('GET', to.pathname + to.search, { as: ada })).status).toBe(403);
    }
    to.searchParams.append('label', site.label);
    expect((await h.call('GET', to.pathname + to.search, { as: ada })).status).toBe(403);
  });

  test('a signed-out person signs in first and returns to the same address', async () => {
    const site = await privateSite(h, ada);
    const first = await browserOf(h, ada).navigate(`${site.url}a/${'b'.repeat(1_500)}`);
    const to = new URL(first.headers['location'] ?? '');
    const signIn = await h.call('GET', to.pathname + to.search, {});
    const back = new URL(signIn.headers['location'] ?? '', 'http://localhost:3000');
    expect([signIn.status, back.pathname]).toEqual([303, '/auth/login']);
    expect(back.searchParams.get('returnTo')).toBe(to.pathname + to.search);
    const longest = await browserOf(h, ada).navigate(`${site.url}${'b'.repeat(2_047)}`);
    const { pathname, search } = new URL(longest.headers['location'] ?? '');
    expect(safeReturnTo(pathname + search, 'http://localhost:3000')).toBe(pathname + search);
    const unknown = await h.call('GET', '/s/aaaaaaaaaa', {});
    const known = await h.call('GET', `/s/${site.id}`, {});
    expect([unknown.status, known.status]).toEqual([303, 303]);
  });

  test('ten grants in a minute for one person and site are issued, and the eleventh must wait', async () => {
    const site = await privateSite(h, ada);
    const other = await privateSite(h, ada);
    h.clock.advance(2 * minute);
    for (let nth = 0; nth < 10; nth += 1) expect((await ask(site.url)).status).toBe(200);
    const refused = await ask(site.url);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(50);
    expect((await ask(other.url)).status).toBe(200);
    h.clock.advance(minute + second);
    expect((await ask(site.url)).status).toBe(200);
  });
});

describe('the link that stays', () => {
  test('leads everyone to a public site, and only its owner learns of a closed one', async () => {
    const made = await upload(h, ada, { 'index.html': 'hello' }, { visibility: 'public' });
    const { id, url } = made.data;
    const open = await h.call('GET', `/s/${id}`, {});
    expect([open.status, open.headers['location']]).toEqual([302, url]);
    await h.call('DELETE', `/sites/${id}`, { as: ada });
    const html = { accept: 'text/html' };
    const mine = await h.call('GET', `/s/${id}`, { as: ada, headers: html });
    expect([mine.status, mine.text.includes('was deleted')]).toEqual([410, true]);
    expect(mine.text).toContain(`href="/sites/${id}?tab=access"`);
    const theirs = await h.call('GET', `/s/${id}`, { as: admin, headers: html });
    const none = await h.call('GET', '/s/aaaaaaaaaa', { as: admin, headers: html });
    expect([theirs.status, bodyOf(theirs.text)]).toEqual([404, bodyOf(none.text)]);
  });
});

describe('what is left of a grant', () => {
  test('GR-01 GR-03 T13 a grant lasts five minutes from its checks, and no request extends it', async () => {
    const site = await privateSite(h, ada);
    h.clock.advance(minute);
    const browser = browserOf(h, ada);
    const first = await browser.navigate(site.url);
    const { target, code } = await browser.handOver(first.headers['location'] ?? '');
    h.clock.advance(20 * second);
    const redeemed = await browser.redeem(target, code);
    expect(redeemed.setCookies[0]).toMatch(/Max-Age=280$/);
    for (let at = 0; at < 270; at += 10) {
      h.clock.advance(10 * second);
      const shown = await browser.asset(site.url);
      expect([shown.status, shown.setCookies]).toEqual([200, []]);
    }
    h.clock.advance(9_999);
    expect((await browser.asset(site.url)).status).toBe(200);
    h.clock.advance(1);
    expect((await browser.asset(site.url)).status).toBe(401);
    expect((await browser.navigate(site.url)).status).toBe(303);
  });

  test('T11 GR-02 it never lasts longer than the token behind it', async () => {
    const site = await privateSite(h, ada);
    h.clock.advance(minute);
    const endsAt = h.clock.now() + 40 * second;
    introspectionIs = (found) => ({ ...found, expiresAt: endsAt }) as Introspection;
    const browser = browserOf(h, ada);
    try {
      const first = await browser.navigate(site.url);
      const { target, code } = await browser.handOver(first.headers['location'] ?? '');
      expect((await browser.redeem(target, code)).setCookies[0]).toMatch(/Max-Age=40$/);
    } finally {
      introspectionIs = undefined;
    }
    h.clock.set(endsAt - 1);
    expect((await browser.asset(site.url)).status).toBe(200);
    h.clock.set(endsAt);
    expect((await browser.asset(site.url)).status).toBe(401);
  });

  test('T11 T14 with seven seconds left it lasts seven seconds, whatever the clock of the gateway says', async () => {
    for (const clockOffBy of [0, -7 * second, 7 * second]) {
      const site = await privateSite(h, ada);
      h.clock.advance(minute);
      const endsAt = h.clock.now() + 7 * second;
      introspectionIs = (found) => ({ ...found, expiresAt: endsAt }) as Introspection;
      const browser = browserOf(h, ada);
      expect((await browser.open(site.url)).status).toBe(200);
      introspectionIs = undefined;
      const other = await h.another({ clockOffBy });
      const ask = async () => {
        const headers = { cookie: browser.cookies(site.url), ...subresource };
        return (await other.open(site.url, { headers })).statusCode;
      };
      h.clock.set(endsAt - 1);
      expect([clockOffBy, await ask()]).toEqual([clockOffBy, 200]);
      h.clock.set(endsAt);
      expect([clockOffBy, await ask()]).toEqual([clockOffBy, 401]);
      await other.close();
    }
  });

  test('T11 GR-02 with less than five seconds left, or none, no grant is issued', async () => {
    for (const [leftMs, status] of [
      [5 * second, 200],
      [5 * second - 1, 403],
      [second, 403],
      [0, 403],
      [-1, 403],
      [-hour, 403],
    ] as const) {
      const site = await privateSite(h, ada);
      h.clock.advance(minute);
      const endsAt = h.clock.now() + leftMs;
      introspectionIs = (found) => ({ ...found, expiresAt: endsAt }) as Introspection;
      const browser = browserOf(h, ada);
      try {
        const first = await browser.navigate(site.url);
        const shown = await browser.handOver(first.headers['location'] ?? '');
        expect([leftMs, shown.status, shown.code !== '']).toEqual([leftMs, status, status === 200]);
      } finally {
        introspectionIs = undefined;
      }
    }
  });

  test('a grant ends with the site, to the second', async () => {
    const made = await upload(h, ada, { 'index.html': 'short' }, { visibility: 'private', ttlHours: '1' });
    h.clock.advance(58 * minute);
    const browser = browserOf(h, ada);
    expect((await browser.open(made.data.url)).status).toBe(200);
    h.clock.advance(2 * minute - 1);
    expect((await browser.asset(made.data.url)).status).toBe(200);
    h.clock.advance(1);
    expect((await browser.asset(made.data.url)).status).toBe(401);
    expect((await ask(made.data.url)).status).toBe(403);
  });
});

describe('kill switches', () => {
  const opened = async () => {
    const site = await privateSite(h, ada);
    h.clock.advance(minute);
    const browser = browserOf(h, ada);
    expect((await browser.open(site.url)).status).toBe(200);
    return { site, browser };
  };
  const send = (method: string, path: string, body?: unknown) =>
    h.call(method, path, { as: ada, ...(body === undefined ? {} : { body }) });

  test('the owner ends every grant at once, and may open the site again', async () => {
    const { site, browser } = await opened();
    const ended = await send('DELETE', `/sites/${site.id}/grants`);
    expect([ended.status, ended.data.id]).toEqual([200, site.id]);
    expect((await browser.asset(site.url)).status).toBe(401);
    expect((await browser.open(site.url)).status).toBe(200);
  });

  test('GR-11 T20 private, public, private again: the old cookie opens nothing, at no address', async () => {
    const { site, browser } = await opened();
    const cookies = browser.cookies(site.url);
    await send('PATCH', `/sites/${site.id}`, { visibility: 'public' });
    expect((await browser.asset(site.url)).status).toBe(401);
    const again = await send('PATCH', `/sites/${site.id}`, { visibility: 'private' });
    for (const url of [site.url, again.data.url])
      expect(
        (await h.open(url, { headers: { cookie: cookies, 'sec-fetch-mode': 'no-cors' } })).statusCode,
      ).toBe(401);
  });

  test('GR-11 a deleted site closes at once, and a restored one does not revive the grant', async () => {
    const { site, browser } = await opened();
    await send('DELETE', `/sites/${site.id}`);
    expect((await browser.asset(site.url)).status).toBe(401);
    await send('POST', `/sites/${site.id}/restore`);
    expect((await browser.asset(site.url)).status).toBe(401);
    expect((await browser.open(site.url)).status).toBe(200);
  });

  test('GR-11 disabling the owner issues no new grant; the existing grant runs out', async () => {
    const { site, browser } = await opened();
    principalIs = () => ({ kind: 'disabled' });
    try {
      expect((await browser.asset(site.url)).status).toBe(200);
      expect((await ask(site.url)).status).toBe(403);
      h.clock.advance(5 * minute);
      expect((await browser.asset(site.url)).status).toBe(401);
    } finally {
      principalIs = undefined;
    }
  });

  test('GW-06 Sites off closes everything; after it is on again, earlier grants stay ended', async () => {
    const { site, browser } = await opened();
    const current = await h.call('GET', '/config/sites', { as: admin });
    const put = (enabled: boolean, etag: string) =>
      h.call('PUT', '/config/sites', {
        as: admin,
        headers: { 'if-match': etag },
        body: { ...current.data.config, enabled },
      });
    const off = await put(false, current.headers['etag'] ?? '');
    expect(off.status).toBe(200);
    expect((await browser.asset(site.url)).status).toBe(404);
    const page = await h.call('GET', `/s/${site.id}`, { as: ada, headers: { accept: 'text/html' } });
    expect([page.status, page.text.includes('switched off')]).toEqual([403, true]);
    await put(true, off.headers['etag'] ?? '');
    expect((await browser.asset(site.url)).status).toBe(401);
    const ledger = async () =>
      (await h.call('GET', `/sites/${site.id}/access`, { as: ada })).data.grants.map(
        ({ status }: { status: string }) => status,
      );
    expect(await ledger()).toEqual(['ended']);
    h.clock.advance(1);
    expect((await browser.open(site.url)).status).toBe(200);
    expect(await ledger()).toEqual(['live', 'ended']);
  });

  test('a preview of a version opens in the same way, for its day', async () => {
    const { site } = await opened();
    const made = await send('POST', `/sites/${site.id}/versions/1/preview`);
    const browser = browserOf(h, ada);
    const shown = await browser.open(made.data.url);
    expect([shown.status, shown.text.includes('secret')]).toEqual([200, true]);
    expect((await ask(made.data.url, { as: admin })).status).toBe(403);
    for (let third = 0; third < 3; third += 1) {
      expect((await ask(made.data.url)).status).toBe(200);
      h.clock.advance(8 * hour);
    }
    expect((await ask(made.data.url)).status).toBe(403);
  });
});

test('the ledger shows a grant as live when it opens the site, and not while the site is down', async () => {
  const site = await privateSite(h, ada);
  h.clock.advance(minute);
  const browser = browserOf(h, ada);
  await browser.open(site.url);
  const told = async () => {
    const { data } = await h.call('GET', `/sites/${site.id}/access`, { as: ada });
    return [data.grants[0].status, (await browser.asset(site.url)).status === 200];
  };
  expect(await told()).toEqual(['live', true]);
  const stopper = await person('Stopper', true);
  const stop = await h.call('POST', `/sites/${site.id}/take-down`, {
    as: stopper,
    body: { reason: 'reported' },
  });
  expect(stop.status).toBe(200);
  expect(await told()).toEqual(['ended', false]);
  await h.call('POST', `/sites/${site.id}/put-back`, { as: stopper });
  expect(await told()).toEqual(['ended', false]);
});

test('only the owner reads who got grants, and why the site opens', async () => {
  const auditor = await person('Auditor', true);
  const site = await privateSite(h, ada);
  h.clock.advance(minute);
  await browserOf(h, ada).open(site.url);
  const read = await h.call('GET', `/sites/${site.id}/access`, { as: ada });
  expect(read.data).toMatchObject({ opens: true, link: site.link });
  expect(read.data.checks).toContainEqual({
    check: 'gateway_running',
    passed: true,
    detail: 'The site server is healthy.',
  });
  expect(read.data.grants).toMatchObject([{ status: 'live', id: expect.stringMatching(/^grt_/) }]);
  await h.call('DELETE', `/sites/${site.id}/grants`, { as: ada });
  const after = await h.call('GET', `/sites/${site.id}/access`, { as: ada });
  expect(after.data.grants).toMatchObject([{ status: 'ended' }]);
  expect((await h.call('GET', `/sites/${site.id}/access`, { as: auditor })).status).toBe(404);
  expect((await h.call('DELETE', `/sites/${site.id}/grants`, { as: auditor })).status).toBe(404);
  const key = await h.key(ada, { scopes: ['sites:read', 'sites:write'] });
  expect((await h.call('GET', `/sites/${site.id}/access`, { as: key })).error.code).toBe(
    'interactive_auth_required',
  );
  const auditLog = await h.call('GET', '/audit/events', {
    as: auditor,
    query: { target: site.id, event: 'site.grant_issued' },
  });
  expect(auditLog.data).toMatchObject([{ actor: { id: ada.user.id }, outcome: 'success' }]);
  expect(JSON.stringify(auditLog.data)).not.toMatch(/[\w-]{43}/);
  h.clock.advance(31 * day);
  await h.app.jobs.runNow('grant-ledger');
  expect((await h.app.services.read.grants.page(site.id, 1, 10)).total).toBe(0);
});

test('an older secret behind a new one still verifies', () => {
  const old = createGrantSigner(['the old secret'], systemRandom);
  const both = createGrantSigner(['the new secret', 'the old secret'], systemRandom);
  const now = 0;
  expect(both.decryptPath(old.encryptPath('/a', 'host', now), 'host', now)).toBe('/a');
  expect(both.decryptPath(old.encryptPath('/a', 'host', now), 'other', now)).toBeUndefined();
  expect(both.decryptPath(old.encryptPath('/a', 'host', now), 'host', 60 * minute)).toBeUndefined();
  const { cookie, key } = old.grantOf('a code');
  expect([both.grantKeyOf(cookie), both.verify('k', old.sign('k', 'text'))]).toEqual([key, 'text']);
  expect(old.verify('k', both.sign('k', 'text'))).toBeUndefined();
});
