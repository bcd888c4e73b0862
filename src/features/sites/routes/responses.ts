import { type Caller, isSameOwner, ownerOf } from '../../../core/caller.ts';
import { timestamp, timestampOrNull } from '../../../core/clock.ts';
import type { SiteActions } from '../site/actions.ts';
import type { FileChange } from '../content/file-changes.ts';
import { type SiteReport, type SiteWarning, warningsFor } from '../content/warnings.ts';
import { versionEtag } from '../verbs/rights.ts';
import { type Site, type SiteOwner, type SiteVersion, siteStatusOf } from '../site/site.ts';
import type { Capabilities, Received } from '../sites.ts';

/** Converts the domain's sites to their wire form. */
export type SiteAddresses = {
  /** `{base_url}/s/{id}`. */
  linkOf(id: string): string;
  /** The content host of a label. */
  urlOf(label: string): string;
};

/** Names of people and service keys, by id. Never an e-mail address. */
export type OwnerNames = (owners: readonly SiteOwner[]) => Promise<ReadonlyMap<string, string>>;

export async function toSiteResponses(
  sites: readonly Site[],
  caller: Caller,
  { names, addresses, now }: { names: OwnerNames; addresses: SiteAddresses; now: number },
) {
  const known = sites.length === 0 ? new Map<string, string>() : await names(sites.map(({ owner }) => owner));
  return sites.map((site) => {
    const isOwn = isSameOwner(ownerOf(caller), site.owner);
    return {
      id: site.id,
      name: site.name,
      url: addresses.urlOf(site.label),
      link: addresses.linkOf(site.id),
      visibility: site.visibility,
      status: siteStatusOf(site, now),
      spa: site.spa,
      restorableUntil: timestampOrNull(site.restorableUntil),
      takeDownReason: isOwn ? site.takeDownReason : null,
      owner: { ...site.owner, name: known.get(site.owner.id) ?? null },
      createdAt: timestamp(site.createdAt),
      updatedAt: timestamp(site.updatedAt),
      expiresAt: timestampOrNull(site.expiresAt),
      fileCount: site.live?.fileCount ?? 0,
      sizeBytes: site.live?.sizeBytes ?? 0,
      version:
        site.live === null
          ? null
          : {
              id: versionId(site.id, site.live.number),
              number: site.live.number,
              digest: site.live.digest,
              publishedAt: timestamp(site.live.publishedAt),
            },
    };
  });
}

/** One site as a whole response; its ETag is the receipt of the live version. */
export async function toSiteAnswer(
  site: Site,
  caller: Caller,
  deps: { names: OwnerNames; addresses: SiteAddresses; now: number },
) {
  const [data] = await toSiteResponses([site], caller, deps);
  if (data === undefined) throw new Error('One site in, one site out.');
  const etag = versionEtag(site);
  return { data, ...(etag === undefined ? {} : { headers: { etag } }) };
}

/** The response after a publish, with warnings about content that is allowed but probably not intended. */
export async function toPublishedAnswer(
  site: Site,
  { warnings, leftOut }: Pick<Received, 'warnings' | 'leftOut'>,
  caller: Caller,
  deps: { names: OwnerNames; addresses: SiteAddresses; now: number },
) {
  const answer = await toSiteAnswer(site, caller, deps);
  const added = { warnings: toWarnings(warningsFor(site, warnings)), leftOut: [...leftOut] };
  return { ...answer, data: { ...answer.data, ...added } };
}

const toWarnings = (warnings: readonly SiteWarning[]) =>
  warnings.map(({ code, message, pages }) => ({ code, message, pages: [...pages] }));

/** A number is never reused within a site, so the two together identify a version permanently. */
function versionId(siteId: string, number: number): string {
  return `ver_${siteId}_${number}`;
}

export function toVersionResponse(siteId: string, version: SiteVersion & { readonly isLive: boolean }) {
  const { number, digest, isLive, createdBy, fileCount, sizeBytes } = version;
  return {
    id: versionId(siteId, number),
    number,
    digest,
    isLive,
    createdBy,
    fileCount,
    sizeBytes,
    publishedAt: timestamp(version.publishedAt),
    createdAt: timestamp(version.createdAt),
    replacedAt: timestampOrNull(version.replacedAt),
  };
}

export function toReportResponse(
  siteId: string,
  version: SiteVersion & { isLive: boolean; report: SiteReport },
) {
  const { report } = version;
  const list = ({ count, names }: SiteReport['added']) => ({ count, names: [...names] });
  return {
    ...toVersionResponse(siteId, version),
    receipt: version.digest,
    report: {
      ...report,
      warnings: toWarnings(report.warnings),
      leftOut: [...report.leftOut],
      added: list(report.added),
      changed: list(report.changed),
      removed: list(report.removed),
      brokenLinks: [...report.brokenLinks],
      absolutePaths: [...report.absolutePaths],
      mixedContent: [...report.mixedContent],
    },
  };
}

export function toActionsResponse({ reasons, extendsTo, latestExpiry, restoreDays }: SiteActions) {
  return {
    reasons,
    extendsTo: timestampOrNull(extendsTo),
    latestExpiry: timestampOrNull(latestExpiry),
    restoreDays,
  };
}

export function toChangesResponse(
  { against, files }: { against: number | null; files: readonly FileChange[] },
  from: number,
  to: number,
) {
  const count = (kind: FileChange['change']) => files.filter(({ change }) => change === kind).length;
  return {
    against,
    added: count('added'),
    changed: count('changed'),
    removed: count('removed'),
    files: files.slice(from, to),
  };
}

export function toCapabilitiesResponse(capabilities: Capabilities, now: number) {
  const { config, allowedVisibility, visibilityReasons, defaultVisibility, sitesUsed, bytesUsed } =
    capabilities;
  const { enabled, upload, ttl, quotas } = config;
  return {
    enabled,
    upload,
    allowedVisibility: [...allowedVisibility],
    visibilityReasons: { ...visibilityReasons },
    defaultVisibility,
    ttl: {
      enabled: ttl.enabled,
      defaultHours: ttl.defaultDays * 24,
      extensionHours: ttl.extensionDays * 24,
      maxHours: ttl.maxDays * 24,
    },
    quotas: { ...quotas, sitesUsed, bytesUsed },
    serverTime: timestamp(now),
  };
}
