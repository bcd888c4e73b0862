import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  admin,
  authorizeProgram,
  Browser,
  encryptionKeys,
  frozenTime,
  type IdentityApp,
  openIdentityApp,
  programRedirect,
  sessionSecrets,
  uiOrigin,
  withAdministrator,
} from '../../../test/identity.ts';
import { systemAuditContext } from '../../core/caller.ts';
import { systemRandom } from '../../core/ids.ts';
import { minute } from '../../core/clock.ts';
import { createOidcClient } from '../../features/people/oidc-client.ts';
import { SigningKeysUnreadable } from '../../features/oidc-provider/signing-keys.ts';
import { createReencryption } from '../../platform/reencryption.ts';
import { createEncryption } from '../../platform/encryption.ts';
import { lazyStores } from '../../platform/database/stores.ts';
import { encryptedTables } from '../encrypted-tables.ts';
import { identityStores } from './identity-stores.ts';

// SE-03: an older value is accepted as long as it is in the list, is refused afterwards, and no one is signed out
// without need.
const clock = frozenTime();
const fresh = 'a-new-value-that-was-made-for-this-test';
let open: IdentityApp;
const opened: IdentityApp[] = [];
beforeEach(async () => {
  clock.advance(20 * minute);
  open = await openIdentityApp(clock);
  await withAdministrator(open);
});
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
  await open.close();
});

async function another(secrets: Parameters<IdentityApp['another']>[0]): Promise<IdentityApp> {
  const made = await open.another(secrets);
  opened.push(made);
  return made;
}

/** The same person's browser, at another process. */
function moved(browser: Browser, { app }: IdentityApp): Browser {
  const at = new Browser(app);
  for (const [name, value] of browser.cookies) at.cookies.set(name, value);
  return at;
}

async function signedIn(): Promise<Browser> {
  const browser = new Browser(open.app);
  await browser.signIn(admin.email, admin.password);
  return browser;
}

const sessionOf = (browser: Browser) => browser.cookies.get('__Host-postern_session') ?? '';

async function sessionId(browser: Browser): Promise<string> {
  const found = await open.identity.sessions.authenticate(sessionOf(browser));
  if (found.kind === 'none') throw new Error('There is no session.');
  return found.session.id;
}

const cli = { client_id: 'postern-cli' };
async function post({ app }: IdentityApp, path: string, form: Record<string, string>) {
  const answer = await new Browser(app).post(`/identity${path}`, form, {
    accept: 'application/json',
    origin: '',
  });
  return { status: answer.status, body: answer.json() as Record<string, unknown> };
}

async function connectProgram(): Promise<string> {
  const scope = 'openid offline_access sites:write';
  const { answer, verifier } = await authorizeProgram(new Browser(open.app), scope, admin, 'allow');
  const { body } = await post(open, '/token', {
    ...cli,
    grant_type: 'authorization_code',
    code: answer.searchParams.get('code') ?? '',
    redirect_uri: programRedirect,
    code_verifier: verifier,
  });
  return String(body['refresh_token']);
}

const refresh = (at: IdentityApp, token: string) =>
  post(at, '/token', { ...cli, grant_type: 'refresh_token', refresh_token: token });

describe('SESSION_SECRET', () => {
  test('SE-03 a session goes on at every process that has the older value, and ends where it was taken out', async () => {
    const browser = await signedIn();
    // In the order of the guide: the new one last, then first, then alone.
    for (const list of [
      [...sessionSecrets, fresh],
      [fresh, ...sessionSecrets],
    ]) {
      const next = await another({ sessionSecrets: list });
      expect((await next.identity.sessions.authenticate(sessionOf(browser))).kind).toBe('active');
      expect((await moved(browser, next).api('GET', '/users')).status).toBe(200);
    }
    const last = await another({ sessionSecrets: [fresh] });
    expect((await last.identity.sessions.authenticate(sessionOf(browser))).kind).toBe('none');
    expect((await moved(browser, last).api('GET', '/users')).status).toBe(401);
  });

  test('SE-03 a session that began under the new value is known where the new value stands last', async () => {
    const [first, second] = [
      await another({ sessionSecrets: [fresh, ...sessionSecrets] }),
      await another({ sessionSecrets: [...sessionSecrets, fresh] }),
    ];
    const browser = new Browser(first.app);
    await browser.signIn(admin.email, admin.password);
    expect((await second.identity.sessions.authenticate(sessionOf(browser))).kind).toBe('active');
    expect((await open.identity.sessions.authenticate(sessionOf(browser))).kind).toBe('none');
  });
});

