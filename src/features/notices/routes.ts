import { z } from 'zod';
import { administratorSession, type RoutePolicy } from '../../core/authorize.ts';
import { type Caller, userOf } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import { defineRoute, pagePagination, type Route } from '../../platform/http.ts';
import { idParams } from '../../platform/schemas.ts';
import type { NoticeRecipient, Notices } from './notices.ts';
import { noticeResponse, noticesQuery, toNoticeResponse } from './schemas.ts';

/** The same two routes twice: for a person's own notices, and for administrators those of service keys and their sites. */
export function noticeRoutes({ notices }: { notices: Notices }): Route[] {
  return [
    ...routesFor(notices, {
      path: '/me/notices',
      operations: ['listMyNotices', 'readMyNotice'],
      whose: 'your keys, sites, Environments and account',
      policy: { callers: ['session'], identity: 'live' },
      recipientOf: personBehind,
    }),
    ...routesFor(notices, {
      path: '/notices',
      operations: ['listNotices', 'readNotice'],
      whose: 'service keys, their sites and their Environments',
      policy: administratorSession,
      recipientOf: () => ({ kind: 'administrators' }),
    }),
  ];
}

type Audience = {
  readonly path: string;
  readonly operations: readonly [list: string, read: string];
  readonly whose: string;
  readonly policy: RoutePolicy;
  readonly recipientOf: (caller: Caller) => NoticeRecipient;
};

const exampleNotice = {
  id: 'ntc_6mWc1xTq8ZbK4nRv0YpL',
  kind: 'key_expires_7d',
  keyId: '4fKd02LmQx9Z',
  keyName: 'deploy',
  siteId: null,
  siteName: null,
  environmentId: null,
  environmentName: null,
  message:
    'The key “deploy” (4fKd02LmQx9Z) expires within 7 days (2026-01-08T09:00:00.000Z). Rotate it to keep its scripts working.',
  keyExpiresAt: '2026-01-08T09:00:00.000Z',
  siteExpiresAt: null,
  environmentExpiresAt: null,
  digest: null,
  createdAt: '2026-01-01T09:00:00.000Z',
  readAt: null,
};

function routesFor(notices: Notices, { path, operations, whose, policy, recipientOf }: Audience): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path,
      operationId: operations[0],
      tag: 'Notices',
      summary: `List notices about ${whose}, newest first`,
      policy,
      query: noticesQuery,
      success: { status: 200, data: z.array(noticeResponse), pagination: 'page' },
      example: { data: [exampleNotice] },
      async handle({ caller, query }) {
        const found = await notices.list(recipientOf(caller), query);
        return {
          data: found.notices.map(toNoticeResponse),
          pagination: pagePagination(query.page, query.limit, found.items),
        };
      },
    }),
    defineRoute({
      method: 'POST',
      path: `${path}/{id}/read`,
      operationId: operations[1],
      tag: 'Notices',
      summary: `Mark a notice about ${whose} as read`,
      description: 'You can repeat the request; the time of the first one stays.',
      policy,
      errors: ['not_found'],
      params: idParams('The notice’s id, as in lists', exampleNotice.id),
      success: { status: 200, data: noticeResponse },
      example: { data: { ...exampleNotice, readAt: '2026-01-01T09:05:00.000Z' } },
      async handle({ caller, params: { id } }) {
        return { data: toNoticeResponse(await notices.markRead(recipientOf(caller), id)) };
      },
    }),
  ];
}

function personBehind(caller: Caller): NoticeRecipient {
  const user = userOf(caller);
  // The policy allows only sessions, and a session always belongs to a person.
  if (user === null) throw new AppError('interactive_auth_required');
  return { kind: 'user', userId: user.id };
}
