import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inject, vi } from 'vitest';

/** Where Keycloak answers; null = these suites are left out (global-setup.ts). */
export const keycloakUrl = inject('keycloakUrl');

export const uiUrl = 'https://postern.test';
export const password = 'a long enough password';
const secrets = { login: 'login-secret-of-a-test', principalSync: 'sync-secret-of-a-test' };

type Json = Record<string, unknown>;
type Named = { readonly id: string; readonly name: string };
/** What Keycloak's administration answers; a wrong field shows as a failing expectation. */
// oxlint-disable-next-line typescript/no-explicit-any
type Answered = any;

/** A realm of the test's own, made from the file in deploy/keycloak, and its administrator. */
export type Realm = Awaited<ReturnType<typeof openRealm>>;

/** A client for tests alone: tokens for a password, without pages. Postern's own clients cannot do that. */
const grantsClient = 'test-grants';

export async function openRealm(change: (realm: Answered) => void = () => undefined) {
  if (keycloakUrl === null) throw new Error('There is no Keycloak.');
  const server = keycloakUrl;
  const name = `test-${randomBytes(5).toString('hex')}`;
  const issuer = `${server}/realms/${name}`;
  const made = realmFile(name);
  change(made);
  await admin('POST', '', made);
  const settings = {
    issuer,
    login: { id: 'postern-web', secret: secrets.login },
    principalSync: { id: 'postern-principal-sync', secret: secrets.principalSync },
    roleNames: { user: 'user', admin: 'admin' },
  };
  let people = 0;

  const path = (rest: string) => `/${name}${rest}`;
  const find = async (rest: string): Promise<Answered> => await admin('GET', path(rest));
  const roles = async (names: readonly string[]): Promise<Named[]> =>
    await Promise.all(names.map((role) => find(`/roles/${role}`)));
  async function clientId(client: string): Promise<string> {
    return (await find(`/clients?clientId=${client}`))[0].id;
  }
  async function serviceAccount(client: string): Promise<string> {
    return (await find(`/clients/${await clientId(client)}/service-account-user`)).id;
  }
  async function managementRoles(names: readonly string[]) {
    const management = await clientId('realm-management');
    const found = await Promise.all(names.map((role) => find(`/clients/${management}/roles/${role}`)));
    const account = await serviceAccount('postern-principal-sync');
    return { at: `/users/${account}/role-mappings/clients/${management}`, found };
  }

  return {
    name,
    issuer,
    settings,
    admin: (method: string, rest: string, body?: unknown) => admin(method, path(rest), body),
    find,
    clientId,
    /** A person with these realm roles, who signs in with `password`. */
    async person(names: readonly string[] = ['user']) {
      people += 1;
      const email = `person-${people}@example.com`;
      await admin('POST', path('/users'), {
        username: `person-${people}`,
        email,
        emailVerified: true,
        firstName: 'Ada',
        lastName: `Number ${people}`,
        enabled: true,
        credentials: [{ type: 'password', value: password, temporary: false }],
      });
      const [found] = await find(`/users?exact=true&username=person-${people}`);
      const subject: string = found.id;
      await admin('POST', path(`/users/${subject}/role-mappings/realm`), await roles(names));
      return { subject, email, username: `person-${people}` };
    },
    async setRoles(subject: string, names: readonly string[]) {
      const at = path(`/users/${subject}/role-mappings/realm`);
      await admin('DELETE', at, await roles(['user', 'admin']));
      if (names.length > 0) await admin('POST', at, await roles(names));
    },
    setEnabled: (subject: string, enabled: boolean) => admin('PUT', path(`/users/${subject}`), { enabled }),
    remove: (subject: string) => admin('DELETE', path(`/users/${subject}`)),
    async group(group: string, names: readonly string[], parent?: string): Promise<string> {
      await admin('POST', path(parent === undefined ? '/groups' : `/groups/${parent}/children`), {
        name: group,
      });
      const siblings: readonly Named[] =
        parent === undefined
          ? await find(`/groups?exact=true&search=${group}`)
          : await find(`/groups/${parent}/children`);
      const id = siblings.find((one) => one.name === group)?.id ?? '';
      if (names.length > 0)
        await admin('POST', path(`/groups/${id}/role-mappings/realm`), await roles(names));
      return id;
    },
    join: (subject: string, group: string) => admin('PUT', path(`/users/${subject}/groups/${group}`)),
    leave: (subject: string, group: string) => admin('DELETE', path(`/users/${subject}/groups/${group}`)),
    /** Tokens of a person for a password. */
    async tokens(username: string, scopes: readonly string[] = ['openid'], client = grantsClient) {
      // Keycloak also refuses the right password while it still records a sign-in of the same person.
      const answer = await vi.waitFor(
        async () => {
          const given = await form(`${issuer}/protocol/openid-connect/token`, {
            grant_type: 'password',
            client_id: client,
            username,
            password,
            scope: scopes.join(' '),
          });
          if (given['error'] === 'invalid_grant') throw new Error(JSON.stringify(given));
          return given;
        },
        { timeout: 60_000, interval: 200 },
      );
      return { access: String(answer['access_token']), refresh: String(answer['refresh_token']) };
    },
    /** The access token of a service account, which has no person. */
    async serviceToken(client: string, secret: string): Promise<string> {
      const given = await form(`${issuer}/protocol/openid-connect/token`, {
        grant_type: 'client_credentials',
        client_id: client,
        client_secret: secret,
      });
      return String(given['access_token']);
    },
    async refresh(refreshToken: string, client = grantsClient): Promise<Json> {
      return await form(`${issuer}/protocol/openid-connect/token`, {
        grant_type: 'refresh_token',
        client_id: client,
        refresh_token: refreshToken,
      });
    },
    /** RFC 7009. */
    async revoke(token: string) {
      await form(`${issuer}/protocol/openid-connect/revoke`, { client_id: grantsClient, token });
    },
    /** Grants roles of realm-management to the client that may only read. */
    async give(...names: string[]) {
      const { at, found } = await managementRoles(names);
      await admin('POST', path(at), found);
    },
    async take(...names: string[]) {
      const { at, found } = await managementRoles(names);
      await admin('DELETE', path(at), found);
    },
    close: () => admin('DELETE', path('')),
  };
}