describe('ENCRYPTION_KEY', () => {
  const both = { encryptionKeys: [fresh, ...encryptionKeys] };
  const alone = { encryptionKeys: [fresh] };
  const reencryption = (keys: readonly string[]) =>
    createReencryption({
      tables: encryptedTables(open.database.sql, clock),
      encryption: createEncryption(keys, systemRandom),
    });

  test('SE-03 sessions, programs and signing keys outlive the older value, once they were encrypted again', async () => {
    const browser = await signedIn();
    const id = await sessionId(browser);
    const token = await connectProgram();
    const overlap = await another(both);
    expect((await overlap.identity.accessTokenFor(id)).kind).toBe('active');
    expect(await reencryption(both.encryptionKeys).waiting()).toBeGreaterThan(2);
    await reencryption(both.encryptionKeys).run();
    expect(await reencryption(both.encryptionKeys).waiting()).toBe(0);

    const after = await another(alone);
    expect((await after.identity.accessTokenFor(id)).kind).toBe('active');
    expect((await refresh(after, token)).status).toBe(200);
    expect((await moved(browser, after).api('GET', '/users')).status).toBe(200);
  });

  test('SE-03 what is encrypted again is found however much there is, and a change in between is not overwritten', async () => {
    const read = lazyStores(identityStores(clock))(open.database.sql);
    const old = createEncryption(encryptionKeys, systemRandom);
    const records = Array.from({ length: 450 }, (_, nth) => `hash-${String(nth).padStart(4, '0')}`);
    for (const idHash of records)
      await read.records.upsert({
        model: 'Grant',
        idHash,
        payload: old.encrypt('{}', `oidc:Grant:${idHash}`),
        grantId: null,
        uid: null,
        userCodeHash: null,
        accountId: null,
        clientId: null,
        expiresAt: null,
      });
    expect((await reencryption(both.encryptionKeys).run()).reencrypted).toBeGreaterThanOrEqual(450);
    expect(await reencryption(both.encryptionKeys).run()).toEqual({ reencrypted: 0, unreadable: 0 });
    const [first = ''] = records;
    const found = await read.records.find('Grant', first);
    await read.records.replaceEncrypted(
      { model: 'Grant', idHash: first, payload: 'what was there before' },
      'late',
    );
    expect(await read.records.find('Grant', first)).toEqual(found);
  });

  test('SE-03 taken out too early, nobody is called signed out: it cannot be told, and put back all goes on', async () => {
    const browser = await signedIn();
    const id = await sessionId(browser);
    // The signing keys are encrypted again by the first start with both.
    await another(both);
    const early = await another(alone);
    expect(await early.identity.accessTokenFor(id)).toEqual({
      kind: 'unavailable',
      reason: 'sealed_otherwise',
    });
    expect(await reencryption(alone.encryptionKeys).run()).toMatchObject({
      reencrypted: 0,
      unreadable: expect.any(Number),
    });
    const back = await another(both);
    expect((await back.identity.accessTokenFor(id)).kind).toBe('active');
    // Who signs in again is not kept out by what the browser still holds.
    const again = await moved(browser, early).signIn(admin.email, admin.password);
    expect(again.location).toContain('/after');
  });

  test('SE-03 after a leak, programs that an older value let in are listed all the same, and can be ended', async () => {
    await connectProgram();
    const found = await open.identity.sessions.authenticate(sessionOf(await signedIn()));
    const userId = found.kind === 'active' ? found.session.user.id : '';
    // The signing keys are encrypted again by the first start with both.
    await another(both);
    const early = await another(alone);
    const { connectedClients } = early.identity;
    expect(await connectedClients.list(userId)).toMatchObject([{ clientId: 'postern-cli', scopes: [] }]);
    await connectedClients.revoke(systemAuditContext, userId, 'postern-cli');
    expect(await connectedClients.list(userId)).toEqual([]);
  });

  test('SE-03 without the value that the signing keys are encrypted with, the program does not start, and says why', async () => {
    await expect(open.another(alone)).rejects.toThrow(SigningKeysUnreadable);
  });
});

