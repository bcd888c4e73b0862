import type { PrincipalFacts } from '../../core/authorize.ts';
import type { AuditContext, UserRef } from '../../core/caller.ts';
import { type Clock, second } from '../../core/clock.ts';
import type { Random } from '../../core/ids.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import type { Denials } from '../audit/audit.ts';
import type { IdentityCheck, People } from '../people/people.ts';
import type { RateLimiter } from '../rate-limit/rate-limit.ts';
import type { GrantSigner } from './grant-signer.ts';
import type { InstanceRegistry } from './instance-registry.ts';
import { type CodeRecord, writeCode } from './records.ts';
import type { SwitchRecords } from './switch-records.ts';
import { type Addresses, unavailableReasonOf } from './unavailable-reason.ts';

/**
 * Steps 3 and 4 of private-access.md 2.2, for private sites and for Environments. They decide whether this person's browser
 * gets access to what is behind a label, and issue the one-time code that gives it. All checks happen here, once; the
 * gateway only follows the result.
 */
export type OpenRequest = {
  readonly label: string;
  readonly ticket: string;
  /** SHA-256 of the value that binds the browser at the content host. */
  readonly binding: string;
  readonly user: UserRef;
  readonly sessionId: string;
  readonly auditContext: AuditContext;
};

export type Opening =
  /** `origin`: where the browser posts the code, made of our own settings and the label (threat T02). */
  | { readonly kind: 'opened'; readonly origin: string; readonly code: string }
  /** Not found, not owned or not allowed: the client cannot tell which. */
  | { readonly kind: 'refused' }
  /** The person could open it before, and it has ended for good. */
  | { readonly kind: 'gone' }
  /** The token behind the session has ended, and the session with it. */
  | { readonly kind: 'signed_out' }
  | { readonly kind: 'limited'; readonly retryAfterSeconds: number }
  /** Nothing was issued; a retry may succeed. */
  | { readonly kind: 'unavailable'; readonly what: 'identity' | 'gateway' };

/** What a label leads to, for one person. Every kind but `open` issues nothing. */
export type FoundTarget =
  | {
      readonly kind: 'open';
      readonly targetId: string;
      readonly epoch: number;
      /** Milliseconds; a grant ends with the earliest. Null = never. */
      readonly ends: readonly (number | null)[];
      /** Writes its state for the gateways. */
      readonly publish: () => Promise<void>;
    }
  | { readonly kind: 'gone'; readonly targetId: string }
  | { readonly kind: 'refused'; readonly reason: string; readonly targetId: string | null };

/** A grant that is about to be issued. */
export type NewGrant = Pick<
  CodeRecord,
  'targetId' | 'userId' | 'epoch' | 'generation' | 'issuedAt' | 'endsAt'
> & {
  readonly sessionId: string;
  /** Its name in the key-value store. */
  readonly storeKey: string;
};

/** The part of issuing that differs between sites and Environments. */
export type GrantTargets = {
  find(label: string, user: UserRef, now: number): Promise<FoundTarget>;
  /** How long a grant lasts at most, in milliseconds. */
  grantMs(): number | Promise<number>;
  /** Writes the audit event, and what the target keeps of its grants, in one transaction. */
  record(grant: NewGrant, auditContext: AuditContext): Promise<void>;
  /**
   * True: a grant ends with the person's rights. The person is checked again after record(), so that a change during the
   * first check finds the record or is found here.
   */
  readonly endsWithRights: boolean;
};

export type IssuingDeps = {
  readonly kv: Pick<Kv, 'set' | 'time'>;
  readonly signer: GrantSigner;
  readonly targets: GrantTargets;
  readonly identityCheck: Pick<IdentityCheck, 'ofPerson'>;
  readonly accessTokenFor: People['accessTokenFor'];
  readonly limiter: Pick<RateLimiter, 'spend'>;
  readonly switchRecords: Pick<SwitchRecords, 'publish'>;
  readonly instances: Pick<InstanceRegistry, 'unavailableReason'>;
  readonly addresses: Addresses;
  readonly clock: Clock;
  readonly random: Random;
  readonly refused: (refusal: Parameters<Denials['record']>[0]) => void;
};

const codeMs = 30 * second;
const minGrantMs = 5 * second;
/** Maximum number in any minute for one person and target. */
const grantsPerMinute = 10;
const bindingShape = /^[A-Za-z0-9_-]{43}$/;
const ticketShape = /^[A-Za-z0-9_-]{0,4096}$/;

/** The reason of the refusal; `targetId` when something was found. */
class Refused extends Error {
  readonly reason: string;
  readonly targetId: string | null;
  constructor(reason: string, targetId: string | null) {
    super(reason);
    this.reason = reason;
    this.targetId = targetId;
  }
}

export type Issuing = { open(request: OpenRequest): Promise<Opening> };

