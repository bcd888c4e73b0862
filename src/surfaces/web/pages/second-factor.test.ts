// @module-tag sql
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createAuthenticator } from '../../../../test/fakes/authenticator.ts';
import {
  type Answer,
  Browser,
  frozenTime,
  type IdentityApp,
  openIdentityApp,
  programRedirect,
  uiOrigin,
  withAdministrator,
} from '../../../../test/identity.ts';
import { type Role, systemAuditContext } from '../../../core/caller.ts';
import { minute } from '../../../core/clock.ts';
import { sql } from '../../../platform/database/sql.ts';

/** The step after the password, for accounts that must have a second factor. */
const clock = frozenTime();
let open: IdentityApp;
beforeAll(async () => {
  open = await openIdentityApp(clock);
  await withAdministrator(open);
});
afterAll(() => open.close());
beforeEach(() => {
  // Beyond the throttle's window, so that no test sees the failures of another.
  clock.advance(20 * minute);
  open.required.secondFactor = 'optional';
});

type Authenticator = ReturnType<typeof createAuthenticator>;
type Person = { readonly email: string; readonly password: string; readonly userId: string };

let made = 0;
async function makePerson({ roles = ['user'] as Role[], groups = [] as string[] } = {}): Promise<Person> {
  made += 1;
  const email = `factor${made}@example.com`;
  const password = 'a long enough password';
  const { account } = await open.identity.accounts.create(systemAuditContext, {
    email,
    name: `Person ${made}`,
    roles,
    groups,
    enabled: true,
    password,
  });
  return { email, password, userId: account.userId };
}

type Json = { data: never; error: { code: string } | null };
const dataOf = <T>(answer: Answer) => (answer.json() as Json).data as T;
const outcome = (answer: Answer) =>
  answer.status < 400 ? String(answer.status) : `${answer.status} ${(answer.json() as Json).error?.code}`;

/** A browser of the person, signed in before anything is required. */
async function signedIn(person: Person): Promise<Browser> {
  const browser = new Browser(open.app);
  await browser.signIn(person.email, person.password);
  return browser;
}

async function addPasskey(browser: Browser): Promise<Authenticator> {
  const authenticator = createAuthenticator(uiOrigin);
  const options = dataOf<never>(await browser.api('POST', '/me/passkeys/options'));
  const body = { name: 'A laptop', response: authenticator.create(options) };
  expect((await browser.api('POST', '/me/passkeys', body)).status).toBe(201);
  return authenticator;
}

async function createCodes(browser: Browser): Promise<string[]> {
  const answer = await browser.api('POST', '/me/recovery-codes');
  expect(answer.status).toBe(200);
  return dataOf<{ codes: string[] }>(answer).codes;
}

const personWithPasskey = async (roles?: Role[]) => {
  const person = await makePerson(roles === undefined ? {} : { roles });
  const browser = await signedIn(person);
  return { person, browser, authenticator: await addPasskey(browser) };
};

const actionOf = (page: Answer) => /<form method="post" action="([^"]+)"/.exec(page.text)?.[1] ?? '';
const optionsOf = (page: Answer) =>
  JSON.parse(/id="passkey-options">(.*?)<\/script>/.exec(page.text)?.[1] ?? '{}');
const problemOf = (page: Answer) => /class="problem" role="alert">([^<]+)</.exec(page.text)?.[1];

/** A step of a sign-in. */
class Step {
  readonly browser: Browser;
  readonly page: Answer;

  constructor(browser: Browser, page: Answer) {
    this.browser = browser;
    this.page = page;
  }

  async send(form: Record<string, string>): Promise<Step> {
    return new Step(
      this.browser,
      await this.browser.follow(await this.browser.post(actionOf(this.page), form)),
    );
  }

  typePassword({ email, password }: Person): Promise<Step> {
    return this.send({ email, password, decision: 'sign-in' });
  }

  usePasskey(authenticator: Authenticator, decision = 'second_passkey'): Promise<Step> {
    return this.send({ decision, passkey: JSON.stringify(authenticator.get(optionsOf(this.page))) });
  }

