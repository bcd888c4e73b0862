// @module-tag sql
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { minute } from '../../core/clock.ts';
import { type AuthenticatorOptions, createAuthenticator } from '../../../test/fakes/authenticator.ts';
import {
  admin,
  Browser,
  frozenTime,
  type IdentityApp,
  openIdentityApp,
  withAdministrator,
} from '../../../test/identity.ts';

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

test('a person creates a passkey, signs in with it, renames and removes it', async () => {
  const { authenticator, answer } = await register();
  expect(outcome(answer)).toBe('201');
  expect(open.audit.at(-1)).toMatchObject({ event: 'user.passkey_added', outcome: 'success' });

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
  expect(outcome(await browser.api('DELETE', path))).toBe('200');
  expect(open.audit.at(-1)).toMatchObject({ event: 'user.passkey_removed' });
  const again = await signInPage();
  expect((await again.send(authenticator.get(again.options))).status).toBe(401);
  expect(await isSignedIn(again.fresh)).toBe(false);
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
  expect(open.refusals.at(-1)).toEqual({ reason: 'passkey_refused', userId: null });
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
  }
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

test.each(['', 'null', '[]', '{}', 'x'.repeat(12_000), '{"id":"x","response":{}}'])(
  'a form with %j as the passkey proves nothing',
  async (passkey) => {
    const { fresh } = await signInPage();
    const page = await fresh.follow(await fresh.get('/auth/login'));
    const action = /action="([^"]+)" id="passkey-form"/.exec(page.text)?.[1] ?? '';
    expect((await fresh.post(action, { decision: 'passkey', passkey })).status).toBe(401);
    expect(await isSignedIn(fresh)).toBe(false);
  },
);
