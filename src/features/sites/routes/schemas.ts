import { z } from 'zod';
import { pageQuery, plainText, queryFlag, timestampSchema } from '../../../platform/schemas.ts';
import type { SiteAction } from '../site/actions.ts';
import { fileChangeKinds } from '../content/file-changes.ts';
import { warningCodes } from '../content/warnings.ts';
import { siteStatuses } from '../site/site.ts';
import { siteSorts } from '../site/site-list.ts';
import { sitesConfigSchema } from '../site/sites-config.ts';

/** Wire shapes of Sites. An unknown field is refused: a typing mistake must not make a site public. */
const visibility = z.enum(['public', 'private']);
const name = plainText(100);
const ttlHours = z
  .number()
  .int('must be a whole number of hours')
  .min(1)
  .max(1_000_000)
  .describe('Hours from now until the site expires; at most ttl.maxHours of the capabilities');
const spa = z
  .boolean()
  .describe(
    'Serve 200.html, or else index.html, for paths without a file, for apps with client-side routing. The line `/* /index.html 200` in `_redirects` does the same for its version',
  );

const hoursText = z
  .string()
  .regex(/^\d{1,7}$/, 'must be a whole number of hours')
  .transform(Number)
  .pipe(ttlHours);

/** JSON body that creates a site without content. */
export const siteCreateSchema = z
  .strictObject({
    name: name.optional(),
    visibility: visibility.optional(),
    ttlHours: ttlHours.optional(),
    spa: spa.optional(),
  })
  .meta({ id: 'SiteCreate' });

const dryRun = queryFlag
  .optional()
  .describe('Check everything and store nothing; the response is the site as it would be');

const receipt = z
  .string()
  .regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in lower-case hexadecimal digits')
  .optional()
  .describe('Publish only files that together have this receipt; docs/how-to/check-a-site.md computes one');

/** The same fields in the query of a raw body, or in a form. */
export const siteCreateTextSchema = z.strictObject({
  dryRun,
  name: name.optional(),
  visibility: visibility.optional(),
  ttlHours: hoursText.optional(),
  spa: queryFlag.optional(),
  receipt,
});

export const contentTextSchema = z.strictObject({
  dryRun,
  spa: queryFlag.optional(),
  ttlHours: hoursText.optional(),
  receipt,
});

export const siteChangeSchema = z
  .strictObject({ name: name.optional(), visibility: visibility.optional(), spa: spa.optional() })
  .refine((change) => Object.values(change).some((value) => value !== undefined), {
    message: 'must contain at least one of name, visibility and spa',
  })
  .meta({ id: 'SiteChange' });

export const siteListQuery = z.strictObject({
  ...pageQuery,
  mine: queryFlag.optional().describe('Only my own sites'),
  search: plainText(100)
    .optional()
    .describe(
      'Part of the name, or a whole id, or the first part of its address. Fewer than three letters or digits in a row find only names that begin with them',
    ),
  visibility: visibility.optional(),
  status: z.enum(siteStatuses).optional(),
  sort: z
    .enum(siteSorts)
    .default('createdAt')
    .describe(
      'Uses the publish time and size of the live version; a site that was never published counts as published longest ago, a site without expiry counts as expiring last',
    ),
  order: z
    .enum(['asc', 'desc'])
    .optional()
    .describe('Default: names from A to Z, the newest or largest first, the earliest expiry first'),
});

const versionSchema = z.strictObject({
  id: z.string().describe('The id of this version, unique over all sites'),
  number: z.number().int(),
  digest: z.string().describe('SHA-256 over the digest and path of every file: the publish receipt'),
  publishedAt: timestampSchema,
});

export const siteSchema = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    url: z.string().describe('The current address of the content; changes with the visibility'),
    link: z.string().describe('A permanent link to the content'),
    visibility,
    status: z.enum(siteStatuses),
    spa: z.boolean(),
    restorableUntil: timestampSchema.nullable(),
    takeDownReason: z.string().nullable().describe('Only for the owner'),
    owner: z.strictObject({
      kind: z.enum(['user', 'service_key']),
      id: z.string(),
      name: z.string().nullable(),
    }),
    createdAt: timestampSchema,
    updatedAt: timestampSchema,
    expiresAt: timestampSchema.nullable(),
    fileCount: z.number().int(),
    sizeBytes: z.number().int(),
    version: versionSchema.meta({ id: 'LiveVersion' }).nullable(),
  })
  .meta({ id: 'Site' });

export const siteVersionSchema = versionSchema
  .extend({
    isLive: z.boolean(),
    createdAt: timestampSchema,
    createdBy: z.string().nullable(),
    replacedAt: timestampSchema.nullable(),
    fileCount: z.number().int(),
    sizeBytes: z.number().int(),
  })
  .meta({ id: 'SiteVersion' });

const warningsSchema = z
  .array(
    z.strictObject({
      code: z.enum(warningCodes),
      message: z.string(),
      pages: z
        .array(z.string())
        .describe('For `no_start_page`: pages of the site that could be the target; at most 100'),
    }),
  )
  .describe('Content that is allowed but probably a mistake; Postern refuses nothing for it');

const leftOutSchema = z
  .array(z.strictObject({ rule: z.string(), count: z.number().int() }))
  .describe('Entries of the upload that Postern left out, with the rule for names that each matches');

/** The response of a publish. */
export const publishedSiteSchema = siteSchema
  .extend({ warnings: warningsSchema, leftOut: leftOutSchema })
  .meta({ id: 'PublishedSite' });

const nameListSchema = z.strictObject({
  count: z.number().int(),
  names: z.array(z.string()).describe('At most 100'),
});
const findingsSchema = z
  .array(z.strictObject({ page: z.string(), target: z.string() }))
  .describe('At most 100; the target as written in the page');

