// @module-tag sql
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { minute } from '../../core/clock.ts';
import { systemRandom } from '../../core/ids.ts';
import { sql } from '../../platform/database/sql.ts';
import { type AuthenticatorOptions, createAuthenticator } from '../../../test/fakes/authenticator.ts';
import {
  admin,
  Browser,
  frozenTime,
  type IdentityApp,
  openIdentityApp,
  withAdministrator,
} from '../../../test/identity.ts';

import { passkeyStore } from './passkey-store.ts';
import { createPasskeys, relyingPartyOf } from './passkeys.ts';

/** Passkeys through the routes and pages of the built-in provider, with an authenticator in software. */
const origin = 'http://localhost:3000';
const clock = frozenTime();
let open: IdentityApp;
let browser: Browser;

beforeAll(async () => {
  open = await openIdentityApp(clock);
  await withAdministrator(open);
});
afterAll(() => open.close());
beforeEach(async () => {
  // A new minute for the limits of sign-ins.
  clock.advance(minute);
  browser = new Browser(open.app);
  await browser.signIn(admin.email, admin.password);
});

type Json = { data: never; error: { code: string } | null };
const json = (answer: { json(): unknown }) => answer.json() as Json;
const outcome = (answer: { status: number; json(): unknown }) =>
  answer.status < 400 ? String(answer.status) : `${answer.status} ${json(answer).error?.code}`;

async function register(wrong: AuthenticatorOptions = {}, authenticator = createAuthenticator(origin)) {
  const { data: options } = json(await browser.api('POST', '/me/passkeys/options'));
  const response = authenticator.create(options, wrong);
  const answer = await browser.api('POST', '/me/passkeys', { name: 'A laptop', response });
  return { authenticator, answer, response };
}

/** The sign-in page of a browser that has no session, with the options in it. */
async function signInPage() {
  const fresh = new Browser(open.app);
  const page = await fresh.follow(await fresh.get('/auth/login?returnTo=/after'));
  const action = /<form method="post" action="([^"]+)" id="passkey-form"/.exec(page.text)?.[1] ?? '';
  const options = JSON.parse(/id="passkey-options">(.*?)<\/script>/.exec(page.text)?.[1] ?? '{}');
  const send = (answer: object) =>
    fresh.post(action, { decision: 'passkey', passkey: JSON.stringify(answer) });
  return { fresh, options, send };
}

const isSignedIn = async (who: Browser) =>
  (await open.identity.sessions.authenticate(who.cookies.get('__Host-postern_session') ?? '')).kind ===
  'active';

/** The kinds of all notices about passkeys, the oldest first. */
const notices = async () => {
  const rows = await sql<{ kind: string; name: string | null }>`
    select kind, fields->>'passkeyName' as name from notices where kind like 'passkey%' order by created_at, id`.all(
    open.database.sql,
  );
  return rows.map(({ kind, name }) => `${kind} ${name}`);
};

const newPerson = async (email: string) => {
  const password = 'a long enough password';
  const created = await browser.api('POST', '/users', { email, name: email, password });
  const person = new Browser(open.app);
  await person.signIn(email, password);
  return { person, id: (json(created).data as { id: string }).id, email, password };
};

test('a person creates a passkey, signs in with it, renames and removes it', async () => {
  const { authenticator, answer } = await register();
  expect(outcome(answer)).toBe('201');
  expect(open.audit.at(-1)).toMatchObject({ event: 'user.passkey_added', outcome: 'success' });
  expect(await notices()).toEqual(['passkey_added A laptop']);

  const { fresh, options, send } = await signInPage();
  await fresh.follow(await send(authenticator.get(options)));
  expect(await isSignedIn(fresh)).toBe(true);
  const [mine] = json(await fresh.api('GET', '/me/passkeys')).data as { id: string; lastUsedAt: string }[];
  expect(mine).toMatchObject({ name: 'A laptop', isSynced: false });
  expect(mine?.lastUsedAt).toBe(new Date(clock.now()).toISOString());
  const sessions = json(await fresh.api('GET', '/me/sessions')).data as {
    isCurrent: boolean;
    methods: string[];
  }[];
  expect(sessions.find(({ isCurrent }) => isCurrent)?.methods).toEqual(['hwk', 'user', 'mfa']);

  const path = `/me/passkeys/${mine?.id}`;
  expect(json(await browser.api('PATCH', path, { name: 'Work laptop' })).data).toMatchObject({
    name: 'Work laptop',
  });
  expect(open.audit.at(-1)).toMatchObject({
    event: 'user.passkey_renamed',
    details: { passkeyId: mine?.id },
  });
  clock.advance(1);
  expect(outcome(await browser.api('DELETE', path))).toBe('200');
  expect(open.audit.at(-1)).toMatchObject({ event: 'user.passkey_removed' });
  expect(await notices()).toEqual(['passkey_added A laptop', 'passkey_removed Work laptop']);
  const again = await signInPage();
  expect((await again.send(authenticator.get(again.options))).status).toBe(401);
  expect(await isSignedIn(again.fresh)).toBe(false);
  expect(open.refusals.at(-1)).toEqual({ reason: 'passkey_refused', userId: null });
});

