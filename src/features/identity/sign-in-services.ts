import type { UserRef } from '../../core/caller.ts';
import { type Clock, minute, second } from '../../core/clock.ts';
import { newId, type Random } from '../../core/ids.ts';
import type { ChangeFeed } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Job } from '../../platform/jobs.ts';
import type { Log } from '../../platform/log.ts';
import type { Directory } from './directory.ts';
import { type AnonymousStep, type CountedStep, createSignInLimit } from './login/sign-in-limit.ts';
import { createLoginFlow, type LoginFlow } from './login/login.ts';
import type { OidcClient } from './oidc-client.ts';
import { createReencryption } from './reencryption.ts';
import type { Encryption } from '../../platform/encryption.ts';
import { createAccessTokens, type SessionToken } from './sessions/access-token.ts';
import { createSessions, type Sessions } from './sessions/sessions.ts';
import type { IdentityStores, IdentityTx } from './stores.ts';
import { createPeople, type People } from './people.ts';
import { sweepIdentity } from './sweep.ts';

/** Sign-in, sessions and users: the part that is the same for every provider. */
export type SignedIn = {
  readonly sessions: Sessions;
  readonly login: LoginFlow;
  readonly people: People;
  /** The token that authorises this session now (contract 10.1). */
  accessTokenFor(sessionId: string): Promise<SessionToken>;
  findUser(id: string): Promise<UserRef | undefined>;
  findUserBySubject(issuer: string, subject: string): Promise<UserRef | undefined>;
  /** The same, but inserts the user when the subject is new here (from an imported key or a token). */
  learnUser(person: { readonly issuer: string; readonly subject: string }): Promise<UserRef>;
  /** Counts a step that an address takes without a credential; throws `rate_limited` above the limit. */
  limitSignIn(step: AnonymousStep, address: string | null): CountedStep;
  readonly jobs: readonly Job[];
  /** Writes the pending last-use times of sessions. */
  stop(): Promise<void>;
};

/** The dependencies that both providers need. */
export type CommonDeps = {
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
  /** ENCRYPTION_KEY: first encrypts, all decrypt. */
  encryptionKeys: readonly string[];
  /** Names this process in leases. */
  holder: string;
  /** Sign-ins that one address may start in any 60 seconds. */
  signInsPerMinute: () => number;
  /** Time limit of the directory in milliseconds; 2 s unless a test sets it. */
  identityTimeoutMs?: number | undefined;
};

export type SignedInDeps = Omit<CommonDeps, 'encryptionKeys' | 'identityTimeoutMs'> & {
  issuer: string;
  client: OidcClient;
  directory: Directory;
  encryption: Encryption;
};

export function createSignedIn(deps: SignedInDeps): SignedIn {
  const { read, tx, feed, clock, random, client, directory, encryption } = deps;
  const sessions = createSessions({
    read: read.sessions,
    tx,
    feed,
    clock,
    random,
    secrets: deps.sessionSecrets,
  });
  const accessTokens = createAccessTokens({
    read: read.sessions,
    client,
    directory,
    encryption,
    clock,
    holder: deps.holder,
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    endSession: sessions.end,
  });
  const reencryption = createReencryption({ read, encryption });
  return {
    sessions,
    login: createLoginFlow({
      uiOrigin: deps.uiOrigin,
      client,
      attempts: read.attempts,
      users: read.users,
      sessions,
      encryption,
      clock,
      random,
      log: deps.log,
    }),
    accessTokenFor: accessTokens.accessTokenFor,
    findUser: (id) => read.users.find(id),
    findUserBySubject: (issuer, subject) => read.users.findBySubject(issuer, subject),
    async learnUser({ issuer, subject }) {
      const known = await read.users.findBySubject(issuer, subject);
      if (known !== undefined) return known;
      const principal = await directory.principal(subject);
      const name = principal.kind === 'active' ? principal.name : subject;
      return await read.users.learn({ newId: newId(random, 'usr'), issuer, subject, name });
    },
    people: createPeople({ issuer: deps.issuer, users: read.users, directory }),
    limitSignIn: createSignInLimit({ clock, signInsPerMinute: deps.signInsPerMinute }),
    jobs: [
      { name: 'sessions-seen', everyMs: 30 * second, leased: false, run: sessions.flushLastSeen },
      // Often enough that an administrator who rotates ENCRYPTION_KEY can wait for it.
      { name: 'reseal', everyMs: minute, leased: true, run: async () => void (await reencryption.run()) },
      { name: 'identity-sweep', everyMs: 10 * minute, leased: true, run: () => sweepIdentity(read, clock) },
    ],
    stop: () => sessions.flushLastSeen(),
  };
}