  addPasskey(authenticator = createAuthenticator(uiOrigin)): Promise<Step> {
    const passkey = JSON.stringify(authenticator.create(optionsOf(this.page)));
    return this.send({ decision: 'new_passkey', passkey });
  }

  useCode(code: string): Promise<Step> {
    return this.send({ decision: 'recovery_code', code });
  }
}

async function begin(path = '/auth/login?returnTo=/after', browser = new Browser(open.app)): Promise<Step> {
  return new Step(browser, await browser.follow(await browser.get(path)));
}

const afterPassword = async (person: Person) => (await begin()).typePassword(person);

const sessionOf = async ({ browser }: { browser: Browser }) => {
  const found = await open.identity.sessions.authenticate(
    browser.cookies.get('__Host-postern_session') ?? '',
  );
  return found.kind;
};

async function methods({ browser }: Step): Promise<string[] | undefined> {
  type Session = { isCurrent: boolean; methods: string[] };
  const sessions = dataOf<Session[]>(await browser.api('GET', '/me/sessions'));
  return sessions.find(({ isCurrent }) => isCurrent)?.methods;
}

const asksForFactor = ({ page }: Step) => /Confirm that it is you|Add a passkey/.test(page.text);
const asksForPassword = ({ page }: Step) => page.text.includes('type="password"');

describe('a second factor for everyone', () => {
  beforeEach(() => {
    clock.advance(1);
  });

  test('a passkey after the password signs in', async () => {
    const { person, authenticator } = await personWithPasskey();
    open.required.secondFactor = 'everyone';
    const asked = await afterPassword(person);
    expect(asked.page.text).toContain('Confirm that it is you');
    expect(asked.page.text).toContain(person.email);
    expect(await sessionOf(asked)).toBe('none');
    const done = await asked.usePasskey(authenticator);
    expect(await sessionOf(done)).toBe('active');
    expect(await methods(done)).toEqual(['pwd', 'hwk', 'user', 'mfa']);
  });

  test('a passkey alone signs in without the step', async () => {
    const { authenticator } = await personWithPasskey();
    open.required.secondFactor = 'everyone';
    const page = await begin();
    const action = /action="([^"]+)" id="passkey-form"/.exec(page.page.text)?.[1] ?? '';
    const passkey = JSON.stringify(authenticator.get(optionsOf(page.page)));
    await page.browser.follow(await page.browser.post(action, { decision: 'passkey', passkey }));
    expect(await sessionOf(page)).toBe('active');
    expect(await methods(page)).toEqual(['hwk', 'user', 'mfa']);
  });

  test('a person without one adds a passkey there, and uses it at the next sign-in', async () => {
    const person = await makePerson();
    open.required.secondFactor = 'everyone';
    const asked = await afterPassword(person);
    expect(asked.page.text).toContain('<h1>Add a passkey</h1>');
    // Without scripts, or in a browser without passkeys, this text stays.
    expect(asked.page.text).toMatch(/<p id="no-passkeys">.*ask an administrator/);
    const authenticator = createAuthenticator(uiOrigin);
    const done = await asked.addPasskey(authenticator);
    expect(await sessionOf(done)).toBe('active');
    expect(await methods(done)).toEqual(['pwd', 'hwk', 'user', 'mfa']);
    expect(open.audit.findLast(({ event }) => event === 'user.passkey_added')).toMatchObject({
      target: { kind: 'user', id: person.userId },
      auditContext: { actor: { kind: 'user', id: person.userId } },
    });
    const [own] = dataOf<{ name: string }[]>(await done.browser.api('GET', '/me/passkeys'));
    expect(own?.name).toBe('Created at sign-in');
    const again = await (await afterPassword(person)).usePasskey(authenticator);
    expect(await sessionOf(again)).toBe('active');
  });

  test('a recovery code signs in once, however it is typed, and the person gets a notice', async () => {
    const { person, browser } = await personWithPasskey();
    const codes = await createCodes(browser);
    expect(new Set(codes).size).toBe(10);
    for (const code of codes) expect(code).toMatch(/^([0-9A-HJKMNP-TV-Z]{4}-){3}[0-9A-HJKMNP-TV-Z]{4}$/);
    open.required.secondFactor = 'everyone';
    const [first = ''] = codes;
    const typed = ` ${first.toLowerCase().replaceAll('-', ' ').replaceAll('0', 'o').replaceAll('1', 'l')} `;
    const done = await (await afterPassword(person)).useCode(typed);
    expect(await sessionOf(done)).toBe('active');
    expect(await methods(done)).toEqual(['pwd', 'otp', 'mfa']);
    expect(open.audit.findLast(({ event }) => event === 'user.recovery_code_used')).toMatchObject({
      target: { kind: 'user', id: person.userId },
      details: { codesLeft: 9 },
    });
    const notices = await sql`
      select kind, fields from notices where user_id = ${person.userId} and kind = 'recovery_code_used'`.all(
      open.database.sql,
    );
    expect(notices).toEqual([{ kind: 'recovery_code_used', fields: { codesLeft: 9 } }]);
    const again = await (await afterPassword(person)).useCode(first);
    expect(again.page.status).toBe(401);
    expect(await sessionOf(again)).toBe('none');
    expect(open.refusals.at(-1)).toEqual({ reason: 'wrong_recovery_code', userId: person.userId });
  });

  test('the codes of two browsers at once: one signs in', async () => {
    const { person, browser } = await personWithPasskey();
    const [code = ''] = await createCodes(browser);
    open.required.secondFactor = 'everyone';
    const steps = [await afterPassword(person), await afterPassword(person), await afterPassword(person)];
    const done = await Promise.all(steps.map((step) => step.useCode(code)));
    const kinds = await Promise.all(done.map(sessionOf));
    expect(kinds.toSorted()).toEqual(['active', 'none', 'none']);
  });

  test('a copied page cannot show the codes again: the database has only digests', async () => {
    const { person, browser } = await personWithPasskey();
    const codes = await createCodes(browser);
    const rows = await sql<{ digest: string }>`
      select c.digest from recovery_codes c join accounts a using (subject) where a.user_id = ${person.userId}`.all(
      open.database.sql,
    );
    expect(rows).toHaveLength(10);
    const expected = codes.map((code) =>
      createHash('sha256').update(code.replaceAll('-', '')).digest('base64url'),
    );
    expect(rows.map(({ digest }) => digest).toSorted()).toEqual(expected.toSorted());
    expect(JSON.stringify(open.audit)).not.toContain(codes[0]);
  });
});

