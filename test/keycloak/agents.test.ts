import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { systemAuditContext } from '../../src/core/caller.ts';
import { defaultMcpPolicy } from '../../src/features/agents/mcp-policy.ts';
import { createKeycloakClient } from '../../src/features/keycloak/keycloak-client.ts';
import { checkMcp } from '../../src/features/keycloak/mcp-check.ts';
import { networkFetch } from '../../src/platform/fetch.ts';
import { type Installation, openInstallation, WebBrowser } from './installation.ts';
import { keycloakUrl, openRealm, password, type Realm, uiUrl } from './realm.ts';

/** Agents of people whose identity provider is Keycloak, with the realm of the repository. */
describe.skipIf(keycloakUrl === null)('agents with Keycloak', () => {
  let realm: Realm;
  let postern: Installation;
  beforeAll(async () => {
    realm = await openRealm((made) => {
      // Tokens for a password, without pages, with what clients of agents and of programs get.
      for (const like of ['postern-mcp', 'postern-cli']) {
        const client = made.clients.find(({ clientId }: { clientId: string }) => clientId === like);
        const more = { clientId: `test-${like}`, consentRequired: false, attributes: {} };
        made.clients.push({
          ...client,
          ...more,
          standardFlowEnabled: false,
          directAccessGrantsEnabled: true,
        });
      }
      const forgetful = made.clients.at(-2);
      const scopes = forgetful.defaultClientScopes.filter((scope: string) => scope !== 'postern-audience');
      made.clients.push({ ...forgetful, clientId: 'test-forgetful', defaultClientScopes: scopes });
    });
    postern = await (await openInstallation(realm)).start();
    const policy = { ...defaultMcpPolicy, enabled: true };
    await postern.app.services.mcpPolicy.put(systemAuditContext, '*', policy);
  });
  afterAll(async () => {
    await postern.close();
    await realm.close();
  });

  const tokenOf = async (username: string, client: string, scope: string) => {
    const { access } = await realm.tokens(username, ['openid', scope], client);
    return { authorization: `Bearer ${access}` };
  };
  const useTool = async (headers: Record<string, string>) => {
    const params = { name: 'get_context', arguments: {} };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    const types = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
    return await new WebBrowser(postern).send('POST', `${uiUrl}/mcp`, { ...types, ...headers }, body);
  };
  const readSites = async (headers: Record<string, string>) =>
    (await new WebBrowser(postern).send('GET', `${uiUrl}/api/v2/sites`, headers)).status;

  test('MC-01 a token with the scope mcp works only at the endpoint, and one of a program only at the API', async () => {
    const person = await realm.person();
    const agent = await tokenOf(person.username, 'test-postern-mcp', 'mcp');
    const used = await useTool(agent);
    expect([used.status, used.text]).toEqual([200, expect.stringContaining('Ada Number')]);
    expect(await readSites(agent)).toBe(401);
    const program = await tokenOf(person.username, 'test-postern-cli', 'sites:read');
    expect(await readSites(program)).toBe(200);
    expect((await useTool(program)).status).toBe(401);
  });

  test('an ended session also blocks later tokens of the same sign-in', async () => {
    const person = await realm.person();
    const { access, refresh } = await realm.tokens(person.username, ['openid', 'mcp'], 'test-postern-mcp');
    expect((await useTool({ authorization: `Bearer ${access}` })).status).toBe(200);
    const browser = new WebBrowser(postern);
    await browser.signIn(person, password);
    const [session] = (await browser.api('GET', '/me/agents/sessions')).data;
    expect(session).toMatchObject({ clientId: 'test-postern-mcp', calls: 1, isOpen: true });
    expect((await browser.api('POST', `/me/agents/sessions/${session.id}/end`)).status).toBe(200);
    expect((await useTool({ authorization: `Bearer ${access}` })).status).toBe(401);
    const later = await realm.refresh(refresh, 'test-postern-mcp');
    expect(later['access_token']).toBeTypeOf('string');
    expect((await useTool({ authorization: `Bearer ${String(later['access_token'])}` })).status).toBe(401);
    const other = await tokenOf(person.username, 'test-postern-mcp', 'mcp');
    expect((await useTool(other)).status).toBe(200);
  });

  test('an account that is disabled in Keycloak, or loses its role, has no agents from the next call on', async () => {
    const person = await realm.person();
    const agent = await tokenOf(person.username, 'test-postern-mcp', 'mcp');
    await realm.setRoles(person.subject, []);
    expect((await useTool(agent)).status).toBe(403);
    await realm.setRoles(person.subject, ['user']);
    expect((await useTool(agent)).status).toBe(200);
    await realm.setEnabled(person.subject, false);
    expect((await useTool(agent)).status).toBe(401);
  });

  test('a client without the scope for introspection is an error of the realm, and no verdict on its token', async () => {
    const person = await realm.person();
    expect((await useTool(await tokenOf(person.username, 'test-forgetful', 'mcp'))).status).toBe(503);
  });

  test('doctor checks how clients register, and that the audiences are separate', async () => {
    const { settings } = realm;
    const check = async () =>
      await checkMcp({
        uiUrl,
        client: createKeycloakClient({
          ...settings,
          fetch: networkFetch,
          clock: systemClock,
          timeoutMs: 60_000,
        }),
      });
    expect(await check()).toEqual({
      registration: { hasEndpoint: true, acceptsDocuments: false },
      audience: { kind: 'apart' },
    });
    const [scope] = (await realm.find('/client-scopes')).filter(
      ({ name }: { name: string }) => name === 'mcp',
    );
    const [mapper] = await realm.find(`/client-scopes/${scope.id}/protocol-mappers/models`);
    await realm.admin('DELETE', `/client-scopes/${scope.id}/protocol-mappers/models/${mapper.id}`);
    expect((await check()).audience).toEqual({ kind: 'not_in_token' });
  });
});
