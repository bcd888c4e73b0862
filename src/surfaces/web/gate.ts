import type { FastifyReply, FastifyRequest } from 'fastify';
import { decide, type Denial, type PrincipalFacts, type RoutePolicy } from '../../core/authorize.ts';
import {
  type Act,
  actorOf,
  type Caller,
  type RequestOrigin,
  type UserRef,
  userOf,
} from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Denials } from '../../features/audit/denials.ts';
import type { Directory, Introspection, Principal } from '../../features/identity/directory.ts';
import type { KeyPolicies, PolicyVersion } from '../../features/keys/policy.ts';
import type { UsageMeter } from '../../features/keys/usage.ts';
import type { LiveKey, Verification, Verifier } from '../../features/keys/verifier.ts';
import type { ChangeLimit } from '../../features/ratelimit/changes.ts';
import {
  addressBucket,
  type FailedAuth,
  type RateLimiter,
  resetSeconds,
  type Spend,
} from '../../features/ratelimit/ratelimit.ts';
import type { RequestBudget } from '../../platform/http.ts';
import { createLane } from '../../platform/lane.ts';
import { findCredential } from './credential.ts';

/**
 * The steps between a raw request and its route (contract 3): one credential becomes one caller, its owner is
 * charged, the route's policy decides. Nothing behind it sees the raw value.
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
  readonly directory: Directory;
  /** Whose the directory is: it knows subjects of this issuer and no others. */
  readonly issuer: string;
  /** The token that authorises a session now, and whose it is said to be (contract 10.1). */
  readonly tokenOfSession: (
    sessionId: string,
  ) => Promise<{ kind: 'active'; introspection: Issued } | { kind: 'ended' } | { kind: 'unavailable' }>;
  /** The person behind an introspected token; made known on first sight. */
  readonly userOfToken: (token: Extract<Introspection, { kind: 'active' }>) => Promise<UserRef>;
  readonly denials: Denials;
  readonly usage: UsageMeter;
  readonly recordFirstUse: (keyId: string, at: number) => void;
  readonly onDeadUse: (verification: Extract<Verification, { kind: 'dead' }>, act: Act) => void;
  readonly exposures: { report(text: string, origin: RequestOrigin): void; mentions(text: string): boolean };
  readonly clock: Clock;
};

/** What a key request leaves behind for the steps after authentication. */
export type KeyUse = {
  readonly live: LiveKey;
  readonly spend: Spend;
  readonly limit: number;
  /** When it was admitted, in milliseconds. */
  readonly at: number;
};

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller;
    origin: RequestOrigin;
    keyUse: KeyUse | null;
  }
}

export type Gate = ReturnType<typeof createGate>;

// Floods are made of these two, so they are made once; an AppError is never changed.
const invalidCredential = new AppError('invalid_credential');
const throttled = new Map<number, AppError>();

/** `seconds` is at most the limiter's window, so the map stays small. */
function throttledFor(seconds: number): AppError {
  let error = throttled.get(seconds);
  if (error === undefined) {
    error = new AppError('rate_limited', {
      message: 'Too many bad credentials came from this address.',
      retryAfterSeconds: seconds,
    });
    throttled.set(seconds, error);
  }
  return error;
}

/** Who asks, or why the credential is no good. */
export type Authenticated = Caller | AppError;

const anonymous: Caller = { kind: 'anonymous' };

/** Decided as a key; every other bearer value is an access token. */
function looksLikeKey(value: string): boolean {
  return value.includes('_pat_') || value.includes('_svc_');
}

const decided = new WeakMap<Caller, WeakMap<RoutePolicy, Denial | null>>();

