import type { RoutePolicy } from '../../core/authorize.ts';
import type { Caller } from '../../core/caller.ts';
import { timestamp, timestampOrNull } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { defineRoute, pagePagination, type Route } from '../../platform/http.ts';
import type { Accounts, AccountView } from './accounts/accounts.ts';
import type { Groups } from './accounts/groups.ts';
import type { KnownPeople } from './known-people.ts';
import type { Person } from './user-store.ts';
import type { Group } from './accounts/group-store.ts';
import type { ConnectedClient, ConnectedClients } from './connected-clients.ts';
import * as shapes from './schemas.ts';

/**
 * The routes of users and groups of the built-in provider, connected clients (contract 3 and 5), and people of any
 * provider. With an external provider, routes for what it manages itself answer 409 `state_conflict` with its address.
 */
const administrator: RoutePolicy = { callers: ['session'], role: 'admin', identity: 'introspected' };
/** Taking rights away requires a weaker identity check than granting them (decision 0008). */
const signingOut: RoutePolicy = { callers: ['session'], role: 'admin', identity: 'live' };
const anyone: RoutePolicy = { callers: ['session'], identity: 'live' };
const ownPassword: RoutePolicy = { callers: ['session'], identity: 'introspected' };

export function identityRoutes(deps: {
  accounts: Accounts;
  groups: Groups;
  connectedClients: ConnectedClients;
  known: KnownPeople;
}): Route[] {
  return [...userRoutes(deps), ...groupRoutes(deps), ...clientRoutes(deps), ...peopleRoutes(deps)];
}

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

