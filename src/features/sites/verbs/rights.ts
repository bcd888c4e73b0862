import { type Caller, ownerOf } from '../../../core/caller.ts';
import { AppError } from '../../../core/errors.ts';
import type { ConfigDocument } from '../../settings/settings.ts';
import { type Site, type SiteOwner, sightOf } from '../site/site.ts';
import type { SiteStores } from './sites-deps.ts';
import type { SitesConfig } from '../site/sites-config.ts';
import { requireSiteCount } from '../content/upload-limits.ts';

/**
 * Who may do what with a site, with each rule in one place. What a caller may not see does not exist: the response is
 * 404 with the same bytes.
 */
export async function requireEnabled(
  config: Pick<ConfigDocument<SitesConfig>, 'inForce'>,
): Promise<SitesConfig> {
  const { value } = await config.inForce();
  if (!value.enabled) throw new AppError('sites_disabled');
  return value;
}

export function requireOwner(caller: Caller): SiteOwner {
  const owner = ownerOf(caller);
  if (owner === null) throw new AppError('authentication_required');
  return owner;
}

export function seen(caller: Caller, site: Site | undefined, now: number): Site {
  if (site === undefined || sightOf(caller, site, now) === 'none') throw new AppError('site_not_found');
  return site;
}

/**
 * The caller's own site. Another owner's public site gives `not_owner`; another owner's private site does not exist
 * (contract 6).
 */
export function owned(caller: Caller, site: Site | undefined, now: number): Site {
  const found = seen(caller, site, now);
  if (sightOf(caller, found, now) !== 'owner') throw new AppError('not_owner');
  return found;
}

export function requireNotDeleted(site: Site): Site {
  if (site.deletedAt !== null)
    throw new AppError('state_conflict', { message: 'The site is deleted.', hint: 'Restore it first.' });
  return site;
}

/** Refuses a publish to a site that cannot be served. */
export function requireCurrent(site: Site, now: number): Site {
  requireNotDeleted(site);
  if (site.expiresAt !== null && site.expiresAt <= now) throw new AppError('site_expired');
  return site;
}

/** Runs inside the transaction: the key must still be valid, whatever happened since the request began (RV-02, EX-02). */
export async function holdCredential(
  stores: Pick<SiteStores, 'keys'>,
  caller: Caller,
  now: number,
): Promise<void> {
  if ('key' in caller) await stores.keys.holdLive(caller, now);
}

/** A version's ETag is its receipt. `ifMatch` is optional: without it the last publish wins. */
export function requireVersionMatch(site: Site, ifMatch: string | undefined): void {
  if (ifMatch === undefined) return;
  const sent = ifMatch.split(',').map((part) => part.trim());
  if (sent.includes('*') && site.live !== null) return;
  const etag = versionEtag(site);
  if (etag !== undefined && sent.includes(etag)) return;
  throw new AppError('precondition_failed', {
    message: 'The live version has changed; it is not the version in If-Match.',
    hint: 'Read the live version. To replace it, send its ETag in If-Match.',
  });
}

export function versionEtag(site: Site): string | undefined {
  return site.live === null ? undefined : `"${site.live.digest}"`;
}

/** Requires quota for one more site, also for a restored one. The lock serialises these checks for one owner. */
export async function requireQuota(
  stores: Pick<SiteStores, 'sites'>,
  owner: SiteOwner,
  settings: SitesConfig,
): Promise<void> {
  await stores.sites.lockOwner(owner);
  requireSiteCount((await stores.sites.countOf(owner)) + 1, settings);
}
