import {
  type ClientCredentials,
  claimsOf,
  isRecord,
  type KeycloakAnswer,
  type KeycloakClient,
  KeycloakTrouble,
} from './keycloak-client.ts';

/**
 * Tests with requests whether the realm is set up for Postern. Runs four checks and reports the first that fails,
 * with the setting that it concerns and the fix. `away` is no verdict: the realm did not answer.
 */
export type SelfTest = () => Promise<SelfTestResult>;

export type SelfTestResult =
  | { readonly kind: 'passed' }
  | { readonly kind: 'away'; readonly check: Check; readonly reason: string }
  | ({ readonly kind: 'refused'; readonly check: Check } & Mistake);

/** In the order in which they run: each check needs those before it. */
export const selfTestChecks = [
  'discovery',
  'client credentials',
  'reading people and roles',
  'introspection',
] as const;

export type Check = (typeof selfTestChecks)[number];

type Mistake = { readonly setting: string; readonly problem: string; readonly fix: string };

/** A check found a mistake in the configuration or in the realm. */
class Mistaken extends Error {
  readonly mistake: Mistake;
  constructor(mistake: Mistake) {
    super(mistake.problem);
    this.name = 'Mistaken';
    this.mistake = mistake;
  }
}

const guide = 'docs/how-to/sign-in-with-keycloak.md';

export function createSelfTest(deps: {
  issuer: string;
  login: ClientCredentials;
  principalSync: ClientCredentials;
  roleNames: { readonly user: string; readonly admin: string };
  client: KeycloakClient;
}): SelfTest {
  const { issuer, login, principalSync, roleNames, client } = deps;
  let ownToken = '';

  async function discovery(): Promise<void> {
    const { status, body } = answered(await client.publicDocument('/.well-known/openid-configuration'));
    if (status !== 200) {
      throw new Mistaken({
        setting: 'OIDC_ISSUER',
        problem: `is not the address of a realm: discovery answers ${status}`,
        fix: 'Use the address of the realm that its page "Realm settings" links to, such as https://id.example.com/realms/postern.',
      });
    }
    const said = isRecord(body) ? body['issuer'] : undefined;
    if (typeof said !== 'string') {
      throw new Mistaken({
        setting: 'OIDC_ISSUER',
        problem: 'does not answer as a Keycloak realm does',
        fix: 'Write the address of the realm, such as https://id.example.com/realms/postern.',
      });
    }
    if (said !== issuer) {
      throw new Mistaken({
        setting: 'OIDC_ISSUER',
        problem: `differs from the issuer that the realm reports: ${said.slice(0, 200)}`,
        fix: 'Use exactly that issuer, or set the public address of Keycloak (hostname).',
      });
    }
  }

  async function credentials(): Promise<void> {
    ownToken = await client.ownToken().catch((error: unknown) => {
      if (error instanceof KeycloakTrouble && error.reason === 'client_refused') {
        throw new Mistaken({
          setting: 'PRINCIPAL_SYNC_CLIENT_SECRET',
          problem: 'gets no token from the realm with PRINCIPAL_SYNC_CLIENT_ID',
          fix: 'Check both, and that the client has "Client authentication" and "Service account roles" on.',
        });
      }
      throw error;
    });
    // Whatever the token, Keycloak refuses a client with a wrong secret, and a public client may not introspect.
    const { status } = answered(await client.introspectAs(login, 'not-a-token'));
    if (status !== 200) {
      throw new Mistaken({
        setting: 'OIDC_CLIENT_SECRET',
        problem: 'is not accepted by the realm with OIDC_CLIENT_ID',
        fix: 'Check both, and that the client has "Client authentication" on.',
      });
    }
    mustOnlyRead(claimsOf(ownToken));
  }

  async function reading(): Promise<void> {
    const subject = claimsOf(ownToken)?.['sub'];
    if (typeof subject !== 'string') throw new Mistaken(tokenWithoutRoles);
    const self = `/users/${encodeURIComponent(subject)}`;
    const { body } = mayRead(await client.read(self), 'people', 'view-users');
    // Keycloak's own list of what this client may do to a person, whichever role grants it.
    const access = isRecord(body) ? body['access'] : undefined;
    const powers = isRecord(access)
      ? Object.keys(access).filter((one) => one !== 'view' && access[one] !== false)
      : [];
    if (powers.length > 0) throw new Mistaken(tooPowerful(powers));
    mayRead(await client.read(`${self}/role-mappings/realm/composite`), 'roles of people', 'view-users');
    mayRead(await client.read(`${self}/groups?max=1`), 'groups of people', 'view-users');
    for (const [setting, name] of [
      ['OIDC_USER_ROLE', roleNames.user],
      ['OIDC_ADMIN_ROLE', roleNames.admin],
    ] as const) {
      const answer = await client.read(`/roles/${encodeURIComponent(name)}`);
      if (answer.status === 404) {
        throw new Mistaken({
          setting,
          problem: `names a realm role that does not exist: ${name}`,
          fix: 'Create it under "Realm roles" (client roles do not count), or use an existing role.',
        });
      }
      mayRead(answer, 'roles', 'view-realm');
    }
  }

  async function introspection(): Promise<void> {
    const { active } = await client.introspect(ownToken, 'access_token');
    if (active === true) return;
    throw new Mistaken({
      setting: 'PRINCIPAL_SYNC_CLIENT_ID',
      problem: `is not in the audience of tokens, so Keycloak reports every token as inactive`,
      fix: `Add an audience mapper with client ${principalSync.id} to a client scope that is a default of every client (${guide}).`,
    });
  }

  const checks: Readonly<Record<Check, () => Promise<void>>> = {
    discovery,
    'client credentials': credentials,
    'reading people and roles': reading,
    introspection,
  };

  return async () => {
    for (const check of selfTestChecks) {
      try {
        await checks[check]();
      } catch (error) {
        if (error instanceof Mistaken) return { kind: 'refused', check, ...error.mistake };
        if (error instanceof KeycloakTrouble) return { kind: 'away', check, reason: error.reason };
        throw error;
      }
    }
    return { kind: 'passed' };
  };
}

