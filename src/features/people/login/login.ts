import type { AuditContext, UserRef } from '../../../core/caller.ts';
import { type Clock, minute } from '../../../core/clock.ts';
import { AppError } from '../../../core/errors.ts';
import { newId, type Random } from '../../../core/ids.ts';
import type { Log } from '../../../platform/log.ts';
import type { UserStore } from '../user-store.ts';
import { type LoginAttempt, type LoginResult, type OidcClient, reasonOf } from '../oidc-client.ts';
import { UnknownEncryptionKey, type Encryption } from '../../../platform/encryption.ts';
import { secretDigest } from '../../../platform/encrypted-text.ts';
import { encryptTokens } from '../sessions/session-token.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { LoginAttemptStore } from './login-attempt-store.ts';
import { safeReturnTo } from './return-to.ts';

/**
 * Sign-in with OpenID Connect, code and PKCE: start() stores an attempt and returns the redirect to the provider, finish()
 * turns the provider's answer into a session. State, nonce and verifier belong to one attempt and are bound to the
 * browser by a cookie secret (contract 10.11), so that an attacker cannot inject a code from another browser.
 */
export type LoginFlow = {
  start(input: {
    returnTo: string | undefined;
    browserSecret: string | undefined;
    /** The person must prove again who they are, unless that is a short time ago. Null: an ordinary sign-in. */
    fresh: { readonly person: UserRef | null } | null;
  }): Promise<{
    redirect: URL;
    browserSecret: string;
  }>;
  /** `refused` when the answer belongs to no attempt of this browser, or when the provider or the person refused. */
  finish(
    auditContext: AuditContext,
    input: { callback: URL; browserSecret: string | undefined; previousSession: string | undefined },
  ): Promise<LoginOutcome>;
};

export type LoginOutcome =
  | { kind: 'signed_in'; returnTo: string; cookieValue: string; expiresAt: number; user: UserRef }
  /** The provider must ask the person, because the session that it knows was ended here. */
  | { kind: 'prove_again'; redirect: URL }
  | { kind: 'refused'; reason: 'no_attempt' | 'denied' | 'failed' };

/**
 * The provider must ask for the password again when it was entered longer ago than a session may idle. Otherwise the
 * provider's own session would sign an abandoned browser in again without a password.
 */
const longestMaxAgeMinutes = 12 * 60;
const attemptMs = 15 * minute;
const attemptsPerBrowser = 5;
const secretShape = /^[A-Za-z0-9_-]{43}$/;

