import { z } from 'zod';
import { administratorSession, type RoutePolicy } from '../../../core/authorize.ts';
import { type Caller, callerKinds } from '../../../core/caller.ts';
import { type Clock, timestamp, timestampOrNull } from '../../../core/clock.ts';
import { AppError, type ErrorCode } from '../../../core/errors.ts';
import { defineRoute, pagePagination, type Route } from '../../../platform/http.ts';
import { idParams, pageQuery, plainText } from '../../../platform/schemas.ts';
import {
  exampleActions,
  exampleCapabilities,
  exampleChanges,
  exampleFile,
  examplePublished,
  exampleReport,
  exampleSite,
  exampleVersion,
} from './examples.ts';
import {
  type OwnerNames,
  type SiteAddresses,
  toActionsResponse,
  toCapabilitiesResponse,
  toChangesResponse,
  toSiteAnswer,
  toSiteResponses,
  toPublishedAnswer,
  toReportResponse,
  toVersionResponse,
} from './responses.ts';
import {
  capabilitiesSchema,
  changesSchema,
  contentTextSchema,
  previewSchema,
  publishedSiteSchema,
  reasonSchema,
  siteActionsSchema,
  siteChangeSchema,
  siteCreateSchema,
  siteCreateTextSchema,
  siteFileSchema,
  siteListQuery,
  siteSchema,
  siteVersionSchema,
  takenDownSchema,
  versionReportSchema,
} from './schemas.ts';
import type { Site } from '../site/site.ts';
import { usualDirection } from '../site/site-list.ts';
import type { Received, Sites } from '../sites.ts';
import { requireReceipt } from '../publish/publishing.ts';
import { contentTypes, readUpload } from './upload-input.ts';

/** Every person's identity is checked, also for reads (contract 5). */
const readers: RoutePolicy = {
  callers: callerKinds,
  scope: 'sites:read',
  role: 'user',
  identity: 'introspected',
};
const writers: RoutePolicy = { ...readers, scope: 'sites:write' };

const siteParams = idParams('A site’s id', 'k3v9x0q2m7');
const number = z
  .string()
  .regex(/^[1-9]\d{0,8}$/, 'must be the number of a version')
  .meta({ description: 'The number of a version', examples: ['3'] })
  .transform(Number);
const versionParams = siteParams.extend({ number });
const fileQuery = z.strictObject({
  version: number.optional().describe('A version of your own site; the live version unless sent'),
});
const fileListQuery = fileQuery.extend({
  ...pageQuery,
  search: plainText(200).optional().describe('Part of the path; case-insensitive'),
});
const changesQuery = z.strictObject({
  ...pageQuery,
  against: number.optional().describe('Another version of the site; the live version unless sent'),
});

const anySite: readonly ErrorCode[] = ['site_not_found', 'sites_disabled'];
const ownSite: readonly ErrorCode[] = [...anySite, 'not_owner'];
const uploads: readonly ErrorCode[] = [
  'sites_disabled',
  'upload_too_large',
  'upload_rejected',
  'credential_in_content',
  'quota_exceeded',
  'storage_full',
];

export type SiteRoutesDeps = {
  readonly sites: Sites;
  readonly names: OwnerNames;
  readonly addresses: SiteAddresses;
  readonly clock: Clock;
};