/**
 * A key's caller is made anew when the key or the policy document changes (verifier.ts), and without a person to
 * ask about, the decision follows from caller and route alone: it is made once for both.
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
  const introspections = createLane({ width: 16, perSender: 8, queue: 512 });
  const { verifier, policies, limiter, failedAuth, sessions, directory, denials, usage, exposures, clock } =
    deps;

  /**
   * A bad credential: 401, or 429 once its address has sent too many (contract 4). By the policy read last, because
   * refusing garbage must cost no I/O, also while this process has not heard of changes for a while. Answered, not
   * thrown: throwing is the dearest step of a refusal, and floods are made of these.
   */
  function refuse(origin: RequestOrigin): AppError {
    const { failedAuthenticationsPerMinute } = policies.lastRead();
    const failure = failedAuth.noteFailure(origin.address, failedAuthenticationsPerMinute);
    if (!failure.throttled) return invalidCredential;
    if (failure.isNews) {
      denials.record({
        event: 'auth.throttled',
        reason: 'rate_limited',
        act: { actor: actorOf(anonymous), origin },
        target: { kind: 'address', id: origin.address ?? 'unknown' },
      });
    }
    return throttledFor(failure.retryAfterSeconds);
  }

  /** `now`: the moment, read once for all that follows without waiting. */
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

  /** The mark came with the limiter's answer; only now is a remembered verification good (contract 10.2). */
  function confirmKey(
    request: FastifyRequest,
    live: LiveKey,
    spent: Spend,
    version: PolicyVersion,
    now: number,
  ): Authenticated | Promise<Authenticated> {
    const mark = spent.mark.kind === 'read' ? spent.mark.value : undefined;
    const confirmed = verifier.confirm(live, mark, now);
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
    request.keyUse = { live, spend, limit: policy.rateLimitPerMinute, at: now };
    return verifier.callerOf(live, policy, version);
  }

  function refuseKey(origin: RequestOrigin, verification: Exclude<Verification, { kind: 'live' }>): AppError {
    if (verification.kind === 'dead') {
      usage.count(verification.key.id, 'dead');
      deps.onDeadUse(verification, { actor: actorOf(anonymous), origin });
    }
    return refuse(origin);
  }

  async function authenticateSession(value: string): Promise<Authenticated> {
    const found = await sessions.authenticate(value);
    // A session that ended is no credential at all: the person signs in again.
    if (found.kind === 'none')
      throw new AppError('authentication_required', { hint: 'The session has ended; sign in again.' });
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

  /** The same credential once more, without spending: whoever it was, is it still good? */
  async function authenticateAgain(request: FastifyRequest): Promise<Authenticated> {
    const credential = findCredential(request.raw);
    if (credential.kind === 'session') return await authenticateSession(credential.value);
    if (credential.kind !== 'bearer') return anonymous;
    if (!looksLikeKey(credential.value)) return await authenticateToken(credential.value, request.origin);
    const found = await verifier.verify(credential.value, request.origin.address);
    // No mark was read this time: the change feed or the database has to vouch for the key.
    const confirmed = found.kind === 'live' ? await verifier.confirm(found.live, undefined) : found;
    if (confirmed.kind !== 'live') return refuseKey(request.origin, confirmed);
    const { value: policy, version } = await policies.inForce();
    return verifier.callerOf(confirmed.live, policy, version);
  }

  function askAbout(caller: Caller, { identity }: RoutePolicy): PrincipalFacts | Promise<PrincipalFacts> {
    if (identity === 'none') return { kind: 'not_asked' };
    if (identity === 'live' || caller.kind !== 'session') return principalOf(deps, caller);
    return deps.tokenOfSession(caller.sessionId).then((token): PrincipalFacts | Promise<PrincipalFacts> => {
      if (token.kind === 'unavailable') return { kind: 'unavailable' };
      // A token of somebody else authorises nothing here (ID-11).
      if (token.kind === 'ended' || !isSamePerson(token.introspection, caller.user))
        return { kind: 'signed_out' };
      return principalOf(deps, caller);
    });
  }

  function authorize(caller: Caller, policy: RoutePolicy, principal: PrincipalFacts): void {
    const denial = denialOf(caller, policy, principal);
    if (denial !== null)
      throw new AppError(denial.code, denial.details === undefined ? {} : { details: denial.details });
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
          hint: 'Send keys in the Authorization header only. Treat this key as exposed.',
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

    /** Sets the headers of a key's answer; throws 429. Already spent while authenticating, with the mark. */
    limit(request: FastifyRequest, reply: FastifyReply): void {
      const use = request.keyUse;
      if (use === null) return;
      reply.headers(limiter.headers(use.limit, use.spend));
      warnOfExpiry(use.live, reply, use.at);
      if (use.spend.allowed) return;
      const wait = resetSeconds(use.spend);
      throw new AppError('rate_limited', {
        retryAfterSeconds: wait,
        details: { limit: use.limit, retryAfterSeconds: wait },
      });
    },

    /** Counts a change that a person asks for; rejects with 429. Undefined for keys, which have a limit of their own. */
    limitChange(caller: Caller): Promise<void> | undefined {
      const isPerson = caller.kind === 'session' || caller.kind === 'access_token';
      return isPerson ? deps.changes(caller.user.id) : undefined;
    },

    principal(caller: Caller, policy: RoutePolicy): PrincipalFacts | Promise<PrincipalFacts> {
      // A caller of the wrong kind is told so without asking anybody.
      const isExpected = policy.callers !== 'anyone' && policy.callers.some((kind) => kind === caller.kind);
      return isExpected ? askAbout(caller, policy) : { kind: 'not_asked' };
    },

    authorize,

    /**
     * After the body has arrived. It may have taken half a minute, and a session, a role or a scope that was there
     * when it began must still be there when something is changed (SO-05).
     */
    async readmit(request: FastifyRequest, policy: RoutePolicy): Promise<void> {
      const caller = await authenticateAgain(request);
      if (caller instanceof AppError) throw caller;
      request.caller = caller;
      authorize(caller, policy, await askAbout(caller, policy));
    },

    /** Every refusal passes here once, for the audit trail. */
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
        act: { actor: actorOf(caller), origin },
        target: { kind: 'route', id: route },
      });
    },

    /** Counts what a key's request came to. */
    finished(request: FastifyRequest, status: number): void {
      const use = request.keyUse;
      if (use === null) return;
      const { key } = use.live;
      usage.count(
        key.id,
        status < 400 ? 'allowed' : status === 429 ? 'limited' : status < 500 ? 'denied' : 'failed',
      );
      if (status < 400 && key.replaces !== null && key.firstUsedAt === null)
        deps.recordFirstUse(key.id, clock.now());
    },
  };
}

