import { safeAgent } from '../../core/safe-text.ts';
import type { PrincipalFacts } from '../../core/authorize.ts';
import type { AuditContext, UserRef } from '../../core/caller.ts';
import { type Clock, second } from '../../core/clock.ts';
import { newId, type Random } from '../../core/ids.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import type { AuditWriter, Denials } from '../audit/audit.ts';
import type { IdentityCheck, People } from '../people/people.ts';
import type { RateLimiter } from '../rate-limit/rate-limit.ts';
import { type Site, type SiteStore, siteStatusOf, visibilityOfLabel } from '../sites/sites.ts';
import type { GrantStore } from './grant-store.ts';
import type { InstanceRegistry } from './instance-registry.ts';
import type { SwitchRecords } from './sites-switch.ts';
import { type Addresses, unavailableReasonOf } from './unavailable-reason.ts';
import { type CodeRecord, maxGrantMs, writeCode } from './records.ts';
import { codeKeyOf, type GrantSigner } from './grant-signer.ts';

/**
 * Steps 3 and 4 of private-access.md 2.2. They decide whether this person's browser gets access to the site behind a
 * label, and issue the one-time code that gives it. All checks happen here, once; the gateway only follows the result.
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
  /** `origin`: where the browser posts the code, taken from the site's own row (threat T02). */
  | { readonly kind: 'opened'; readonly origin: string; readonly code: string }
  /** Not found, not owned or not allowed: the client cannot tell which. */
  | { readonly kind: 'refused' }
  /** The token behind the session has ended, and the session with it. */
  | { readonly kind: 'signed_out' }
  | { readonly kind: 'limited'; readonly retryAfterSeconds: number }
  /** Nothing was issued; a retry may succeed. */
  | { readonly kind: 'unavailable'; readonly what: 'identity' | 'gateway' };

export type GrantsDeps = {
  readonly kv: Pick<Kv, 'set' | 'time'>;
  readonly signer: GrantSigner;
  readonly read: {
    readonly sites: Pick<SiteStore, 'find' | 'findLabel'>;
    readonly grants: GrantStore;
    readonly sitesSwitch: { generation(): Promise<number> };
  };
  readonly tx: Tx<{ grants: GrantStore; audit: AuditWriter }>;
  readonly identityCheck: Pick<IdentityCheck, 'ofPerson'>;
  readonly accessTokenFor: People['accessTokenFor'];
  readonly limiter: Pick<RateLimiter, 'spend'>;
  readonly states: { publish(site: Site): Promise<void> };
  readonly switchRecords: Pick<SwitchRecords, 'publish'>;
  readonly instances: Pick<InstanceRegistry, 'unavailableReason'>;
  readonly addresses: Addresses;
  readonly clock: Clock;
  readonly random: Random;
  readonly refused: (refusal: Parameters<Denials['record']>[0]) => void;
};

const codeMs = 30 * second;
const minGrantMs = 5 * second;
/** Maximum number in any minute for one person and site. */
const grantsPerMinute = 10;
const bindingShape = /^[A-Za-z0-9_-]{43}$/;
const ticketShape = /^[A-Za-z0-9_-]{0,4096}$/;

/** The reason of the refusal; `siteId` when a site was found. */
class Refused extends Error {
  readonly reason: string;
  readonly siteId: string | null;
  constructor(reason: string, siteId: string | null) {
    super(reason);
    this.reason = reason;
    this.siteId = siteId;
  }
}

