import type { InjectOptions } from 'fastify';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { day, hour, minute } from '../../../core/clock.ts';
import {
  admin,
  type Answer,
  Browser,
  frozenTime,
  type IdentityApp,
  openIdentityApp,
  uiOrigin,
  withAdministrator,
} from '../../../../test/identity.ts';
import { sql } from '../../../platform/database/sql.ts';

const clock = frozenTime();
let open: IdentityApp;
let browser: Browser;

beforeAll(async () => {
  open = await openIdentityApp(clock);
  await withAdministrator(open);
});
afterAll(() => open.close());
beforeEach(() => {
  browser = new Browser(open.app);
  // Beyond the throttle's window, so that no test sees the failures of another.
  clock.advance(20 * minute);
});

const session = '__Host-postern_session';
const device = '__Host-postern_device';

class BrowserAt extends Browser {
  readonly #address: string;

  constructor(address: string) {
    super(open.app);
    this.#address = address;
  }

  override async send(options: InjectOptions): Promise<Answer> {
    return await super.send({ ...options, remoteAddress: this.#address });
  }
}

const sessionKind = async (value = browser.cookies.get(session) ?? '') =>
  (await open.identity.sessions.authenticate(value)).kind;

let made = 0;
async function makePerson(overrides: object = {}) {
  made += 1;
  const email = `person${made}@example.com`;
  const password = 'a long enough password';
  const { account } = await open.identity.accounts.create(
    {
      actor: { kind: 'system', id: null, name: null, credential: null },
      origin: { requestId: null, address: null, agent: null },
    },
    { email, name: `Person ${made}`, roles: ['user'], groups: [], enabled: true, password, ...overrides },
  );
  return { email, password, account };
}

describe('signing in', () => {
  test('a person signs in with e-mail and password and comes back to where they were', async () => {
    const answer = await browser.signIn(admin.email, admin.password, '/keys?filter=active');
    expect(answer.status).toBe(303);
    expect(answer.location).toBe('/keys?filter=active');
    const found = await open.identity.sessions.authenticate(browser.cookies.get(session) ?? '');
    expect(found).toMatchObject({ kind: 'active', session: { user: { name: 'ada' } } });
    expect(open.audit.map(({ event }) => event)).toContain('session.started');
  });

  test('the case of an e-mail address does not matter', async () => {
    expect((await browser.signIn('ADA@Example.com', admin.password)).location).toBe('/after');
  });

  // I with a dot, the Kelvin sign and the long s: JavaScript and databases do not agree about their small letters.
  test.each(['\u0130', '\u212A', '\u017F'])(
    '%s is no other spelling of an account, so it is no way around its limit',
    async (letter) => {
      const ascii = { '\u0130': 'i', '\u212A': 'k', '\u017F': 's' }[letter] ?? '';
      const email = `${ascii}-spelled@example.com`;
      const { password } = await makePerson({ email });
      const otherwise = `${letter}-spelled@example.com`;
      expect((await new Browser(open.app).signIn(otherwise, password)).status).toBe(401);
      for (let count = 0; count < 10; count += 1)
        expect((await new Browser(open.app).signIn(email.toUpperCase(), 'wrong wrong')).status).toBe(401);
      expect((await browser.signIn(email, password)).status).toBe(429);
      expect((await browser.signIn(otherwise, password)).status).toBe(401);
      expect(browser.cookies.has(session)).toBe(false);
      expect(await open.identity.accounts.findByEmail(otherwise)).toBeUndefined();
    },
  );

  test('an e-mail address is taken in whatever case it is written', async () => {
    const person = await makePerson();
    await expect(makePerson({ email: person.email.toUpperCase() })).rejects.toMatchObject({
      code: 'name_conflict',
    });
  });

  test('a wrong password and an unknown account get the same words and no session', async () => {
    const wrong = await browser.signIn(admin.email, 'not the password');
    const unknown = await new Browser(open.app).signIn('nobody@example.com', 'not the password');
    expect([wrong.status, unknown.status]).toEqual([401, 401]);
    expect(wrong.text).toContain('do not match an account');
    const problem = /role="alert">([^<]+)</;
    expect(problem.exec(unknown.text)?.[1]).toBe(problem.exec(wrong.text)?.[1]);
    expect(browser.cookies.has(session)).toBe(false);
  });

  test('after a wrong password the page says who can set another one, the same whether there is an account or not', async () => {
    expect((await browser.follow(await browser.get('/auth/login'))).text).not.toContain('reset-password');
    const help = /<h2>.*<\/ul>/s;
    const wrong = await browser.signIn(admin.email, 'not the password');
    expect(help.exec(wrong.text)?.[0]).toContain('npm start --silent -- admin reset-password');
    const unknown = await new Browser(open.app).signIn('nobody@example.com', 'not the password');
    expect(help.exec(unknown.text)?.[0]).toBe(help.exec(wrong.text)?.[0]);
    const disabled = await makePerson({ enabled: false });
    expect((await browser.signIn(disabled.email, disabled.password)).text).not.toContain('reset-password');
  });

  test('what a person typed is shown again as text, never as markup, and never the password', async () => {
    const action = await browser.openSignIn();
    const answer = await browser.post(action, {
      email: '"><script>alert(1)</script>',
      password: 'hunter2-hunter2',
      decision: 'sign-in',
    });
    expect(answer.text).toContain('&lt;script&gt;');
    expect(answer.text).not.toContain('<script>alert');
    expect(answer.text).not.toContain('hunter2-hunter2');
  });

  test('a disabled account is told so only with the right password, and gets no session', async () => {
    const person = await makePerson({ enabled: false });
    const right = await browser.signIn(person.email, person.password);
    expect(right.status).toBe(403);
    expect(right.text).toContain('disabled');
    const wrong = await new Browser(open.app).signIn(person.email, 'not the password');
    expect(wrong.text).not.toContain('is disabled');
    expect(browser.cookies.has(session)).toBe(false);
  });

  test('after ten wrong passwords an account waits, also with the right one, for at most a quarter of an hour', async () => {
    const person = await makePerson();
    const action = await browser.openSignIn();
    const attempt = (password: string) =>
      browser.post(action, { email: person.email, password, decision: 'sign-in' });
    for (let count = 0; count < 10; count += 1) expect((await attempt('wrong wrong')).status).toBe(401);
    const refused = await attempt(person.password);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(open.refusals).toContainEqual({ reason: 'throttled', userId: null });
    clock.advance(15 * minute);
    expect((await new Browser(open.app).signIn(person.email, person.password)).location).toBe('/after');
  });

  test('parallel wrong passwords do not slip past the throttle', async () => {
    const person = await makePerson();
    const action = await browser.openSignIn();
    const answers = await Promise.all(
      Array.from({ length: 25 }, () =>
        browser.post(action, { email: person.email, password: 'wrong wrong', decision: 'sign-in' }),
      ),
    );
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(10);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(15);
  });

  test('a stranger’s wrong passwords from everywhere keep out strangers, not the owner', {
    tags: 'flood',
  }, async () => {
    const person = await makePerson();
    await browser.signIn(person.email, person.password);
    expect(browser.cookies.get(device)).toMatch(/^\d{10}\.[\w-]{22}\.[\w-]{43}$/);
    await browser.post('/auth/logout', {});
    // A day later its address is forgotten; the cookie is not.
    clock.advance(25 * hour);
    for (let address = 1; address <= 10; address += 1) {
      const stranger = new BrowserAt(`192.0.2.${address}`);
      for (let count = 0; count < 10; count += 1) await stranger.signIn(person.email, 'wrong wrong');
    }
    const clean = new BrowserAt('192.0.2.200');
    expect((await clean.signIn(person.email, person.password)).status).toBe(429);
    const elsewhere = new BrowserAt('192.0.2.201');
    elsewhere.cookies.set(device, browser.cookies.get(device) ?? '');
    expect((await elsewhere.signIn(person.email, person.password)).location).toBe('/after');
    // The address where the owner is now is known for a day, also to a browser without the cookie.
    expect((await new BrowserAt('192.0.2.201').signIn(person.email, person.password)).location).toBe(
      '/after',
    );
  });

  test('a device is known after a right password only, and to that account only', async () => {
    const [person, other] = [await makePerson(), await makePerson()];
    await browser.signIn(person.email, 'not the password');
    expect(browser.cookies.has(device)).toBe(false);
    await browser.signIn(person.email, person.password);
    expect(browser.cookies.has(device)).toBe(true);
    for (let address = 1; address <= 10; address += 1) {
      const stranger = new BrowserAt(`198.51.100.${address}`);
      for (let count = 0; count < 10; count += 1) await stranger.signIn(other.email, 'wrong wrong');
    }
    const guesser = new BrowserAt('198.51.100.200');
    guesser.cookies.set(device, browser.cookies.get(device) ?? '');
    expect((await guesser.signIn(other.email, other.password)).status).toBe(429);
  });

  test('the link of a site, which redirects to another host, is opened by a page and not by a redirect', async () => {
    const answer = await browser.signIn(admin.email, admin.password, '/s/aaaaaaaaaa?a=1&b="');
    expect([answer.status, answer.location]).toEqual([200, undefined]);
    expect(answer.text).toContain('http-equiv="refresh" content="0;url=/s/aaaaaaaaaa?a=1&amp;b=%22"');
    expect(answer.text).toContain('<a class="button" href="/s/aaaaaaaaaa?a=1&amp;b=%22" id="next">');
    expect(answer.headers['content-security-policy']).toMatch(/default-src 'none'.*form-action 'self';/);
    expect(await sessionKind()).toBe('active');
  });

  test('an answer that belongs to no sign-in of this browser is refused', async () => {
    const start = await browser.get('/auth/login');
    const state = new URL(start.location ?? '').searchParams.get('state');
    const stranger = new Browser(open.app);
    await stranger.get('/auth/login');
    const iss = encodeURIComponent(`${uiOrigin}/identity`);
    const answer = await stranger.get(`/auth/callback?code=abc&state=${state}&iss=${iss}`);
    expect(answer.status).toBe(400);
    expect(stranger.cookies.has(session)).toBe(false);
  });

  test('an answer is used once: going back to it does not sign in again', async () => {
    const action = await browser.openSignIn();
    const resume = await browser.post(action, { ...admin, decision: 'sign-in' });
    const callback = await browser.get(new URL(resume.location ?? '').pathname);
    const url = new URL(callback.location ?? '');
    expect((await browser.get(url.pathname + url.search)).status).toBe(303);
    const before = browser.cookies.get(session);
    const again = await browser.get(url.pathname + url.search);
    expect([again.status, again.location]).toEqual([303, '/after']);
    expect(browser.cookies.get(session)).toBe(before);
    expect(await sessionKind()).toBe('active');
  });

  test('the form of a finished sign-in leads a signed-in person back to the page that they opened', async () => {
    const action = await browser.openSignIn('/keys?filter=active');
    let answer = await browser.post(action, { ...admin, decision: 'sign-in' });
    for (let hop = 0; hop < 2; hop += 1) {
      const url = new URL(answer.location ?? '', uiOrigin);
      answer = await browser.get(url.pathname + url.search);
    }
    expect(answer.location).toBe('/keys?filter=active');
    const back = await browser.get(action);
    expect([back.status, back.location]).toEqual([303, '/keys?filter=active']);
    browser.cookies.set('__Host-postern_return', encodeURIComponent('//evil.example/'));
    expect((await browser.get(action)).location).toBe('/');
    browser.cookies.set('__Host-postern_return', '%');
    expect((await browser.get(action)).location).toBe('/');
  });

  test('without a session, the form of a finished sign-in offers to sign in again and return to the same page', async () => {
    const action = await browser.openSignIn('/s/aaaaaaaaaa');
    await browser.post(action, { ...admin, decision: 'sign-in' });
    const back = await browser.get(action);
    expect(back.status).toBe(400);
    expect(back.text).toContain('href="/auth/login?returnTo=%2Fs%2Faaaaaaaaaa"');
    browser.cookies.set('__Host-postern_return', encodeURIComponent('https://evil.example/'));
    expect((await browser.get(action)).text).toContain('href="/auth/login?returnTo=%2F"');
  });

  test('five sign-ins can be open in one browser; the sixth ends the oldest', async () => {
    const states: string[] = [];
    for (let count = 0; count < 6; count += 1) {
      const { location } = await browser.get('/auth/login');
      states.push(new URL(location ?? '').searchParams.get('state') ?? '');
      clock.advance(10);
    }
    const finish = (state: string | undefined) =>
      browser.get(`/auth/callback?error=access_denied&state=${state}`);
    expect((await finish(states[0])).text).toContain('started in another browser');
    expect((await finish(states[1])).text).toContain('cancelled');
    expect((await finish(states[5])).text).toContain('cancelled');
  });

  test('two sign-in pages open at once do not disturb each other', async () => {
    const first = await browser.openSignIn('/first');
    const second = await browser.openSignIn('/second');
    expect((await browser.get(first)).status).toBe(200);
    expect((await browser.get(second)).status).toBe(200);
    const resume = await browser.post(first, { ...admin, decision: 'sign-in' });
    const callback = await browser.get(new URL(resume.location ?? '').pathname);
    const url = new URL(callback.location ?? '');
    expect((await browser.get(url.pathname + url.search)).location).toBe('/first');
  });

  test('opening the sign-in page again and again does not fill the browser with cookies', async () => {
    for (let count = 0; count < 20; count += 1) await browser.openSignIn();
    const header = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    expect(header.length).toBeLessThan(4_096);
  });

  test('a finished sign-in leaves no cookie of its steps behind', async () => {
    await browser.signIn(admin.email, admin.password);
    const left = [...browser.cookies.keys()].filter((name) => /interaction|resume/.test(name));
    expect(left).toEqual([]);
  });

  test('a sign-in page in another browser shows nothing of it', async () => {
    const action = await browser.openSignIn();
    const answer = await new Browser(open.app).get(action);
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('expired');
  });
});

describe('sessions', () => {
  test('CS-04 signing in gives a new session id and ends the one the browser held', async () => {
    await browser.signIn(admin.email, admin.password);
    const before = browser.cookies.get(session) ?? '';
    await browser.follow(await browser.get('/auth/login'));
    const after = browser.cookies.get(session) ?? '';
    expect(after).not.toBe(before);
    expect(await sessionKind(before)).toBe('none');
    expect(await sessionKind(after)).toBe('active');
  });

  test('CS-04 a session value chosen by someone else is never adopted', async () => {
    browser.cookies.set(session, `${'A'.repeat(43)}.${'B'.repeat(43)}`);
    await browser.signIn(admin.email, admin.password);
    expect(browser.cookies.get(session)).not.toContain('A'.repeat(43));
    expect(await sessionKind()).toBe('active');
  });

  test('CS-04 after logout the old value is dead here and, within a second, on every other process', async () => {
    const other = await open.another();
    await other.feed.poll();
    await browser.signIn(admin.email, admin.password);
    const value = browser.cookies.get(session) ?? '';
    expect((await other.identity.sessions.authenticate(value)).kind).toBe('active');
    const answer = await browser.post('/auth/logout', {});
    expect(answer.location).toBe('/auth/signed-out');
    expect(await sessionKind(value)).toBe('none');
    await other.feed.poll();
    expect((await other.identity.sessions.authenticate(value)).kind).toBe('none');
    await other.close();
  });

  test('after logout the next person at this browser has to sign in', async () => {
    await browser.signIn(admin.email, admin.password);
    await browser.post('/auth/logout', {});
    const page = await browser.follow(await browser.get('/auth/login'));
    expect(page.text).toContain('type="password"');
    expect((await browser.get('/auth/signed-out')).text).toContain('You are signed out');
  });

  test('after logout a copy of the cookies signs nobody in without a password', async () => {
    await browser.signIn(admin.email, admin.password);
    const copy = new Browser(open.app);
    for (const [name, value] of browser.cookies) copy.cookies.set(name, value);
    await browser.post('/auth/logout', {});
    const page = await copy.follow(await copy.get('/auth/login'));
    expect(page.text).toContain('type="password"');
    expect(await sessionKind(copy.cookies.get(session))).toBe('none');
  });

  test('a program that logs out gets 204, and logging out twice is no error', async () => {
    await browser.signIn(admin.email, admin.password);
    expect((await browser.post('/auth/logout', {}, { accept: 'application/json' })).status).toBe(204);
    expect((await browser.post('/auth/logout', {}, { accept: 'application/json' })).status).toBe(204);
  });

  test('a session ends after twelve idle hours, and after seven days however busy', async () => {
    await browser.signIn(admin.email, admin.password);
    clock.advance(12 * hour - 1);
    expect(await sessionKind()).toBe('active');
    clock.advance(12 * hour);
    expect(await sessionKind()).toBe('none');

    await browser.signIn(admin.email, admin.password);
    const started = clock.now();
    while (clock.now() + 6 * hour < started + 7 * day) {
      clock.advance(6 * hour);
      expect(await sessionKind()).toBe('active');
    }
    clock.advance(6 * hour);
    expect(await sessionKind()).toBe('none');
  });

  test('a fresh sign-in asks for the password when it is two hours old, with the address of the person', async () => {
    await browser.signIn(admin.email, admin.password);
    const signedInAt = clock.now();
    const authenticatedAt = async () => {
      const found = await open.identity.sessions.authenticate(browser.cookies.get(session) ?? '');
      return found.kind === 'active' ? found.session.authenticatedAt : undefined;
    };
    clock.advance(119 * minute);
    expect((await browser.follow(await browser.get('/auth/login?fresh=true'))).text).not.toContain(
      'password',
    );
    expect(await authenticatedAt()).toBe(signedInAt);

    clock.advance(2 * minute);
    // An ordinary sign-in still needs no password.
    expect((await browser.follow(await browser.get('/auth/login'))).text).not.toContain('password');
    const page = await browser.follow(await browser.get('/auth/login?fresh=true&returnTo=/settings/keys'));
    expect(page.text).toContain('type="password"');
    expect(page.text).toContain(`value="${admin.email}"`);
    const action = /<form method="post" action="([^"]+)"/.exec(page.text)?.[1] ?? '';
    const done = await browser.post(action, { ...admin, decision: 'sign-in' });
    await browser.follow(done);
    expect(await authenticatedAt()).toBe(clock.now());
  });

  test('another person at a fresh sign-in is signed in instead, and the first session ends', async () => {
    const { email, password } = await makePerson();
    await browser.signIn(admin.email, admin.password);
    const before = browser.cookies.get(session);
    clock.advance(121 * minute);
    const page = await browser.follow(await browser.get('/auth/login?fresh=true'));
    const action = /<form method="post" action="([^"]+)"/.exec(page.text)?.[1] ?? '';
    const done = await browser.follow(await browser.post(action, { email, password, decision: 'sign-in' }));
    // The provider first ends its session of the first person, by a form that a script submits.
    const hidden = (name: string) => new RegExp(`name="${name}" value="([^"]+)"`).exec(done.text)?.[1] ?? '';
    const confirm = new URL(/action="([^"]+)"/.exec(done.text)?.[1] ?? '').pathname;
    await browser.follow(await browser.post(confirm, { xsrf: hidden('xsrf'), logout: hidden('logout') }));
    const found = await open.identity.sessions.authenticate(browser.cookies.get(session) ?? '');
    expect(found).toMatchObject({
      kind: 'active',
      session: { user: { name: expect.stringContaining('Person') } },
    });
    expect(await sessionKind(before)).toBe('none');
  });

  test('use keeps a session alive across a restart once it was written down', async () => {
    await browser.signIn(admin.email, admin.password);
    const value = browser.cookies.get(session) ?? '';
    clock.advance(11 * hour);
    expect(await sessionKind(value)).toBe('active');
    await open.identity.stop();
    clock.advance(11 * hour);
    const restarted = await open.another();
    expect((await restarted.identity.sessions.authenticate(value)).kind).toBe('active');
    await restarted.close();
  });

  test('disabling an account ends its sessions at once', async () => {
    const person = await makePerson();
    await browser.signIn(person.email, person.password);
    const boss = new Browser(open.app);
    await boss.signIn(admin.email, admin.password);
    expect((await boss.api('PATCH', `/users/${person.account.userId}`, { enabled: false })).status).toBe(200);
    expect(await sessionKind()).toBe('none');
  });
});