/** @throws KeycloakTrouble when the server itself failed, which says nothing about the configuration. */
function answered(answer: KeycloakAnswer): KeycloakAnswer {
  if (answer.status >= 500 || answer.status === 429) throw new KeycloakTrouble(`status_${answer.status}`);
  return answer;
}

function mayRead(answer: KeycloakAnswer, what: string, role: string): KeycloakAnswer {
  const { status } = answered(answer);
  if (status === 200) return answer;
  throw new Mistaken({
    setting: 'PRINCIPAL_SYNC_CLIENT_ID',
    problem: `may not read ${what}: Keycloak answers ${status}`,
    fix: `Give its service account the role ${role} of realm-management.`,
  });
}

/** The roles in realm-management that the client may have. view-clients could read the secrets of clients before 26.8. */
const readingRole = /^(?:view|query)-/;

function mustOnlyRead(claims: Record<string, unknown> | undefined): void {
  const access = claims?.['resource_access'];
  const management = isRecord(access) ? access['realm-management'] : undefined;
  const roles: unknown = isRecord(management) ? management['roles'] : undefined;
  // Without the list of roles, Postern cannot verify that the client is read-only.
  if (!Array.isArray(roles) || !roles.every((role) => typeof role === 'string'))
    throw new Mistaken(tokenWithoutRoles);
  const excess = roles.filter((role) => !readingRole.test(role) || role === 'view-clients');
  if (excess.length > 0) throw new Mistaken(tooPowerful(excess));
}

function tooPowerful(powers: readonly string[]): Mistake {
  return {
    setting: 'PRINCIPAL_SYNC_CLIENT_ID',
    problem: `can do more than read (${powers.join(', ')}): an attacker who controls Postern could change accounts and roles`,
    fix: 'Give its service account only the roles view-users and view-realm of realm-management. Never use a management client here.',
  };
}

const tokenWithoutRoles: Mistake = {
  setting: 'PRINCIPAL_SYNC_CLIENT_ID',
  problem: 'gets tokens that do not list its roles, so Postern cannot check whether it can manage anything',
  fix: 'Give its service account view-users and view-realm of realm-management, and the client the default client scopes "basic" and "roles".',
};