describe('the step cannot be skipped', () => {
  test('by its resume address', async () => {
    const { person } = await personWithPasskey();
    open.required.secondFactor = 'everyone';
    const asked = await afterPassword(person);
    const uid = actionOf(asked.page).split('/').at(-1);
    const resumed = await begin(`/identity/auth/${uid}`, asked.browser);
    expect(asksForPassword(resumed)).toBe(true);
    expect(await sessionOf(resumed)).toBe('none');
    // And what the password left behind opens nothing.
    expect(asksForPassword(await begin('/auth/login', asked.browser))).toBe(true);
  });

  test.each<[string, Record<string, string>]>([
    ['the consent form', { decision: 'allow' }],
    ['the password form', { decision: 'sign-in' }],
    ['an empty form', {}],
    ['an empty code', { decision: 'recovery_code', code: '' }],
    ['a code of another form', { decision: 'recovery_code', code: 'AAAA' }],
    ['a code that is too long', { decision: 'recovery_code', code: '0'.repeat(10_000) }],
    ['an empty passkey', { decision: 'second_passkey', passkey: '{}' }],
    ['a new passkey that is none', { decision: 'new_passkey', passkey: 'null' }],
  ])('by %s', async (_what, form) => {
    const { person } = await personWithPasskey();
    open.required.secondFactor = 'everyone';
    const asked = await afterPassword(person);
    const { email, password } = person;
    const sent = await asked.send(form['decision'] === 'sign-in' ? { ...form, email, password } : form);
    expect(sent.page.status).toBeGreaterThanOrEqual(400);
    expect(await sessionOf(sent)).toBe('none');
  });

  test('by another person’s passkey, which stays as it was', async () => {
    const { person } = await personWithPasskey();
    const { authenticator: foreign, browser: other } = await personWithPasskey();
    open.required.secondFactor = 'everyone';
    const asked = await afterPassword(person);
    const refused = await asked.usePasskey(foreign);
    expect(refused.page.status).toBe(401);
    expect(problemOf(refused.page)).toContain('not a passkey of your account');
    expect(await sessionOf(refused)).toBe('none');
    // Nor by the form of the sign-in, which accepts the passkey of anyone.
    const page = await afterPassword(person);
    expect((await page.usePasskey(foreign, 'passkey')).page.status).toBe(400);
    expect(await sessionOf(page)).toBe('none');
    const [own] = dataOf<{ lastUsedAt: string | null }[]>(await other.api('GET', '/me/passkeys'));
    expect(own?.lastUsedAt).toBeNull();
  });

  test('by another person’s code, which still works for that person', async () => {
    const { person } = await personWithPasskey();
    const { person: owner, browser } = await personWithPasskey();
    const [code = ''] = await createCodes(browser);
    open.required.secondFactor = 'everyone';
    const refused = await (await afterPassword(person)).useCode(code);
    expect(refused.page.status).toBe(401);
    expect(await sessionOf(refused)).toBe('none');
    expect(await sessionOf(await (await afterPassword(owner)).useCode(code))).toBe('active');
  });

  test('by a passkey that answers another sign-in', async () => {
    const { person, authenticator } = await personWithPasskey();
    open.required.secondFactor = 'everyone';
    const [one, other] = [await afterPassword(person), await afterPassword(person)];
    const passkey = JSON.stringify(authenticator.get(optionsOf(one.page)));
    expect((await other.send({ decision: 'second_passkey', passkey })).page.status).toBe(401);
    expect(await sessionOf(other)).toBe('none');
  });

  test('by a code or a new passkey without the password', async () => {
    const { person, browser } = await personWithPasskey();
    const [code = ''] = await createCodes(browser);
    open.required.secondFactor = 'everyone';
    const start = await begin();
    for (const decision of ['recovery_code', 'new_passkey', 'second_passkey']) {
      const sent = await start.send({ decision, code, passkey: '{}', email: person.email });
      expect([decision, sent.page.status]).toEqual([decision, 400]);
    }
    expect(await sessionOf(await (await afterPassword(person)).useCode(code))).toBe('active');
  });

  test('by a new passkey of an account that has one, or that got one while the page was open', async () => {
    const { person } = await personWithPasskey();
    const newcomer = await makePerson();
    open.required.secondFactor = 'everyone';
    const asked = await afterPassword(person);
    const challenge = optionsOf(asked.page) as { challenge: string };
    const forged = createAuthenticator(uiOrigin).create({ ...challenge, user: { id: 'x' } });
    const refused = await asked.send({ decision: 'new_passkey', passkey: JSON.stringify(forged) });
    expect([refused.page.status, await sessionOf(refused)]).toEqual([401, 'none']);

    const [owner, thief] = [await afterPassword(newcomer), await afterPassword(newcomer)];
    expect(await sessionOf(await owner.addPasskey())).toBe('active');
    const late = await thief.addPasskey();
    expect([late.page.status, await sessionOf(late)]).toEqual([401, 'none']);
    expect(problemOf(late.page)).toContain('already has a second factor');
    expect(late.page.text).toContain('Recovery code');
    expect(dataOf<unknown[]>(await owner.browser.api('GET', '/me/passkeys'))).toHaveLength(1);
  });

  test('two first passkeys at once: one is added', async () => {
    const person = await makePerson();
    open.required.secondFactor = 'everyone';
    const steps = [await afterPassword(person), await afterPassword(person)];
    const done = await Promise.all(steps.map((step) => step.addPasskey()));
    expect((await Promise.all(done.map(sessionOf))).toSorted()).toEqual(['active', 'none']);
  });

  test('an account with recovery codes and without a passkey needs a code', async () => {
    const person = await makePerson();
    const browser = await signedIn(person);
    open.required.secondFactor = 'everyone';
    const early = await afterPassword(person);
    const [code = ''] = await createCodes(browser);
    expect(problemOf((await early.addPasskey()).page)).toContain('already has a second factor');
    expect(await sessionOf(early)).toBe('none');
    const asked = await afterPassword(person);
    expect(asked.page.text).not.toContain('id="passkey-options"');
    expect(await sessionOf(await asked.useCode(code))).toBe('active');
  });

  test('after the account was disabled or signed out', async () => {
    const { person, authenticator } = await personWithPasskey();
    open.required.secondFactor = 'everyone';
    const asked = await afterPassword(person);
    clock.advance(1);
    await open.identity.accounts.change(systemAuditContext, person.userId, { enabled: false });
    expect((await asked.usePasskey(authenticator)).page.status).toBe(400);
    await open.identity.accounts.change(systemAuditContext, person.userId, { enabled: true });
    clock.advance(1);
    const again = await afterPassword(person);
    clock.advance(1);
    await open.identity.accounts.signOut(systemAuditContext, person.userId);
    const late = await again.usePasskey(authenticator);
    expect(await sessionOf(late)).toBe('none');
  });

  test('while the requirement cannot be read: nobody signs in with a password', async () => {
    const { person } = await personWithPasskey();
    open.required.secondFactor = new Error('no database');
    const failed = await afterPassword(person);
    expect(failed.page.status).toBe(500);
    expect(await sessionOf(failed)).toBe('none');
  });
});

