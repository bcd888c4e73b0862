import { z } from 'zod';
import { grantableScopes } from '../src/core/scopes.ts';
import { defineRoute, type Route } from '../src/platform/http.ts';
import { cursorQuery, idParams, pageQuery, plainText, timestampSchema } from '../src/platform/schemas.ts';

/** A few routes with every shape a route can have, for tests of text generated from routes. */
const scopes = z.array(z.enum(grantableScopes)).min(1);
const repositories = z.discriminatedUnion('mode', [
  z.strictObject({ mode: z.literal('all') }),
  z.strictObject({ mode: z.literal('selected'), repositories: z.array(z.string()).min(1).max(50) }),
]);
const key = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    scopes,
    repositories,
    expiresAt: timestampSchema.nullable(),
  })
  .meta({ id: 'Key', description: 'A key as lists show it; never its value.' });

const shown = {
  id: 'kD3f9Q2mZx81',
  name: 'deploy from CI',
  scopes: ['env:write'],
  repositories: { mode: 'selected', repositories: ['acme/web'] },
  expiresAt: '2026-12-01T09:00:00.000Z',
};

const session = { callers: ['session'], identity: 'live' } as const;
const unreachable = (): never => {
  throw new Error('A sample route is never called.');
};

export const sampleRoutes: readonly Route[] = [
  defineRoute({
    method: 'GET',
    path: '/me/tokens',
    operationId: 'listMyKeys',
    tag: 'My keys',
    summary: 'List my keys',
    description: 'Revoked and expired keys stay visible.',
    policy: session,
    query: z.strictObject({ ...pageQuery, status: z.enum(['active', 'revoked', 'expired']).optional() }),
    success: { status: 200, data: z.array(key), pagination: 'page' },
    example: { data: [shown] },
    handle: unreachable,
  }),
  defineRoute({
    method: 'POST',
    path: '/me/tokens',
    operationId: 'createMyKey',
    tag: 'My keys',
    summary: 'Create a key',
    description: 'The answer holds the value of the key; it is shown this once.',
    policy: session,
    body: z.strictObject({
      name: plainText(100).describe('Says who uses the key and for what.'),
      scopes,
      repositoryAccess: repositories,
      ttlHours: z.number().positive().optional().describe('Lifetime in hours, decimals allowed.'),
    }),
    success: { status: 201, data: z.strictObject({ token: z.string(), ...key.shape }) },
    fieldCodes: { name: 'invalid_name', scopes: 'invalid_scopes' },
    errors: ['personal_token_limit', 'lifetime_too_long', 'expiry_required'],
    example: {
      body: {
        name: 'deploy from CI',
        scopes: ['env:write'],
        repositoryAccess: { mode: 'all' },
        ttlHours: 24,
      },
      data: { token: 'app_pat_••••', ...shown },
    },
    handle: unreachable,
  }),
  defineRoute({
    method: 'DELETE',
    path: '/tokens/{id}',
    operationId: 'revokeKey',
    tag: 'Service keys',
    summary: 'Revoke a key',
    policy: { callers: ['session'], role: 'admin', identity: 'live' },
    params: idParams('The key’s public id, 12 characters, as in lists', shown.id),
    success: { status: 200, data: z.strictObject({ id: z.string(), revokedAt: timestampSchema }) },
    errors: ['token_not_found'],
    handle: unreachable,
  }),
  defineRoute({
    method: 'PUT',
    path: '/config/api-keys',
    operationId: 'changeKeyPolicy',
    tag: 'Configuration',
    summary: 'Change the key policy',
    policy: { callers: ['session'], role: 'admin', identity: 'live' },
    query: z.strictObject({ dryRun: z.enum(['true', 'false']).optional() }),
    body: z.strictObject({ rateLimitPerMinute: z.int().min(1).max(1_000_000) }),
    success: { status: 200, data: z.strictObject({ version: z.int() }), etag: true },
    errors: ['precondition_failed', 'precondition_required'],
    example: { body: { rateLimitPerMinute: 600 } },
    handle: unreachable,
  }),
  defineRoute({
    method: 'GET',
    path: '/repositories',
    operationId: 'listRepositories',
    tag: 'Repositories',
    summary: 'List repositories',
    policy: {
      callers: ['session', 'access_token', 'personal_key', 'service_key'],
      scope: 'repos:read',
      identity: 'live',
    },
    query: z.strictObject(cursorQuery),
    success: { status: 200, data: z.array(z.strictObject({ fullName: z.string() })), pagination: 'cursor' },
    example: { data: [{ fullName: 'acme/web' }] },
    handle: unreachable,
  }),
  defineRoute({
    method: 'GET',
    path: '/audit/export',
    operationId: 'exportAudit',
    tag: 'Audit',
    summary: 'Export the audit log',
    policy: { callers: ['session'], role: 'admin', identity: 'live' },
    success: { status: 200, stream: ['application/x-ndjson', 'text/csv'] },
    handle: unreachable,
  }),
  defineRoute({
    method: 'POST',
    path: '/auth/revoke-self',
    operationId: 'revokeThisKey',
    tag: 'Authentication',
    summary: 'Revoke the key that asks',
    policy: { callers: 'anyone', identity: 'none' },
    success: { status: 200, data: z.strictObject({ revoked: z.literal(true) }) },
    exemptFromLimit: true,
    handle: unreachable,
  }),
];