describe('the list of sessions', () => {
  const listed = async (path = '/me/sessions', as = browser) =>
    ((await as.api('GET', path)).json() as { data: Record<string, unknown>[] }).data;
  const administrator = async () => {
    const root = new Browser(open.app);
    await root.signIn(admin.email, admin.password);
    return root;
  };

  test('shows each browser of the person with its sign-in, and which one asks', async () => {
    const { email, password, account } = await makePerson();
    await browser.signIn(email, password);
    const other = new BrowserAt('192.0.2.77');
    clock.advance(minute);
    await other.signIn(email, password);
    const sessions = await listed();
    expect(sessions).toHaveLength(2);
    expect(sessions.find(({ isCurrent }) => isCurrent === false)).toMatchObject({
      address: '192.0.2.77',
      createdAt: new Date(clock.now()).toISOString(),
      authenticatedAt: new Date(clock.now()).toISOString(),
    });
    const seen = await listed(`/users/${account.userId}/sessions`, await administrator());
    expect(seen.map(({ isCurrent }) => isCurrent)).toEqual([false, false]);
  });

  test('ends one: that browser is signed out at once, and must prove who it is again', async () => {
    const { email, password } = await makePerson();
    const other = new Browser(open.app);
    await other.signIn(email, password);
    await browser.signIn(email, password);
    const lost = (await listed()).find(({ isCurrent }) => isCurrent === false);
    expect((await browser.api('DELETE', `/me/sessions/${String(lost?.['id'])}`)).status).toBe(200);
    expect((await other.api('GET', '/me/sessions')).status).toBe(401);
    const page = await other.follow(await other.get('/auth/login'));
    expect(page.text).toContain('type="password"');
    expect(await sessionKind()).toBe('active');
    expect(open.audit.at(-1)).toMatchObject({ event: 'session.ended', reason: 'ended_by_person' });
    expect((await browser.api('DELETE', `/me/sessions/${String(lost?.['id'])}`)).status).toBe(404);
  });

  /** Another browser of the person, and what ends its session from the first. */
  async function lostBrowser() {
    const { email, password } = await makePerson();
    const lost = new Browser(open.app);
    await lost.signIn(email, password);
    clock.advance(1_000);
    await browser.signIn(email, password);
    const [other] = (await listed()).filter(({ isCurrent }) => isCurrent === false);
    const end = () => browser.api('DELETE', `/me/sessions/${String(other?.['id'])}`);
    return { lost, end };
  }
  const asksForPassword = async (who: Browser, path = '/auth/login') =>
    (await who.follow(await who.get(path))).text.includes('type="password"');

  test('an ended browser must type the password, also for a sign-in that began before', async () => {
    const { lost, end } = await lostBrowser();
    // A sign-in that was begun and dropped, and a code of the provider that was not used yet.
    await lost.get((await lost.get('/auth/login')).location ?? '');
    let step = await lost.get('/auth/login?returnTo=/kept');
    while (step.location !== undefined && !step.location.includes('/auth/callback')) {
      const { pathname, search } = new URL(step.location, 'http://localhost:3000');
      step = await lost.get(pathname + search);
    }
    const { pathname, search } = new URL(step.location ?? '', 'http://localhost:3000');
    clock.advance(1_000);
    expect((await end()).status).toBe(200);
    expect((await lost.follow(await lost.get(pathname + search))).status).toBe(400);
    expect((await lost.api('GET', '/me/sessions')).status).toBe(401);
    expect(await asksForPassword(lost)).toBe(true);
  });

  test('a copy of the cookies of an ended browser signs nobody in', async () => {
    const { lost, end } = await lostBrowser();
    const copy = new Browser(open.app);
    for (const [name, value] of lost.cookies) copy.cookies.set(name, value);
    clock.advance(1_000);
    expect((await end()).status).toBe(200);
    expect(await asksForPassword(copy)).toBe(true);
  });

  test('the ended browser signs in again with the password', async () => {
    const { email, password } = await makePerson();
    await browser.signIn(email, password);
    const lost = new Browser(open.app);
    await lost.signIn(email, password);
    clock.advance(1_000);
    expect((await browser.api('DELETE', '/me/sessions')).json()).toMatchObject({ data: { ended: 1 } });
    clock.advance(1_000);
    await lost.signIn(email, password);
    expect((await lost.api('GET', '/me/sessions')).status).toBe(200);
  });

  test('a fresh sign-in that the person does not finish changes nothing', async () => {
    const { email, password } = await makePerson({ roles: ['user', 'admin'] });
    await browser.signIn(email, password);
    clock.advance(121 * minute);
    expect(await asksForPassword(browser, '/auth/login?fresh=true')).toBe(true);
    expect((await browser.api('GET', '/users')).status).toBe(200);
  });

  test('ends every other one of the person, and none of anyone else', async () => {
    const { email, password } = await makePerson();
    const browsers = [new Browser(open.app), new Browser(open.app)];
    for (const other of browsers) await other.signIn(email, password);
    const neighbour = new Browser(open.app);
    const { email: otherEmail, password: otherPassword } = await makePerson();
    await neighbour.signIn(otherEmail, otherPassword);
    await browser.signIn(email, password);
    expect((await browser.api('DELETE', '/me/sessions')).json()).toMatchObject({ data: { ended: 2 } });
    expect((await listed()).map(({ isCurrent }) => isCurrent)).toEqual([true]);
    expect(await listed('/me/sessions', neighbour)).toHaveLength(1);
    const [foreign] = await listed('/me/sessions', neighbour);
    expect((await browser.api('DELETE', `/me/sessions/${String(foreign?.['id'])}`)).status).toBe(404);
    expect(await listed('/me/sessions', neighbour)).toHaveLength(1);
  });

  test('an administrator ends one session of a person, or all', async () => {
    const { email, password, account } = await makePerson();
    const other = new Browser(open.app);
    await other.signIn(email, password);
    const root = await administrator();
    const [only] = await listed(`/users/${account.userId}/sessions`, root);
    const one = await root.api('DELETE', `/users/${account.userId}/sessions/${String(only?.['id'])}`);
    expect(one.status).toBe(200);
    expect(open.audit.at(-1)).toMatchObject({ event: 'session.ended', reason: 'ended_by_administrator' });
    expect((await other.api('GET', '/me/sessions')).status).toBe(401);
    await other.signIn(email, password);
    const all = await root.api('DELETE', `/users/${account.userId}/sessions`);
    expect(all.json()).toMatchObject({ data: { ended: 1 } });
    expect((await other.api('GET', '/me/sessions')).status).toBe(401);
    expect((await root.api('GET', '/users/usr_nobody/sessions')).status).toBe(404);
  });
});

