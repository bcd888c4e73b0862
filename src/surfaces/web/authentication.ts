import type { FastifyRequest } from 'fastify';
import {
  type AuditContext,
  actorOf,
  anonymous,
  type Caller,
  type RequestOrigin,
  type UserRef,
} from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { mayHoldKey } from '../../core/key-shape.ts';
import type { Directory, Introspection } from '../../features/people/directory/directory.ts';
import type { Sessions } from '../../features/people/sessions/sessions.ts';
import type { KeyPolicies } from '../../features/keys/policy-document.ts';
import type { UsageMeter } from '../../features/keys/usage.ts';
import type { LiveKey, Verification, Verifier } from '../../features/keys/verifier.ts';
import { addressBucket, type RateLimiter, type Spend } from '../../features/rate-limit/rate-limit.ts';
import { createFairQueue } from '../../platform/fair-queue.ts';
import type { RefuseBadCredential } from './bad-credentials.ts';
import { findCredential } from './credential.ts';

/**
 * Turns the one credential of a request into one caller (contract 3). No later step sees the raw value. A credential that
 * cannot be checked is a 503; one that is not valid is a 401, or a 429 once its address has sent too many.
 */
export type Authentication = {
  /** With a key, also charges the owner's rate limit and sets `request.keyUse`. */
  authenticate(request: FastifyRequest): Promise<Authenticated>;
  /** Checks again, without a charge, that the credential is still valid. */
  authenticateAgain(request: FastifyRequest): Promise<Authenticated>;
  /** The access token of an MCP client. Every other credential is refused. */
  authenticateMcp(request: FastifyRequest): Promise<McpCaller | AppError>;
  /** Reports a key in the address or in a cookie. @throws `credential_in_url` or `invalid_credential` */
  refuseStrayKeys(request: FastifyRequest): void;
};

/** The caller, or why the credential is not valid. Floods consist of invalid ones, and a returned error costs least. */
export type Authenticated = Caller | AppError;

export type McpCaller = {
  readonly caller: Extract<Caller, { kind: 'access_token' }>;
  /** Identifies the consent of the person to the client. Null: the provider does not say. */
  readonly grantId: string | null;
};

export type AuthenticationDeps = {
  /** The address of the MCP endpoint: the audience of its tokens, which open nothing else. */
  readonly mcpResource: string;
  readonly verifier: Verifier;
  readonly policies: Pick<KeyPolicies, 'inForce'>;
  readonly limiter: Pick<RateLimiter, 'spend'>;
  readonly refuse: RefuseBadCredential;
  readonly sessions: Pick<Sessions, 'authenticate'>;
  readonly directory: Pick<Directory, 'introspect'>;
  /** The person behind an introspected token; registered when first seen. */
  readonly userOfToken: (token: Extract<Introspection, { kind: 'active' }>) => Promise<UserRef>;
  readonly usage: Pick<UsageMeter, 'count'>;
  readonly onDeadUse: (
    verification: Extract<Verification, { kind: 'dead' }>,
    auditContext: AuditContext,
  ) => void;
  readonly exposures: { report(text: string, origin: RequestOrigin): void; mentions(text: string): boolean };
  readonly clock: Clock;
};

/** Facts about a request with a key that later steps need. */
export type KeyUse = {
  readonly live: LiveKey;
  readonly spend: Spend;
  readonly limit: number;
  /** When the request was authenticated, in milliseconds. */
  readonly at: number;
  /** True: the request only checks whether the key works. */
  readonly isCheck: boolean;
};

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller;
    origin: RequestOrigin;
    keyUse: KeyUse | null;
  }
}

const tokenRequired = new AppError('authentication_required', {
  message: 'The MCP endpoint needs an access token.',
  hint: 'Add this address to an MCP client. The client opens a page on which the person signs in and allows it.',
});
const tokenRefused = new AppError('invalid_credential', {
  message:
    'This access token is not valid for the MCP endpoint: it has expired, was revoked, or is for something else.',
  hint: 'Refresh the token, or sign in again. The challenge names the metadata that says where.',
});

const keyRefused = new AppError('invalid_credential', {
  message: 'The MCP endpoint does not accept API keys.',
  hint: 'Remove the key from the configuration of the MCP client. The client then signs the person in.',
});