describe('a sign-in that began before the requirement', () => {
  test('needs the password and the second factor at its next authorization', async () => {
    const { person, browser, authenticator } = await personWithPasskey();
    open.required.secondFactor = 'everyone';
    expect(await sessionOf({ browser })).toBe('active');
    const again = await begin('/auth/login?returnTo=/after', browser);
    expect(asksForPassword(again)).toBe(true);
    const asked = await again.typePassword(person);
    expect(asksForFactor(asked)).toBe(true);
    const done = await asked.usePasskey(authenticator);
    expect(await methods(done)).toEqual(['pwd', 'hwk', 'user', 'mfa']);
    // From now on, the provider’s session has both.
    const silent = await begin('/auth/login?returnTo=/after', browser);
    expect([asksForPassword(silent), asksForFactor(silent)]).toEqual([false, false]);
  });

  test('a fresh sign-in needs both again', async () => {
    const { person, authenticator } = await personWithPasskey();
    open.required.secondFactor = 'everyone';
    const { browser } = await (await afterPassword(person)).usePasskey(authenticator);
    clock.advance(121 * minute);
    const again = await begin('/auth/login?fresh=true&returnTo=/after', browser);
    expect(asksForPassword(again)).toBe(true);
    expect(asksForFactor(await again.typePassword(person))).toBe(true);
  });
});

