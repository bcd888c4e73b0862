import { createFairQueue } from '../../platform/fair-queue.ts';
import { lifecycle } from './lifecycle/lifecycle.ts';
import { uploads } from './publish/digest-uploads.ts';
import { publishing } from './publish/publishing.ts';
import { versionReports } from './publish/version-reports.ts';
import { createUploadReservations } from './publish/upload-reservations.ts';
import { reading } from './verbs/reading.ts';
import type { Sites } from './verbs/site-verbs.ts';
import type { SitesDeps } from './verbs/sites-deps.ts';

/**
 * Sites: static files that are uploaded, checked, published and served (contract 6). Promises: an upload goes live as a
 * whole or not at all. A site belongs to one person or exactly one key. No one else can change it, or learn that a
 * private one exists. Every change commits with its audit event. The gateway serves sites, and features/grants decides
 * about access to private ones.
 */
export type { ContentStore } from './stores/content-store.ts';
export type { EncodingQueue } from './lifecycle/encode.ts';
export type { UploadProblem } from './content/judge.ts';
export { fromStored, type Manifest, type StoredManifest, toStored } from './content/manifest.ts';
export { checkUpload, takeFolder, type UploadKind, uploadKindOf } from './content/whole-upload.ts';
export { type Site, siteStatusOf } from './site/site.ts';
export { visibilityOfLabel } from './site/labels.ts';
export { type Catalog, type Served, servedContent } from './serving/catalog.ts';
export { mediaTypeOf } from './serving/media-types.ts';
export { resolve, type ServedContent, type ServedFile } from './serving/resolve.ts';
export { featuresOff } from './content/site-rules.ts';
export type { SiteStore } from './stores/site-store.ts';
export { defaultSitesConfig, type SitesConfig } from './site/sites-config.ts';
export type {
  Capabilities,
  Received,
  Sites,
  Upload,
  UploadState,
} from './verbs/site-verbs.ts';
export type { SitesDeps, SiteStores } from './verbs/sites-deps.ts';

/** Bodies read at the same time. One owner's requests beyond the limit are refused: they would wait with open connections. */
const uploadsAtOnce = { width: 512, perSender: 64, queue: 0 };

export function createSites(deps: SitesDeps): Sites {
  const read = reading(deps);
  const reservations = createUploadReservations(deps);
  const queue = createFairQueue(uploadsAtOnce);
  const publish = publishing(deps, { reservations, queue });
  return {
    ...read,
    ...versionReports(deps, read),
    ...publish,
    ...uploads(deps, { replace: publish.replace, reservations, queue }),
    ...lifecycle(deps),
  };
}