export function createIssuing(deps: GrantsDeps) {
  const { kv, signer, read, tx, clock, random, limiter, switchRecords, states, instances } = deps;
  const { protocol, host: contentHost } = new URL(deps.addresses.contentUrl);

  /** A site that is open to its owner at this label, or the preview of one of its versions. */
  async function siteAt(label: string, user: UserRef): Promise<{ site: Site; endsAt: number | null }> {
    const row = visibilityOfLabel(label) === 'private' ? await read.sites.findLabel(label) : undefined;
    const site = row && (await read.sites.find(row.siteId));
    const now = clock.now();
    if (row === undefined || site === undefined) throw new Refused('site_not_found', null);
    const refuse = (reason: string) => new Refused(reason, site.id);
    if (site.visibility !== 'private' || row.retiredAt !== null) throw refuse('site_not_found');
    if (row.endsAt !== null && row.endsAt <= now) throw refuse('preview_ended');
    const status = siteStatusOf(site, now);
    if (status !== 'active') throw refuse(`site_${status}`);
    if (site.owner.kind !== 'user' || site.owner.id !== user.id) throw refuse('not_owner');
    return { site, endsAt: row.endsAt };
  }

  function requirePerson(principal: PrincipalFacts, siteId: string): void {
    if (principal.kind !== 'active') throw new Refused('user_disabled', siteId);
    if (!principal.roles.includes('user')) throw new Refused('role_required', siteId);
  }

  function refused(reason: string, siteId: string | null, auditContext: AuditContext): Opening {
    deps.refused({
      event: 'site.grant_refused',
      reason,
      auditContext,
      target: siteId === null ? { kind: 'route', id: 'GET /sites/open' } : { kind: 'site', id: siteId },
    });
    return { kind: 'refused' };
  }

  async function decide(request: OpenRequest): Promise<Opening> {
    const { label, binding, user, auditContext } = request;
    // The grant's lifetime starts before the checks, so the time they take is not added to it.
    const issuedAt = await kv.time();
    const { isOn, generation } = await switchRecords.publish();
    if (!isOn) throw new Refused('sites_disabled', null);
    if (!bindingShape.test(binding)) throw new Refused('not_bound', null);
    const { site, endsAt: labelEndsAt } = await siteAt(label, user);

    const principal = await deps.identityCheck.ofPerson(user);
    if (principal.kind === 'unavailable') return { kind: 'unavailable', what: 'identity' };
    requirePerson(principal, site.id);
    const token = await deps.accessTokenFor(request.sessionId);
    if (token.kind === 'unavailable') return { kind: 'unavailable', what: 'identity' };
    if (token.kind === 'ended') return { kind: 'signed_out' };
    const { introspection } = token;
    if (introspection.subject !== user.subject || introspection.issuer !== user.issuer)
      throw new Refused('token_of_another', site.id);

    if (unavailableReasonOf(deps.addresses) !== null) throw new Refused('private_sites_unavailable', site.id);
    if ((await instances.unavailableReason()) !== null) return { kind: 'unavailable', what: 'gateway' };

    const ends = [issuedAt + maxGrantMs, token.expiresAt, labelEndsAt, site.expiresAt];
    const endsAt = Math.floor(Math.min(...ends.filter((end) => end !== null)));
    if (endsAt - issuedAt < minGrantMs) throw new Refused('too_little_time', site.id);

    const spend = await limiter.spend({
      owner: `grants:${user.id}:${site.id}`,
      key: '',
      limit: grantsPerMinute,
    });
    if (!spend.allowed) {
      refused('rate_limited', site.id, auditContext);
      return { kind: 'limited', retryAfterSeconds: Math.max(1, Math.ceil(spend.retryAfterMs / second)) };
    }
    const host = `${label}.${contentHost}`;
    const ticket = ticketShape.test(request.ticket) ? request.ticket : '';
    const { id: siteId, epoch } = site;
    const code = { siteId, userId: user.id, host, epoch, generation, binding, ticket, issuedAt, endsAt };
    return { kind: 'opened', origin: `${protocol}//${host}`, code: await issue(site, code, auditContext) };
  }

  /**
   * The code is stored before the ledger entry. An unused code expires in half a minute, while an entry without a code
   * would report a grant that never existed.
   */
  async function issue(site: Site, record: CodeRecord, auditContext: AuditContext): Promise<string> {
    await states.publish(site);
    const code = Buffer.from(random.bytes(32)).toString('base64url');
    const key = codeKeyOf(code);
    await kv.set(key, writeCode(signer, key, record), { ttlMs: codeMs });
    const { siteId, userId, epoch, generation, issuedAt, endsAt } = record;
    const id = newId(random, 'grt');
    const { address, agent } = auditContext.origin;
    await tx(async (stores) => {
      await stores.grants.insert({
        id,
        siteId,
        userId,
        epoch,
        generation,
        issuedAt,
        endsAt,
        address,
        agent: safeAgent(agent),
      });
      await stores.audit.append({
        event: 'site.grant_issued',
        auditContext,
        target: { kind: 'site', id: siteId },
        outcome: 'success',
        details: { grant: id, endsAt: new Date(endsAt).toISOString() },
      });
    });
    return code;
  }

  return {
    async open(request: OpenRequest): Promise<Opening> {
      try {
        return await decide(request);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        return refused(error.reason, error.siteId, request.auditContext);
      }
    },
  };
}