describe('only for administrators', () => {
  beforeEach(() => {
    clock.advance(1);
  });

  test('people sign in with a password, administrators also need a second factor', async () => {
    const person = await makePerson();
    const { person: root, authenticator } = await personWithPasskey(['user', 'admin']);
    open.required.secondFactor = 'administrators';
    expect(await sessionOf(await afterPassword(person))).toBe('active');
    const asked = await afterPassword(root);
    expect([asksForFactor(asked), await sessionOf(asked)]).toEqual([true, 'none']);
    expect(await sessionOf(await asked.usePasskey(authenticator))).toBe('active');
  });

  test('a group counts, and a role that the person got a moment ago', async () => {
    const { id } = await open.identity.groups.create(systemAuditContext, {
      name: 'Administrators',
      roles: ['admin'],
      parentId: null,
    });
    const member = await makePerson({ groups: [id] });
    const promoted = await makePerson();
    open.required.secondFactor = 'administrators';
    expect(asksForFactor(await afterPassword(member))).toBe(true);
    const { browser } = await afterPassword(promoted);
    await open.identity.accounts.change(systemAuditContext, promoted.userId, { roles: ['user', 'admin'] });
    const again = await begin('/auth/login', browser);
    expect(asksForPassword(again)).toBe(true);
    expect(asksForFactor(await again.typePassword(promoted))).toBe(true);
  });
});