export function createLoginFlow(deps: {
  uiOrigin: string;
  client: OidcClient;
  attempts: LoginAttemptStore;
  users: UserStore;
  sessions: Sessions;
  encryption: Encryption;
  /** `freshProofMinutes` of `/config/access`; 0 = off. */
  freshProofMinutes: () => number;
  clock: Clock;
  random: Random;
  log: Log;
}): LoginFlow {
  const { client, attempts, users, sessions, encryption, clock, random, log } = deps;
  const secret = () => Buffer.from(random.bytes(32)).toString('base64url');

  async function begin(auditContext: AuditContext, result: LoginResult, previousSession: string | undefined) {
    const user = await users.upsert({
      newId: newId(random, 'usr'),
      issuer: result.issuer,
      subject: result.subject,
      name: result.name,
      email: result.email,
      isLogin: true,
    });
    const actor = { kind: 'user', id: user.id, name: user.name, credential: null } as const;
    const session = await sessions.begin(
      { actor, origin: auditContext.origin },
      user,
      {
        encryptedFor: (sessionId) => encryptTokens(encryption, sessionId, result.tokens),
        accessExpiresAt: result.tokens.accessExpiresAt,
        authenticatedAt: result.authenticatedAt,
        methods: result.methods,
        providerSession: result.providerSession,
      },
      previousSession,
    );
    return { user, session };
  }

  /** Stores an attempt and returns the address of the provider. */
  async function ask({
    browser,
    returnTo,
    maxAgeMinutes,
    options,
  }: {
    browser: string;
    returnTo: string;
    maxAgeMinutes: number;
    options: Parameters<OidcClient['authorizationUrl']>[1];
  }): Promise<URL> {
    const maxAgeSeconds = 60 * maxAgeMinutes;
    const attempt = { state: secret(), nonce: secret(), pkceVerifier: secret(), maxAgeSeconds };
    const redirect = await client.authorizationUrl(attempt, options);
    const stateHash = secretDigest(attempt.state);
    await attempts.insert(
      {
        stateHash,
        browserHash: secretDigest(browser),
        encrypted: encryption.encrypt(JSON.stringify(attempt), `login:${stateHash}`),
        returnTo,
        expiresAt: clock.now() + attemptMs,
      },
      attemptsPerBrowser,
    );
    return redirect;
  }

  /** Undefined: the attempt was encrypted under a removed key, so the person must start the sign-in again. */
  function attemptIn(encrypted: string, stateHash: string) {
    try {
      // Written by start() and authenticated by its encryption.
      const stored = JSON.parse(encryption.decrypt(encrypted, `login:${stateHash}`)) as LoginAttempt;
      // An older release began the sign-in.
      return { ...stored, maxAgeSeconds: stored.maxAgeSeconds ?? longestMaxAgeMinutes * 60 };
    } catch (error) {
      if (error instanceof UnknownEncryptionKey) return undefined;
      throw error;
    }
  }

  return {
    async start({ returnTo, browserSecret, fresh }) {
      const browser =
        browserSecret !== undefined && secretShape.test(browserSecret) ? browserSecret : secret();
      const minutes = fresh === null ? 0 : deps.freshProofMinutes();
      const person = fresh?.person && (await users.findPerson(fresh.person.id));
      const redirect = await ask({
        browser,
        returnTo: safeReturnTo(returnTo, deps.uiOrigin),
        maxAgeMinutes: minutes === 0 ? longestMaxAgeMinutes : minutes,
        options: { loginHint: person?.email ?? undefined },
      });
      return { redirect, browserSecret: browser };
    },
    async finish(auditContext, { callback, browserSecret, previousSession }) {
      const state = callback.searchParams.get('state');
      if (state === null || browserSecret === undefined) return { kind: 'refused', reason: 'no_attempt' };
      const stateHash = secretDigest(state);
      const found = await attempts.take(stateHash, secretDigest(browserSecret));
      if (found === undefined) return { kind: 'refused', reason: 'no_attempt' };
      if (callback.searchParams.get('error') === 'access_denied')
        return { kind: 'refused', reason: 'denied' };
      const attempt = attemptIn(found.encrypted, stateHash);
      if (attempt === undefined) return { kind: 'refused', reason: 'no_attempt' };
      let result: LoginResult;
      try {
        result = await client.exchange(callback, attempt);
      } catch (error) {
        if (error instanceof AppError) throw error;
        log.warn({ reason: reasonOf(error), requestId: auditContext.origin.requestId }, 'sign-in failed');
        return { kind: 'refused', reason: 'failed' };
      }
      const { user, session } = await begin(auditContext, result, previousSession);
      if ('refused' in session) {
        // The account was signed out everywhere after the password was typed.
        if (session.refused === 'signed_out') return { kind: 'refused', reason: 'failed' };
        // The provider still knows a session that was ended here.
        const redirect = await ask({
          browser: browserSecret,
          returnTo: found.returnTo,
          maxAgeMinutes: longestMaxAgeMinutes,
          options: { loginHint: result.email ?? undefined, mustAsk: true },
        });
        return { kind: 'prove_again', redirect };
      }
      return {
        kind: 'signed_in',
        returnTo: found.returnTo,
        cookieValue: session.cookieValue,
        expiresAt: session.expiresAt,
        user,
      };
    },
  };
}
