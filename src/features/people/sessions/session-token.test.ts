// @module-tag sql
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { minute, second } from '../../../core/clock.ts';
import { systemAuditContext } from '../../../core/caller.ts';
import { systemRandom } from '../../../core/ids.ts';
import {
  admin,
  Browser,
  frozenTime,
  type IdentityApp,
  openIdentityApp,
  sessionSecrets,
} from '../../../../test/identity.ts';
import { sql } from '../../../platform/database/sql.ts';
import { toDate } from '../../../platform/database/values.ts';
import { clientSecretFor } from '../../oidc-provider/clients.ts';
import { createEncryption } from '../../../platform/encryption.ts';
import { createAccessTokens, encryptTokens } from './session-token.ts';

const clock = frozenTime();
let open: IdentityApp;
let browser: Browser;
let sessionId: string;
const cookie = () => browser.cookies.get('__Host-postern_session') ?? '';

beforeEach(async () => {
  clock.advance(20 * minute);
  open = await openIdentityApp(clock);
  await open.identity.firstAdministrator.ensure(admin);
  browser = new Browser(open.app);
  await browser.signIn(admin.email, admin.password);
  const found = await open.identity.sessions.authenticate(cookie());
  sessionId = found.kind === 'active' ? found.session.id : '';
});
afterEach(() => open.close());

const activeToken = async (app: IdentityApp = open) => {
  const token = await app.identity.accessTokenFor(sessionId);
  if (token.kind !== 'active') throw new Error(`Expected a token, got ${token.kind}`);
  return token;
};

describe('the token behind a browser session', () => {
  test('is introspected and handed out while it is fresh, with its own end', async () => {
    const token = await activeToken();
    expect(token.introspection.clientId).toBe('postern-web');
    expect(token.expiresAt).toBeLessThanOrEqual(clock.now() + 5 * minute);
    expect((await activeToken()).accessToken).toBe(token.accessToken);
  });

  test('is refreshed in its last minute and after its end', async () => {
    const first = await activeToken();
    clock.advance(4 * minute + 1 * second);
    const later = await activeToken();
    expect(later.accessToken).not.toBe(first.accessToken);
    clock.advance(60 * minute);
    const third = await activeToken();
    expect(third.accessToken).not.toBe(later.accessToken);
    expect((await open.identity.sessions.authenticate(cookie())).kind).toBe('active');
  });

  test('revoked while fresh, ends the session, which is never refreshed', async () => {
    const { accessToken } = await activeToken();
    const client = Buffer.from(
      `postern-web:${clientSecretFor(sessionSecrets[0] ?? '', 'postern-web')}`,
    ).toString('base64');
    const answer = await browser.post(
      '/identity/token/revocation',
      { token: accessToken },
      { authorization: `Basic ${client}`, origin: '' },
    );
    expect(answer.status).toBe(200);
    expect(await open.identity.accessTokenFor(sessionId)).toEqual({ kind: 'ended' });
    expect((await open.identity.sessions.authenticate(cookie())).kind).toBe('none');
    clock.advance(6 * minute);
    expect(await open.identity.accessTokenFor(sessionId)).toEqual({ kind: 'ended' });
    expect(open.audit.at(-1)).toMatchObject({ event: 'session.ended', reason: 'token_revoked' });
  });

  test('ID-06 ends with the provider’s own session', async () => {
    const page = await browser.get('/identity/session/end');
    expect(page.text).toContain('Sign out everywhere');
    const xsrf = /name="xsrf" value="([^"]*)"/.exec(page.text)?.[1] ?? '';
    const done = await browser.follow(
      await browser.post('/identity/session/end/confirm', { xsrf, logout: 'yes' }),
    );
    expect(done.text).toContain('You are signed out');
    expect(await open.identity.accessTokenFor(sessionId)).toEqual({ kind: 'ended' });
  });

  test('is refreshed once when many ask at the same moment, on one process and on two', async () => {
    const other = await open.another();
    clock.advance(5 * minute);
    const tokens = await Promise.all(
      Array.from({ length: 10 }, (_, index) => activeToken(index % 2 === 0 ? open : other)),
    );
    expect(new Set(tokens.map(({ accessToken }) => accessToken)).size).toBe(1);
    clock.advance(5 * minute);
    await activeToken();
    await other.close();
  });

  test('is refused while the account is disabled, and the session is over', async () => {
    const later = { email: 'second@example.com', password: 'a long enough password' };
    const input = { ...later, name: 'Second', roles: ['user'] as const, groups: [], enabled: true };
    const { account } = await open.identity.accounts.create(systemAuditContext, input);
    const person = new Browser(open.app);
    await person.signIn(later.email, later.password);
    const found = await open.identity.sessions.authenticate(
      person.cookies.get('__Host-postern_session') ?? '',
    );
    await open.identity.accounts.change(systemAuditContext, account.userId, { enabled: false });
    const id = found.kind === 'active' ? found.session.id : '';
    expect(await open.identity.accessTokenFor(id)).toEqual({ kind: 'ended' });
  });

  test('whose renewal was answered too late costs nobody the session', async () => {
    const row = await sql<{ encrypted: string; until: number }>`
      select tokens_sealed as encrypted, access_expires_at as until from browser_sessions
       where id = ${sessionId}`.first(open.database.sql);
    clock.advance(5 * minute);
    await activeToken();
    // The provider renewed it, and what it answered never came.
    await sql`
      update browser_sessions set tokens_sealed = ${row?.encrypted}, access_expires_at = ${toDate(row?.until ?? null)}
       where id = ${sessionId}`.run(open.database.sql);
    await activeToken();
    expect((await open.identity.sessions.authenticate(cookie())).kind).toBe('active');
  });

  test('a session nobody has is over', async () => {
    expect(await open.identity.accessTokenFor('ses_nobody')).toEqual({ kind: 'ended' });
  });
});

test('a renewal that came back when its turn was over is to be asked for again; the session is not over', async () => {
  const encryption = createEncryption(['the encryption key of this test 0123456789'], systemRandom);
  const tokens = { accessToken: 'access', refreshToken: 'refresh', accessExpiresAt: 0 };
  const stored = {
    encrypted: encryptTokens(encryption, 'ses_1', tokens),
    accessExpiresAt: 0,
    sessionExpiresAt: clock.now() + 60 * minute,
  };
  let isThere = true;
  const { accessTokenFor } = createAccessTokens({
    read: {
      lease: async () => true,
      release: async () => undefined,
      findTokens: async () => (isThere ? stored : undefined),
      // Another process has the turn by now.
      async storeTokens() {
        isThere = !isEnding;
        return false;
      },
    },
    client: { refresh: async () => ({ kind: 'refreshed', tokens }) },
    directory: { introspect: async () => ({ kind: 'inactive' }) },
    encryption,
    clock,
    holder: 'this process',
    sleep: async () => undefined,
    endSession: async () => undefined,
  });
  let isEnding = false;
  expect((await accessTokenFor('ses_1')).kind).toBe('unavailable');
  isEnding = true;
  expect((await accessTokenFor('ses_1')).kind).toBe('ended');
});