test('nobody renames or removes the passkey of another person', async () => {
  const { answer } = await register();
  const path = `/me/passkeys/${(json(answer).data as { id: string }).id}`;
  const { person } = await newPerson('eve@example.com');
  expect(outcome(await person.api('PATCH', path, { name: 'mine' }))).toBe('404 not_found');
  expect(outcome(await person.api('DELETE', path))).toBe('404 not_found');
  expect(json(await person.api('GET', '/me/passkeys')).data).toEqual([]);
});

test('parallel registrations answer with their own passkey', async () => {
  const names = ['one', 'two', 'three'];
  const { person } = await newPerson('grace@example.com');
  const answers = await Promise.all(
    names.map(async (name) => {
      const { data: options } = json(await person.api('POST', '/me/passkeys/options'));
      const response = createAuthenticator(origin).create(options);
      return json(await person.api('POST', '/me/passkeys', { name, response })).data as { name: string };
    }),
  );
  expect(answers.map(({ name }) => name)).toEqual(names);
});

test('a new sign-in page replaces the challenge of the page before, so that reloads store nothing more', async () => {
  const fresh = new Browser(open.app);
  const action = await fresh.openSignIn();
  const count = async () =>
    (await sql<{ n: number }>`select count(*)::int as n from passkey_challenges`.all(open.database.sql))[0]
      ?.n;
  const before = await count();
  for (let times = 0; times < 3; times += 1) await fresh.get(action);
  expect(await count()).toBe(before);
});

test('challenges that nobody answered are swept', async () => {
  await browser.api('POST', '/me/passkeys/options');
  await signInPage();
  const left = async () =>
    await sql`select 1 from passkey_challenges where expires_at <= ${new Date(clock.now())}`.all(
      open.database.sql,
    );
  clock.advance(5 * minute);
  expect((await left()).length).toBeGreaterThan(1);
  await open.identity.jobs.find(({ name }) => name === 'identity-sweep')?.run(new AbortController().signal);
  expect(await left()).toEqual([]);
});

test('a passkey of a disabled account signs nobody in, and the refusal names the account', async () => {
  const { person, id } = await newPerson('dora@example.com');
  const { data: options } = json(await person.api('POST', '/me/passkeys/options'));
  const authenticator = createAuthenticator(origin);
  const response = authenticator.create(options);
  expect((await person.api('POST', '/me/passkeys', { name: 'Key', response })).status).toBe(201);
  await browser.api('PATCH', `/users/${id}`, { enabled: false });
  const { fresh, options: asked, send } = await signInPage();
  expect((await send(authenticator.get(asked))).status).toBe(403);
  expect(await isSignedIn(fresh)).toBe(false);
  expect(open.refusals.at(-1)).toEqual({ reason: 'account_disabled', userId: id });
});

