import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemAuditContext } from '../../src/core/caller.ts';
import { minute, second } from '../../src/core/clock.ts';
import { AppError } from '../../src/core/errors.ts';
import { effectiveRoles } from '../../src/features/accounts/effective-roles.ts';
import { builtinDirectory } from '../../src/features/accounts/builtin-directory.ts';
import { createOidcClient } from '../../src/features/people/oidc-client.ts';
import { clientSecretFor, principalSyncClientId } from '../../src/features/oidc-provider/clients.ts';
import type { Directory } from '../../src/features/people/directory/directory.ts';
import type { Fetch } from '../../src/platform/fetch.ts';
import { inProcessFetch } from '../../src/features/oidc-provider/in-process.ts';
import { identityStores } from '../../src/composition/identity/identity-stores.ts';
import { lazyStores } from '../../src/platform/database/stores.ts';
import { fakeDirectory } from '../fakes/directory.ts';
import {
  authorizeProgram,
  Browser,
  frozenTime,
  type IdentityApp,
  openIdentityApp,
  programRedirect,
  sessionSecrets,
} from '../identity.ts';
import { type DirectoryStage, directoryContract } from './directory.ts';

const clock = frozenTime();
let open: IdentityApp;
beforeAll(async () => {
  open = await openIdentityApp(clock);
});
afterAll(() => open.close());

directoryContract('fake', async () => {
  const directory = fakeDirectory({ clock });
  const roles = new Map<string, readonly ('user' | 'admin')[]>();
  let made = 0;
  return {
    directory,
    issuer: 'https://id.example',
    async person(direct) {
      const subject = `person-${(made += 1)}`;
      roles.set(subject, direct);
      directory.person(subject, { roles: direct });
      return subject;
    },
    setRoles: async (subject, direct) => directory.person(subject, { roles: direct }),
    setEnabled: async (subject, isEnabled) => directory.person(subject, { isEnabled }),
    remove: async (subject) => directory.removePerson(subject),
    async giveAdminByNestedGroup(subject) {
      const tree = [
        { id: 'top', parentId: null, roles: ['admin'] as const },
        { id: 'below', parentId: 'top', roles: [] },
      ];
      directory.person(subject, { roles: effectiveRoles(roles.get(subject) ?? [], ['below'], tree) });
    },
    async token(subject, scopes) {
      const value = `token-${(made += 1)}`;
      directory.token(value, { subject, scopes });
      return value;
    },
    revoke: async (value) => directory.revoke(value),
    expireTokens: async () => clock.advance(5 * minute),
    breakDown: async (how) => directory.trouble(how),
    recover: async () => directory.trouble('none'),
  };
});

directoryContract('built-in', async () => await builtinStage());

let made = 0;
const password = 'a long enough password';
const post = (path: string, form: Record<string, string>) =>
  new Browser(open.app).post(`/identity${path}`, form, { origin: '', accept: 'application/json' });

