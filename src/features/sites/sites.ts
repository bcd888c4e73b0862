import type { Readable } from 'node:stream';
import type { Act, Caller, CallerKey } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import type { Random } from '../../core/ids.ts';
import type { Blobs } from '../../platform/blobs/blobs.ts';
import type { ChangeFeed, ChangeStore } from '../../platform/database/changes.ts';
import type { Tx } from '../../platform/database/database.ts';
import { createLane } from '../../platform/lane.ts';
import type { Spool } from '../../platform/spool.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { KeyFormat } from '../keys/keys.ts';
import type { ConfigDocument } from '../settings/settings.ts';
import type { SiteActions } from './actions.ts';
import type { FileChange } from './content/changes.ts';
import type { Manifest } from './content/manifest.ts';
import type { VersionReport } from './content/report.ts';
import type { UploadKind } from './content/upload.ts';
import type { ContentStore } from './content-store.ts';
import { lifecycle } from './lifecycle.ts';
import type { PreviewStore } from './preview-store.ts';
import { publishing } from './publishing.ts';
import { reading } from './reading.ts';
import { reports } from './reports.ts';
import type { Site, SiteVersion, Visibility } from './site.ts';
import type { SiteFilter } from './site-list.ts';
import type { SiteStore } from './site-store.ts';
import type { SitesConfig } from './sites-config.ts';
import type { UploadStore } from './upload-store.ts';
import { createUploadRoom } from './upload-room.ts';
import { uploads } from './uploads.ts';

/**
 * Sites: static files that are uploaded, checked, published and served (contract 6). Promises: an upload goes live whole
 * or not at all; a site belongs to one person or exactly one key, and nobody else changes it or learns that a private one
 * exists; every change commits with its audit event. Serving is the gateway's, letting browsers in is features/grants.
 */
export { checkUpload, type UploadKind, uploadKindOf } from './content/upload.ts';
export { type Site, siteStatusOf, type Visibility } from './site.ts';
export { visibilityOfLabel } from './labels.ts';
export type { Served } from './serving/catalog.ts';
export { mediaTypeOf } from './serving/media-types.ts';
export { resolve, type ServedContent, type ServedFile } from './serving/resolve.ts';
export { featuresOff } from './serving/site-rules.ts';
export type { SiteStore } from './site-store.ts';
export { defaultSitesConfig, type SitesConfig } from './sites-config.ts';

export type SiteRequest = {
  readonly name?: string | undefined;
  readonly visibility?: Visibility | undefined;
  /** Whole hours from now. */
  readonly ttlHours?: number | undefined;
  readonly spa?: boolean | undefined;
};

export type SiteChange = Omit<SiteRequest, 'ttlHours'>;

/** What an upload came to: every file is in the blob store, nothing is published. */
export type Received = {
  readonly files: Manifest;
  readonly sizeBytes: number;
  readonly digest: string;
  /** Of an archive: files and folders in it, and bytes that were sent. */
  readonly archive: { readonly entries: number; readonly bytes: number } | null;
  /** When its first bytes may have been kept. */
  readonly since: number;
};

/** A digest upload: its id, when it ends, and the contents it still waits for. */
export type UploadState = {
  readonly id: string;
  readonly endsAt: number;
  readonly missing: readonly string[];
};

export type ReplaceOptions = {
  readonly ifMatch: string | undefined;
  readonly spa?: boolean | undefined;
  /** True: everything is checked and nothing changed; the answer is the site as it would be. */
  readonly dryRun?: boolean;
  /** In the same transaction. */
  readonly alongside?: (stores: SiteStores) => Promise<void>;
  /** The configuration of a moment ago, by which all of the upload was judged; absent: it is read and its limits held. */
  readonly judgedBy?: SitesConfig;
};

export type Upload = {
  readonly kind: UploadKind;
  readonly stream: Readable;
  /** As its client calls it; empty where it has no name. */
  readonly fileName: string;
  /** Aborted when its client is gone. */
  readonly left: AbortSignal;
};

