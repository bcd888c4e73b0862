import type { UserRef } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { newId, type Random } from '../../core/ids.ts';
import type { ChangeFeed } from '../../platform/database/change-feed.ts';
import type { Log } from '../../platform/log.ts';
import type { Directory } from './directory/directory.ts';
import { type AnonymousStep, type CountedStep, createSignInLimit } from './login/sign-in-limit.ts';
import { createLoginFlow, type LoginFlow } from './login/login.ts';
import type { OidcClient } from './oidc-client.ts';
import type { Encryption } from '../../platform/encryption.ts';
import { createOwnSessions, type OwnSessions } from './sessions/own-sessions.ts';
import { createSessionEnd, type EndAtProvider, type EndSessions } from './sessions/session-end.ts';
import { createFreshProof, type FreshProof, type FreshProofMinutes } from './sessions/fresh-proof.ts';
import { createAccessTokens, type SessionToken } from './sessions/session-token.ts';
import type { SessionStore } from './sessions/session-store.ts';
import { createSessions, type Sessions, type SessionsDeps } from './sessions/sessions.ts';
import type { LoginAttemptStore } from './login/login-attempt-store.ts';
import type { UserStore } from './user-store.ts';
import { createKnownPeople, type KnownPeople } from './known-people.ts';

/**
 * Users, sign-in and browser sessions, for the built-in identity provider and for Keycloak alike. The web surface calls it.
 * Two values together identify a person: the provider's issuer and the subject that it assigned. When the provider does not
 * answer, the result is `unavailable`, never a yes or a no. The provider has the accounts, passwords and roles. The web
 * surface has the pages and cookies.
 */
export type People = {
  readonly sessions: Sessions;
  readonly login: LoginFlow;
  readonly known: KnownPeople;
  readonly freshProof: FreshProof;
  readonly ownSessions: OwnSessions;
  readonly endSessions: EndSessions;
  /** The token that authorises this session now (contract 10.1). */
  accessTokenFor(sessionId: string): Promise<SessionToken>;
  findUser(id: string): Promise<UserRef | undefined>;
  findUserBySubject(issuer: string, subject: string): Promise<UserRef | undefined>;
  /** Finds the user, or inserts one when the subject is new (from an imported key or a token). */
  learnUser(person: { readonly issuer: string; readonly subject: string }): Promise<UserRef>;
  /** Counts a step that an address takes without a credential; throws `rate_limited` above the limit. */
  limitSignIn(step: AnonymousStep, address: string | null): CountedStep;
  /** Writes the pending last-use times of sessions. */
  stop(): Promise<void>;
};

export type PeopleDeps = {
  /** Public origin of UI and API. */
  uiOrigin: string;
  issuer: string;
  client: OidcClient;
  directory: Directory;
  encryption: Encryption;
  read: { sessions: SessionStore; attempts: LoginAttemptStore; users: UserStore };
  tx: SessionsDeps['tx'];
  feed: ChangeFeed;
  clock: Clock;
  random: Random;
  log: Log;
  /** SESSION_SECRET: first signs, all verify. */
  sessionSecrets: readonly string[];
  /** Names this process in leases. */
  holder: string;
  /** Sign-ins that one address may start in any 60 seconds. */
  signInsPerMinute: () => number;
  freshProofMinutes: FreshProofMinutes;
  /** Null: the provider and its accounts are part of Postern. */
  endAtProvider: EndAtProvider | null;
};

export function createPeople(deps: PeopleDeps): People {
  const { read, tx, feed, clock, random, client, directory, encryption } = deps;
  const sessions = createSessions({
    read: read.sessions,
    tx,
    hasOwnAccounts: deps.endAtProvider === null,
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
  const endSessions = createSessionEnd({
    endWithProvider: sessions.endWithProvider,
    endAtProvider: deps.endAtProvider,
    encryption,
    log: deps.log,
  });
  return {
    sessions,
    login: createLoginFlow({
      uiOrigin: deps.uiOrigin,
      client,
      attempts: read.attempts,
      users: read.users,
      sessions,
      encryption,
      freshProofMinutes: deps.freshProofMinutes.last,
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
    freshProof: createFreshProof({ minutes: deps.freshProofMinutes, uiOrigin: deps.uiOrigin, clock }),
    endSessions,
    ownSessions: createOwnSessions({
      read: read.sessions,
      users: read.users,
      lastSeenHere: sessions.lastSeenHere,
      endSessions,
    }),
    known: createKnownPeople({ issuer: deps.issuer, users: read.users, directory }),
    limitSignIn: createSignInLimit({ clock, signInsPerMinute: deps.signInsPerMinute }),
    stop: () => sessions.flushLastSeen(),
  };
}

export type { ConnectedClients } from './connected-clients.ts';
export { bounded } from './directory/bounded.ts';
export type { Directory, Principal, Introspection } from './directory/directory.ts';
export { readIntrospection } from './directory/introspection.ts';
export { sharedMs, shareAnswers } from './directory/short-sharing.ts';
export type { IdentityCheck } from './identity-check.ts';
export type { SecondFactorLevel } from './login/access-config.ts';
export { type OidcClient, reasonOf } from './oidc-client.ts';
export { ownId } from './own-id.ts';
export type { PersonState } from './person-state.ts';
export { roleSchema } from './schemas.ts';
export { isAuthenticationValid } from './sessions/authentication-validity.ts';
export type { FreshProof, FreshProofMinutes } from './sessions/fresh-proof.ts';
export type { SessionStore } from './sessions/session-store.ts';
export type { UserStore } from './user-store.ts';
