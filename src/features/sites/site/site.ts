import { type Caller, isSameOwner, type Owner, ownerOf } from '../../../core/caller.ts';

/** The type of a site, and who may see and change it. No I/O. */
export type Visibility = 'public' | 'private';

export type SiteOwner = Owner;

/** Owner of content: also a repository, for the output of its builds. */
export type ContentOwner = SiteOwner | { readonly kind: 'repository'; readonly id: string };

export type SiteVersion = {
  readonly number: number;
  /** The publish receipt (content/manifest.ts). */
  readonly digest: string;
  readonly fileCount: number;
  readonly sizeBytes: number;
  readonly createdAt: number;
  readonly createdBy: string | null;
  /** When it last went live. */
  readonly publishedAt: number;
  /** When another version replaced it; null while it is live. */
  readonly replacedAt: number | null;
};

/** Times in milliseconds. */
export type Site = {
  readonly id: string;
  readonly name: string;
  readonly owner: SiteOwner;
  readonly visibility: Visibility;
  readonly label: string;
  /** Unknown addresses show the start page, for apps that route in the browser. */
  readonly spa: boolean;
  readonly epoch: number;
  readonly revision: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly expiresAt: number | null;
  readonly deletedAt: number | null;
  readonly restorableUntil: number | null;
  readonly takenDownAt: number | null;
  readonly takeDownReason: string | null;
  /** When an administrator last reinstated it, in milliseconds. */
  readonly putBackAt: number | null;
  readonly live: SiteVersion | null;
};

export const siteStatuses = ['empty', 'active', 'expired', 'taken_down', 'deleted'] as const;
export type SiteStatus = (typeof siteStatuses)[number];

/** Exact to the second: a site that has reached its expiry is expired, whether or not a job has run (contract 6). */
export function siteStatusOf(site: Site, now: number): SiteStatus {
  if (site.deletedAt !== null) return 'deleted';
  if (site.takenDownAt !== null) return 'taken_down';
  if (site.expiresAt !== null && site.expiresAt <= now) return 'expired';
  return site.live === null ? 'empty' : 'active';
}

/**
 * `none`: for this caller the site does not exist. There is no exception for administrators: their role does not let
 * them see another owner's private site (contract 6).
 */
export function sightOf(caller: Caller, site: Site, now: number): 'owner' | 'reader' | 'none' {
  if (isSameOwner(ownerOf(caller), site.owner)) return 'owner';
  return site.visibility === 'public' && siteStatusOf(site, now) === 'active' ? 'reader' : 'none';
}
