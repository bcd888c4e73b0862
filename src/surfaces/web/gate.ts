import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  asksAbout,
  decide,
  type Denial,
  type PrincipalFacts,
  type RoutePolicy,
} from '../../core/authorize.ts';
import {
  type AuditContext,
  actorOf,
  type Caller,
  type RequestOrigin,
  type UserRef,
} from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Denials } from '../../features/audit/denials.ts';
import type { Directory, Introspection } from '../../features/identity/directory.ts';
import type { IdentityCheck } from '../../features/identity/identity-check.ts';
import type { KeyPolicies, PolicyVersion } from '../../features/keys/policy-document.ts';
import type { UsageMeter } from '../../features/keys/usage.ts';
import type { LiveKey, Verification, Verifier } from '../../features/keys/verifier.ts';
import type { ChangeLimit } from '../../features/ratelimit/change-limit.ts';
import {
  addressBucket,
  type FailedAuth,
  type RateLimiter,
  resetSeconds,
  type Spend,
} from '../../features/ratelimit/ratelimit.ts';
import type { RequestBudget } from '../../platform/http.ts';
import { createFairQueue } from '../../platform/fair-queue.ts';
import { findCredential } from './credential.ts';

/**
 * The steps between a raw request and its route (contract 3). They authenticate one credential as one caller, charge
 * the owner's rate limit, and apply the route's policy. No later code sees the raw value.
 */
export type GateDeps = {
  readonly verifier: Verifier;
  readonly policies: Pick<KeyPolicies, 'inForce' | 'lastRead'>;
  readonly limiter: RateLimiter;
  readonly failedAuth: FailedAuth;
  readonly changes: ChangeLimit;
  readonly sessions: {
    authenticate(
      cookie: string,
    ): Promise<
      { kind: 'active'; session: { id: string; user: UserRef; expiresAt: number } } | { kind: 'none' }
    >;
  };
  readonly directory: Pick<Directory, 'introspect'>;
  readonly identityCheck: Pick<IdentityCheck, 'ofCaller'>;
  /** The token that authorises a session now, and the person it names (contract 10.1). */
  readonly tokenOfSession: (
    sessionId: string,
  ) => Promise<{ kind: 'active'; introspection: Issued } | { kind: 'ended' } | { kind: 'unavailable' }>;
  /** The person behind an introspected token; registered when first seen. */
  readonly userOfToken: (token: Extract<Introspection, { kind: 'active' }>) => Promise<UserRef>;
  readonly denials: Denials;
  readonly usage: UsageMeter;
  readonly recordFirstUse: (keyId: string, at: number) => void;
  readonly onDeadUse: (
    verification: Extract<Verification, { kind: 'dead' }>,
    auditContext: AuditContext,
  ) => void;
  readonly exposures: { report(text: string, origin: RequestOrigin): void; mentions(text: string): boolean };
  readonly clock: Clock;
};

/** What later steps need to know about a request with a key. */
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

export type Gate = ReturnType<typeof createGate>;

// A flood consists of these two errors, so they are created once; an AppError is never changed.
const invalidCredential = new AppError('invalid_credential');
const throttled = new Map<number, AppError>();

/** `seconds` is at most the limiter's window, so the map stays small. */
function throttledFor(seconds: number): AppError {
  let error = throttled.get(seconds);
  if (error === undefined) {
    error = new AppError('rate_limited', {
      message: 'This address sent too many invalid credentials.',
      retryAfterSeconds: seconds,
    });
    throttled.set(seconds, error);
  }
  return error;
}

/** The caller, or why the credential is not valid. */
export type Authenticated = Caller | AppError;

const anonymous: Caller = { kind: 'anonymous' };

/** Treated as a key; every other bearer value is treated as an access token. */
function looksLikeKey(value: string): boolean {
  return value.includes('_pat_') || value.includes('_svc_');
}

const decided = new WeakMap<Caller, WeakMap<RoutePolicy, Denial | null>>();

/**
 * A key's caller object is replaced when the key or the policy document changes (verifier.ts). Without facts about a
 * person, the decision depends only on caller and route, so it is cached for the pair.
 */
