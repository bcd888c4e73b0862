import { z } from 'zod';

/**
 * The Sites configuration, `/config/sites` (contract 6): its shape, its bounds and its initial values. Every field is
 * required, because a client always sends a whole document.
 */
const mib = 1024 * 1024;
const whole = (min: number, max: number) => z.number().int().min(min).max(max);
const extensions = z
  .array(z.string().regex(/^[a-z0-9]{1,16}$/, 'must be lower-case letters and digits, without a dot'))
  .max(200)
  .refine((all) => new Set(all).size === all.length, 'must not repeat an extension');

export const sitesConfigSchema = z
  .strictObject({
    enabled: z
      .boolean()
      .describe('False: no uploads and no content, including public sites; no site changes its visibility'),
    upload: z.strictObject({
      maxUploadBytes: whole(1, 4_096 * mib).describe('Size of the request body'),
      maxExtractedBytes: whole(1, 16_384 * mib).describe('Size of all files of a version, unpacked'),
      maxFiles: whole(1, 100_000).describe('Number of files and folders of a version'),
      maxFileBytes: whole(1, 4_096 * mib),
      allowedExtensions: extensions.describe(
        'Empty: any extension. Files without an extension are always allowed',
      ),
      forbiddenExtensions: extensions.describe('Refused even if allowedExtensions has them'),
    }),
    ttl: z
      .strictObject({
        enabled: z.boolean().describe('False: sites do not expire'),
        defaultDays: whole(1, 3_650),
        extensionDays: whole(1, 3_650).describe('Days that one extension adds'),
        maxDays: whole(1, 3_650).describe('Maximum days from now to an expiry'),
      })
      .refine((ttl) => ttl.defaultDays <= ttl.maxDays, {
        path: ['defaultDays'],
        message: 'must not be more than maxDays',
      })
      .refine((ttl) => ttl.extensionDays <= ttl.maxDays, {
        path: ['extensionDays'],
        message: 'must not be more than maxDays',
      }),
    visibility: z
      .strictObject({ allowPublic: z.boolean(), allowPrivate: z.boolean() })
      .describe('Restricts only new sites and changes of visibility'),
    versions: z.strictObject({
      retain: whole(1, 1_000).describe('Number of versions of a site that Postern keeps'),
      skewGraceMinutes: whole(0, 43_200).describe(
        'How long hashed files of an earlier version stay reachable after a publish',
      ),
    }),
    deletion: z.strictObject({
      restoreDays: whole(0, 365).describe('How long a deleted or expired site can be restored'),
    }),
    cleanup: z.strictObject({ intervalMinutes: whole(1, 1_440) }),
    quotas: z.strictObject({
      sitesPerOwner: whole(1, 1_000_000),
      bytesPerOwner: whole(1, Number.MAX_SAFE_INTEGER).describe(
        'Each content counts once, over all kept versions',
      ),
    }),
  })
  .meta({ id: 'SitesConfig' });

export type SitesConfig = z.infer<typeof sitesConfigSchema>;
export type UploadRules = SitesConfig['upload'];

export const defaultSitesConfig: SitesConfig = {
  enabled: true,
  upload: {
    maxUploadBytes: 100 * mib,
    maxExtractedBytes: 250 * mib,
    maxFiles: 10_000,
    maxFileBytes: 50 * mib,
    allowedExtensions: [],
    forbiddenExtensions: [],
  },
  ttl: { enabled: true, defaultDays: 30, extensionDays: 30, maxDays: 365 },
  visibility: { allowPublic: true, allowPrivate: true },
  versions: { retain: 10, skewGraceMinutes: 60 },
  deletion: { restoreDays: 7 },
  cleanup: { intervalMinutes: 15 },
  quotas: { sitesPerOwner: 100, bytesPerOwner: 2_048 * mib },
};