export type Sites = {
  capabilities(caller: Caller): Promise<Capabilities>;
  list(
    caller: Caller,
    filter: Omit<SiteFilter, 'viewer'>,
    page: number,
    limit: number,
  ): Promise<{ items: Site[]; total: number }>;
  /** @throws AppError site_not_found for what the caller may not see; so does every verb below */
  get(caller: Caller, id: string): Promise<Site>;
  versions(
    caller: Caller,
    id: string,
    page: number,
    limit: number,
  ): Promise<{ items: (SiteVersion & { isLive: boolean })[]; total: number }>;
  version(caller: Caller, id: string, number: number): Promise<SiteVersion & { isLive: boolean }>;
  /** The same, and what it changed and may have got wrong. */
  report(
    caller: Caller,
    id: string,
    number: number,
  ): Promise<SiteVersion & { isLive: boolean; report: VersionReport }>;
  /** The files of one version; of the live one without a number. */
  files(
    caller: Caller,
    id: string,
    number: number | undefined,
  ): Promise<{ version: SiteVersion; files: Manifest }>;
  /** @throws AppError not_found when the version has no such file */
  openFile(
    caller: Caller,
    id: string,
    number: number | undefined,
    path: string,
  ): Promise<{ size: number; stream: Readable }>;

  /** What the caller may do with it, and why not. */
  actions(caller: Caller, id: string): Promise<SiteActions>;
  /** What would change for its readers if this version took the place of `against`; of the live one without it. */
  changes(
    caller: Caller,
    id: string,
    number: number,
    against: number | undefined,
  ): Promise<{ against: number | null; files: readonly FileChange[] }>;

  /** Throws what replace() would, as far as it can be said before the content is there. */
  mayPublish(caller: Caller, id: string): Promise<void>;
  /** Checks and stores the files. Nothing is published: that is create() or replace(). */
  receive(caller: Caller, act: Act, upload: Upload): Promise<Received>;
  /** `dryRun`: everything is checked and nothing kept; the answer is the site as it would be. */
  create(
    caller: Caller,
    act: Act,
    request: SiteRequest,
    received: Received | null,
    dryRun?: boolean,
  ): Promise<Site>;
  replace(caller: Caller, act: Act, id: string, received: Received, options: ReplaceOptions): Promise<Site>;
  /** Announces the files of a new version. @throws AppError upload_rejected naming every bad one */
  startUpload(
    caller: Caller,
    act: Act,
    id: string,
    upload: { files: Manifest; spa?: boolean | undefined },
  ): Promise<UploadState>;
  /** @throws AppError not_found for an upload that ended or is another site's; so do the three below */
  findUpload(caller: Caller, id: string, upload: string): Promise<UploadState>;
  /** Takes one announced content. `readmit` asks again, once it is there, whether the caller may send it. */
  receiveBlob(
    caller: Caller,
    act: Act,
    id: string,
    upload: string,
    digest: string,
    bytes: Readable,
    readmit: () => Promise<void>,
  ): Promise<void>;
  /** Takes many, from a tar whose files are named by digest. Good ones stay when others are refused. */
  receiveBlobs(
    caller: Caller,
    act: Act,
    id: string,
    upload: string,
    tar: Readable,
    readmit: () => Promise<void>,
  ): Promise<UploadState>;
  publishUpload(
    caller: Caller,
    act: Act,
    id: string,
    upload: string,
    options: { ifMatch: string | undefined; dryRun: boolean },
  ): Promise<Site>;
  /** Brings an earlier or a later version live. */
  publishVersion(
    caller: Caller,
    act: Act,
    id: string,
    number: number,
    ifMatch: string | undefined,
  ): Promise<Site>;
  /** An address of its own for one version, for 24 hours. */
  preview(caller: Caller, act: Act, id: string, number: number): Promise<{ label: string; endsAt: number }>;

  change(caller: Caller, act: Act, id: string, change: SiteChange): Promise<Site>;
  extend(caller: Caller, act: Act, id: string): Promise<Site>;
  remove(caller: Caller, act: Act, id: string): Promise<Site>;
  restore(caller: Caller, act: Act, id: string): Promise<Site>;
  endGrants(caller: Caller, act: Act, id: string): Promise<Site>;
  /** By an administrator, who never reads what he stops. */
  takeDown(act: Act, id: string, reason: string): Promise<Site>;
  putBack(act: Act, id: string, reason: string): Promise<Site>;
};

export type Capabilities = {
  readonly config: SitesConfig;
  readonly allowedVisibility: readonly Visibility[];
  readonly visibilityReasons: { readonly [V in Visibility]?: string };
  readonly defaultVisibility: Visibility;
  readonly sitesUsed: number;
  readonly bytesUsed: number;
};

export type SiteStores = {
  sites: SiteStore;
  previews: PreviewStore;
  content: ContentStore;
  uploads: UploadStore;
  audit: AuditWriter;
  changes: ChangeStore;
  /** A write by a key commits only while the key is good (contract 4). */
  keys: { holdLive(id: string, now: number, asked: CallerKey): Promise<void> };
};

export type SitesDeps = {
  readonly read: { readonly sites: SiteStore; readonly content: ContentStore; readonly uploads: UploadStore };
  readonly tx: Tx<SiteStores>;
  readonly feed: Pick<ChangeFeed, 'announce'>;
  readonly config: Pick<ConfigDocument<SitesConfig>, 'inForce' | 'read'>;
  readonly blobs: Blobs;
  readonly spool: Spool;
  readonly format: KeyFormat;
  readonly clock: Clock;
  readonly random: Random;
  /** Hears of a key of ours that was found in an upload. */
  readonly exposed: (value: string, act: Act) => void;
  /** Why this installation cannot have private sites, for people; null when it can. */
  readonly privateObstacle: () => string | null;
  readonly states: SiteStates;
};

/** What gateways read of private sites, outside the database (contract 10.3). */
export type SiteStates = {
  /** Private content stops at once. Rejects with `store_unavailable`; then nothing may be changed. */
  withdraw(site: Pick<Site, 'id'>): Promise<void>;
  /** Unless a newer state is known. Never rejects: without a record private content stays closed. */
  publish(site: Site): Promise<void>;
};

/** Bodies that are read at the same time. Those of one owner beyond are refused: they would wait with open connections. */
const uploadsAtOnce = { width: 512, perSender: 64, queue: 0 };

export function createSites(deps: SitesDeps): Sites {
  const read = reading(deps);
  const room = createUploadRoom(deps);
  const lane = createLane(uploadsAtOnce);
  const publish = publishing(deps, { room, lane });
  return {
    ...read,
    ...reports(deps, read),
    ...publish,
    ...uploads(deps, { replace: publish.replace, room, lane }),
    ...lifecycle(deps),
  };
}
