import { asksAbout, decide, type PrincipalFacts, type RoutePolicy } from '../../core/authorize.ts';
import type { Caller, UserRef } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import type { FreshProof } from '../../features/people/people.ts';
import type { IdentityCheck } from '../../features/people/identity-check.ts';

/** Applies a route's policy to a caller, with what the directory says about the person now (contract 3). */
export type Authorization = {
  /** Rejects with the error of the first rule that fails, and with 503 when the directory cannot say. */
  authorize(caller: Caller, policy: RoutePolicy): Promise<void>;
  /** For a handler that decides by the body: the error to throw, or null when the sign-in is fresh. */
  staleProof(caller: Caller): Promise<AppError | null>;
};

type Issued = Pick<UserRef, 'issuer' | 'subject'>;

export type AuthorizationDeps = {
  readonly freshProof: Pick<FreshProof, 'refusal'>;
  readonly identityCheck: Pick<IdentityCheck, 'ofCaller'>;
  /** The token that authorises a session now, and the person it names (contract 10.1). */
  readonly tokenOfSession: (
    sessionId: string,
  ) => Promise<{ kind: 'active'; introspection: Issued } | { kind: 'ended' } | { kind: 'unavailable' }>;
};

export function createAuthorization({
  identityCheck,
  tokenOfSession,
  freshProof,
}: AuthorizationDeps): Authorization {
  async function factsAbout(caller: Caller, policy: RoutePolicy): Promise<PrincipalFacts> {
    // A caller of the wrong kind is refused without a request to the directory.
    const isExpected =
      typeof policy.callers !== 'string' && policy.callers.some((kind) => kind === caller.kind);
    if (!isExpected || !asksAbout(caller.kind, policy)) return { kind: 'not_asked' };
    if (policy.identity === 'introspected' && caller.kind === 'session') {
      const token = await tokenOfSession(caller.sessionId);
      if (token.kind === 'unavailable') return { kind: 'unavailable' };
      // A token of another person authorises nothing here (ID-11).
      if (token.kind === 'active' && !isSamePerson(token.introspection, caller.user))
        return { kind: 'signed_out' };
      // For an ended token too: the person may have been disabled, and the check then suspends their keys.
      const facts = await identityCheck.ofCaller(caller);
      return token.kind === 'active' ? facts : { kind: 'signed_out' };
    }
    return await identityCheck.ofCaller(caller);
  }

  return {
    async authorize(caller, policy) {
      const { denial } = decide(caller, policy, await factsAbout(caller, policy));
      if (denial !== null) {
        const { code, ...said } = denial;
        throw new AppError(code, said);
      }
      const stale = policy.freshProof === 'always' ? await freshProof.refusal(caller) : null;
      if (stale !== null) throw stale;
    },
    staleProof: freshProof.refusal,
  };
}

/** Issuer and subject together identify a person, and nothing else does (ID-15). */
function isSamePerson(one: Issued, other: Issued): boolean {
  return one.subject === other.subject && one.issuer === other.issuer;
}
