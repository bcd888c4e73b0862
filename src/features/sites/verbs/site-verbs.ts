import type { Readable } from 'node:stream';
import type { AuditContext, Caller } from '../../../core/caller.ts';
import type { SiteActions } from '../site/actions.ts';
import type { FileChange } from '../content/file-changes.ts';
import type { LeftOut } from '../content/judge.ts';
import type { Manifest } from '../content/manifest.ts';
import type { SiteReport, SiteWarning } from '../content/warnings.ts';
import type { UploadKind } from '../content/whole-upload.ts';
import type { Site, SiteVersion, Visibility } from '../site/site.ts';
import type { SiteFilter } from '../site/site-list.ts';
import type { SitesConfig } from '../site/sites-config.ts';
import type { SiteStores } from './sites-deps.ts';
import type { VisibilityChoice } from '../site/visibility.ts';

/** The verbs of sites that routes call, with their arguments and results. */
export type SiteRequest = {
  readonly name?: string | undefined;
  readonly visibility?: Visibility | undefined;
  /** Whole hours from now. */
  readonly ttlHours?: number | undefined;
  readonly spa?: boolean | undefined;
};

export type SiteChange = Omit<SiteRequest, 'ttlHours'>;

/** The result of an upload: every file is in the blob store, nothing is published. */
export type Received = {
  readonly files: Manifest;
  readonly sizeBytes: number;
  readonly digest: string;
  readonly warnings: readonly SiteWarning[];
  readonly leftOut: readonly LeftOut[];
  /** Number of files and folders in an archive, and the bytes that the client sent. */
  readonly archive: { readonly entries: number; readonly bytes: number } | null;
  /** The earliest time at which its bytes may have been stored. */
  readonly since: number;
};

/** A digest upload: its id, when it ends, and the contents that are still missing. */
export type UploadState = {
  readonly id: string;
  readonly endsAt: number;
  readonly missing: readonly string[];
  readonly leftOut: readonly LeftOut[];
};

export type ReplaceOptions = {
  readonly ifMatch: string | undefined;
  readonly spa?: boolean | undefined;
  /** The lifetime from now. Absent: the site lives at least the default lifetime from now. */
  readonly ttlHours?: number | undefined;
  /** True: everything is checked and nothing changes; returns the site as it would be. */
  readonly dryRun?: boolean;
  /** Runs in the same transaction. */
  readonly alongside?: (stores: SiteStores) => Promise<void>;
  /**
   * The current configuration by which the whole upload was just judged. Absent: the configuration is read and its
   * limits are checked.
   */
  readonly judgedBy?: SitesConfig;
};

export type Upload = {
  readonly kind: UploadKind;
  readonly stream: Readable;
  /** The file name from the client; empty when there is none. */
  readonly fileName: string;
  /** Aborted when the client disconnects. */
  readonly left: AbortSignal;
};

export type SentBytes = {
  readonly stream: Readable;
  /** Checks again, after bytes have arrived, whether the caller may send them. */
  reauthorize(): Promise<void>;
};

