import { type Clock, minute } from '../../core/clock.ts';
import type { Fetch } from '../../platform/fetch.ts';
import type { Job } from '../../platform/jobs.ts';
import type { Log } from '../../platform/log.ts';
import type { ConnectedClients, Directory, UserStore } from '../people/people.ts';
import { type ClientCredentials, createKeycloakClient } from './keycloak-client.ts';
import { keycloakDirectory } from './keycloak-directory.ts';
import { knownSubjects } from './known-subjects.ts';
import { offlineClients } from './offline-clients.ts';
import { KeycloakRefused } from './refused.ts';
import { createSelfTest } from './self-test.ts';
import { createSelfTestState } from './self-test-state.ts';

/**
 * Keycloak as the identity provider, instead of the built-in one; `composition/identity/keycloak-identity.ts` constructs it. People
 * sign in at Keycloak. Postern looks them up with a client that may only read, so accounts and groups are changed in
 * Keycloak. When Keycloak does not answer, the result is `unavailable`, never a yes or a no.
 */
export type Keycloak = {
  readonly directory: Directory;
  readonly connectedClients: ConnectedClients;
  readonly jobs: readonly Job[];
  /** Runs the self-test. @throws KeycloakRefused */
  start(): Promise<void>;
};

export type KeycloakDeps = {
  keycloak: {
    readonly issuer: string;
    readonly login: ClientCredentials;
    readonly principalSync: ClientCredentials;
    readonly roleNames: { readonly user: string; readonly admin: string };
  };
  users: Pick<UserStore, 'find' | 'wasFound' | 'noteFound'>;
  fetch: Fetch;
  clock: Clock;
  /** A clock that never goes back. */
  steady: Clock;
  log: Log;
  timeoutMs: number;
};

export function createKeycloak(deps: KeycloakDeps): Keycloak {
  const { users, fetch, clock, steady, log, timeoutMs } = deps;
  const { issuer, login, principalSync, roleNames } = deps.keycloak;
  const client = createKeycloakClient({ issuer, principalSync, fetch, clock, timeoutMs });
  const selfTestState = createSelfTestState({
    selfTest: createSelfTest({ issuer, login, principalSync, roleNames, client }),
    clock,
    log,
  });
  return {
    directory: keycloakDirectory({
      issuer,
      clientId: principalSync.id,
      roleNames,
      client,
      known: knownSubjects({ issuer, users, log }),
      isProven: selfTestState.holds,
      clock,
      steady,
      timeoutMs,
    }),
    connectedClients: offlineClients({ issuer, users, client, clock }),
    jobs: [
      {
        name: 'identity-self-test',
        everyMs: minute,
        leased: false,
        run: async () => void (await selfTestState.check()),
      },
    ],
    async start() {
      const result = await selfTestState.check();
      if (result.kind === 'refused') throw new KeycloakRefused(result);
    },
  };
}