export function siteRoutes({ sites, names, addresses, clock }: SiteRoutesDeps): Route[] {
  const many = (found: readonly Site[], caller: Caller) =>
    toSiteResponses(found, caller, { names, addresses, now: clock.now() });

  const answer = (site: Site, caller: Caller) =>
    toSiteAnswer(site, caller, { names, addresses, now: clock.now() });

  const published = (site: Site, found: Pick<Received, 'warnings' | 'leftOut'>, caller: Caller) =>
    toPublishedAnswer(site, found, caller, { names, addresses, now: clock.now() });

  /** Adds to a dry run the warnings about pages that the report of a new version has. */
  const checked = async (site: Site, received: Received, dryRun: boolean, caller: Caller) => {
    const warnings = dryRun ? await sites.warningsOfDryRun(site, received) : received.warnings;
    return await published(site, { ...received, warnings }, caller);
  };

  return [
    defineRoute({
      method: 'GET',
      path: '/sites',
      operationId: 'listSites',
      tag: 'Sites',
      summary: 'List sites',
      description:
        'Public sites that are served, and the caller’s own sites, newest first unless you send another order. Sites that the caller may not see are not counted.',
      policy: readers,
      query: siteListQuery,
      errors: ['sites_disabled'],
      success: { status: 200, data: z.array(siteSchema), pagination: 'page' },
      example: { data: [exampleSite] },
      async handle({ caller, query: { page, limit, mine = false, sort, order, ...asked } }) {
        const filter = { ...asked, mine, order: { sort, direction: order ?? usualDirection[sort] } };
        const { items, total } = await sites.list(caller, filter, page, limit);
        return { data: await many(items, caller), pagination: pagePagination(page, limit, total) };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/sites',
      operationId: 'createSite',
      tag: 'Sites',
      summary: 'Create a site',
      description:
        'Send a ZIP, a tar.gz or one HTML page, as a form with the field `file` or as the body itself. Send JSON to create a site without a version. Postern removes a site without a version after 24 hours without an upload or a change. A site is private unless you send another visibility; service keys own public sites only. Postern reads 64 uploads of one owner at the same time; it answers one more with 503 `overloaded`.',
      policy: writers,
      query: siteCreateTextSchema,
      body: siteCreateSchema,
      uploads: contentTypes,
      errors: [
        ...uploads,
        'service_key_public_only',
        'private_sites_unavailable',
        'visibility_not_allowed',
        'lifetime_too_long',
        'expiry_conflict',
      ],
      success: { status: 201, data: publishedSiteSchema, etag: true },
      example: { body: { name: 'Handbook', visibility: 'private' }, data: examplePublished },
      async handle({ caller, auditContext, body, query, upload }) {
        if (upload === null) {
          const { dryRun = false, receipt, ...asked } = { ...query, ...body };
          if (receipt !== undefined)
            throw new AppError('invalid_query', {
              message: 'receipt: is for an upload, and the request has no file',
            });
          const empty = await sites.create(caller, auditContext, asked, null, dryRun);
          return await published(empty, { warnings: [], leftOut: [] }, caller);
        }
        const { received, fields, fileName } = await readUpload(upload, siteCreateTextSchema, (file) =>
          sites.receive(caller, auditContext, file),
        );
        const name = fields.name ?? query.name ?? nameFrom(fileName);
        const { dryRun = false, receipt, ...asked } = { ...query, ...fields };
        requireReceipt(received, receipt);
        const request = { ...asked, ...(name === undefined ? {} : { name }) };
        const site = await sites.create(caller, auditContext, request, received, dryRun);
        return await checked(site, received, dryRun, caller);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/sites/capabilities',
      operationId: 'readSiteCapabilities',
      tag: 'Sites',
      summary: 'Read what I may upload',
      description:
        'The limits, the visibilities that this caller may use, and the reasons for those that the caller may not use.',
      // No identity check here (contract 5): clients can read the upload rules while the directory is unavailable.
      policy: { callers: callerKinds, scope: 'sites:read', identity: 'none' },
      success: { status: 200, data: capabilitiesSchema },
      example: { data: exampleCapabilities },
      async handle({ caller }) {
        return { data: toCapabilitiesResponse(await sites.capabilities(caller), clock.now()) };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/sites/{id}',
      operationId: 'getSite',
      tag: 'Sites',
      summary: 'Read a site',
      policy: readers,
      params: siteParams,
      errors: anySite,
      success: { status: 200, data: siteSchema, etag: true },
      example: { data: exampleSite },
      async handle({ caller, params }) {
        return await answer(await sites.get(caller, params.id), caller);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/sites/{id}/actions',
      operationId: 'readSiteActions',
      tag: 'Sites',
      summary: 'Read what I may do with a site',
      description: 'Each action, with the reason when it is not allowed, before you try it.',
      policy: readers,
      params: siteParams,
      errors: anySite,
      success: { status: 200, data: siteActionsSchema },
      example: { data: exampleActions },
      async handle({ caller, params }) {
        return { data: toActionsResponse(await sites.actions(caller, params.id)) };
      },
    }),
    defineRoute({
      method: 'PATCH',
      path: '/sites/{id}',
      operationId: 'changeSite',
      tag: 'Sites',
      summary: 'Rename a site or change who sees it',
      description:
        'A change of visibility gives the site a new address and ends every browser grant. The `link` stays the same. At most 20 such changes a day.',
      policy: writers,
      params: siteParams,
      body: siteChangeSchema,
      errors: [
        ...ownSite,
        'state_conflict',
        'service_key_public_only',
        'private_sites_unavailable',
        'visibility_not_allowed',
      ],
      success: { status: 200, data: siteSchema, etag: true },
      example: { body: { visibility: 'public' }, data: { ...exampleSite, visibility: 'public' } },
      async handle({ caller, auditContext, params, body }) {
        return await answer(await sites.change(caller, auditContext, params.id, body), caller);
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/sites/{id}',
      operationId: 'deleteSite',
      tag: 'Sites',
      summary: 'Delete a site',
      description:
        'Postern stops serving the site immediately. The owner can restore it until `restorableUntil`.',
      policy: writers,
      params: siteParams,
      errors: ownSite,
      success: { status: 200, data: siteSchema },
      example: { data: { ...exampleSite, status: 'deleted', restorableUntil: '2026-01-08T09:00:00.000Z' } },
      async handle({ caller, auditContext, params }) {
        return await answer(await sites.remove(caller, auditContext, params.id), caller);
      },
    }),
    defineRoute({
      method: 'PUT',
      path: '/sites/{id}/content',
      operationId: 'replaceSiteContent',
      tag: 'Sites',
      summary: 'Publish new content',
      description:
        'Accepts the same bodies as creating a site. Either the whole new version goes live, or the old version stays. With If-Match, it publishes only while that version is live. The site then expires after `ttlHours`; without it, at the earliest after the default lifetime.',
      policy: writers,
      params: siteParams,
      query: contentTextSchema,
      uploads: contentTypes,
      errors: [
        ...ownSite,
        ...uploads,
        'state_conflict',
        'site_expired',
        'precondition_failed',
        'lifetime_too_long',
        'expiry_conflict',
      ],
      success: { status: 200, data: publishedSiteSchema, etag: true },
      example: { data: examplePublished },
      async handle({ caller, auditContext, params, query, upload, header }) {
        // Checked before the client sends the bytes in vain, and again when they have arrived.
        await sites.mayPublish(caller, params.id);
        const { received, fields } = await readUpload(requireUpload(upload), contentTextSchema, (file) =>
          sites.receive(caller, auditContext, file),
        );
        const { dryRun = false, spa, ttlHours, receipt } = { ...query, ...fields };
        requireReceipt(received, receipt);
        const options = { ifMatch: header('if-match'), spa, ttlHours, dryRun };
        const site = await sites.replace(caller, auditContext, params.id, received, options);
        return await checked(site, received, dryRun, caller);
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/sites/{id}/extend',
      operationId: 'extendSite',
      tag: 'Sites',
      summary: 'Extend a site’s expiry',
      description:
        'Extends by the configured days, from now or from the expiry, whichever is later, up to the configured maximum.',
      policy: writers,
      params: siteParams,
      errors: [...ownSite, 'expiry_conflict', 'state_conflict'],
      success: { status: 200, data: siteSchema },
      example: { data: exampleSite },
      async handle({ caller, auditContext, params }) {
        return await answer(await sites.extend(caller, auditContext, params.id), caller);
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/sites/{id}/restore',
      operationId: 'restoreSite',
      tag: 'Sites',
      summary: 'Restore a deleted site',
      policy: writers,
      params: siteParams,
      errors: [...ownSite, 'quota_exceeded'],
      success: { status: 200, data: siteSchema },
      example: { data: exampleSite },
      async handle({ caller, auditContext, params }) {
        return await answer(await sites.restore(caller, auditContext, params.id), caller);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/sites/{id}/versions',
      operationId: 'listSiteVersions',
      tag: 'Site versions',
      summary: 'List a site’s versions',
      policy: readers,
      params: siteParams,
      query: z.strictObject(pageQuery),
      errors: ownSite,
      success: { status: 200, data: z.array(siteVersionSchema), pagination: 'page' },
      example: { data: [exampleVersion] },
      async handle({ caller, params, query: { page, limit } }) {
        const { items, total } = await sites.versions(caller, params.id, page, limit);
        return {
          data: items.map((one) => toVersionResponse(params.id, one)),
          pagination: pagePagination(page, limit, total),
        };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/sites/{id}/versions/{number}',
      operationId: 'getSiteVersion',
      tag: 'Site versions',
      summary: 'Read a version, its receipt and its report',
      description:
        'The changes since the previous version, and problems in its pages: broken links, addresses of the author’s own machine, and resources over plain http.',
      policy: readers,
      params: versionParams,
      errors: [...ownSite, 'not_found'],
      success: { status: 200, data: versionReportSchema },
      example: { data: exampleReport },
      async handle({ caller, params }) {
        return { data: toReportResponse(params.id, await sites.report(caller, params.id, params.number)) };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/sites/{id}/versions/{number}/changes',
      operationId: 'compareSiteVersion',
      tag: 'Site versions',
      summary: 'Compare a version with the live one',
      description: 'The files that would be added, changed and removed if this version went live.',
      policy: readers,
      params: versionParams,
      query: changesQuery,
      errors: [...ownSite, 'not_found'],
      success: { status: 200, data: changesSchema, pagination: 'page' },
      example: { data: exampleChanges },
      async handle({ caller, params, query: { page, limit, against } }) {
        const compared = await sites.changes(caller, params.id, params.number, against);
        return {
          data: toChangesResponse(compared, (page - 1) * limit, page * limit),
          pagination: pagePagination(page, limit, compared.files.length),
        };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/sites/{id}/versions/{number}/publish',
      operationId: 'publishSiteVersion',
      tag: 'Site versions',
      summary: 'Make a version live',
      description:
        'Rolls back to an earlier version, or forward again, without an upload. The site then expires at the earliest after the default lifetime.',
      policy: writers,
      params: versionParams,
      errors: [...ownSite, 'not_found', 'state_conflict', 'site_expired', 'precondition_failed'],
      success: { status: 200, data: siteSchema, etag: true },
      example: { data: exampleSite },
      async handle({ caller, auditContext, params, header }) {
        const { id, number: wanted } = params;
        return await answer(
          await sites.publishVersion(caller, auditContext, id, wanted, header('if-match')),
          caller,
        );
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/sites/{id}/versions/{number}/preview',
      operationId: 'previewSiteVersion',
      tag: 'Site versions',
      summary: 'Get an address for one version',
      description:
        'The preview has its own origin and the access rules of the site, and lasts 24 hours. A site can have at most 100 previews in any 24 hours; one more returns 429 `rate_limited`.',
      policy: writers,
      params: versionParams,
      errors: [...ownSite, 'not_found', 'state_conflict', 'site_expired'],
      success: { status: 201, data: previewSchema },
      example: {
        data: { url: 'https://q2m7tz4a8bk3v9x0p.sites.example.com/', expiresAt: '2026-01-02T09:00:00.000Z' },
      },
      async handle({ caller, auditContext, params }) {
        const { label, endsAt } = await sites.preview(caller, auditContext, params.id, params.number);
        return { data: { url: addresses.urlOf(label), expiresAt: timestamp(endsAt) } };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/sites/{id}/files',
      operationId: 'listSiteFiles',
      tag: 'Site versions',
      summary: 'List the files of a site',
      policy: readers,
      params: siteParams,
      query: fileListQuery,
      errors: [...ownSite, 'not_found'],
      success: { status: 200, data: z.array(siteFileSchema), pagination: 'page' },
      example: { data: [exampleFile] },
      async handle({ caller, params, query: { page, limit, version, search } }) {
        const { files } = await sites.files(caller, params.id, version);
        const part = search?.toLowerCase();
        const found = [...files].filter(([path]) => part === undefined || path.toLowerCase().includes(part));
        const data = found
          .slice((page - 1) * limit, page * limit)
          .map(([path, { digest, size }]) => ({ path, size, sha256: digest }));
        return { data, pagination: pagePagination(page, limit, found.length) };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/sites/{id}/files/{path*}',
      operationId: 'downloadSiteFile',
      tag: 'Site versions',
      summary: 'Download one file',
      description: 'Always a plain attachment, so that hosted scripts never run on this origin.',
      policy: readers,
      params: siteParams.extend({
        path: z
          .string()
          .meta({ description: 'The path of the file in the site', examples: ['assets/app.js'] }),
      }),
      query: fileQuery,
      errors: [...ownSite, 'not_found'],
      success: { status: 200, stream: ['application/octet-stream'] },
      async handle({ caller, params, query }) {
        const { stream } = await sites.openFile(caller, params.id, query.version, params.path);
        return {
          stream,
          contentType: 'application/octet-stream',
          fileName: params.path.split('/').at(-1) ?? 'file',
          headers: { 'content-security-policy': "sandbox; default-src 'none'" },
        };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/sites/{id}/take-down',
      operationId: 'takeSiteDown',
      tag: 'Sites administration',
      summary: 'Stop serving a site',
      description:
        'Takes down the site of any owner immediately, with a reason that the owner reads. It does not show the content of the site.',
      policy: administratorSession,
      params: siteParams,
      body: reasonSchema,
      errors: ['site_not_found', 'state_conflict'],
      success: { status: 200, data: takenDownSchema },
      example: {
        body: { reason: 'Phishing, reported by the bank' },
        data: { id: 'k3v9x0q2m7', takenDownAt: '2026-01-01T09:00:00.000Z' },
      },
      async handle({ auditContext, params, body }) {
        return { data: toTakenDown(await sites.takeDown(auditContext, params.id, body.reason)) };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/sites/{id}/put-back',
      operationId: 'putSiteBack',
      tag: 'Sites administration',
      summary: 'Serve a site again',
      policy: { ...administratorSession, freshProof: 'always' },
      params: siteParams,
      body: reasonSchema,
      errors: ['site_not_found', 'state_conflict'],
      success: { status: 200, data: takenDownSchema },
      example: {
        body: { reason: 'The page was cleaned' },
        data: { id: 'k3v9x0q2m7', takenDownAt: null },
      },
      async handle({ auditContext, params, body }) {
        return { data: toTakenDown(await sites.putBack(auditContext, params.id, body.reason)) };
      },
    }),
  ];
}

function requireUpload<T>(upload: T | null): T {
  if (upload !== null) return upload;
  throw new AppError('unsupported_media_type', {
    hint: 'Send a ZIP, a tar.gz or an HTML page as a form with the field "file", or as the body itself.',
  });
}

function toTakenDown({ id, takenDownAt }: Site) {
  return { id, takenDownAt: timestampOrNull(takenDownAt) };
}

/** `handbook.zip` is called "handbook" unless the client sends another name. */
function nameFrom(fileName: string): string | undefined {
  const plain = fileName
    .replace(/\.(?:zip|tgz|tar\.gz|html?)$/i, '')
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '')
    .trim();
  return plain === '' ? undefined : Array.from(plain).slice(0, 100).join('');
}