export type Sites = {
  capabilities(caller: Caller): Promise<Capabilities>;
  list(
    caller: Caller,
    filter: Omit<SiteFilter, 'viewer'>,
    page: number,
    limit: number,
  ): Promise<{ items: Site[]; total: number }>;
  /** @throws AppError site_not_found for a site that the caller may not see; so does every method below */
  get(caller: Caller, id: string): Promise<Site>;
  versions(
    caller: Caller,
    id: string,
    page: number,
    limit: number,
  ): Promise<{ items: (SiteVersion & { isLive: boolean })[]; total: number }>;
  version(caller: Caller, id: string, number: number): Promise<SiteVersion & { isLive: boolean }>;
  /** Gets a version with its changes and possible mistakes. */
  report(
    caller: Caller,
    id: string,
    number: number,
  ): Promise<SiteVersion & { isLive: boolean; report: SiteReport }>;
  /** The warnings of a dry run: also the mistakes in pages that the report of the version would list. */
  warningsOfDryRun(
    site: Site,
    received: Pick<Received, 'files' | 'warnings'>,
  ): Promise<readonly SiteWarning[]>;
  /** The files of one version; without a number, of the live version. */
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

  /** The actions that the caller may take on the site, and why others are refused. */
  actions(caller: Caller, id: string): Promise<SiteActions>;
  /** What would change for readers if this version replaced `against`; without `against`, the live version. */
  changes(
    caller: Caller,
    id: string,
    number: number,
    against: number | undefined,
  ): Promise<{ against: number | null; files: readonly FileChange[] }>;

  /** Throws what replace() would, as far as this can be decided before the content arrives. */
  mayPublish(caller: Caller, id: string): Promise<void>;
  /** Checks and stores the files. Publishes nothing; create() and replace() do that. */
  receive(caller: Caller, auditContext: AuditContext, upload: Upload): Promise<Received>;
  /** `dryRun`: everything is checked and nothing is kept; returns the site as it would be. */
  create(
    caller: Caller,
    auditContext: AuditContext,
    request: SiteRequest,
    received: Received | null,
    dryRun?: boolean,
  ): Promise<Site>;
  replace(
    caller: Caller,
    auditContext: AuditContext,
    id: string,
    received: Received,
    options: ReplaceOptions,
  ): Promise<Site>;
  /** Announces the files of a new version. @throws AppError upload_rejected naming every bad one */
  startUpload(
    caller: Caller,
    auditContext: AuditContext,
    id: string,
    upload: { files: Manifest; spa?: boolean | undefined },
  ): Promise<UploadState>;
  /** @throws AppError not_found for an upload that ended or belongs to another site; so do the three methods below */
  findUpload(caller: Caller, id: string, upload: string): Promise<UploadState>;
  /** Takes one announced content. */
  receiveBlob(
    caller: Caller,
    auditContext: AuditContext,
    id: string,
    upload: string,
    digest: string,
    bytes: SentBytes,
  ): Promise<void>;
  /** Takes many contents from a tar whose files are named by digest. Valid ones are kept when others are refused. */
  receiveBlobs(
    caller: Caller,
    auditContext: AuditContext,
    id: string,
    upload: string,
    tar: SentBytes,
  ): Promise<UploadState>;
  publishUpload(
    caller: Caller,
    auditContext: AuditContext,
    id: string,
    upload: string,
    options: { ifMatch: string | undefined; dryRun: boolean; ttlHours?: number | undefined },
  ): Promise<{ site: Site } & Pick<Received, 'files' | 'warnings' | 'leftOut'>>;
  /** Makes an earlier or a later version live. */
  publishVersion(
    caller: Caller,
    auditContext: AuditContext,
    id: string,
    number: number,
    ifMatch: string | undefined,
  ): Promise<Site>;
  /** Gives one version a separate address for 24 hours. */
  preview(
    caller: Caller,
    auditContext: AuditContext,
    id: string,
    number: number,
  ): Promise<{ label: string; endsAt: number }>;

  change(caller: Caller, auditContext: AuditContext, id: string, change: SiteChange): Promise<Site>;
  extend(caller: Caller, auditContext: AuditContext, id: string): Promise<Site>;
  remove(caller: Caller, auditContext: AuditContext, id: string): Promise<Site>;
  restore(caller: Caller, auditContext: AuditContext, id: string): Promise<Site>;
  endGrants(caller: Caller, auditContext: AuditContext, id: string): Promise<Site>;
  /** For an administrator, who does not see the content of the site. */
  takeDown(auditContext: AuditContext, id: string, reason: string): Promise<Site>;
  putBack(auditContext: AuditContext, id: string, reason: string): Promise<Site>;
};

export type Capabilities = VisibilityChoice & {
  readonly config: SitesConfig;
  readonly sitesUsed: number;
  readonly bytesUsed: number;
};
