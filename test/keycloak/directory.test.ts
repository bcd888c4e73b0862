import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Directory } from '../../src/features/people/directory/directory.ts';
import { keycloakDirectory } from '../../src/features/keycloak/keycloak-directory.ts';
import { createKeycloakClient } from '../../src/features/keycloak/keycloak-client.ts';
import { directoryContract } from '../contract/directory.ts';
import { keycloakUrl, openRealm, type Realm } from './realm.ts';
import { openNetwork } from './trouble.ts';

// Only a question to a silent Keycloak has a short limit: a healthy one never meets it, however busy the machine is.
const [patientMs, hastyMs] = [60_000, 500];

describe.skipIf(keycloakUrl === null)('a directory of Keycloak', () => {
  let realm: Realm;
  let network: Awaited<ReturnType<typeof openNetwork>>;
  const known = new Set<string>();
  beforeAll(async () => {
    realm = await openRealm();
    network = await openNetwork();
  });
  afterAll(async () => {
    await network.close();
    await realm.close();
  });

  function openDirectory(
    of = realm,
    timeoutMs = patientMs,
  ): { directory: Directory; advance: (ms: number) => void } {
    let ahead = 0;
    let steadyMs = 0;
    const clock = { now: () => Date.now() + ahead };
    const { issuer, principalSync, roleNames } = of.settings;
    const client = createKeycloakClient({ issuer, principalSync, fetch: network.fetch, clock, timeoutMs });
    const directory = keycloakDirectory({
      issuer,
      clientId: principalSync.id,
      roleNames,
      client,
      known: { has: async (subject) => known.has(subject), note: (subject) => void known.add(subject) },
      isProven: async () => true,
      clock,
      // No answer is shared with the question before.
      steady: { now: () => (steadyMs += 1_000) },
      timeoutMs,
    });
    return { directory, advance: (ms) => void (ahead += ms) };
  }

  directoryContract('Keycloak', async () => {
    const { directory: patient, advance } = openDirectory();
    const { directory: hasty } = openDirectory(realm, hastyMs);
    let isSilent = false;
    const current = () => (isSilent ? hasty : patient);
    const names = new Map<string, string>();
    return {
      directory: {
        introspect: (...question) => current().introspect(...question),
        principal: (subject) => current().principal(subject),
      },
      issuer: realm.issuer,
      async person(roles) {
        const { subject, username } = await realm.person(roles);
        names.set(subject, username);
        // Has signed in once, as everyone who has a key or a site.
        known.add(subject);
        return subject;
      },
      setRoles: realm.setRoles,
      setEnabled: realm.setEnabled,
      remove: realm.remove,
      async giveAdminByNestedGroup(subject) {
        const top = await realm.group(`top-${subject}`, ['admin']);
        const middle = await realm.group('middle', [], top);
        await realm.join(subject, await realm.group('own', [], middle));
      },
      token: async (subject, scopes) => (await realm.tokens(names.get(subject) ?? '', scopes)).access,
      revoke: realm.revoke,
      expireTokens: async () => advance(5 * 60_000),
      breakDown: async (how) => {
        isSilent = how === 'slow';
        network.set(how);
      },
      recover: async () => {
        isSilent = false;
        network.set('none');
      },
    };
  });

  test('ID-03 a role counts through a composite role and through a group, until the person leaves it', async () => {
    const { directory } = openDirectory();
    const byComposite = await realm.person(['postern-staff']);
    expect(await directory.principal(byComposite.subject)).toMatchObject({ roles: ['user'] });
    const member = await realm.person([]);
    const group = await realm.group('members', ['user']);
    await realm.join(member.subject, group);
    expect(await directory.principal(member.subject)).toMatchObject({ roles: ['user'] });
    await realm.leave(member.subject, group);
    expect(await directory.principal(member.subject)).toMatchObject({ kind: 'active', roles: [] });
  });

  test('ID-04 the roles of the directory count, whatever the token says', async () => {
    const { directory } = openDirectory();
    const person = await realm.person(['user', 'admin']);
    const { access } = await realm.tokens(person.username, ['openid', 'admin']);
    await realm.setRoles(person.subject, []);
    expect(await directory.introspect(access)).toMatchObject({ kind: 'active' });
    expect(await directory.principal(person.subject)).toMatchObject({ roles: [] });
  });

  test('ID-12 a person without the role is refused; a realm whose people cannot be read gives no answer', async () => {
    const own = await openRealm();
    const { directory } = openDirectory(own);
    const { subject } = await own.person([]);
    expect(await directory.principal(subject)).toMatchObject({ kind: 'active', roles: [] });
    await own.take('view-users', 'query-groups');
    expect(await directory.principal(subject)).toMatchObject({
      kind: 'unavailable',
      reason: 'user_status_403',
    });
    await own.give('view-users');
    expect(await directory.principal(subject)).toMatchObject({ kind: 'active' });
    await own.close();
  });

  test('an unreadable role does not count as a missing one', async () => {
    const own = await openRealm();
    const { directory } = openDirectory(own);
    const { subject } = await own.person([]);
    await own.take('view-realm');
    expect(await directory.principal(subject)).toEqual({
      kind: 'unavailable',
      reason: 'role_not_visible_403',
    });
    await own.close();
  });

  test('a missing realm does not mean that people were deleted', async () => {
    const own = await openRealm();
    const { directory } = openDirectory(own);
    const { subject } = await own.person();
    expect(await directory.principal(subject)).toMatchObject({ kind: 'active' });
    await own.close();
    expect(await directory.principal(subject)).toMatchObject({ kind: 'unavailable' });
  });

  test('ID-17 a valid token for another audience is an error of the realm, and not a revoked one', async () => {
    const own = await openRealm((file) => {
      for (const client of file.clients) {
        client.defaultClientScopes = client.defaultClientScopes.filter(
          (scope: string) => scope !== 'postern-audience',
        );
      }
    });
    const { directory } = openDirectory(own);
    const { username } = await own.person();
    const { access } = await own.tokens(username);
    expect(await directory.introspect(access)).toEqual({ kind: 'unavailable', reason: 'token_audience' });
    const [head, body, signature = ''] = access.split('.');
    const forged = [head, body, `${signature.slice(0, -4)}AAAA`].join('.');
    expect(await directory.introspect(forged)).toEqual({ kind: 'inactive' });
    await own.close();
  });

  test('ID-17 a lightweight token works, and is revoked like any other', async () => {
    const own = await openRealm((file) => {
      const client = file.clients.find((one: { clientId: string }) => one.clientId === 'test-grants');
      client.attributes = { 'client.use.lightweight.access.token.enabled': 'true' };
    });
    const { directory } = openDirectory(own);
    const { username, subject } = await own.person();
    const { access } = await own.tokens(username, ['openid', 'sites:read']);
    expect(await directory.introspect(access)).toMatchObject({ kind: 'active', subject });
    await own.revoke(access);
    expect(await directory.introspect(access)).toEqual({ kind: 'inactive' });
    await own.close();
  });

  test('ID-08 the tokens of an offline grant end with it, at once', async () => {
    const { directory } = openDirectory();
    const { username } = await realm.person();
    const { access, refresh } = await realm.tokens(username, ['openid', 'offline_access', 'sites:read']);
    expect(await directory.introspect(access)).toMatchObject({ kind: 'active' });
    await realm.revoke(refresh);
    expect(await directory.introspect(access)).toEqual({ kind: 'inactive' });
    expect(await realm.refresh(refresh)).toMatchObject({ error: 'invalid_grant' });
  });

  test('ID-14 the reading client changes no account and reads no secret', async () => {
    const { settings, name } = realm;
    const { subject } = await realm.person();
    const { id, secret } = settings.principalSync;
    const received = await fetch(`${realm.issuer}/protocol/openid-connect/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials' }),
    });
    const { access_token: token } = (await received.json()) as { access_token: string };
    const ask = async (method: string, path: string, body?: unknown) => {
      const answer = await fetch(`${keycloakUrl}/admin/realms/${name}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      await answer.arrayBuffer();
      return answer.status;
    };
    const web = await realm.clientId('postern-web');
    expect(await ask('GET', `/users/${subject}`)).toBe(200);
    expect(await ask('PUT', `/users/${subject}`, { enabled: false })).toBe(403);
    expect(await ask('POST', `/users/${subject}/logout`)).toBe(403);
    expect(await ask('DELETE', `/users/${subject}`)).toBe(403);
    expect(await ask('GET', `/clients/${web}/client-secret`)).toBe(403);
  });
});
