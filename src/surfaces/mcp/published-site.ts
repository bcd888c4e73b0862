import type { z } from 'zod';
import type { publishedSiteSchema, siteSchema } from '../../features/sites/routes/schemas.ts';

export type Site = z.infer<typeof siteSchema>;
export type Published = z.infer<typeof publishedSiteSchema>;

/** The fields of a changed or published site that an agent gets. */
export function toSiteAfter({ id, name, visibility, status, url, expiresAt }: Site) {
  return { id, name, visibility, status, url, expiresAt };
}

export function publishedSite(site: Published) {
  return {
    ...toSiteAfter(site),
    version: site.version?.number ?? null,
    warnings: site.warnings.map(({ code, message }) => ({ code, message })),
  };
}