function realmFile(name: string): Answered {
  const text = readFileSync(join(import.meta.dirname, '../../deploy/keycloak/postern-realm.json'), 'utf8')
    .replaceAll('/realms/postern/', `/realms/${name}/`)
    .replaceAll('${SERVICE_UI_URL}', uiUrl)
    .replaceAll('${OIDC_CLIENT_SECRET}', secrets.login)
    .replaceAll('${PRINCIPAL_SYNC_CLIENT_SECRET}', secrets.principalSync);
  const realm: Answered = JSON.parse(text);
  realm.realm = name;
  const cli = realm.clients.find((client: { clientId: string }) => client.clientId === 'postern-cli');
  realm.clients.push({
    ...cli,
    clientId: grantsClient,
    consentRequired: false,
    standardFlowEnabled: false,
    directAccessGrantsEnabled: true,
    attributes: {},
  });
  return realm;
}

async function form(url: string, fields: Record<string, string>): Promise<Json> {
  const answer = await fetch(url, { method: 'POST', body: new URLSearchParams(fields) });
  const text = await answer.text();
  // A form of OAuth answers with an object, or with nothing.
  return text === '' ? {} : (JSON.parse(text) as Json);
}

/** The realm `master`'s administrator, who exists for the tests alone. */
async function admin(method: string, path: string, body?: unknown): Promise<Answered> {
  const answer = await fetch(`${keycloakUrl}/admin/realms${path}`, {
    method,
    headers: { authorization: `Bearer ${await adminToken()}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}

let token: { value: string; goodUntil: number } | undefined;

async function adminToken(): Promise<string> {
  if (token !== undefined && Date.now() < token.goodUntil) return token.value;
  const answer = await form(`${keycloakUrl}/realms/master/protocol/openid-connect/token`, {
    grant_type: 'password',
    client_id: 'admin-cli',
    ...inject('keycloakAdministrator'),
  });
  token = { value: String(answer['access_token']), goodUntil: Date.now() + 30_000 };
  return token.value;
}