describe('what anyone may start', () => {
  test('the sixty-first sign-in of a minute from one address waits, and a minute later it may again', async () => {
    const start = async () => await new Browser(open.app).get('/auth/login');
    for (let count = 0; count < 60; count += 1) expect((await start()).status).toBe(303);
    const refused = await start();
    expect(refused.status).toBe(429);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    clock.advance(1 * minute);
    expect((await start()).status).toBe(303);
  });

  test('abandoned sign-ins leave no rows behind, however many there were', async () => {
    const { sql: db } = open.database;
    await sql`
      insert into login_attempts (state_hash, browser_hash, sealed, return_to, created_at, expires_at)
      select 'swept-' || n, 'swept', '', '/', ${new Date(0)}, ${new Date(0)} from generate_series(1, 10001) n`.run(
      db,
    );
    await open.identity.jobs.find(({ name }) => name === 'identity-sweep')?.run(AbortSignal.any([]));
    const rows = await sql<{ left: number }>`
      select count(*)::int as left from login_attempts where expires_at <= ${new Date(clock.now())}`.all(db);
    expect(rows).toEqual([{ left: 0 }]);
  });
});

describe('cookies and forms', () => {
  test('CS-03 every cookie of a whole sign-in is __Host-, Secure, HttpOnly, SameSite, without a Domain', async () => {
    await browser.signIn(admin.email, 'not the password');
    await browser.signIn(admin.email, admin.password);
    await browser.post('/auth/logout', {});
    expect(browser.setCookies.length).toBeGreaterThan(8);
    for (const line of browser.setCookies) {
      expect(line).toMatch(/^__Host-/);
      expect(line).toMatch(/; *secure/i);
      expect(line).toMatch(/; *httponly/i);
      expect(line).toMatch(/; *samesite=(lax|strict)/i);
      expect(line).toMatch(/; *path=\/(;|$)/i);
      expect(line).not.toMatch(/domain=/i);
      expect(line.length).toBeLessThanOrEqual(4_096);
    }
  });

  test.each([
    ['another site', { origin: 'https://evil.example' }],
    ['no page at all', { origin: '' }],
    ['a sandboxed page', { origin: 'null' }],
    ['our origin, but the browser says cross-site', { 'sec-fetch-site': 'cross-site' }],
  ])('CS-01 a form posted by %s changes nothing', async (_who, headers) => {
    await browser.signIn(admin.email, admin.password);
    const action = '/identity/interaction/any';
    for (const path of [
      '/auth/logout',
      '/auth/setup',
      action,
      '/identity/device',
      '/identity/session/end/confirm',
    ]) {
      const answer = await browser.post(path, { ...admin, decision: 'sign-in' }, headers);
      expect([path, answer.status]).toEqual([path, 403]);
    }
    expect(await sessionKind()).toBe('active');
  });

  test.each([
    '/device/',
    '/DEVICE',
    '/Device',
    '//device',
    '/%64evice',
    '/device/?user_code=BBBB-BBBB',
    '/session/end/confirm/',
    '/session/END/confirm',
    '/session//end/confirm',
    '/device/AUTH',
    '/token/',
  ])(
    'CS-01 /identity%s is nowhere: a path has one spelling, and its checks cannot be walked around',
    async (path) => {
      for (const headers of [{}, { origin: 'https://evil.example' }]) {
        const answer = await browser.post(`/identity${path}`, { user_code: 'BBBB-BBBB' }, headers);
        expect([path, answer.status]).toEqual([path, 404]);
      }
      expect((await browser.get(`/identity${path}`)).status).toBe(404);
    },
  );

  test('a form in another encoding is refused', async () => {
    const answer = await browser.post('/auth/setup', {}, { 'content-type': 'application/json' });
    expect(answer.status).toBe(415);
  });

  test('pages load nothing, run nothing foreign and cannot be framed', async () => {
    const page = await browser.follow(await browser.get('/auth/login'));
    const policy = String(page.headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("form-action 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe-inline');
    expect(page.headers['referrer-policy']).toBe('same-origin');
    expect(page.text).not.toMatch(/(?:src|href)="https?:/);
  });
});
