import type { UserRef } from '../../core/caller.ts';
import { type Site, siteStatusOf } from '../sites/sites.ts';
import type { LedgerEntry } from './grant-store.ts';
import type { IssuingDeps } from './issuing.ts';
import type { SiteTargetsDeps } from './site-targets.ts';
import { siteGrants } from './grant-kind.ts';
import { unavailableReasonOf } from './unavailable-reason.ts';

/** Why a site opens for its owner or not, check by check, and where a link to it leads (contract 6). */
export type AccessCheck = { readonly check: CheckName; readonly passed: boolean; readonly detail: string };

export const checkNames = [
  'not_deleted',
  'not_taken_down',
  'not_expired',
  'published',
  'private_possible',
  'gateway_running',
  'account_enabled',
  'role',
  'signed_in',
] as const;
type CheckName = (typeof checkNames)[number];

export type IssuedGrant = LedgerEntry & { readonly isLive: boolean };

export type Access = { readonly checks: readonly AccessCheck[]; readonly opens: boolean };

export type LinkTarget =
  /** The label of the content host. */
  | { readonly kind: 'content'; readonly label: string }
  /** Only for the owner; everyone else gets `missing`. */
  | { readonly kind: 'closed'; readonly status: 'empty' | 'expired' | 'taken_down' | 'deleted' }
  | { readonly kind: 'missing' };

export function createExplaining({
  read,
  clock,
  identityCheck,
  accessTokenFor,
  addresses,
  instances,
}: Pick<SiteTargetsDeps, 'read'> &
  Pick<IssuingDeps, 'clock' | 'identityCheck' | 'accessTokenFor' | 'addresses' | 'instances'>) {
  async function personChecks(user: UserRef, sessionId: string): Promise<AccessCheck[]> {
    const principal = await identityCheck.ofPerson(user);
    const token = await accessTokenFor(sessionId);
    const isActive = principal.kind === 'active';
    const cannotTell = 'Postern could not check in time who this is.';
    return [
      check('account_enabled', isActive, {
        yes: 'Your account is enabled.',
        no: principal.kind === 'unavailable' ? cannotTell : 'Your account is disabled.',
      }),
      check('role', isActive && principal.roles.includes('user'), {
        yes: 'You have the role user, directly or from a group.',
        no: principal.kind === 'unavailable' ? cannotTell : 'You lack the role user.',
      }),
      check('signed_in', token.kind === 'active', {
        yes: 'Your sign-in is still valid at the identity provider.',
        no: token.kind === 'unavailable' ? cannotTell : 'Your sign-in has ended.',
      }),
    ];
  }

  async function privateChecks(): Promise<AccessCheck[]> {
    const unavailableReason = unavailableReasonOf(addresses, siteGrants);
    const missing = await instances.unavailableReason();
    return [
      check('private_possible', unavailableReason === null, {
        yes: 'This installation can isolate private sites.',
        no: unavailableReason ?? '',
      }),
      check('gateway_running', missing === null, {
        yes: 'The site server is healthy.',
        no: missing ?? '',
      }),
    ];
  }

  return {
    /** @throws AppError store_unavailable */
    async explain(site: Site, user: UserRef, sessionId: string): Promise<Access> {
      const checks = siteChecks(site, clock.now());
      if (site.visibility === 'private') {
        checks.push(...(await privateChecks()), ...(await personChecks(user, sessionId)));
      }
      return { checks, opens: checks.every(({ passed }) => passed) };
    },

    async ledger(site: Site, page: number, limit: number): Promise<{ items: IssuedGrant[]; total: number }> {
      const { items, total } = await read.grants.page(site.id, page, limit);
      const current = await read.sitesSwitch.generation();
      const now = clock.now();
      const isOpen = siteStatusOf(site, now) === 'active';
      const isLive = ({ endsAt, epoch, generation }: LedgerEntry) =>
        isOpen && endsAt > now && epoch === site.epoch && generation === current;
      return { items: items.map((entry) => ({ ...entry, isLive: isLive(entry) })), total };
    },

    /** Where `/s/{id}` leads. Only the owner learns that a site exists but is not served. */
    async linkTarget(id: string, user: UserRef | null): Promise<LinkTarget> {
      const site = await read.sites.find(id);
      if (site === undefined) return { kind: 'missing' };
      const isOwner = user !== null && site.owner.kind === 'user' && site.owner.id === user.id;
      const status = siteStatusOf(site, clock.now());
      if (!isOwner && (site.visibility === 'private' || status !== 'active')) return { kind: 'missing' };
      return status === 'active' ? { kind: 'content', label: site.label } : { kind: 'closed', status };
    },
  };
}

function siteChecks(site: Site, now: number): AccessCheck[] {
  return [
    check('not_deleted', site.deletedAt === null, {
      yes: 'The site is not deleted.',
      no: 'The site is deleted.',
    }),
    check('not_taken_down', site.takenDownAt === null, {
      yes: 'No administrator has taken the site down.',
      no: 'An administrator has taken the site down.',
    }),
    check('not_expired', site.expiresAt === null || site.expiresAt > now, {
      yes: 'The site has not expired.',
      no: 'The site has expired.',
    }),
    check('published', site.live !== null, {
      yes: 'A version is published.',
      no: 'Nothing is published yet.',
    }),
  ];
}

function check(name: CheckName, passed: boolean, words: { yes: string; no: string }): AccessCheck {
  return { check: name, passed, detail: passed ? words.yes : words.no };
}