/** Where the owner of a key stands after the request. */
export function budgetOf(use: KeyUse | null): RequestBudget | null {
  if (use === null) return null;
  return { limit: use.limit, remaining: use.spend.remaining, resetSeconds: resetSeconds(use.spend) };
}

type Issued = Pick<UserRef, 'issuer' | 'subject'>;

/** A person is issuer and subject, and nothing else (ID-15). */
function isSamePerson(one: Issued, other: Issued): boolean {
  return one.subject === other.subject && one.issuer === other.issuer;
}

/** What the directory says of the person behind a caller. Service keys have none. */
export function principalOf(
  { directory, issuer }: { readonly directory: Pick<Directory, 'principal'>; readonly issuer: string },
  caller: Caller,
): PrincipalFacts | Promise<PrincipalFacts> {
  const user = userOf(caller);
  if (user === null) return { kind: 'not_asked' };
  // Another issuer's subject of the same name is somebody else, of whom this directory knows nothing.
  if (user.issuer !== issuer) return { kind: 'missing' };
  const found = directory.principal(user.subject);
  return found instanceof Promise ? found.then(factsOf) : factsOf(found);
}

function factsOf(principal: Principal): PrincipalFacts {
  return principal.kind === 'active' ? { kind: 'active', roles: principal.roles } : { kind: principal.kind };
}

const lastDays = 7 * 86_400_000;

/** In its last seven days a key says when it ends (contract 10.14). */
function warnOfExpiry({ key }: LiveKey, reply: FastifyReply, now: number): void {
  if (key.expiresAt !== null && key.expiresAt - now <= lastDays) {
    reply.header('postern-key-expires-at', new Date(key.expiresAt).toISOString());
  }
}