export const versionReportSchema = siteVersionSchema
  .extend({
    receipt: z
      .string()
      .describe('SHA-256 of the lines that sha256sum prints for its files, in the order of their names'),
    report: z.strictObject({
      against: z.number().int().nullable().describe('The latest earlier version that still exists'),
      added: nameListSchema,
      changed: nameListSchema,
      removed: nameListSchema,
      sizeChange: z.number().int().describe('Bytes'),
      brokenLinks: findingsSchema,
      absolutePaths: findingsSchema.describe(
        'Addresses of the author’s own machine, or in a folder that the site does not have',
      ),
      warnings: warningsSchema,
      leftOut: leftOutSchema,
      mixedContent: findingsSchema.describe('Resources of a page over plain http, which browsers refuse'),
      isComplete: z
        .boolean()
        .describe(
          'False when Postern did not check every page: it checks at most 500 pages, 20 MiB and 20,000 links',
        ),
    }),
  })
  .meta({ id: 'SiteVersionReport' });

export const siteFileSchema = z
  .strictObject({ path: z.string(), size: z.number().int(), sha256: z.string() })
  .meta({ id: 'SiteFile' });

/** Null when the action is allowed, otherwise the reason why it is not. */
const reasonFor = z.string().nullable();
export const siteActionsSchema = z
  .strictObject({
    reasons: z
      .strictObject({
        publish: reasonFor,
        change: reasonFor,
        change_visibility: reasonFor,
        extend: reasonFor,
        delete: reasonFor,
        restore: reasonFor,
        see_versions: reasonFor,
        end_grants: reasonFor,
      } satisfies Record<SiteAction, unknown>)
      .describe('Null when the action is allowed, otherwise the reason why not'),
    extendsTo: timestampSchema.nullable().describe('The expiry after one extension'),
    latestExpiry: timestampSchema.nullable().describe('The latest expiry that is allowed now'),
    restoreDays: z.number().int().describe('How long a deleted site can be restored'),
  })
  .meta({ id: 'SiteActions' });

const fileChangeSchema = z
  .strictObject({
    path: z.string(),
    change: z.enum(fileChangeKinds),
    size: z.number().int().nullable().describe('Bytes after the change; null when the file is removed'),
    sizeBefore: z.number().int().nullable(),
  })
  .meta({ id: 'SiteFileChange' });

export const changesSchema = z
  .strictObject({
    against: z
      .number()
      .int()
      .nullable()
      .describe('The version to which it is compared; null when no version is live'),
    added: z.number().int(),
    changed: z.number().int(),
    removed: z.number().int(),
    files: z.array(fileChangeSchema).describe('One page of the files, sorted by path'),
  })
  .meta({ id: 'SiteChanges' });

const announcedSchema = z.strictObject({
  sha256: z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hexadecimal digits'),
  size: z.number().int().min(0).max(Number.MAX_SAFE_INTEGER).describe('Bytes'),
});

export const uploadStartSchema = z
  .strictObject({
    files: z.record(z.string(), announcedSchema).describe('Every file of the new version, by path'),
    spa: spa.optional(),
  })
  .meta({ id: 'UploadStart' });

export const uploadStateSchema = z
  .strictObject({
    id: z.string(),
    missing: z.array(z.string()).describe('SHA-256 of each content that you still have to send'),
    leftOut: leftOutSchema,
    expiresAt: timestampSchema,
  })
  .meta({ id: 'Upload' });

export const uploadPublishSchema = z
  .strictObject({
    dryRun: z.boolean().optional().describe('Check everything and change nothing'),
    ttlHours: ttlHours.optional(),
  })
  .optional()
  .meta({ id: 'UploadPublish' });

export const previewSchema = z
  .strictObject({ url: z.string(), expiresAt: timestampSchema })
  .meta({ id: 'SitePreview' });

export const reasonSchema = z.strictObject({ reason: plainText(500) }).meta({ id: 'SiteReason' });

/** What an administrator learns about a site they take down: not even its name. */
export const takenDownSchema = z
  .strictObject({ id: z.string(), takenDownAt: timestampSchema.nullable() })
  .meta({ id: 'SiteTakenDown' });

const { upload } = sitesConfigSchema.shape;
export const capabilitiesSchema = z
  .strictObject({
    enabled: z.boolean(),
    upload,
    allowedVisibility: z.array(visibility).describe('Whether this caller may use it'),
    visibilityReasons: z.strictObject({ private: z.string().optional(), public: z.string().optional() }),
    defaultVisibility: visibility,
    ttl: z.strictObject({
      enabled: z.boolean(),
      defaultHours: z.number().int(),
      extensionHours: z.number().int(),
      maxHours: z.number().int(),
    }),
    quotas: z.strictObject({
      sitesPerOwner: z.number().int(),
      bytesPerOwner: z.number().int(),
      sitesUsed: z.number().int(),
      bytesUsed: z.number().int(),
    }),
    serverTime: timestampSchema.describe('The clock that decides about expiry'),
  })
  .meta({ id: 'SiteCapabilities' });

export const sitesConfigVersionSchema = z
  .strictObject({
    version: z.number().int().describe('0 = the built-in default'),
    changedAt: timestampSchema.nullable(),
    changedBy: z.string().nullable(),
    config: sitesConfigSchema,
  })
  .meta({ id: 'SitesConfigVersion' });

export const sitesConfigChangeSchema = sitesConfigVersionSchema
  .extend({
    dryRun: z
      .strictObject({
        sitesOffline: z.number().int().describe('Sites that Postern serves now and would stop serving'),
        ownersOverQuota: z.number().int(),
      })
      .nullable()
      .describe('With ?dryRun=true: the effect that the document would have today; nothing was changed'),
  })
  .meta({ id: 'SitesConfigChange' });
