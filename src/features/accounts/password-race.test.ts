// @module-tag sql
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { minute } from '../../core/clock.ts';
import { systemAuditContext } from '../../core/caller.ts';
import {
  Browser,
  frozenTime,
  type IdentityApp,
  openIdentityApp,
  withAdministrator,
} from '../../../test/identity.ts';

/** An administrator sets another password while the old one is being checked. */
const clock = frozenTime();
let open: IdentityApp;
beforeAll(async () => {
  open = await openIdentityApp(clock);
  await withAdministrator(open);
});
afterAll(() => open.close());
beforeEach(() => clock.advance(minute));

const old = { email: 'grace@example.com', password: 'a long enough password' };
const another = 'another long password';
let userId: string;
beforeAll(async () => {
  const person = { ...old, name: 'Grace', roles: ['user' as const], groups: [], enabled: true };
  ({ userId } = (await open.identity.accounts.create(systemAuditContext, person)).account);
});

const resetOnce = (password: string) => {
  open.meanwhile.passwordCheck = async () => {
    clock.advance(1);
    await open.identity.accounts.resetPassword(systemAuditContext, userId, password);
    clock.advance(1);
  };
};

test('the old password signs nobody in', async () => {
  const browser = new Browser(open.app);
  resetOnce(another);
  await browser.follow(await browser.signIn(old.email, old.password));
  expect((await browser.api('GET', '/me/sessions')).status).toBe(401);
});

test('a change that proves the old password does not replace the new one', async () => {
  await open.identity.accounts.resetPassword(systemAuditContext, userId, old.password);
  clock.advance(1);
  const browser = new Browser(open.app);
  await browser.signIn(old.email, old.password);
  resetOnce(another);
  const body = { currentPassword: old.password, newPassword: 'the password of a stranger' };
  expect((await browser.api('POST', '/me/password', body)).status).toBe(401);
  clock.advance(1);
  await browser.signIn(old.email, another);
  expect((await browser.api('GET', '/me/sessions')).status).toBe(200);
});