/** The built-in directory of a real provider, with a switch in the wires between the two. */
async function builtinStage(): Promise<DirectoryStage> {
  const { identity, database, feed } = open;
  const stores = lazyStores(identityStores(clock))(database.sql);
  let trouble: 'none' | 'down' | 'slow' = 'none';
  const through = async <T>(work: () => Promise<T>): Promise<T> => {
    if (trouble === 'down') throw new AppError('store_unavailable');
    if (trouble === 'slow') return await new Promise<T>(() => {});
    return await work();
  };
  const direct = inProcessFetch(() => (request, response) => {
    const path = (request.url ?? '/').replace(/^\/identity/, '');
    identity.serveProvider(request, response, { path, address: '127.0.0.1' });
  });
  const fetch: Fetch = (url, init) => {
    const late = new Promise<never>((_, reject) => {
      init.signal?.addEventListener('abort', () => reject(new DOMException('too slow', 'TimeoutError')));
    });
    return Promise.race([through(() => direct(url, init)), late]);
  };
  const client = (clientId: string) =>
    createOidcClient({
      issuer: identity.issuer,
      clientId,
      clientSecret: clientSecretFor(sessionSecrets[0] ?? '', clientId),
      redirectUri: '',
      fetch,
      clock,
      timeoutSeconds: 60,
    });
  const directoryWithin = (timeoutMs: number) =>
    builtinDirectory({
      issuer: identity.issuer,
      client: client(principalSyncClientId),
      accounts: {
        findBySubject: (subject) => through(() => stores.accounts.findBySubject(subject)),
        wasDeleted: (subject) => through(() => stores.accounts.wasDeleted(subject)),
      },
      groups: stores.groups,
      feed,
      isFresh: () => clock.now() - feed.lastReadAt() <= second,
      clock,
      timeoutMs,
    });
  const [patient, hasty] = [directoryWithin(minute), directoryWithin(50)];
  // Only a question without an answer has a short limit: a healthy one never meets it, however busy the machine is.
  const current = () => (trouble === 'slow' ? hasty : patient);
  const directory: Directory = {
    introspect: (...question) => current().introspect(...question),
    principal: (subject) => current().principal(subject),
  };
  const idOf = async (subject: string) =>
    (await identity.findUserBySubject(identity.issuer, subject))?.id ?? '';

  return {
    directory,
    issuer: identity.issuer,
    async person(roles) {
      made += 1;
      const { account } = await identity.accounts.create(systemAuditContext, {
        email: `p${made}@example.com`,
        name: `P ${made}`,
        roles,
        groups: [],
        enabled: true,
        password,
      });
      return account.subject;
    },
    async setRoles(subject, roles) {
      await identity.accounts.change(systemAuditContext, await idOf(subject), { roles });
    },
    async setEnabled(subject, enabled) {
      await identity.accounts.change(systemAuditContext, await idOf(subject), { enabled });
    },
    async remove(subject) {
      await identity.accounts.remove(systemAuditContext, await idOf(subject));
    },
    async giveAdminByNestedGroup(subject) {
      made += 1;
      const name = `G${made}`;
      const top = await identity.groups.create(systemAuditContext, {
        name: `${name} top`,
        parentId: null,
        roles: ['admin'],
      });
      const middle = await identity.groups.create(systemAuditContext, {
        name: `${name} mid`,
        parentId: top.id,
        roles: [],
      });
      const own = await identity.groups.create(systemAuditContext, {
        name: `${name} own`,
        parentId: middle.id,
        roles: [],
      });
      await identity.accounts.change(systemAuditContext, await idOf(subject), { groups: [own.id] });
    },
    async token(subject, scopes) {
      const browser = new Browser(open.app);
      const person = await identity.accounts.get(await idOf(subject));
      const { answer, verifier } = await authorizeProgram(
        browser,
        scopes.join(' '),
        { email: person.email, password },
        'allow',
      );
      const tokens = await post('/token', {
        client_id: 'postern-cli',
        grant_type: 'authorization_code',
        code: answer.searchParams.get('code') ?? '',
        redirect_uri: programRedirect,
        code_verifier: verifier,
      });
      return (tokens.json() as { access_token: string }).access_token;
    },
    async revoke(value) {
      await post('/token/revocation', { client_id: 'postern-cli', token: value });
    },
    expireTokens: async () => clock.advance(5 * minute),
    async breakDown(how) {
      // Fresh answers may be kept for a second; the trouble starts after it.
      clock.advance(1_100);
      trouble = how;
    },
    async recover() {
      trouble = 'none';
    },
  };
}

describe('the cache of the built-in directory', () => {
  test('is not used once the change feed has been silent for a second', async () => {
    const stage = await builtinStage();
    await open.feed.poll();
    const subject = await stage.person(['user']);
    expect(await stage.directory.principal(subject)).toMatchObject({ kind: 'active' });
    await open.feed.poll();
    await stage.breakDown('down');
    expect(await stage.directory.principal(subject)).toMatchObject({ kind: 'unavailable' });
    await stage.recover();
  });

  test('has the change of another process as soon as it reads the feed', async () => {
    const other = await open.another();
    const stage = await builtinStage();
    const subject = await stage.person(['user']);
    await other.feed.poll();
    expect(await other.identity.directory.principal(subject)).toMatchObject({ roles: ['user'] });
    await stage.setRoles(subject, ['user', 'admin']);
    await other.feed.poll();
    expect(await other.identity.directory.principal(subject)).toMatchObject({ roles: ['user', 'admin'] });
    await other.close();
  });
});
