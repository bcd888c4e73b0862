// @module-tag sql
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type AuthenticatorOptions, createAuthenticator } from '../../fakes/authenticator.ts';
import { type Harness, type Person, uiOrigin } from '../../harness.ts';
import { Browser } from '../../identity.ts';
import { openFrozenHarness } from './cast.ts';

/** What the audit log says about sign-ins with a passkey that were refused. */
let h: Harness;
let ada: Person;
let root: Person;
const authenticator = createAuthenticator(uiOrigin);
beforeAll(async () => {
  h = await openFrozenHarness();
  ada = await h.person('Ada');
  root = await h.person('Root', { admin: true });
  const { data: options } = await h.call('POST', '/me/passkeys/options', { as: ada });
  const body = { name: 'Laptop', response: authenticator.create(options) };
  await h.call('POST', '/me/passkeys', { as: ada, body });
});
afterAll(async () => {
  await h.close();
  vi.useRealTimers();
});

async function signIn(by: typeof authenticator, wrong: AuthenticatorOptions = {}): Promise<number> {
  const browser = new Browser(h.app.web);
  const page = await browser.follow(await browser.get('/auth/login'));
  const action = /<form method="post" action="([^"]+)" id="passkey-form"/.exec(page.text)?.[1] ?? '';
  const options = JSON.parse(/id="passkey-options">(.*?)<\/script>/.exec(page.text)?.[1] ?? '{}');
  const passkey = JSON.stringify(by.get(options, wrong));
  return (await browser.post(action, { decision: 'passkey', passkey })).status;
}

async function events(event: string) {
  await h.app.services.denials.flush({ all: true });
  return (await h.call('GET', '/audit/events', { as: root, query: { event } })).data;
}

test('a passkey that nobody has is counted like a wrong password', async () => {
  for (let times = 0; times < 3; times += 1) expect(await signIn(createAuthenticator(uiOrigin))).toBe(401);
  expect(await events('auth.denied')).toMatchObject([
    { reason: 'passkey_refused', actor: { kind: 'anonymous' }, details: { count: 3 } },
  ]);
  expect(await events('user.passkey_refused')).toEqual([]);
});

test('a known passkey whose answer is wrong is counted for its account, and so is a copy, with a notice', async () => {
  for (let times = 0; times < 3; times += 1)
    expect(await signIn(authenticator, { origin: 'https://evil.example' })).toBe(401);
  expect(await events('user.passkey_refused')).toMatchObject([
    { reason: 'not_verified', target: { kind: 'user', id: ada.user.id }, details: { count: 3 } },
  ]);
  expect(await signIn(authenticator, { counter: 9 })).toBe(303);
  expect(await signIn(authenticator, { counter: 9 })).toBe(401);
  const copied = (await events('user.passkey_refused')).filter(
    ({ reason }: { reason: string }) => reason === 'counter_went_back',
  );
  expect(copied).toMatchObject([{ outcome: 'denied', target: { id: ada.user.id } }]);
  const { data: notices } = await h.call('GET', '/me/notices', { as: ada });
  expect(notices.map(({ kind }: { kind: string }) => kind).toSorted()).toEqual([
    'passkey_added',
    'passkey_copied',
  ]);
  const [notice] = notices.filter(({ kind }: { kind: string }) => kind === 'passkey_copied');
  expect(notice).toMatchObject({
    keyId: null,
    siteId: null,
    environmentId: null,
    message: expect.stringContaining('“Laptop”'),
  });
});
