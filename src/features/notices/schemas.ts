import { z } from 'zod';
import { timestamp, timestampOrNull } from '../../core/clock.ts';
import { pageQuery, queryFlag, timestampSchema } from '../../platform/schemas.ts';
import { noticeText } from './notice-text.ts';
import type { Notice } from './notices.ts';

export const noticeResponse = z
  .strictObject({
    id: z.string(),
    kind: z.enum([
      'key_expires_7d',
      'key_expires_1d',
      'key_expired',
      'key_exposed',
      'key_dead_use',
      'key_suspended',
      'site_expires_7d',
      'site_expires_1d',
      'site_expired',
      'site_taken_down',
      'site_put_back',
      'environment_expires_1d',
      'environment_expires_1h',
      'environment_expired',
      'environment_deploy_failed',
      'passkey_added',
      'passkey_removed',
      'passkey_copied',
      'passkeys_reset',
      'recovery_code_used',
    ]),
    keyId: z.string().nullable().describe('Null when the notice is not about a key'),
    keyName: z.string().nullable(),
    siteId: z.string().nullable().describe('Null when the notice is not about a site'),
    siteName: z.string().nullable(),
    environmentId: z.string().nullable().describe('Null when the notice is not about an Environment'),
    environmentName: z.string().nullable(),
    message: z.string().describe('A sentence for people'),
    keyExpiresAt: timestampSchema.nullable(),
    siteExpiresAt: timestampSchema.nullable(),
    environmentExpiresAt: timestampSchema.nullable(),
    digest: z.string().nullable().describe('SHA-256 of an exposed key value, in hex; never the value'),
    createdAt: timestampSchema,
    readAt: timestampSchema.nullable(),
  })
  .meta({ id: 'Notice' });
export type NoticeResponse = z.infer<typeof noticeResponse>;

export function toNoticeResponse(notice: Notice): NoticeResponse {
  return {
    id: notice.id,
    kind: notice.kind,
    ...subjectOf(notice),
    message: noticeText(notice),
    createdAt: timestamp(notice.createdAt),
    readAt: timestampOrNull(notice.readAt),
  };
}

function subjectOf(notice: Notice) {
  const none = {
    keyId: null,
    keyName: null,
    keyExpiresAt: null,
    digest: null,
    siteId: null,
    siteName: null,
    siteExpiresAt: null,
    environmentId: null,
    environmentName: null,
    environmentExpiresAt: null,
  };
  if ('environmentId' in notice) {
    const { environmentId, fields } = notice;
    const environmentExpiresAt = 'expiresAt' in fields ? fields.expiresAt : null;
    return { ...none, environmentId, environmentName: fields.environmentName, environmentExpiresAt };
  }
  if ('userId' in notice) return none;
  if ('siteId' in notice) {
    const { siteId, fields } = notice;
    return { ...none, siteId, siteName: fields.siteName, siteExpiresAt: fields.expiresAt ?? null };
  }
  const { keyId, fields } = notice;
  const { keyName, expiresAt = null, digest = null } = fields;
  return { ...none, keyId, keyName, keyExpiresAt: expiresAt, digest };
}

export const noticesQuery = z.strictObject({
  ...pageQuery,
  unread: queryFlag.describe('true: only unread notices; false: only read notices').optional(),
});