function userRoutes({ accounts }: { accounts: Accounts }): Route[] {
  const tag = 'Users';
  return [
    defineRoute({
      method: 'GET',
      path: '/users',
      operationId: 'listUsers',
      tag,
      summary: 'List accounts',
      policy: administrator,
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
      policy: administrator,
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
      policy: administrator,
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
      policy: administrator,
      params: shapes.userIdParams,
      body: shapes.changeUserBody,
      fieldCodes: { name: 'invalid_name' },
      success: { status: 200, data: shapes.userResponse },
      errors: ['not_found', 'name_conflict', 'state_conflict'],
      example: { body: { enabled: false }, data: { ...userExample, enabled: false } },
      handle: async ({ auditContext, params, body }) => ({
        data: toUser(await accounts.change(auditContext, params.id, definedOf(body))),
      }),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/users/{id}',
      operationId: 'deleteUser',
      tag,
      summary: 'Delete an account',
      description: 'Ends its sessions and offline grants. The next owner sweep revokes its keys.',
      policy: administrator,
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
      policy: administrator,
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

const groupExample = {
  id: 'grp_Kp3s9QeR1tYv5Uw7Xz0A',
  name: 'Platform',
  parentId: null,
  roles: ['admin'],
  memberCount: 3,
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.000Z',
};

function groupRoutes({ groups }: { groups: Groups }): Route[] {
  const tag = 'Groups';
  return [
    defineRoute({
      method: 'GET',
      path: '/groups',
      operationId: 'listGroups',
      tag,
      summary: 'List groups',
      policy: administrator,
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
      policy: administrator,
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
      policy: administrator,
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
      policy: administrator,
      params: shapes.groupIdParams,
      body: shapes.changeGroupBody,
      fieldCodes: { name: 'invalid_name' },
      success: { status: 200, data: shapes.groupResponse },
      errors: ['not_found', 'name_conflict', 'state_conflict'],
      example: { body: { roles: [] }, data: { ...groupExample, roles: [] } },
      handle: async ({ auditContext, params, body }) => ({
        data: toGroup(await groups.change(auditContext, params.id, definedOf(body))),
      }),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/groups/{id}',
      operationId: 'deleteGroup',
      tag,
      summary: 'Delete a group',
      policy: administrator,
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

const clientExample = {
  clientId: 'postern-cli',
  name: 'Postern command line',
  since: '2026-01-01T00:00:00.000Z',
  lastUsedAt: '2026-01-02T09:30:00.000Z',
  scopes: ['openid', 'offline_access', 'sites:write'],
};

function clientRoutes({ connectedClients }: { connectedClients: ConnectedClients }): Route[] {
  const tag = 'Connected clients';
  const success = { status: 200, data: shapes.clientResponse.array() } as const;
  const revoked = { status: 200, data: shapes.clientIdResponse } as const;
  return [
    defineRoute({
      method: 'GET',
      path: '/me/clients',
      operationId: 'listMyClients',
      tag,
      summary: 'List the clients that can act for you while you are away',
      policy: anyone,
      success,
      example: { data: [clientExample] },
      handle: async ({ caller }) => ({
        data: (await connectedClients.list(ownId(caller))).map(toClient),
      }),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/me/clients/{id}',
      operationId: 'disconnectMyClient',
      tag,
      summary: 'Disconnect a client',
      description: 'Ends all its offline grants and tokens for your account.',
      policy: anyone,
      params: shapes.ownClientIdParams,
      success: revoked,
      errors: ['not_found', 'state_conflict'],
      example: { data: { clientId: clientExample.clientId } },
      async handle({ auditContext, caller, params }) {
        await connectedClients.revoke(auditContext, ownId(caller), params.id);
        return { data: { clientId: params.id } };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/users/{id}/clients',
      operationId: 'listUserClients',
      tag,
      summary: 'List an account’s connected clients',
      policy: administrator,
      params: shapes.userIdParams,
      success,
      errors: ['not_found'],
      example: { data: [clientExample] },
      handle: async ({ params }) => ({ data: (await connectedClients.list(params.id)).map(toClient) }),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/users/{id}/clients/{clientId}',
      operationId: 'disconnectUserClient',
      tag,
      summary: 'Disconnect a client from an account',
      policy: signingOut,
      params: shapes.clientParams,
      success: revoked,
      errors: ['not_found', 'state_conflict'],
      example: { data: { clientId: clientExample.clientId } },
      async handle({ auditContext, params }) {
        await connectedClients.revoke(auditContext, params.id, params.clientId);
        return { data: { clientId: params.clientId } };
      },
    }),
  ];
}

const personExample = {
  id: 'usr_4fKq0Zb1Xw8TnLr2Vd6M',
  issuer: 'https://id.example.com/realms/acme',
  subject: '8b1f6f0e-3c1d-4c53-9c0e-2d6a1f2b9f11',
  name: 'Ada',
  email: 'ada@example.com',
  firstSeenAt: '2026-01-01T00:00:00.000Z',
  lastLoginAt: '2026-01-02T09:30:00.000Z',
};

function peopleRoutes({ known }: { known: KnownPeople }): Route[] {
  const tag = 'People';
  return [
    defineRoute({
      method: 'GET',
      path: '/people',
      operationId: 'listPeople',
      tag,
      summary: 'List everyone this installation knows',
      description:
        'Everyone who signed in here, has an account, or owns an imported key, with any identity provider. Sorted by name.',
      policy: administrator,
      query: shapes.userQuery,
      success: { status: 200, data: shapes.personResponse.array(), pagination: 'page' },
      example: { data: [personExample] },
      async handle({ query }) {
        const { page, limit, search } = query;
        const found = await known.list({ search, offset: (page - 1) * limit, limit });
        return { data: found.people.map(toPerson), pagination: pagePagination(page, limit, found.total) };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/people/{id}',
      operationId: 'getPerson',
      tag,
      summary: 'Read what this installation knows about a person',
      policy: administrator,
      params: shapes.personIdParams,
      success: { status: 200, data: shapes.personResponse },
      errors: ['not_found'],
      example: { data: personExample },
      handle: async ({ params }) => ({ data: toPerson(await known.get(params.id)) }),
    }),
    defineRoute({
      method: 'GET',
      path: '/people/{id}/account',
      operationId: 'getPersonAccount',
      tag,
      summary: 'Ask the identity provider about a person',
      description: 'Whether the account is enabled and which roles it has, as the provider states now.',
      policy: administrator,
      params: shapes.personIdParams,
      success: { status: 200, data: shapes.personAccountResponse },
      errors: ['not_found', 'identity_unavailable'],
      example: { data: { state: 'active', roles: ['user'] } },
      async handle({ params }) {
        const { state, roles } = await known.accountOf(params.id);
        return { data: { state, roles: [...roles] } };
      },
    }),
  ];
}

function ownId(caller: Caller): string {
  // The policy allows only sessions. This check informs the compiler, and fails closed if the policy changes.
  if (caller.kind !== 'session') throw new AppError('interactive_auth_required');
  return caller.user.id;
}

/** Only the fields that were sent, so that an absent one is not a change. */
function definedOf<T extends object>(body: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const sent = Object.entries(body).filter(([, value]) => value !== undefined);
  // Exactly the entries of `body` that are not undefined.
  return Object.fromEntries(sent) as { [K in keyof T]?: Exclude<T[K], undefined> };
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

function toPerson({ createdAt, lastLoginAt, ...person }: Person) {
  return { ...person, firstSeenAt: timestamp(createdAt), lastLoginAt: timestampOrNull(lastLoginAt) };
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

function toClient(client: ConnectedClient) {
  return {
    clientId: client.clientId,
    name: client.name,
    since: timestamp(client.since),
    lastUsedAt: timestampOrNull(client.lastUsedAt),
    scopes: [...client.scopes],
  };
}
