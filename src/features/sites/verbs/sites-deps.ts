import type { AuditContext, KeyCaller } from '../../../core/caller.ts';
import type { Clock } from '../../../core/clock.ts';
import type { Random } from '../../../core/ids.ts';
import type { Blobs } from '../../../platform/blobs/blobs.ts';
import type { ChangeStore } from '../../../platform/database/change-feed.ts';
import type { Tx } from '../../../platform/database/database.ts';
import type { TemporaryFiles } from '../../../platform/temporary-files.ts';
import type { AuditWriter } from '../../audit/audit.ts';
import type { KeyFormat } from '../../keys/keys.ts';
import type { NoticeWriter } from '../../notices/notices.ts';
import type { ConfigDocument } from '../../settings/settings.ts';
import type { ContentStore } from '../stores/content-store.ts';
import type { PreviewStore } from '../stores/preview-store.ts';
import type { UploadStore } from '../stores/digest-upload-store.ts';
import type { Site } from '../site/site.ts';
import type { SiteStore } from '../stores/site-store.ts';
import type { SitesConfig } from '../site/sites-config.ts';

/** Tables, file store and features that the verbs of sites use. */
export type SiteStores = {
  sites: SiteStore;
  previews: PreviewStore;
  content: ContentStore;
  uploads: UploadStore;
  audit: AuditWriter;
  notices: NoticeWriter;
  changes: ChangeStore;
  /** A write with a key commits only while the key is valid (contract 4). */
  keys: { holdLive(caller: KeyCaller, now: number): Promise<void> };
};

export type SitesDeps = {
  readonly read: { readonly sites: SiteStore; readonly content: ContentStore; readonly uploads: UploadStore };
  readonly tx: Tx<SiteStores>;
  readonly config: Pick<ConfigDocument<SitesConfig>, 'inForce' | 'read'>;
  readonly blobs: Blobs;
  readonly temporaryFiles: TemporaryFiles;
  readonly format: KeyFormat;
  readonly clock: Clock;
  readonly random: Random;
  /** Called with a Postern key that was found in an upload. */
  readonly exposed: (value: string, auditContext: AuditContext) => void;
  /** Why this installation cannot have private sites, as a sentence for people; null when it can. */
  readonly privateUnavailableReason: () => string | null;
  readonly states: SiteStates;
};

/** The state of private sites that gateways read outside the database (contract 10.3). */
export type SiteStates = {
  /** Stops private content immediately. Rejects with `store_unavailable`; the caller must then change nothing. */
  withdraw(site: Pick<Site, 'id'>): Promise<void>;
  /** Writes the state unless a newer one is known. Never rejects: without a record private content stays closed. */
  publish(site: Site): Promise<void>;
};
