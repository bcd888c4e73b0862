import { noticeStore } from '../features/notices/notice-store.ts';
import { createNotices } from '../features/notices/notices.ts';
import { noticeRoutes } from '../features/notices/routes.ts';
import type { Sql } from '../platform/database/sql.ts';
import type { Part, Process } from './part.ts';

export function noticeStores(deps: Pick<Process, 'clock' | 'random' | 'log'>) {
  return { notices: (sql: Sql) => noticeStore(sql, deps) };
}

export function createNoticesPart({
  read,
  tx,
}: {
  readonly read: { readonly notices: Parameters<typeof createNotices>[0]['read'] };
  readonly tx: Parameters<typeof createNotices>[0]['tx'];
}) {
  const services = { notices: createNotices({ read: read.notices, tx }) };
  return { services, routes: noticeRoutes(services) } satisfies Part;
}
