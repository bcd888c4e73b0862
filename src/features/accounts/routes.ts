import { administratorSession, type RoutePolicy } from '../../core/authorize.ts';
import { timestamp, timestampOrNull } from '../../core/clock.ts';
import { defineRoute, pagePagination, type Route } from '../../platform/http.ts';
import { ownId } from '../people/people.ts';
import type { Accounts, AccountView } from './accounts.ts';
import * as shapes from './schemas.ts';

/** Taking rights away requires a weaker identity check than granting them (decision 0008). */
const signingOut: RoutePolicy = { callers: ['session'], role: 'admin', identity: 'live' };
const ownPassword: RoutePolicy = { callers: ['session'], identity: 'introspected' };

const userExample = {
  id: 'usr_4fKq0Zb1Xw8TnLr2Vd6M',
  subject: 'NpAc3xW8rT0vYq5sLm2Zk7Jd',
  email: 'ada@example.com',
  name: 'Ada',
  enabled: true,
  roles: ['user'],
  effectiveRoles: ['user', 'admin'],
  groups: ['grp_Kp3s9QeR1tYv5Uw7Xz0A'],
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.000Z',
  lastLoginAt: null,
};

/**
 * The routes of the built-in provider's accounts (contract 3 and 5). With an external provider they answer 409
 * `state_conflict` with its address.
 */
