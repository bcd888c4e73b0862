import type { siteStatuses } from '../../features/sites/site.ts';

/** What an agent gets to know of a site that it changed or published. */
export type SiteAfter = {
  readonly id: string;
  readonly name: string;
  readonly visibility: 'public' | 'private';
  readonly status: (typeof siteStatuses)[number];
  readonly url: string;
  readonly expiresAt: string | null;
};

export type Published = SiteAfter & {
  readonly version: { readonly number: number } | null;
  readonly warnings: readonly { readonly code: string; readonly message: string }[];
};

export function toSiteAfter({ id, name, visibility, status, url, expiresAt }: SiteAfter): SiteAfter {
  return { id, name, visibility, status, url, expiresAt };
}

export function publishedSite(site: Published) {
  return {
    ...toSiteAfter(site),
    version: site.version?.number ?? null,
    warnings: site.warnings.map(({ code, message }) => ({ code, message })),
  };
}
