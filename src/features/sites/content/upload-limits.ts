import { AppError } from '../../../core/errors.ts';
import { extensionProblem } from './paths.ts';
import type { SitesConfig, UploadRules } from '../site/sites-config.ts';

/**
 * The limits of an upload and of what an owner stores, and what Postern answers beyond each. Judged while bytes arrive,
 * and again at the commit, because an administrator may have lowered a limit meanwhile (UP-04). content/paths.ts judges
 * names and their extensions.
 */
export type UploadLimits = Omit<UploadRules, 'maxUploadBytes'>;

export type LimitProblem = {
  readonly code: 'too_many_files' | 'upload_too_large' | 'file_too_large' | 'extension_not_allowed';
  /** Completes the sentence "This file …" or "The upload …". */
  readonly problem: string;
};

/** Maximum problems of one kind that a response names. */
export const maxProblems = 100;

/** `entries`: files and folders, including refused and ignored ones. */
export function entriesProblem(
  entries: number,
  { maxFiles }: Pick<UploadLimits, 'maxFiles'>,
): LimitProblem | undefined {
  if (entries <= maxFiles) return undefined;
  return { code: 'too_many_files', problem: `has more than ${maxFiles} files and folders` };
}

/** `bytes`: all files together, unpacked. */
export function totalProblem(
  bytes: number,
  { maxExtractedBytes }: Pick<UploadLimits, 'maxExtractedBytes'>,
): LimitProblem | undefined {
  if (bytes <= maxExtractedBytes) return undefined;
  return { code: 'upload_too_large', problem: `unpacks to more than ${maxExtractedBytes} bytes` };
}

export function fileProblem(
  bytes: number,
  { maxFileBytes }: Pick<UploadLimits, 'maxFileBytes'>,
): LimitProblem | undefined {
  if (bytes <= maxFileBytes) return undefined;
  return { code: 'file_too_large', problem: `is larger than ${maxFileBytes} bytes` };
}

/** All problems of an upload that is complete. */
export function limitProblems(
  {
    files,
    entries,
    bytes,
  }: {
    readonly files: ReadonlyMap<string, { readonly size: number }>;
    readonly entries: number;
    readonly bytes: number;
  },
  limits: UploadLimits,
): (LimitProblem & { readonly path: string })[] {
  const named = (problemOf: (path: string, size: number) => LimitProblem | undefined) =>
    [...files]
      .flatMap(([path, { size }]) => {
        const found = problemOf(path, size);
        return found === undefined ? [] : [{ path, ...found }];
      })
      .slice(0, maxProblems);
  const whole = [entriesProblem(entries, limits), totalProblem(bytes, limits)];
  return [
    ...whole.flatMap((found) => (found === undefined ? [] : [{ path: '', ...found }])),
    ...named((_path, size) => fileProblem(size, limits)),
    ...named((path) => extensionProblem(path, limits)),
  ];
}

/** `bytes`: as the client sends them. */
export function requireUploadBytes(
  bytes: number,
  { maxUploadBytes }: Pick<UploadRules, 'maxUploadBytes'>,
): void {
  if (bytes <= maxUploadBytes) return;
  throw new AppError('upload_too_large', {
    message: `The upload is larger than ${maxUploadBytes} bytes.`,
    details: { maxUploadBytes },
  });
}

/** Bytes that a tar of a valid upload can have: the files, and for each a header, an extended header and padding. */
export function maxTarBytes({ maxExtractedBytes, maxFiles }: UploadLimits): number {
  return maxExtractedBytes + maxFiles * 4 * 512;
}

/** Bytes on the disk that no quota counts yet: the quota for stored content, plus the archive itself. */
export function maxUnpublishedBytes({ upload, quotas }: SitesConfig): number {
  return quotas.bytesPerOwner + upload.maxUploadBytes;
}

/** `most`: maxUnpublishedBytes() when the upload began. */
export function requireUnpublishedBytes(bytes: number, most: number): void {
  if (bytes <= most) return;
  throw new AppError('quota_exceeded', {
    message: `Your unpublished uploads of the last hour hold the maximum of ${most} bytes.`,
    hint: 'Fix the problems that keep them from being published, or try again in an hour.',
    details: { quota: 'bytesPerOwner', limit: most },
  });
}

/** Announced content takes up space while it waits, so it may not exceed the owner's quota. */
export function requireAnnouncedBytes(bytes: number, { quotas: { bytesPerOwner } }: SitesConfig): void {
  if (bytes <= bytesPerOwner) return;
  throw new AppError('quota_exceeded', {
    message: `Your unfinished uploads would hold ${bytes} bytes; ${bytesPerOwner} are allowed.`,
    hint: 'Publish the unfinished uploads, or wait until they end after 24 hours.',
    details: { quota: 'bytesPerOwner', limit: bytesPerOwner, needed: bytes },
  });
}

export function requireStoredBytes(bytes: number, { quotas: { bytesPerOwner } }: SitesConfig): void {
  if (bytes <= bytesPerOwner) return;
  throw new AppError('quota_exceeded', {
    message: `Your sites would hold ${bytes} bytes; ${bytesPerOwner} are allowed.`,
    details: { quota: 'bytesPerOwner', limit: bytesPerOwner, needed: bytes },
  });
}

/** `count`: with the new site. */
export function requireSiteCount(count: number, { quotas: { sitesPerOwner } }: SitesConfig): void {
  if (count <= sitesPerOwner) return;
  throw new AppError('quota_exceeded', {
    message: `You already have the maximum of ${sitesPerOwner} sites.`,
    details: { quota: 'sitesPerOwner', limit: sitesPerOwner },
  });
}