describe('an administrator’s reset', () => {
  test('removes the passkeys and recovery codes, ends every session and notifies the person; the password stays', async () => {
    const { person, id, email, password } = await newPerson('ida@example.com');
    const { data: options } = json(await person.api('POST', '/me/passkeys/options'));
    const authenticator = createAuthenticator(origin);
    const response = authenticator.create(options);
    await person.api('POST', '/me/passkeys', { name: 'Key', response });
    await sql`
      insert into recovery_codes (subject, digest, created_at)
      select subject, 'x', created_at from accounts where email = ${email}`.run(open.database.sql);
    clock.advance(1);
    const reset = await browser.api('POST', `/users/${id}/reset-passkeys`);
    expect([reset.status, json(reset).data]).toMatchObject([200, { id, email }]);
    expect(open.audit.at(-1)).toMatchObject({
      event: 'user.passkeys_reset',
      target: { kind: 'user', id },
      details: { passkeys: 1 },
    });
    expect(await isSignedIn(person)).toBe(false);
    expect(await sql`select 1 from recovery_codes`.all(open.database.sql)).toEqual([]);
    expect((await notices()).at(-1)).toBe('passkeys_reset null');
    // Nor does the provider's own session sign in again.
    expect((await person.follow(await person.get('/auth/login'))).text).toContain('name="password"');
    const page = await signInPage();
    expect((await page.send(authenticator.get(page.options))).status).toBe(401);
    clock.advance(1);
    await person.signIn(email, password);
    expect(await isSignedIn(person)).toBe(true);
  });

  test('also refuses a registration that has begun before', async () => {
    const { person, id, email, password } = await newPerson('kim@example.com');
    const { data: options } = json(await person.api('POST', '/me/passkeys/options'));
    const response = createAuthenticator(origin).create(options);
    await browser.api('POST', `/users/${id}/reset-passkeys`);
    const begun = await sql<{ n: number }>`
      select count(*)::int as n from passkey_challenges c join accounts a using (subject)
       where a.email = ${email}`.first(open.database.sql);
    expect(begun?.n).toBe(0);
    clock.advance(1);
    await person.signIn(email, password);
    expect(outcome(await person.api('POST', '/me/passkeys', { name: 'late', response }))).toBe(
      '400 invalid_passkey',
    );
  });

  test('refuses a sign-in that was being verified', async () => {
    const { person, id } = await newPerson('lea@example.com');
    const { data: options } = json(await person.api('POST', '/me/passkeys/options'));
    const authenticator = createAuthenticator(origin);
    const response = authenticator.create(options);
    await person.api('POST', '/me/passkeys', { name: 'Key', response });
    const page = await signInPage();
    const answer = await page.send(authenticator.get(page.options));
    await browser.api('POST', `/users/${id}/reset-passkeys`);
    await page.fresh.follow(answer);
    expect(await isSignedIn(page.fresh)).toBe(false);
  });

  test('of an unknown account is 404', async () => {
    expect(outcome(await browser.api('POST', '/users/usr_none/reset-passkeys'))).toBe('404 not_found');
  });
});

test('a registration is accepted once, in its session, for five minutes', async () => {
  const { response, authenticator } = await register();
  const send = () => browser.api('POST', '/me/passkeys', { name: 'again', response });
  expect(outcome(await send())).toBe('400 invalid_passkey');
  const { data: options } = json(await browser.api('POST', '/me/passkeys/options'));
  const other = new Browser(open.app);
  await other.signIn(admin.email, admin.password);
  const late = createAuthenticator(origin).create(options);
  expect(outcome(await other.api('POST', '/me/passkeys', { name: 'stolen', response: late }))).toBe(
    '400 invalid_passkey',
  );
  clock.advance(5 * minute);
  expect(outcome(await browser.api('POST', '/me/passkeys', { name: 'late', response: late }))).toBe(
    '400 invalid_passkey',
  );
  // The same authenticator again, which the options ask it not to do.
  expect(outcome((await register({}, authenticator)).answer)).toBe('400 invalid_passkey');
});

test.each<[string, AuthenticatorOptions]>([
  ['of another origin', { origin: 'http://evil.example' }],
  ['in a frame of another origin', { crossOrigin: true }],
  ['without a verified user', { isVerified: false }],
])('a passkey %s neither registers nor signs in', async (_what, wrong) => {
  expect(outcome((await register(wrong)).answer)).toBe('400 invalid_passkey');
  const { authenticator } = await register();
  const { fresh, options, send } = await signInPage();
  expect((await send(authenticator.get(options, wrong))).status).toBe(401);
  expect(await isSignedIn(fresh)).toBe(false);
  const { data: me } = json(await browser.api('GET', '/people')) as { data: { id: string }[] };
  expect(open.refusals.at(-1)).toEqual({ reason: 'passkey_refused', userId: expect.stringMatching(/^usr_/) });
  expect(me.map(({ id }) => id)).toContain(open.refusals.at(-1)?.userId);
});

