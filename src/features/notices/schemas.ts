import { z } from 'zod';
import { timestamp } from '../../core/clock.ts';
import { pageQuery, timestampSchema } from '../../platform/schemas.ts';
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
    ]),
    keyId: z.string(),
    keyName: z.string(),
    message: z.string().describe('A sentence for people'),
    keyExpiresAt: timestampSchema.nullable(),
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
    keyId: notice.keyId,
    keyName: notice.fields.keyName,
    message: noticeText(notice),
    keyExpiresAt: notice.fields.expiresAt ?? null,
    digest: notice.fields.digest ?? null,
    createdAt: timestamp(notice.createdAt),
    readAt: notice.readAt === null ? null : timestamp(notice.readAt),
  };
}

export const noticesQuery = z.strictObject({
  ...pageQuery,
  unread: z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .describe('true: only unread ones; false: only read ones')
    .optional(),
});
