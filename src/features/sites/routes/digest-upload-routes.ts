import { z } from 'zod';
import type { RoutePolicy } from '../../../core/authorize.ts';
import { callerKinds } from '../../../core/caller.ts';
import { type Clock, timestamp } from '../../../core/clock.ts';
import { AppError, type ErrorCode } from '../../../core/errors.ts';
import { defineRoute, type RequestUpload, type Route } from '../../../platform/http.ts';
import { examplePublished, exampleUpload, exampleUploadStart } from './examples.ts';
import { type OwnerNames, type SiteAddresses, toPublishedAnswer } from './responses.ts';
import { publishedSiteSchema, uploadPublishSchema, uploadStartSchema, uploadStateSchema } from './schemas.ts';
import type { SentBytes } from '../verbs/site-verbs.ts';
import type { Sites, UploadState } from '../sites.ts';

/** Digest uploads: the client announces the files of the new version, sends what is missing, and publishes (contract 6). */
const policy: RoutePolicy = {
  callers: callerKinds,
  scope: 'sites:write',
  role: 'user',
  identity: 'introspected',
};

const text = (description: string, example: string) => z.string().meta({ description, examples: [example] });
const siteParams = z.strictObject({ id: text('A site’s id', 'k3v9x0q2m7') });
const uploadParams = siteParams.extend({
  upload: text('An upload’s id', 'upl_4fK8mV6sT0aXk4RjB1Zc'),
});
const blobParams = uploadParams.extend({
  sha256: text(
    'SHA-256 of the bytes, in lower-case hexadecimal digits',
    exampleUploadStart.files['index.html'].sha256,
  ),
});

const site: readonly ErrorCode[] = [
  'site_not_found',
  'sites_disabled',
  'not_owner',
  'state_conflict',
  'site_expired',
];
const upload: readonly ErrorCode[] = [...site, 'not_found'];
const content: readonly ErrorCode[] = [...upload, 'upload_rejected', 'credential_in_content', 'storage_full'];

/** About 25,000 files. Archives have no such limit. */
const maxAnnouncedBytes = 4 * 1024 * 1024;

export type UploadRoutesDeps = {
  readonly sites: Sites;
  readonly names: OwnerNames;
  readonly addresses: SiteAddresses;
  readonly clock: Clock;
};

export function uploadRoutes({ sites, names, addresses, clock }: UploadRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/sites/{id}/uploads',
      operationId: 'startUpload',
      tag: 'Site uploads',
      summary: 'Announce a new version',
      description:
        'Lists every file by path, SHA-256 and size. The response lists the contents to send: those that no version of your sites has yet. An upload lasts 24 hours. A site has at most ten uploads; one more ends the oldest. The body can have 4 MiB.',
      policy,
      params: siteParams,
      body: uploadStartSchema,
      looksForKeysIn: ['files'],
      bodyBytes: maxAnnouncedBytes,
      errors: [...site, 'upload_rejected', 'quota_exceeded'],
      success: { status: 201, data: uploadStateSchema },
      example: { body: exampleUploadStart, data: exampleUpload },
      async handle({ caller, auditContext, params, body: { files, spa } }) {
        const manifest = new Map(
          Object.entries(files).map(([path, { sha256, size }]) => [path, { digest: sha256, size }]),
        );
        return {
          data: toState(await sites.startUpload(caller, auditContext, params.id, { files: manifest, spa })),
        };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/sites/{id}/uploads/{upload}',
      operationId: 'getUpload',
      tag: 'Site uploads',
      summary: 'Read which contents an upload still needs',
      description:
        'Use it to continue after a lost connection. The list is empty after the upload is published.',
      policy,
      params: uploadParams,
      errors: upload,
      success: { status: 200, data: uploadStateSchema },
      example: { data: exampleUpload },
      async handle({ caller, params }) {
        return { data: toState(await sites.findUpload(caller, params.id, params.upload)) };
      },
    }),
    defineRoute({
      method: 'PUT',
      path: '/sites/{id}/uploads/{upload}/blobs/{sha256}',
      operationId: 'sendContent',
      tag: 'Site uploads',
      summary: 'Send one content',
      description: 'The raw bytes. They must have the SHA-256 in the path and the announced size.',
      policy,
      params: blobParams,
      uploads: ['application/octet-stream'],
      errors: content,
      success: { status: 204, empty: true },
      async handle({ caller, auditContext, params, upload: sent }) {
        const bytes = await bytesOf(sent, 'application/octet-stream');
        await sites.receiveBlob(caller, auditContext, params.id, params.upload, params.sha256, bytes);
        return { data: undefined };
      },
    }),
    defineRoute({
      method: 'PUT',
      path: '/sites/{id}/uploads/{upload}/blobs',
      operationId: 'sendContents',
      tag: 'Site uploads',
      summary: 'Send many contents at once',
      description:
        'A tar whose files are named by their SHA-256, in any order. The size limit of one upload applies. Postern accepts valid files even when it refuses others.',
      policy,
      params: uploadParams,
      uploads: ['application/x-tar'],
      errors: [...content, 'upload_too_large'],
      success: { status: 200, data: uploadStateSchema },
      example: { data: { ...exampleUpload, missing: [] } },
      async handle({ caller, auditContext, params, upload: sent }) {
        const tar = await bytesOf(sent, 'application/x-tar');
        return {
          data: toState(await sites.receiveBlobs(caller, auditContext, params.id, params.upload, tar)),
        };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/sites/{id}/uploads/{upload}/publish',
      operationId: 'publishUpload',
      tag: 'Site uploads',
      summary: 'Publish an upload',
      description:
        'Publishes the whole upload, or nothing and lists everything that is missing or refused. With `dryRun`, nothing is changed, and the response is the site as it would be. With If-Match, it publishes only while that version is live. The site then expires after `ttlHours`; without it, at the earliest after the default lifetime.',
      policy,
      params: uploadParams,
      body: uploadPublishSchema,
      errors: [
        ...upload,
        'upload_rejected',
        'quota_exceeded',
        'precondition_failed',
        'lifetime_too_long',
        'expiry_conflict',
      ],
      success: { status: 200, data: publishedSiteSchema, etag: true },
      example: { body: { dryRun: false }, data: examplePublished },
      async handle({ caller, auditContext, params, body, header }) {
        const { dryRun = false, ttlHours } = body ?? {};
        const options = { ifMatch: header('if-match'), dryRun, ttlHours };
        const { site, ...found } = await sites.publishUpload(
          caller,
          auditContext,
          params.id,
          params.upload,
          options,
        );
        const warnings = options.dryRun ? await sites.warningsOfDryRun(site, found) : found.warnings;
        const answer = { ...found, warnings };
        return await toPublishedAnswer(site, answer, caller, { names, addresses, now: clock.now() });
      },
    }),
  ];
}

async function bytesOf(sent: RequestUpload | null, type: string): Promise<SentBytes> {
  if (sent !== null) {
    for await (const part of sent.parts())
      if (part.kind === 'file') return { stream: part.stream, reauthorize: sent.reauthorize };
  }
  throw new AppError('unsupported_media_type', { hint: `Send the bytes as "Content-Type: ${type}".` });
}

function toState({ id, missing, leftOut, endsAt }: UploadState) {
  return { id, missing: [...missing], leftOut: [...leftOut], expiresAt: timestamp(endsAt) };
}
