import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AuditContext } from '../../core/caller.ts';
import { type Clock, minute, second } from '../../core/clock.ts';
import type { Random } from '../../core/ids.ts';
import type { Accounts } from '../../features/accounts/accounts.ts';
import type { Passkeys, SecondFactor } from '../../features/passkeys/passkeys.ts';
import type { RecoveryCodes } from '../../features/passkeys/recovery-codes.ts';
import type { FirstAdministrator } from '../../features/accounts/first-administrator.ts';
import type { Groups } from '../../features/accounts/groups.ts';
import type { ConnectedClients } from '../../features/people/connected-clients.ts';
import type { Directory } from '../../features/people/directory/directory.ts';
import type { FreshProofMinutes, People } from '../../features/people/people.ts';
import { createIdentityCheck } from '../../features/people/identity-check.ts';
import { createRechecks } from '../../features/people/rechecks.ts';
import { sweepSignIns } from '../../features/people/sweep.ts';
import { sweepChallenges } from '../../features/passkeys/passkey-store.ts';
import { sweepRecords } from '../../features/oidc-provider/record-store.ts';
import type { ChangeFeed } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Encryption } from '../../platform/encryption.ts';
import type { Job } from '../../platform/jobs.ts';
import type { Log } from '../../platform/log.ts';
import { type IdentityStores, type IdentityTx } from './identity-stores.ts';

/** People and the source of their accounts and roles: the built-in provider, or Keycloak. */
export type Identity = People & {
  readonly issuer: string;
  readonly directory: Directory;
  /** Accounts, groups and the first administrator: refused where another provider keeps them. */
  readonly accounts: Accounts;
  readonly passkeys: Passkeys;
  readonly recoveryCodes: Pick<RecoveryCodes, 'create'>;
  readonly secondFactor: Pick<SecondFactor, 'refusalFor'>;
  readonly groups: Groups;
  readonly connectedClients: ConnectedClients;
  readonly firstAdministrator: FirstAdministrator;
  /**
   * Ends the browser's session, and detaches the browser from its provider session, so that its cookie there does not sign
   * in again. Without a session, it only detaches the browser.
   */
  signOut(
    auditContext: AuditContext,
    sessionId: string | undefined,
    at: { request: IncomingMessage; response: ServerResponse },
  ): Promise<void>;
  readonly jobs: readonly Job[];
  /** Prepares the provider; the built-in one answers requests only afterwards. @throws KeycloakRefused */
  start(): Promise<void>;
};

/** What both providers need. */
export type IdentityDeps = {
  /** Public origin of UI and API. */
  uiOrigin: string;
  read: IdentityStores;
  tx: Tx<IdentityTx>;
  feed: ChangeFeed;
  clock: Clock;
  random: Random;
  log: Log;
  /** SESSION_SECRET: first signs, all verify. Client secrets and cookie keys derive from it. */
  sessionSecrets: readonly string[];
  encryption: Encryption;
  /** Names this process in leases. */
  holder: string;
  /** Sign-ins that one address may start in any 60 seconds. */
  signInsPerMinute: () => number;
  freshProofMinutes: FreshProofMinutes;
  /** Time limit of the directory in milliseconds. */
  identityTimeoutMs: number;
};

export function identityJobs(
  { read, clock }: Pick<IdentityDeps, 'read' | 'clock'>,
  people: Pick<People, 'sessions'>,
): Job[] {
  return [
    { name: 'sessions-seen', everyMs: 30 * second, leased: false, run: people.sessions.flushLastSeen },
    {
      name: 'identity-sweep',
      everyMs: 10 * minute,
      leased: true,
      async run() {
        await sweepRecords(read.records);
        await sweepSignIns(read, clock);
        await sweepChallenges(read.passkeys);
      },
    },
  ];
}

/** Asks the directory about the people behind requests, and again after each change of an account. */
export function createIdentityChecksPart({
  identity,
  found,
  lost,
  check,
  feed,
  log,
}: Pick<Parameters<typeof createIdentityCheck>[0], 'found' | 'lost'> &
  Pick<Parameters<typeof createRechecks>[0], 'check' | 'feed'> & {
    readonly identity: Pick<Identity, 'directory' | 'issuer' | 'findUserBySubject'>;
    readonly log: Log;
  }) {
  const { directory, issuer } = identity;
  const rechecks = createRechecks({
    feed,
    findUser: (subject) => identity.findUserBySubject(issuer, subject),
    check,
    log,
  });
  return {
    services: { identityCheck: createIdentityCheck({ directory, issuer, found, lost, log }) },
    settled: rechecks.settled,
  };
}
