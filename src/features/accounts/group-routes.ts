import { administratorSession } from '../../core/authorize.ts';
import { timestamp } from '../../core/clock.ts';
import { defineRoute, pagePagination, type Route } from '../../platform/http.ts';
import type { Group } from './group-store.ts';
import type { Groups } from './groups.ts';
import * as shapes from './schemas.ts';

const groupExample = {
  id: 'grp_Kp3s9QeR1tYv5Uw7Xz0A',
  name: 'Platform',
  parentId: null,
  roles: ['admin'],
  memberCount: 3,
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.000Z',
};

/**
 * The routes of the built-in provider's groups (contract 3 and 5). With an external provider they answer 409
 * `state_conflict` with its address.
 */
export function groupRoutes({ groups }: { groups: Groups }): Route[] {
  const tag = 'Groups';
  return [
    defineRoute({
      method: 'GET',
      path: '/groups',
      operationId: 'listGroups',
      tag,
      summary: 'List groups',
      policy: administratorSession,
      query: shapes.groupQuery,
      success: { status: 200, data: shapes.groupResponse.array(), pagination: 'page' },
      errors: ['state_conflict'],
      example: { data: [groupExample] },
      async handle({ query }) {
        const { page, limit } = query;
        const found = await groups.list({ offset: (page - 1) * limit, limit });
        return { data: found.groups.map(toGroup), pagination: pagePagination(page, limit, found.total) };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/groups',
      operationId: 'createGroup',
      tag,
      summary: 'Create a group',
      description: 'Every account in the group, and in the groups inside it, gets its roles.',
      policy: { ...administratorSession, freshProof: 'always' },
      body: shapes.createGroupBody,
      fieldCodes: { name: 'invalid_name' },
      success: { status: 201, data: shapes.groupResponse },
      errors: ['name_conflict', 'state_conflict'],
      example: {
        body: { name: 'Platform', parentId: null, roles: ['admin'] },
        data: { ...groupExample, memberCount: 0 },
      },
      handle: async ({ auditContext, body }) => ({ data: toGroup(await groups.create(auditContext, body)) }),
    }),
    defineRoute({
      method: 'GET',
      path: '/groups/{id}',
      operationId: 'getGroup',
      tag,
      summary: 'Read one group',
      policy: administratorSession,
      params: shapes.groupIdParams,
      success: { status: 200, data: shapes.groupResponse },
      errors: ['not_found', 'state_conflict'],
      example: { data: groupExample },
      handle: async ({ params }) => ({ data: toGroup(await groups.get(params.id)) }),
    }),
    defineRoute({
      method: 'PATCH',
      path: '/groups/{id}',
      operationId: 'changeGroup',
      tag,
      summary: 'Change a group',
      policy: { ...administratorSession, freshProof: 'always' },
      params: shapes.groupIdParams,
      body: shapes.changeGroupBody,
      fieldCodes: { name: 'invalid_name' },
      success: { status: 200, data: shapes.groupResponse },
      errors: ['not_found', 'name_conflict', 'state_conflict'],
      example: { body: { roles: [] }, data: { ...groupExample, roles: [] } },
      handle: async ({ auditContext, params, body }) => ({
        data: toGroup(await groups.change(auditContext, params.id, shapes.definedOf(body))),
      }),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/groups/{id}',
      operationId: 'deleteGroup',
      tag,
      summary: 'Delete a group',
      policy: administratorSession,
      params: shapes.groupIdParams,
      success: { status: 200, data: shapes.userIdResponse },
      errors: ['not_found', 'state_conflict'],
      example: { data: { id: groupExample.id } },
      async handle({ auditContext, params }) {
        await groups.remove(auditContext, params.id);
        return { data: { id: params.id } };
      },
    }),
  ];
}

function toGroup(group: Group) {
  return {
    id: group.id,
    name: group.name,
    parentId: group.parentId,
    roles: [...group.roles],
    memberCount: group.memberCount,
    createdAt: timestamp(group.createdAt),
    updatedAt: timestamp(group.updatedAt),
  };
}
