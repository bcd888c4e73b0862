import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { createKeycloakClient } from '../../src/features/keycloak/keycloak-client.ts';
import { createSelfTest } from '../../src/features/keycloak/self-test.ts';
import { inject } from 'vitest';
import { keycloakUrl, openRealm, type Realm } from './realm.ts';
import { openNetwork, type Trouble } from './trouble.ts';

describe.skipIf(keycloakUrl === null)('the self-test at the start', () => {
  let realm: Realm;
  let network: Awaited<ReturnType<typeof openNetwork>>;
  beforeAll(async () => {
    realm = await openRealm();
    network = await openNetwork();
  });
  afterAll(async () => {
    await network.close();
    await realm.close();
  });

  const run = (settings = realm.settings, timeoutMs = 60_000) =>
    createSelfTest({
      ...settings,
      client: createKeycloakClient({ ...settings, fetch: network.fetch, clock: systemClock, timeoutMs }),
    })();

  test('the realm in the repository passes after Keycloak’s import', async () => {
    const { login, principalSync } = inject('importedSecrets');
    const imported = {
      ...realm.settings,
      issuer: `${keycloakUrl}/realms/postern`,
      login: { id: 'postern-web', secret: login },
      principalSync: { id: 'postern-principal-sync', secret: principalSync },
    };
    expect(await run(imported)).toEqual({ kind: 'passed' });
    expect(await run()).toEqual({ kind: 'passed' });
  });

  test('discovery: a missing realm, and one with another issuer, are refused', async () => {
    const { settings } = realm;
    expect(await run({ ...settings, issuer: `${settings.issuer}-not` })).toMatchObject({
      kind: 'refused',
      check: 'discovery',
      setting: 'OIDC_ISSUER',
    });
    expect(
      await run({ ...settings, issuer: settings.issuer.replace('127.0.0.1', 'localhost') }),
    ).toMatchObject({
      kind: 'refused',
      check: 'discovery',
      problem: expect.stringContaining(settings.issuer),
    });
  });

  test('client credentials: the error for a wrong secret of either client names its setting', async () => {
    const { settings } = realm;
    const wrong = (client: { id: string; secret: string }) => ({ ...client, secret: 'not-this-one' });
    expect(await run({ ...settings, principalSync: wrong(settings.principalSync) })).toMatchObject({
      kind: 'refused',
      check: 'client credentials',
      setting: 'PRINCIPAL_SYNC_CLIENT_SECRET',
    });
    const found = await run({ ...settings, login: wrong(settings.login) });
    expect(found).toMatchObject({
      kind: 'refused',
      check: 'client credentials',
      setting: 'OIDC_CLIENT_SECRET',
    });
    expect(JSON.stringify(found)).not.toContain('not-this-one');
  });

  test.each(['manage-users', 'manage-clients', 'realm-admin', 'impersonation', 'view-clients'])(
    'ID-14 a client that has %s is refused with the reason',
    async (role) => {
      await realm.give(role);
      try {
        expect(await run()).toMatchObject({
          kind: 'refused',
          check: 'client credentials',
          setting: 'PRINCIPAL_SYNC_CLIENT_ID',
          problem: expect.stringMatching(new RegExp(`can do more than read.*${role}`)),
        });
      } finally {
        await realm.take(role);
      }
    },
  );

  test('ID-14 rights from a group are found, and so are rights that the token does not show', async () => {
    const own = await openRealm((file) => {
      file.groups.push({ name: 'keepers', clientRoles: { 'realm-management': ['manage-users'] } });
      file.users[0].groups = ['/keepers'];
    });
    expect(await run(own.settings)).toMatchObject({
      kind: 'refused',
      problem: expect.stringContaining('manage-users'),
    });
    await own.close();
    const silent = await openRealm((file) => {
      file.users[0].clientRoles['realm-management'].push('manage-users');
      for (const scope of file.clientScopes) if (scope.name === 'roles') scope.protocolMappers = [];
    });
    expect(await run(silent.settings)).toMatchObject({
      kind: 'refused',
      problem: expect.stringContaining('do not list its roles'),
    });
    await silent.close();
  });

  test.each([
    ['view-users', 'people'],
    ['view-realm', 'roles'],
  ])('reading: without %s the missing role is named', async (role, what) => {
    const own = await openRealm();
    await own.take(role);
    expect(await run(own.settings)).toMatchObject({
      kind: 'refused',
      check: 'reading people and roles',
      problem: expect.stringContaining(`may not read ${what}`),
      fix: expect.stringContaining(role),
    });
    await own.close();
  });

  test('reading: the error for a role that the realm lacks names its setting', async () => {
    const { settings } = realm;
    const roleNames = { ...settings.roleNames, admin: 'chief' };
    expect(await run({ ...settings, roleNames })).toMatchObject({
      kind: 'refused',
      check: 'reading people and roles',
      setting: 'OIDC_ADMIN_ROLE',
      problem: expect.stringContaining('chief'),
    });
  });

  test('introspection: without the audience mapper no token would be active', async () => {
    const own = await openRealm((file) => {
      for (const client of file.clients) {
        client.defaultClientScopes = client.defaultClientScopes.filter(
          (scope: string) => scope !== 'postern-audience',
        );
      }
    });
    expect(await run(own.settings)).toMatchObject({
      kind: 'refused',
      check: 'introspection',
      fix: expect.stringContaining('audience mapper'),
    });
    await own.close();
  });

  test.each<[string, Trouble]>([
    ['down', 'down'],
    ['slow', 'slow'],
    ['in trouble itself', (_, response) => response.writeHead(503).end()],
  ])('a Keycloak that is %s counts as unavailable, and gives no verdict', async (_, trouble) => {
    network.set(trouble);
    try {
      expect(await run(realm.settings, 500)).toMatchObject({ kind: 'away', check: 'discovery' });
    } finally {
      network.set('none');
    }
  });
});
