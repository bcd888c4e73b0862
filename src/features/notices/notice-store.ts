import type { Clock } from '../../core/clock.ts';
import { newId, type Random } from '../../core/ids.ts';
import { type Sql, sql } from '../../platform/database/sql.ts';
import type { Log } from '../../platform/log.ts';
import type { Notice, NoticeQuery, NoticeRecipient, NoticeSubject, NoticeWriter } from './notice-kinds.ts';

export type NoticeStore = NoticeWriter & {
  list(recipient: NoticeRecipient, query: NoticeQuery): Promise<{ notices: Notice[]; items: number }>;
  /** Undefined when the recipient has no such notice. */
  markRead(recipient: NoticeRecipient, id: string): Promise<Notice | undefined>;
};

export function noticeStore(
  db: Sql,
  { clock, random, log }: { clock: Clock; random: Random; log: Log },
): NoticeStore {
  return {
    async add(notice) {
      const { recipient, kind, occasion, fields } = notice;
      const subject = subjectOf(notice);
      const [subjectId] = Object.values(subject);
      const userId = recipient.kind === 'user' ? recipient.userId : null;
      const id = newId(random, 'ntc');
      const dedupeKey = [userId ?? 'administrators', kind, subjectId, occasion ?? ''].join(' ');
      const added = await sql`
        insert into notices (id, user_id, kind, subject, fields, dedupe_key, created_at)
        values (${id}, ${userId}, ${kind}, ${subjectId}, ${JSON.stringify(fields)}::jsonb, ${dedupeKey},
                ${new Date(clock.now())})
        on conflict (dedupe_key) do nothing`.run(db);
      // Log before the commit. A rollback and retry may log the line twice, which is better than losing it.
      if (added > 0) log.info({ notice: id, kind, ...subject, userId }, 'notice');
    },
    async list(recipient, { page, limit, unread }) {
      const where = sql.join([belongsTo(recipient), hasState(unread)], ' and ');
      const counted = await sql<{ items: number }>`
        select count(*)::int as items from notices where ${where}`.first(db);
      const rows = await sql<NoticeRow>`
        select ${columns} from notices where ${where}
         order by created_at desc, id desc limit ${limit} offset ${(page - 1) * limit}`.all(db);
      return { notices: rows.map(toNotice), items: counted?.items ?? 0 };
    },
    async markRead(recipient, id) {
      const row = await sql<NoticeRow>`
        update notices set read_at = coalesce(read_at, ${new Date(clock.now())})
         where id = ${id} and ${belongsTo(recipient)}
        returning ${columns}`.first(db);
      return row && toNotice(row);
    },
  };
}

function subjectOf(notice: Parameters<NoticeWriter['add']>[0]): Readonly<Record<string, string>> {
  if ('keyId' in notice) return { keyId: notice.keyId };
  if ('siteId' in notice) return { siteId: notice.siteId };
  return 'userId' in notice ? { userId: notice.userId } : { environmentId: notice.environmentId };
}

function belongsTo(recipient: NoticeRecipient) {
  return recipient.kind === 'user' ? sql`user_id = ${recipient.userId}` : sql`user_id is null`;
}

function hasState(unread: boolean | undefined) {
  if (unread === undefined) return sql`true`;
  return unread ? sql`read_at is null` : sql`read_at is not null`;
}

const columns = sql`id, kind, subject, fields, created_at, read_at`;

type NoticeRow = Pick<Notice, 'id' | 'createdAt' | 'readAt'> &
  Pick<NoticeSubject, 'kind' | 'fields'> & { readonly subject: string };

function toNotice({ subject: id, ...row }: NoticeRow): Notice {
  // A row has the fields of its kind, because add() accepts no others.
  return { ...row, [subjectNameOf(row.kind)]: id } as Notice;
}

function subjectNameOf(kind: Notice['kind']) {
  if (kind.startsWith('key_')) return 'keyId';
  if (kind.startsWith('site_')) return 'siteId';
  return kind.startsWith('environment_') ? 'environmentId' : 'userId';
}