test('an answer signs in once, and only in the sign-in that asked for it', async () => {
  const { authenticator } = await register();
  const [one, other] = [await signInPage(), await signInPage()];
  const answer = authenticator.get(one.options);
  expect((await other.send(answer)).status).toBe(401);
  // Used up by the attempt elsewhere is not used up here: it belongs to this sign-in.
  await one.fresh.follow(await one.send(answer));
  expect(await isSignedIn(one.fresh)).toBe(true);
  const third = await signInPage();
  expect((await third.send(answer)).status).toBe(401);
});

test('a counter that goes back is a copy of the authenticator, and is refused', async () => {
  const { authenticator } = await register({ counter: 7 });
  const first = await signInPage();
  await first.fresh.follow(await first.send(authenticator.get(first.options, { counter: 8 })));
  expect(await isSignedIn(first.fresh)).toBe(true);
  for (const counter of [8, 3, 0]) {
    const next = await signInPage();
    expect((await next.send(authenticator.get(next.options, { counter }))).status).toBe(401);
    expect(await isSignedIn(next.fresh)).toBe(false);
    expect(open.audit.at(-1)).toMatchObject({
      event: 'user.passkey_refused',
      auditContext: { actor: { kind: 'anonymous' } },
      outcome: 'denied',
      reason: 'counter_went_back',
    });
  }
  // One notice a day.
  expect((await notices()).filter((one) => one.startsWith('passkey_copied'))).toEqual([
    'passkey_copied A laptop',
  ]);
});

test('at an IP address nobody creates a passkey, and the sign-in page offers none', async () => {
  const passkeys = createPasskeys({
    party: relyingPartyOf('http://127.0.0.1:3000'),
    read: { passkeys: passkeyStore(open.database.sql, clock) },
    tx: () => Promise.reject(new Error('Nothing changes.')),
    accounts: open.identity.accounts,
    isSecondFactorRequired: async () => false,
    clock,
    random: systemRandom,
    refused() {},
  });
  const person = { userId: 'usr_ada', subject: 'ada' };
  await expect(passkeys.beginRegistration(person, 'session:ses_1')).rejects.toMatchObject({
    code: 'state_conflict',
  });
  expect(await passkeys.beginSignIn('an-interaction')).toBeNull();
});

test('an authenticator without a counter always sends 0, and signs in again and again', async () => {
  const { authenticator } = await register({ counter: 0 });
  for (let times = 0; times < 2; times += 1) {
    const next = await signInPage();
    await next.fresh.follow(await next.send(authenticator.get(next.options, { counter: 0 })));
    expect(await isSignedIn(next.fresh)).toBe(true);
  }
});

test('ten passkeys are the most, however many are created at once', async () => {
  const before = (json(await browser.api('GET', '/me/passkeys')).data as unknown[]).length;
  const answers = await Promise.all(Array.from({ length: 12 - before }, () => register()));
  const created = answers.filter(({ answer }) => answer.status === 201);
  expect(created).toHaveLength(10 - before);
  expect(outcome((await register()).answer)).toBe('422 quota_exceeded');
});

const answerWith = (id: string) =>
  JSON.stringify({
    id,
    rawId: id,
    type: 'public-key',
    response: { clientDataJSON: 'e30', authenticatorData: 'e30', signature: 'e30' },
  });

test.each([
  '',
  'null',
  '[]',
  '{}',
  'x'.repeat(12_000),
  '{"id":"x","response":{}}',
  answerWith('a\u0000'),
  answerWith('a'.repeat(1_365)),
])('a form with %j as the passkey proves nothing', async (passkey) => {
  const { fresh } = await signInPage();
  const page = await fresh.follow(await fresh.get('/auth/login'));
  const action = /action="([^"]+)" id="passkey-form"/.exec(page.text)?.[1] ?? '';
  expect((await fresh.post(action, { decision: 'passkey', passkey })).status).toBe(401);
  expect(await isSignedIn(fresh)).toBe(false);
});
