import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { ConnectedClients, UserStore } from '../people/people.ts';
import { isRecord, type KeycloakAnswer, type KeycloakClient } from './keycloak-client.ts';

/** The clients that hold an offline grant of a person, as the realm reports them. Only the person can end one, in Keycloak. */
export function offlineClients(deps: {
  issuer: string;
  users: Pick<UserStore, 'find'>;
  client: Pick<KeycloakClient, 'read'>;
  clock: Clock;
}): ConnectedClients {
  const { issuer, users, client, clock } = deps;

  async function list(path: string): Promise<readonly Record<string, unknown>[]> {
    const answer = await client.read(path).catch((cause: unknown) => {
      throw new AppError('identity_unavailable', { cause });
    });
    return recordsOf(answer);
  }

  return {
    async list(userId) {
      const user = await users.find(userId);
      if (user === undefined || user.issuer !== issuer) throw new AppError('not_found');
      const path = `/users/${encodeURIComponent(user.subject)}`;
      const consents = await list(`${path}/consents`);
      const offline = consents.flatMap((consent) => {
        const uuid = offlineClientOf(consent);
        return uuid === undefined ? [] : [{ consent, uuid }];
      });
      return await Promise.all(
        offline.map(async ({ consent, uuid }) => {
          const sessions = await list(`${path}/offline-sessions/${encodeURIComponent(uuid)}`);
          const times = (name: string) =>
            sessions.map((session) => session[name]).filter((time) => typeof time === 'number');
          const used = times('lastAccess');
          const clientId = String(consent['clientId']);
          const scopes: unknown = consent['grantedClientScopes'];
          return {
            clientId,
            name: clientId,
            since: Math.min(...times('start'), clock.now()),
            lastUsedAt: used.length === 0 ? null : Math.max(...used),
            scopes: Array.isArray(scopes) ? scopes.filter((scope) => typeof scope === 'string') : [],
          };
        }),
      );
    },
    endGrant: () => Promise.resolve(),
    isGrantLive: () => Promise.resolve(null),
    revoke: () =>
      Promise.reject(
        new AppError('state_conflict', {
          message: 'The identity provider of this installation manages its connected clients.',
          hint: `A person disconnects a client at ${issuer}/account/applications, an administrator in Keycloak.`,
        }),
      ),
  };
}

/** Keycloak's internal id of the client, when the person gave it an offline token. */
function offlineClientOf({ additionalGrants: grants }: Record<string, unknown>): string | undefined {
  if (!Array.isArray(grants)) return undefined;
  const found: unknown = grants.find((grant) => isRecord(grant) && grant['key'] === 'Offline Token');
  return isRecord(found) && typeof found['client'] === 'string' ? found['client'] : undefined;
}

function recordsOf({ status, body }: KeycloakAnswer): readonly Record<string, unknown>[] {
  if (status === 200 && Array.isArray(body) && body.every(isRecord)) return body;
  throw new AppError('identity_unavailable', { cause: `list_status_${status}` });
}