export function userRoutes({ accounts }: { accounts: Accounts }): Route[] {
  const tag = 'Users';
  return [
    defineRoute({
      method: 'GET',
      path: '/users',
      operationId: 'listUsers',
      tag,
      summary: 'List accounts',
      policy: administratorSession,
      query: shapes.userQuery,
      success: { status: 200, data: shapes.userResponse.array(), pagination: 'page' },
      errors: ['state_conflict'],
      example: { data: [userExample] },
      async handle({ query }) {
        const { page, limit, search } = query;
        const found = await accounts.list({ search, offset: (page - 1) * limit, limit });
        return { data: found.accounts.map(toUser), pagination: pagePagination(page, limit, found.total) };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/users',
      operationId: 'createUser',
      tag,
      summary: 'Create an account',
      description: 'Without a password, Postern generates one and shows it only in this response.',
      policy: { ...administratorSession, freshProof: 'always' },
      body: shapes.createUserBody,
      fieldCodes: { name: 'invalid_name' },
      success: { status: 201, data: shapes.createdUserResponse },
      errors: ['name_conflict', 'state_conflict'],
      example: {
        body: { email: 'ada@example.com', name: 'Ada', roles: ['user'], groups: [], enabled: true },
        data: {
          ...userExample,
          effectiveRoles: ['user'],
          groups: [],
          generatedPassword: '••••••••••••••••••••',
        },
      },
      async handle({ auditContext, body }) {
        const { account, generatedPassword } = await accounts.create(auditContext, body);
        return { data: { ...toUser(account), generatedPassword } };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/users/{id}',
      operationId: 'getUser',
      tag,
      summary: 'Read one account',
      policy: administratorSession,
      params: shapes.userIdParams,
      success: { status: 200, data: shapes.userResponse },
      errors: ['not_found', 'state_conflict'],
      example: { data: userExample },
      handle: async ({ params }) => ({ data: toUser(await accounts.get(params.id)) }),
    }),
    defineRoute({
      method: 'PATCH',
      path: '/users/{id}',
      operationId: 'changeUser',
      tag,
      summary: 'Change an account',
      description:
        'Disabling an account ends its sessions immediately. You cannot disable or demote the last enabled administrator.',
      policy: { ...administratorSession, freshProof: 'sometimes' },
      params: shapes.userIdParams,
      body: shapes.changeUserBody,
      fieldCodes: { name: 'invalid_name' },
      success: { status: 200, data: shapes.userResponse },
      errors: ['not_found', 'name_conflict', 'state_conflict'],
      example: { body: { enabled: false }, data: { ...userExample, enabled: false } },
      async handle({ auditContext, params, body, staleProof }) {
        const { enabled, ...rest } = shapes.definedOf(body);
        const onlyDisables = enabled === false && Object.keys(rest).length === 0;
        const stale = onlyDisables ? null : await staleProof();
        if (stale !== null) throw stale;
        return { data: toUser(await accounts.change(auditContext, params.id, shapes.definedOf(body))) };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/users/{id}',
      operationId: 'deleteUser',
      tag,
      summary: 'Delete an account',
      description: 'Ends its sessions and offline grants. The next owner sweep revokes its keys.',
      policy: administratorSession,
      params: shapes.userIdParams,
      success: { status: 200, data: shapes.userIdResponse },
      errors: ['not_found', 'state_conflict'],
      example: { data: { id: userExample.id } },
      async handle({ auditContext, params }) {
        await accounts.remove(auditContext, params.id);
        return { data: { id: params.id } };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/users/{id}/sign-out',
      operationId: 'signOutUser',
      tag,
      summary: 'Sign an account out everywhere',
      description: 'Ends every browser session and every offline grant of the account.',
      policy: signingOut,
      params: shapes.userIdParams,
      success: { status: 200, data: shapes.userIdResponse },
      errors: ['not_found', 'state_conflict'],
      example: { data: { id: userExample.id } },
      async handle({ auditContext, params }) {
        await accounts.signOut(auditContext, params.id);
        return { data: { id: params.id } };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/users/{id}/reset-password',
      operationId: 'resetUserPassword',
      tag,
      summary: 'Set a new password',
      description:
        'Sets the password that you send, or generates one and shows it only in this response. Signs the account out everywhere.',
      policy: { ...administratorSession, freshProof: 'always' },
      params: shapes.userIdParams,
      body: shapes.resetPasswordBody,
      success: { status: 200, data: shapes.resetPasswordResponse },
      errors: ['not_found', 'state_conflict'],
      example: { body: {}, data: { id: userExample.id, generatedPassword: '••••••••••••••••••••' } },
      async handle({ auditContext, params, body }) {
        const { generatedPassword } = await accounts.resetPassword(auditContext, params.id, body?.password);
        return { data: { id: params.id, generatedPassword } };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/users/{id}/reset-passkeys',
      operationId: 'resetUserPasskeys',
      tag,
      summary: 'Remove the passkeys of an account',
      description:
        'Removes all passkeys and recovery codes of the account, and signs it out everywhere. Its password stays. The person gets a notice.',
      policy: { ...administratorSession, freshProof: 'always' },
      params: shapes.userIdParams,
      success: { status: 200, data: shapes.userResponse },
      errors: ['not_found', 'state_conflict'],
      example: { data: userExample },
      handle: async ({ auditContext, params }) => ({
        data: toUser(await accounts.resetPasskeys(auditContext, params.id)),
      }),
    }),
    defineRoute({
      method: 'POST',
      path: '/me/password',
      operationId: 'changeMyPassword',
      tag,
      summary: 'Change your own password',
      description:
        'Needs your current password; a wrong one counts as a failed sign-in. Signs you out everywhere, including here, and ends every offline grant.',
      policy: ownPassword,
      body: shapes.changePasswordBody,
      success: { status: 200, data: shapes.userIdResponse },
      errors: ['rate_limited', 'state_conflict'],
      example: {
        body: { currentPassword: '••••••••••••••••', newPassword: '••••••••••••••••••••' },
        data: { id: userExample.id },
      },
      async handle({ auditContext, caller, body: { currentPassword, newPassword } }) {
        const id = ownId(caller);
        await accounts.changePassword(auditContext, id, { current: currentPassword, wanted: newPassword });
        return { data: { id } };
      },
    }),
  ];
}

function toUser(account: AccountView) {
  return {
    id: account.userId,
    subject: account.subject,
    email: account.email,
    name: account.name,
    enabled: account.isEnabled,
    roles: [...account.roles],
    effectiveRoles: [...account.effectiveRoles],
    groups: [...account.groupIds],
    createdAt: timestamp(account.createdAt),
    updatedAt: timestamp(account.updatedAt),
    lastLoginAt: timestampOrNull(account.lastLoginAt),
  };
}
