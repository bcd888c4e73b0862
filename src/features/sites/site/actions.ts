import { type Caller, isSameOwner, ownerOf } from '../../../core/caller.ts';
import { day } from '../../../core/clock.ts';
import { extended } from './lifetime.ts';
import { visibilityFor } from './visibility.ts';
import { type Site, siteStatusOf } from './site.ts';
import type { SitesConfig } from './sites-config.ts';

/**
 * Allowed actions of a caller on a site, and the reason for each refused one, for clients that show buttons. Each action
 * decides again, by the same functions where the decision depends on more than the site's state.
 */
export const siteActions = [
  'publish',
  'change',
  'change_visibility',
  'extend',
  'delete',
  'restore',
  'see_versions',
  'end_grants',
] as const;
export type SiteAction = (typeof siteActions)[number];

export type SiteActions = {
  /** Null when the action is allowed. */
  readonly reasons: Readonly<Record<SiteAction, string | null>>;
  /** The expiry after one extension; null when no extension is possible. */
  readonly extendsTo: number | null;
  /** The latest expiry allowed now; null where sites do not expire. */
  readonly latestExpiry: number | null;
  readonly restoreDays: number;
};

export type ActionFacts = {
  readonly caller: Caller;
  readonly site: Site;
  readonly settings: SitesConfig;
  readonly privateUnavailableReason: string | null;
  readonly now: number;
};

export function actionsFor({
  caller,
  site,
  settings,
  privateUnavailableReason,
  now,
}: ActionFacts): SiteActions {
  const status = siteStatusOf(site, now);
  const owned = ownershipReason(caller, site);
  const writable = owned ?? scopeReason(caller);
  const present = writable ?? (status === 'deleted' ? 'The site is deleted. Restore it first.' : null);
  const other = site.visibility === 'public' ? 'private' : 'public';
  const { visibilityReasons } = visibilityFor(caller, settings, privateUnavailableReason);
  const extension = extensionOf(site, settings, now);
  return {
    reasons: {
      publish: present ?? (isOver(site, now) ? 'The site has expired. Extend it first.' : null),
      change: present,
      change_visibility: present ?? visibilityReasons[other] ?? null,
      extend: present ?? extension.reason,
      delete: present === null ? null : (writable ?? 'The site is already deleted.'),
      restore: writable ?? restoreReason(site, now),
      see_versions: owned,
      end_grants: owned ?? (site.visibility === 'public' ? 'A public site has no grants to end.' : null),
    },
    extendsTo: extension.to,
    latestExpiry: settings.ttl.enabled ? now + settings.ttl.maxDays * day : null,
    restoreDays: settings.deletion.restoreDays,
  };
}

function ownershipReason(caller: Caller, { owner }: Site): string | null {
  if (isSameOwner(ownerOf(caller), owner)) return null;
  return owner.kind === 'service_key'
    ? 'Only the service key that created this site can change it.'
    : 'Only its owner can change it.';
}

function scopeReason(caller: Caller): string | null {
  const scopes: readonly string[] | null =
    'key' in caller ? caller.key.scopes : caller.kind === 'access_token' ? caller.scopes : null;
  return scopes === null || scopes.includes('sites:write')
    ? null
    : 'This action needs the scope sites:write.';
}

function isOver({ expiresAt }: Site, now: number): boolean {
  return expiresAt !== null && expiresAt <= now;
}

function restoreReason({ deletedAt, restorableUntil }: Site, now: number): string | null {
  if (deletedAt === null) return 'The site is not deleted.';
  return (restorableUntil ?? 0) > now ? null : 'The period for restoring the site has ended.';
}

function extensionOf(site: Site, { ttl }: SitesConfig, now: number) {
  if (site.expiresAt === null) return { to: null, reason: 'This site does not expire.' };
  if (!ttl.enabled)
    return { to: null, reason: 'Expiry is switched off on this installation; the site keeps its expiry.' };
  const to = extended(site.expiresAt, ttl, now);
  return to === null
    ? { to, reason: `The expiry is already as far ahead as allowed (${ttl.maxDays} days).` }
    : { to, reason: null };
}