describe('the keys that the built-in provider signs with', () => {
  const kids = async (at: IdentityApp) =>
    ((await new Browser(at.app).get('/identity/jwks')).json() as { keys: { kid: string }[] }).keys.map(
      ({ kid }) => kid,
    );
  const rotate = () => open.identity.rotateSigningKeys(systemAuditContext);

  test('SE-03 a new one signs, the one before still verifies, the one before that is gone, and nobody is signed out', async () => {
    const browser = await signedIn();
    const [first] = await kids(open);
    expect(await rotate()).toBe(2);
    const next = await another({});
    const [second, ...older] = await kids(next);
    expect([second === first, older]).toEqual([false, [first]]);
    expect((await moved(browser, next).api('GET', '/users')).status).toBe(200);
    // A sign-in under way at a process that has not started again, finished at one that has: both tell the same keys.
    const program = await authorizeProgram(new Browser(next.app), 'openid', admin, 'allow');
    const { body } = await post(next, '/token', {
      ...cli,
      grant_type: 'authorization_code',
      code: program.answer.searchParams.get('code') ?? '',
      redirect_uri: programRedirect,
      code_verifier: program.verifier,
    });
    const [head = ''] = String(body['id_token']).split('.');
    expect(JSON.parse(Buffer.from(head, 'base64url').toString())).toMatchObject({ kid: second });
    expect(await rotate()).toBe(2);
    const last = await another({});
    expect(await kids(last)).not.toContain(first);
    expect(await kids(last)).toContain(second);
    expect((await moved(browser, last).api('GET', '/users')).status).toBe(200);
  });

  test('AU-01 a rotation is in the audit log with the name of the new key alone, and one that changes nothing is not', async () => {
    const told = () => open.audit.filter(({ event }) => event === 'config.signing_keys.changed');
    const results = await Promise.allSettled([rotate(), rotate()]);
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    const [kid] = await kids(await another({}));
    expect(told()).toEqual([
      {
        event: 'config.signing_keys.changed',
        auditContext: systemAuditContext,
        target: { kind: 'config', id: 'signing-keys' },
        outcome: 'success',
        details: { kid },
      },
    ]);
  });

  test('AU-03 where the audit log cannot be written, the keys stay as they were', async () => {
    const before = await kids(open);
    const failing = await open.another(
      {},
      { append: () => Promise.reject(new Error('The audit log is unavailable.')) },
    );
    opened.push(failing);
    await expect(failing.identity.rotateSigningKeys(systemAuditContext)).rejects.toThrow(
      'The audit log is unavailable.',
    );
    expect(await kids(await another({}))).toEqual(before);
  });
});

test('SE-03 a client secret that the provider does not take any more signs nobody out: it cannot be told', async () => {
  const issuer = 'http://localhost:9999/realms/postern';
  const client = createOidcClient({
    issuer,
    clientId: 'postern-web',
    clientSecret: 'the one before',
    redirectUri: `${uiOrigin}/auth/callback`,
    clock,
    async fetch(url) {
      const isDiscovery = String(url).includes('.well-known');
      const body = isDiscovery
        ? { issuer, token_endpoint: `${issuer}/token`, authorization_endpoint: `${issuer}/auth` }
        : { error: 'unauthorized_client', error_description: 'Invalid client or Invalid client credentials' };
      return Response.json(body, { status: isDiscovery ? 200 : 401 });
    },
  });
  expect((await client.refresh('a refresh token')).kind).toBe('unavailable');
});