describe('other clients', () => {
  const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');

  function authorization(client: string, more: Record<string, string> = {}): string {
    const query = new URLSearchParams({
      client_id: client,
      redirect_uri: programRedirect,
      response_type: 'code',
      scope: 'openid offline_access',
      state: 'of the program',
      code_challenge: challengeOf(randomBytes(32).toString('base64url')),
      code_challenge_method: 'S256',
      ...more,
    });
    return `/identity/auth?${query.toString()}`;
  }

  test.each<[string, Record<string, string>]>([
    ['postern-cli', {}],
    ['postern-mcp', { scope: 'openid mcp', resource: `${uiOrigin}/mcp` }],
  ])('%s gets a code only after the step, which comes before the consent', async (client, more) => {
    const { person, authenticator } = await personWithPasskey();
    open.required.secondFactor = 'everyone';
    const asked = await (await begin(authorization(client, more))).typePassword(person);
    expect(asksForFactor(asked)).toBe(true);
    expect(asked.page.text).toContain('>Cancel</button>');
    const consent = await asked.usePasskey(authenticator);
    expect(consent.page.text).toContain('value="allow"');
    const done = await consent.send({ decision: 'allow' });
    expect(new URL(done.page.location ?? '').searchParams.get('code')).toBeTruthy();
  });

  test('Cancel tells the client that the person declined', async () => {
    const { person } = await personWithPasskey();
    open.required.secondFactor = 'everyone';
    const asked = await (await begin(authorization('postern-cli'))).typePassword(person);
    const done = await asked.send({ decision: 'deny' });
    const { searchParams } = new URL(done.page.location ?? '');
    expect([searchParams.get('error'), searchParams.get('code')]).toEqual(['access_denied', null]);
  });

  test('a consent that was open when the requirement came needs the step before a code', async () => {
    const { person, authenticator } = await personWithPasskey();
    const consent = await (await begin(authorization('postern-cli'))).typePassword(person);
    expect(consent.page.text).toContain('value="allow"');
    open.required.secondFactor = 'everyone';
    const asked = await consent.send({ decision: 'allow' });
    expect(asksForFactor(asked)).toBe(true);
    const again = await asked.usePasskey(authenticator);
    const done = await again.send({ decision: 'allow' });
    expect(new URL(done.page.location ?? '').searchParams.get('code')).toBeTruthy();
  });

  test('a client that asks for no page gets no code from an older sign-in', async () => {
    const { browser } = await personWithPasskey();
    open.required.secondFactor = 'everyone';
    const answer = await browser.get(authorization('postern-cli', { prompt: 'none' }));
    const { searchParams } = new URL(answer.location ?? '');
    expect([searchParams.get('error'), searchParams.get('code')]).toEqual(['login_required', null]);
  });

  test('a device is approved only after the step', async () => {
    const { person, authenticator } = await personWithPasskey();
    open.required.secondFactor = 'everyone';
    const program = new Browser(open.app);
    const post = (path: string, form: Record<string, string>) =>
      program.post(
        `/identity${path}`,
        { client_id: 'postern-cli', ...form },
        {
          accept: 'application/json',
          origin: '',
        },
      );
    type Device = { device_code: string; user_code: string };
    const device = (await post('/device/auth', { scope: 'openid offline_access' })).json() as Device;
    const poll = async () => {
      const grant_type = 'urn:ietf:params:oauth:grant-type:device_code';
      return (await post('/token', { grant_type, device_code: device.device_code })).json();
    };
    const valueOf = ({ page }: Step, name: string) =>
      new RegExp(`name="${name}" value="([^"]*)"`).exec(page.text)?.[1] ?? '';
    const typed = await begin('/identity/device');
    const confirm = await typed.send({ xsrf: valueOf(typed, 'xsrf'), user_code: device.user_code });
    const login = await confirm.send({
      xsrf: valueOf(confirm, 'xsrf'),
      user_code: valueOf(confirm, 'user_code'),
      confirm: 'yes',
    });
    const asked = await login.typePassword(person);
    expect(asksForFactor(asked)).toBe(true);
    expect(await poll()).toMatchObject({ error: 'authorization_pending' });
    const consent = await asked.usePasskey(authenticator);
    expect(await poll()).toMatchObject({ error: 'authorization_pending' });
    expect((await consent.send({ decision: 'allow' })).page.text).toContain('Connected');
    expect(await poll()).toHaveProperty('access_token');
  });
});