export function createAuthentication(deps: AuthenticationDeps): Authentication {
  const { verifier, policies, limiter, refuse, sessions, directory } = deps;
  const { usage, exposures, clock } = deps;
  const introspections = createFairQueue({ width: 16, perSender: 8, queue: 512 });

  async function callerOf(request: FastifyRequest, isCharged: boolean): Promise<Authenticated> {
    const credential = findCredential(request.raw);
    if (credential.kind === 'none') return anonymous;
    if (credential.kind === 'malformed') return refuse(request.origin);
    if (credential.kind === 'session') return await callerOfSession(credential.value);
    return mayHoldKey(credential.value)
      ? await callerOfKey(request, credential.value, isCharged)
      : await callerOfApiToken(credential.value, request.origin);
  }

  async function callerOfApiToken(value: string, origin: RequestOrigin): Promise<Authenticated> {
    const found = await callerOfToken(value, origin, (audiences) => !audiences.includes(deps.mcpResource));
    return found instanceof AppError ? found : found.caller;
  }

  async function callerOfKey(
    request: FastifyRequest,
    value: string,
    isCharged: boolean,
  ): Promise<Authenticated> {
    const { origin } = request;
    const found = await verifier.verify(value, origin.address);
    if (found.kind !== 'live') return refusalOfKey(origin, found);
    const { value: policy, version } = await policies.inForce();
    const limit = policy.rateLimitPerMinute;
    const { owner, key, exchange } = found.live;
    // An administrator removed the issuer of the ID token from the policy.
    if (exchange !== null && !policy.federation.issuers.some(({ url }) => url === exchange.issuer))
      return refuse(origin);
    const spend = isCharged ? await limiter.spend({ owner, key: key.id, limit }) : null;
    // The stamp arrives with the limiter's response; only then is a cached verification confirmed (contract 10.2). Without
    // a stamp, the change feed or the database must confirm the key.
    const stamp = spend?.stamp.kind === 'read' ? spend.stamp.value : undefined;
    const confirmed = await verifier.confirm(found.live, stamp);
    if (confirmed.kind !== 'live') return refusalOfKey(origin, confirmed);
    const { live } = confirmed;
    if (spend !== null) request.keyUse = { live, spend, limit, at: clock.now(), isCheck: false };
    return verifier.callerOf(live, policy, version);
  }

  async function callerOfSession(value: string): Promise<Caller> {
    const found = await sessions.authenticate(value);
    // An ended session counts as no credential: the person must sign in again.
    if (found.kind === 'none')
      throw new AppError('authentication_required', { hint: 'The session has ended. Sign in again.' });
    const { id: sessionId, ...session } = found.session;
    return { kind: 'session', sessionId, ...session };
  }

  async function callerOfToken(
    value: string,
    origin: RequestOrigin,
    isForUs: (audiences: readonly string[]) => boolean,
    refused?: AppError,
  ): Promise<McpCaller | AppError> {
    const found = await introspections(addressBucket(origin.address), () => directory.introspect(value));
    if (found.kind === 'unavailable') throw new AppError('identity_unavailable', { cause: found.reason });
    if (found.kind === 'inactive' || found.expiresAt <= clock.now()) return refuse(origin, refused);
    if (!isForUs(found.audiences)) return refuse(origin, refused);
    const user = await deps.userOfToken(found);
    const { scopes, clientId, expiresAt, grantId } = found;
    return { caller: { kind: 'access_token', user, scopes, clientId, expiresAt, agent: null }, grantId };
  }

  function refusalOfKey(
    origin: RequestOrigin,
    verification: Exclude<Verification, { kind: 'live' }>,
  ): AppError {
    if (verification.kind === 'dead') {
      usage.count(verification.key.id, 'dead', origin);
      deps.onDeadUse(verification, { actor: actorOf(anonymous), origin });
    }
    return refuse(origin);
  }

  return {
    authenticate: (request) => callerOf(request, true),
    authenticateAgain: (request) => callerOf(request, false),
    async authenticateMcp({ raw, origin }) {
      const credential = findCredential(raw);
      if (credential.kind === 'malformed') return refuse(origin, tokenRefused);
      if (credential.kind !== 'bearer') return tokenRequired;
      if (mayHoldKey(credential.value)) return refuse(origin, keyRefused);
      const isForMcp = (audiences: readonly string[]) => audiences.includes(deps.mcpResource);
      return await callerOfToken(credential.value, origin, isForMcp, tokenRefused);
    },
    refuseStrayKeys({ url, headers: { cookie }, origin }) {
      if (exposures.mentions(url)) {
        exposures.report(url, origin);
        throw new AppError('credential_in_url');
      }
      if (cookie !== undefined && exposures.mentions(cookie)) {
        exposures.report(cookie, origin);
        throw new AppError('invalid_credential', {
          message: 'A key was sent in a cookie.',
          hint: 'Send keys in the Authorization header only. Treat this key as exposed: replace and revoke it.',
        });
      }
    },
  };
}