function denialOf(caller: Caller, policy: RoutePolicy, principal: PrincipalFacts): Denial | null {
  if (!('key' in caller) || principal.kind !== 'not_asked') return decide(caller, policy, principal).denial;
  let byRoute = decided.get(caller);
  if (byRoute === undefined) decided.set(caller, (byRoute = new WeakMap()));
  let denial = byRoute.get(policy);
  if (denial === undefined) byRoute.set(policy, (denial = decide(caller, policy, principal).denial));
  return denial;
}

export function createGate(deps: GateDeps) {
  const introspections = createFairQueue({ width: 16, perSender: 8, queue: 512 });
  const { verifier, policies, limiter, failedAuth, sessions, denials, usage, exposures, clock } = deps;
  const { directory, identityCheck } = deps;

  /**
   * Refuses a bad credential: 401, or 429 once its address has sent too many (contract 4). It uses the policy read
   * last, because refusing garbage must cost no I/O, even while this process misses changes. The error is returned, not
   * thrown: throwing is the most expensive step of a refusal, and floods consist of refusals.
   */
  function refuse(origin: RequestOrigin): AppError {
    const { failedAuthenticationsPerMinute } = policies.lastRead();
    const failure = failedAuth.noteFailure(origin.address, failedAuthenticationsPerMinute);
    if (!failure.throttled) return invalidCredential;
    if (failure.isNews) {
      denials.record({
        event: 'auth.throttled',
        reason: 'rate_limited',
        auditContext: { actor: actorOf(anonymous), origin },
        target: { kind: 'address', id: origin.address ?? 'unknown' },
      });
    }
    return throttledFor(failure.retryAfterSeconds);
  }

  /** `now`: the time, read once for all the steps that run without waiting. */
  function admitKey(
    request: FastifyRequest,
    verification: Verification,
    version: PolicyVersion,
    now: number,
  ): Authenticated | Promise<Authenticated> {
    if (verification.kind !== 'live') return refuseKey(request.origin, verification);
    const { live } = verification;
    const limit = version.value.rateLimitPerMinute;
    const spending = limiter.spend({ owner: live.owner, key: live.key.id, limit });
    return spending instanceof Promise
      ? spending.then((spend) => confirmKey(request, live, spend, version, clock.now()))
      : confirmKey(request, live, spending, version, now);
  }

  /** The stamp arrives with the limiter's response; only then is a cached verification confirmed (contract 10.2). */
  function confirmKey(
    request: FastifyRequest,
    live: LiveKey,
    spent: Spend,
    version: PolicyVersion,
    now: number,
  ): Authenticated | Promise<Authenticated> {
    const stamp = spent.stamp.kind === 'read' ? spent.stamp.value : undefined;
    const confirmed = verifier.confirm(live, stamp, now);
    return confirmed instanceof Promise
      ? confirmed.then((verification) => settleKey(request, verification, spent, version, clock.now()))
      : settleKey(request, confirmed, spent, version, now);
  }

  function settleKey(
    request: FastifyRequest,
    verification: Verification,
    spend: Spend,
    { value: policy, version }: PolicyVersion,
    now: number,
  ): Authenticated {
    if (verification.kind !== 'live') return refuseKey(request.origin, verification);
    const { live } = verification;
    request.keyUse = { live, spend, limit: policy.rateLimitPerMinute, at: now, isCheck: false };
    return verifier.callerOf(live, policy, version);
  }

  function refuseKey(origin: RequestOrigin, verification: Exclude<Verification, { kind: 'live' }>): AppError {
    if (verification.kind === 'dead') {
      usage.count(verification.key.id, 'dead', origin);
      deps.onDeadUse(verification, { actor: actorOf(anonymous), origin });
    }
    return refuse(origin);
  }

  async function authenticateSession(value: string): Promise<Authenticated> {
    const found = await sessions.authenticate(value);
    // An ended session counts as no credential: the person must sign in again.
    if (found.kind === 'none')
      throw new AppError('authentication_required', { hint: 'The session has ended. Sign in again.' });
    const { id, user, expiresAt } = found.session;
    return { kind: 'session', user, sessionId: id, expiresAt };
  }

  async function authenticateToken(value: string, origin: RequestOrigin): Promise<Authenticated> {
    const found = await introspections(addressBucket(origin.address), () => directory.introspect(value));
    if (found.kind === 'unavailable') throw new AppError('identity_unavailable', { cause: found.reason });
    if (found.kind === 'inactive' || found.expiresAt <= clock.now()) return refuse(origin);
    const user = await deps.userOfToken(found);
    return {
      kind: 'access_token',
      user,
      scopes: found.scopes,
      clientId: found.clientId,
      expiresAt: found.expiresAt,
    };
  }

  /** Authenticates the same credential again, without charging the rate limit: is it still valid? */
  async function authenticateAgain(request: FastifyRequest): Promise<Authenticated> {
    const credential = findCredential(request.raw);
    if (credential.kind === 'session') return await authenticateSession(credential.value);
    if (credential.kind !== 'bearer') return anonymous;
    if (!looksLikeKey(credential.value)) return await authenticateToken(credential.value, request.origin);
    const found = await verifier.verify(credential.value, request.origin.address);
    // No stamp was read this time, so the change feed or the database must confirm the key.
    const confirmed = found.kind === 'live' ? await verifier.confirm(found.live, undefined) : found;
    if (confirmed.kind !== 'live') return refuseKey(request.origin, confirmed);
    const { value: policy, version } = await policies.inForce();
    return verifier.callerOf(confirmed.live, policy, version);
  }

  function askAbout(caller: Caller, policy: RoutePolicy): PrincipalFacts | Promise<PrincipalFacts> {
    if (!asksAbout(caller.kind, policy)) return { kind: 'not_asked' };
    if (policy.identity !== 'introspected' || caller.kind !== 'session')
      return identityCheck.ofCaller(caller);
    return askWithToken(caller);
  }

  async function askWithToken(caller: Extract<Caller, { kind: 'session' }>): Promise<PrincipalFacts> {
    const token = await deps.tokenOfSession(caller.sessionId);
    if (token.kind === 'unavailable') return { kind: 'unavailable' };
    if (token.kind === 'ended') {
      // The person may have been disabled; this check then suspends their keys.
      await identityCheck.ofCaller(caller);
      return { kind: 'signed_out' };
    }
    // A token of another person authorises nothing here (ID-11).
    if (!isSamePerson(token.introspection, caller.user)) return { kind: 'signed_out' };
    return await identityCheck.ofCaller(caller);
  }

  function authorize(caller: Caller, policy: RoutePolicy, principal: PrincipalFacts): void {
    const denial = denialOf(caller, policy, principal);
    if (denial === null) return;
    const { code, ...said } = denial;
    throw new AppError(code, said);
  }

  return {
    /** A key in the address or in a cookie is reported; throws `credential_in_url` or `invalid_credential`. */
    refuseStrayKeys(request: FastifyRequest, origin: RequestOrigin): void {
      const { url } = request;
      if (exposures.mentions(url)) {
        exposures.report(url, origin);
        throw new AppError('credential_in_url');
      }
      const { cookie } = request.headers;
      if (cookie !== undefined && exposures.mentions(cookie)) {
        exposures.report(cookie, origin);
        throw new AppError('invalid_credential', {
          message: 'A key was sent in a cookie.',
          hint: 'Send keys in the Authorization header only. Treat this key as exposed: replace and revoke it.',
        });
      }
    },

    authenticate(request: FastifyRequest): Authenticated | Promise<Authenticated> {
      const credential = findCredential(request.raw);
      if (credential.kind === 'none') return anonymous;
      if (credential.kind === 'malformed') return refuse(request.origin);
      if (credential.kind === 'session') return authenticateSession(credential.value);
      if (!looksLikeKey(credential.value)) {
        return authenticateToken(credential.value, request.origin);
      }
      const verification = verifier.verify(credential.value, request.origin.address);
      if (!(verification instanceof Promise) && verification.kind === 'malformed')
        return refuse(request.origin);
      const version = policies.inForce();
      if (verification instanceof Promise || version instanceof Promise) {
        return Promise.all([verification, version]).then(([found, policy]) =>
          admitKey(request, found, policy, clock.now()),
        );
      }
      return admitKey(request, verification, version, clock.now());
    },

    /**
     * Sets the rate-limit headers of a request with a key; throws 429. The charge was made during authentication, with
     * the stamp.
     */
    limit(request: FastifyRequest, reply: FastifyReply): void {
      const use = request.keyUse;
      if (use === null) return;
      reply.headers(limiter.headers(use.limit, use.spend));
      warnOfExpiry(use.live, reply, use.at);
      if (use.spend.allowed) return;
      const wait = resetSeconds(use.spend);
      throw new AppError('rate_limited', {
        message: `Too many requests: the keys of this owner may make ${use.limit} in any 60 seconds.`,
        retryAfterSeconds: wait,
        details: { limit: use.limit, retryAfterSeconds: wait },
      });
    },

    /** Counts a change by a person; rejects with 429. Undefined for keys, which have a limit of their own. */
    limitChange(caller: Caller): Promise<void> | undefined {
      const isPerson = caller.kind === 'session' || caller.kind === 'access_token';
      return isPerson ? deps.changes(caller.user.id) : undefined;
    },

    principal(caller: Caller, policy: RoutePolicy): PrincipalFacts | Promise<PrincipalFacts> {
      // A caller of the wrong kind is refused without a request to the directory.
      const isExpected = policy.callers !== 'anyone' && policy.callers.some((kind) => kind === caller.kind);
      return isExpected ? askAbout(caller, policy) : { kind: 'not_asked' };
    },

    authorize,

    /**
     * Runs after the body has arrived, which may take half a minute. A session, a role or a scope that was valid at the
     * start must still be valid when the request makes its change (SO-05).
     */
    async readmit(request: FastifyRequest, policy: RoutePolicy): Promise<void> {
      const caller = await authenticateAgain(request);
      if (caller instanceof AppError) throw caller;
      request.caller = caller;
      authorize(caller, policy, await askAbout(caller, policy));
    },

    /** Every refusal passes through here once, for the audit log. */
    denied(error: AppError, caller: Caller, route: string, origin: RequestOrigin): void {
      if (
        ![401, 403, 429].includes(error.status) &&
        error.code !== 'credential_in_url' &&
        error.code !== 'ambiguous_credential'
      )
        return;
      denials.record({
        event: 'auth.denied',
        reason: error.code,
        auditContext: { actor: actorOf(caller), origin },
        target: { kind: 'route', id: route },
      });
    },

    /** Counts the outcome of a request with a key. */
    finished(request: FastifyRequest, status: number): void {
      const use = request.keyUse;
      if (use === null) return;
      const { key } = use.live;
      usage.count(
        key.id,
        status < 400 ? 'allowed' : status === 429 ? 'limited' : status < 500 ? 'denied' : 'failed',
        request.origin,
        use.isCheck,
      );
      if (status < 400 && !use.isCheck && key.replaces !== null && key.firstUsedAt === null)
        deps.recordFirstUse(key.id, clock.now());
    },
  };
}

/** What remains of the owner's rate limit after the request. */
export function budgetOf(use: KeyUse | null): RequestBudget | null {
  if (use === null) return null;
  return { limit: use.limit, remaining: use.spend.remaining, resetSeconds: resetSeconds(use.spend) };
}

type Issued = Pick<UserRef, 'issuer' | 'subject'>;

/** Issuer and subject together identify a person, and nothing else does (ID-15). */
function isSamePerson(one: Issued, other: Issued): boolean {
  return one.subject === other.subject && one.issuer === other.issuer;
}

const lastDays = 7 * 86_400_000;

/** In its last seven days, a key's responses state when it expires (contract 10.14). */
function warnOfExpiry({ key }: LiveKey, reply: FastifyReply, now: number): void {
  if (key.expiresAt !== null && key.expiresAt - now <= lastDays) {
    reply.header('postern-key-expires-at', new Date(key.expiresAt).toISOString());
  }
}