describe('guesses', () => {
  test('ten wrong codes block codes and passwords of the account from this address', async () => {
    const { person, browser } = await personWithPasskey();
    const [code = ''] = await createCodes(browser);
    open.required.secondFactor = 'everyone';
    for (let count = 0; count < 9; count += 1) {
      // Each with a right password before it, which takes back none of the wrong codes.
      const wrong = await (await afterPassword(person)).useCode('0000-0000-0000-0000');
      expect(wrong.page.status).toBe(401);
    }
    const last = await afterPassword(person);
    expect((await last.useCode('0000-0000-0000-0000')).page.status).toBe(401);
    const refused = await last.useCode(code);
    expect(refused.page.status).toBe(429);
    expect(Number(refused.page.headers['retry-after'])).toBeGreaterThan(0);
    expect(open.refusals.at(-1)).toEqual({ reason: 'throttled', userId: person.userId });
    expect((await afterPassword(person)).page.status).toBe(429);
    clock.advance(15 * minute);
    expect(await sessionOf(await (await afterPassword(person)).useCode(code))).toBe('active');
  });

  test('parallel wrong codes do not slip past the limit', async () => {
    const { person } = await personWithPasskey();
    open.required.secondFactor = 'everyone';
    const asked = await afterPassword(person);
    const answers = await Promise.all(
      Array.from({ length: 15 }, () =>
        asked.browser.post(actionOf(asked.page), {
          decision: 'recovery_code',
          code: '0000-0000-0000-0000',
        }),
      ),
    );
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(10);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(5);
  });
});

describe('recovery codes', () => {
  test('new ones end the earlier ones, also of a parallel request', async () => {
    const { person, browser } = await personWithPasskey();
    const [first = ''] = await createCodes(browser);
    const both = await Promise.all([createCodes(browser), createCodes(browser)]);
    open.required.secondFactor = 'everyone';
    expect((await (await afterPassword(person)).useCode(first)).page.status).toBe(401);
    const kinds: string[] = [];
    for (const [code = ''] of both)
      kinds.push(await sessionOf(await (await afterPassword(person)).useCode(code)));
    expect(kinds.toSorted()).toEqual(['active', 'none']);
    expect(open.audit.filter(({ event }) => event === 'user.recovery_codes_created').at(-1)).toMatchObject({
      target: { kind: 'user', id: person.userId },
      outcome: 'success',
    });
  });

  test('are created only after a fresh sign-in', async () => {
    const { browser } = await personWithPasskey();
    clock.advance(121 * minute);
    expect(outcome(await browser.api('POST', '/me/recovery-codes'))).toBe(
      '403 fresh_authentication_required',
    );
  });
});

describe('the last passkey', () => {
  const idsOf = async (browser: Browser) =>
    dataOf<{ id: string }[]>(await browser.api('GET', '/me/passkeys')).map(({ id }) => id);

  test('stays while the account must have a second factor, and is removed when not', async () => {
    const { browser } = await personWithPasskey();
    const [id = ''] = await idsOf(browser);
    const remove = () => browser.api('DELETE', `/me/passkeys/${id}`);
    open.required.secondFactor = 'everyone';
    expect(outcome(await remove())).toBe('409 state_conflict');
    expect(outcome(await browser.api('DELETE', '/me/passkeys/psk_nothing'))).toBe('404 not_found');
    open.required.secondFactor = new Error('no database');
    expect((await remove()).status).toBeGreaterThanOrEqual(500);
    open.required.secondFactor = 'administrators';
    expect(outcome(await remove())).toBe('200');
    expect(await idsOf(browser)).toEqual([]);
  });

  test('of two that are removed at once, one stays', async () => {
    const { browser } = await personWithPasskey();
    await addPasskey(browser);
    open.required.secondFactor = 'everyone';
    const ids = await idsOf(browser);
    const answers = await Promise.all(ids.map((id) => browser.api('DELETE', `/me/passkeys/${id}`)));
    expect(answers.map(outcome).toSorted()).toEqual(['200', '409 state_conflict']);
    expect(await idsOf(browser)).toHaveLength(1);
  });
});