export function createIssuing(deps: IssuingDeps): Issuing {
  const { kv, signer, targets, clock, random, limiter, switchRecords, instances } = deps;
  const { kind } = signer;
  const { protocol, host: contentHost } = new URL(deps.addresses[kind.contentUrl]);

  /** Null: this session of this person may be issued a grant. `expiresAt` of its token, in milliseconds. */
  async function checkPerson(
    { user, sessionId }: OpenRequest,
    targetId: string,
  ): Promise<Opening | { readonly kind: 'allowed'; readonly expiresAt: number }> {
    const principal = await deps.identityCheck.ofPerson(user);
    if (principal.kind === 'unavailable') return { kind: 'unavailable', what: 'identity' };
    requirePerson(principal, targetId);
    const token = await deps.accessTokenFor(sessionId);
    if (token.kind === 'unavailable') return { kind: 'unavailable', what: 'identity' };
    if (token.kind === 'ended') return { kind: 'signed_out' };
    const { introspection } = token;
    if (introspection.subject !== user.subject || introspection.issuer !== user.issuer)
      throw new Refused('token_of_another', targetId);
    return { kind: 'allowed', expiresAt: token.expiresAt };
  }

  function requirePerson(principal: PrincipalFacts, targetId: string): void {
    if (principal.kind !== 'active') throw new Refused('user_disabled', targetId);
    if (!principal.roles.includes('user')) throw new Refused('role_required', targetId);
  }

  function refused(reason: string, targetId: string | null, auditContext: AuditContext): Opening {
    deps.refused({
      event: kind.refusedEvent,
      reason,
      auditContext,
      target:
        targetId === null ? { kind: 'route', id: `GET ${kind.openPath}` } : { kind: kind.name, id: targetId },
    });
    return { kind: 'refused' };
  }

  async function decide(request: OpenRequest): Promise<Opening> {
    const { label, binding, user, auditContext } = request;
    // The grant's lifetime starts before the checks, so the time they take is not added to it.
    const issuedAt = await kv.time();
    const { isOn, generation } = await switchRecords.publish();
    if (!isOn) throw new Refused(`${kind.name}s_disabled`, null);
    if (!bindingShape.test(binding)) throw new Refused('not_bound', null);
    const found = await targets.find(label, user, clock.now());
    if (found.kind === 'refused') throw new Refused(found.reason, found.targetId);
    const { targetId } = found;

    const person = await checkPerson(request, targetId);
    if (person.kind !== 'allowed') return person;
    if (found.kind === 'gone') return found;

    if (unavailableReasonOf(deps.addresses, kind) !== null)
      throw new Refused(`private_${kind.name}s_unavailable`, targetId);
    if ((await instances.unavailableReason()) !== null) return { kind: 'unavailable', what: 'gateway' };

    const ends = [issuedAt + Math.min(await targets.grantMs(), kind.maxMs), person.expiresAt, ...found.ends];
    const endsAt = Math.floor(Math.min(...ends.filter((end) => end !== null)));
    if (endsAt - issuedAt < minGrantMs) throw new Refused('too_little_time', targetId);

    const spend = await limiter.spend({
      owner: `grants:${user.id}:${targetId}`,
      key: '',
      limit: grantsPerMinute,
    });
    if (!spend.allowed) {
      refused('rate_limited', targetId, auditContext);
      return { kind: 'limited', retryAfterSeconds: Math.max(1, Math.ceil(spend.retryAfterMs / second)) };
    }
    const host = `${label}.${contentHost}`;
    const ticket = ticketShape.test(request.ticket) ? request.ticket : '';
    const { epoch } = found;
    await found.publish();
    const code = await issue(
      { targetId, userId: user.id, host, epoch, generation, binding, ticket, issuedAt, endsAt },
      request,
    );
    if (targets.endsWithRights) {
      const again = await checkPerson(request, targetId);
      if (again.kind !== 'allowed') return again;
    }
    return { kind: 'opened', origin: `${protocol}//${host}`, code };
  }

  /**
   * The code is stored before the record. An unused code expires in half a minute, while a record without a code
   * would report a grant that never existed.
   */
  async function issue(record: CodeRecord, { sessionId, auditContext }: OpenRequest): Promise<string> {
    const code = Buffer.from(random.bytes(32)).toString('base64url');
    const key = signer.codeKeyOf(code);
    await kv.set(key, writeCode(signer, key, record), { ttlMs: codeMs });
    const { targetId, userId, epoch, generation, issuedAt, endsAt } = record;
    const storeKey = signer.grantOf(code).key;
    await targets.record(
      { targetId, userId, epoch, generation, issuedAt, endsAt, sessionId, storeKey },
      auditContext,
    );
    return code;
  }

  return {
    async open(request) {
      try {
        return await decide(request);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        return refused(error.reason, error.targetId, request.auditContext);
      }
    },
  };
}
