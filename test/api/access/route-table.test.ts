// @module-tag sql
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { hour, second } from '../../../src/core/clock.ts';
import { systemRandom } from '../../../src/core/ids.ts';
import { grantableScopes, type Scope } from '../../../src/core/scopes.ts';
import { digestOf, keyFormat } from '../../../src/features/keys/key-value.ts';
import type { Answer, CallOptions, Harness, Person, TestKey } from '../../harness.ts';
import {
  absentPath,
  commandLine,
  contents,
  denialsOf,
  manyChanges,
  noLimits,
  openFrozenHarness,
  setPolicy,
} from './cast.ts';

/**
 * Who may call what, written by hand from the contract and held against every route the program has: a route that is
 * added without a line here fails the first test.
 */
type Who =
  /** Every caller with one good credential. */
  | 'anyone known'
  | 'a session'
  | 'an administrator’s session'
  /** Sessions; keys and tokens by scope. */
  | 'may read repositories'
  | 'may read environments'
  | 'may change environments'
  /** Sessions; keys and tokens by scope. What is another's is not there for them. */
  | 'may read sites'
  | 'may change sites'
  /** An administrator's session, or his token with the OAuth scope admin. */
  | 'an administrator’s session or token'
  | 'an administrator’s fresh session'
  /** An administrator in person or by key or token with the scope; service keys by scope alone. */
  | 'may change repositories'
  /** Not a caller of Postern: it proves that it knows the webhook secret of the repository. */
  | 'a git server'
  /** Nor is this one: it has a ticket for one archive. */
  | 'a pod'
  /** No credential is judged: the route looks at the header by itself. */
  | 'anyone';

type Line = readonly [who: Who, admitted: string, body?: object];

/** `admitted`: the answer to an admitted caller about missing objects, so that the table changes nothing. */
const table: Record<string, Line> = {
  'GET /auth/context': ['anyone known', '200'],
  'GET /config/surfaces': ['anyone known', '200'],
  'POST /auth/revoke-self': ['anyone', '401 authentication_required'],
  'POST /auth/exchange': ['anyone', '400 invalid_request'],

  'GET /me/tokens/policy': ['a session', '200'],
  'GET /me/tokens': ['a session', '200'],
  'POST /me/tokens': ['a session', '400 invalid_name', {}],
  'GET /me/tokens/usage': ['a session', '400 invalid_query'],
  'POST /me/tokens/revoke-all': ['a session', '400 invalid_body', {}],
  'GET /me/refusals': ['a session', '200'],
  'GET /me/refusals/{requestId}': ['a session', '404 not_found'],
  'GET /me/tokens/{id}': ['a session', '404 token_not_found'],
  'PATCH /me/tokens/{id}': ['a session', '404 token_not_found', { name: 'new' }],
  'DELETE /me/tokens/{id}': ['a session', '404 token_not_found'],
  'POST /me/tokens/{id}/rotate': ['a session', '404 token_not_found', {}],
  'GET /me/tokens/{id}/usage': ['a session', '404 token_not_found'],
  'GET /me/tokens/{id}/timeline': ['a session', '404 token_not_found'],

  'GET /config/api-keys': ['an administrator’s session', '200'],
  'PUT /config/api-keys': ['an administrator’s session', '422 config_invalid', {}],
  'GET /config/api-keys/history': ['an administrator’s session', '200'],
  'POST /config/api-keys/revert': ['an administrator’s session', '428 precondition_required', { version: 0 }],
  'GET /config/access': ['an administrator’s session or token', '200'],
  'PUT /config/access': ['an administrator’s session or token', '422 config_invalid', {}],
  'GET /config/access/history': ['an administrator’s session or token', '200'],
  'POST /config/access/revert': [
    'an administrator’s session or token',
    '428 precondition_required',
    { version: 0 },
  ],

  'GET /config/mcp': ['an administrator’s session or token', '200'],
  'PUT /config/mcp': ['an administrator’s session or token', '422 config_invalid', {}],
  'GET /config/mcp/history': ['an administrator’s session or token', '200'],
  'POST /config/mcp/revert': [
    'an administrator’s session or token',
    '428 precondition_required',
    { version: 0 },
  ],

  'GET /config/mcp/servers': ['an administrator’s session or token', '200'],
  'POST /config/mcp/servers': ['an administrator’s fresh session', '400 invalid_body', {}],
  'PATCH /config/mcp/servers/{slug}': ['an administrator’s session or token', '404 not_found', {}],
  'DELETE /config/mcp/servers/{slug}': ['an administrator’s session or token', '404 not_found'],
  'GET /config/mcp/servers/{slug}/tools': ['an administrator’s session or token', '404 not_found'],
  'POST /config/mcp/servers/{slug}/tools/{name}/accept': [
    'an administrator’s session or token',
    '404 not_found',
    { digest: 'x' },
  ],
  'GET /me/connections': ['a session', '200'],
  'POST /me/connections/{slug}/start': ['a session', '404 not_found', {}],
  'DELETE /me/connections/{slug}': ['a session', '404 not_found'],
  'GET /config/mcp/clients': ['an administrator’s session or token', '200'],
  'PATCH /config/mcp/clients/{id}': [
    'an administrator’s session or token',
    '404 not_found',
    { status: 'blocked' },
  ],

  'GET /config/agents/definitions': ['an administrator’s session or token', '200'],
  'POST /config/agents/definitions': ['an administrator’s session or token', '400 invalid_body', {}],
  'PATCH /config/agents/definitions/{id}': ['an administrator’s session or token', '404 not_found', {}],
  'DELETE /config/agents/definitions/{id}': ['an administrator’s session or token', '404 not_found'],

  'GET /config/agents/models': ['an administrator’s session or token', '200'],
  'PUT /config/agents/models': ['an administrator’s session or token', '422 config_invalid', {}],
  'GET /config/agents/models/history': ['an administrator’s session or token', '200'],
  'POST /config/agents/models/revert': [
    'an administrator’s session or token',
    '428 precondition_required',
    { version: 0 },
  ],

  'GET /agents/definitions': ['may read repositories', '200'],
  'GET /agents/definitions/{id}/export': ['may read repositories', '400 invalid_query'],

  'GET /me/agents/approvals': ['a session', '200'],
  'GET /me/agents/approvals/{id}': ['a session', '404 not_found'],
  'POST /me/agents/approvals/{id}/approve': ['a session', '404 not_found'],
  'POST /me/agents/approvals/{id}/refuse': ['a session', '404 not_found'],
  'GET /me/agents/access': ['a session', '200'],
  'PUT /me/agents/sessions/{id}/definition': ['a session', '404 not_found', { definitionId: null }],
  'GET /me/agents/sessions': ['a session', '200'],
  'GET /me/agents/sessions/{id}': ['a session', '404 not_found'],
  'POST /me/agents/sessions/{id}/end': ['a session', '404 not_found'],
  'POST /agents/sessions/{id}/end': ['an administrator’s session', '404 not_found'],
  'GET /agents/sessions': ['an administrator’s session', '200'],
  'GET /agents/sessions/{id}': ['an administrator’s session', '404 not_found'],

  'GET /tokens': ['an administrator’s session', '200'],
  'GET /tokens/usage': ['an administrator’s session', '400 invalid_query'],
  'POST /tokens': ['an administrator’s session', '400 invalid_name', {}],
  'POST /tokens/revoke': ['an administrator’s session', '404 token_not_found', { ids: ['000000000000'] }],
  'GET /tokens/refusals': ['an administrator’s session', '200'],
  'GET /tokens/totals': ['an administrator’s session', '200'],
  'GET /tokens/ending': ['an administrator’s session', '200'],
  'GET /tokens/{id}': ['an administrator’s session', '404 token_not_found'],
  'PATCH /tokens/{id}': ['an administrator’s session', '404 token_not_found', { name: 'new' }],
  'DELETE /tokens/{id}': ['an administrator’s session', '404 token_not_found'],
  'POST /tokens/{id}/rotate': ['an administrator’s session', '404 token_not_found', {}],
  'GET /tokens/{id}/trust': ['an administrator’s session', '404 token_not_found'],
  'POST /tokens/{id}/trust': ['an administrator’s session', '400 invalid_trust_rule', {}],
  'DELETE /tokens/{id}/trust/{rule}': ['an administrator’s session', '404 token_not_found'],
  'POST /tokens/{id}/trust/try': ['an administrator’s session', '404 token_not_found', { claims: {} }],
  'GET /tokens/{id}/usage': ['an administrator’s session', '404 token_not_found'],
  'GET /tokens/{id}/timeline': ['an administrator’s session', '404 token_not_found'],

  'GET /repositories': ['may read repositories', '200'],
  'POST /repositories': ['may change repositories', '400 invalid_body', {}],
  'GET /repositories/{owner}/{name}': ['may read repositories', '404 repo_not_onboarded'],
  'PATCH /repositories/{owner}/{name}': ['may change repositories', '404 repo_not_onboarded', {}],
  'DELETE /repositories/{owner}/{name}': ['may change repositories', '404 repo_not_onboarded'],
  'PUT /repositories/{owner}/{name}/credential': [
    'an administrator’s session',
    '404 repo_not_onboarded',
    { token: 'of-a-git-server' },
  ],
  'DELETE /repositories/{owner}/{name}/credential': ['an administrator’s session', '404 repo_not_onboarded'],

  'POST /repositories/{owner}/{name}/webhook': ['may change repositories', '404 repo_not_onboarded'],
  'DELETE /repositories/{owner}/{name}/webhook': ['may change repositories', '404 repo_not_onboarded'],
  'POST /webhooks/git/{repositoryId}': ['a git server', '202'],
  'GET /environment-files': ['a pod', '200'],
  'PUT /environment-files': ['a pod', '201'],

  'GET /environments/branches': ['may read environments', '400 invalid_query'],
  'GET /environments/config-preview': ['may read environments', '400 invalid_query'],
  'GET /environments/policy': ['anyone known', '200'],
  'GET /environments': ['may read environments', '200'],
  'POST /environments': ['may change environments', '400 invalid_body', {}],
  'GET /environments/{id}': ['may read environments', '404 env_not_found'],
  'PATCH /environments/{id}': ['may change environments', '404 env_not_found', { autoTrack: true }],
  'DELETE /environments/{id}': ['may change environments', '404 env_not_found'],
  'POST /environments/{id}/deploy': ['may change environments', '403 environments_disabled'],
  'POST /environments/{id}/extend': ['may change environments', '404 env_not_found', {}],
  'GET /environments/{id}/why': ['may read environments', '404 env_not_found'],
  'GET /environments/{id}/events': ['may read environments', '404 env_not_found'],
  'GET /environments/{id}/logs': ['may read environments', '404 env_not_found'],
  'GET /builds': ['may read environments', '200'],
  // The name of an Environment, which clients of the older system send.
  'GET /builds/{id}': ['may read environments', '404 env_not_found'],
  'PATCH /builds/{id}': ['may change environments', '404 env_not_found', { trackDefaultBranches: true }],
  'PUT /builds/{id}/redeploy': ['may change environments', '403 environments_disabled'],
  'PUT /builds/{id}/destroy': ['may change environments', '404 env_not_found'],
  'PATCH /builds/{id}/services': [
    'may change environments',
    '404 env_not_found',
    { serviceOverrides: [{ name: 'web', active: false }] },
  ],
  'GET /builds/{id}/metadata': ['may read environments', '404 env_not_found'],
  'GET /builds/{id}/services/{name}/build-jobs': ['may read environments', '404 env_not_found'],
  'GET /builds/{id}/services/{name}/build-jobs/{job}': ['may read environments', '404 env_not_found'],
  'GET /builds/{id}/logs': ['may read environments', '404 build_not_found'],
  'POST /builds/{id}/cancel': ['may change environments', '404 build_not_found'],
  'POST /builds/{id}/retry': ['may change environments', '403 environments_disabled'],
  'GET /config/api-environments': ['an administrator’s session or token', '200'],
  'PUT /config/api-environments': ['an administrator’s session or token', '422 config_invalid', {}],
  'GET /config/api-environments/history': ['an administrator’s session or token', '200'],
  'POST /config/api-environments/revert': [
    'an administrator’s session or token',
    '428 precondition_required',
    { version: 0 },
  ],
  'GET /config/metadata': ['an administrator’s session or token', '200'],
  'POST /config/metadata': ['an administrator’s session or token', '422 config_invalid', {}],
  'PATCH /config/metadata/{id}': ['an administrator’s session or token', '404 not_found', {}],
  'DELETE /config/metadata/{id}': ['an administrator’s session or token', '404 not_found'],

  'GET /schema/postern.json': ['anyone', '200'],
  'GET /schema/validate': ['may read repositories', '400 invalid_query'],
  'POST /schema/validate': ['may read repositories', '200', { content: '' }],

  'GET /sites': ['may read sites', '200'],
  'POST /sites': ['may change sites', '400 invalid_body', { nonsense: true }],
  'GET /sites/capabilities': ['may read sites', '200'],
  'GET /sites/{id}': ['may read sites', '404 site_not_found'],
  'GET /sites/{id}/actions': ['may read sites', '404 site_not_found'],
  'PATCH /sites/{id}': ['may change sites', '404 site_not_found', { name: 'new' }],
  'DELETE /sites/{id}': ['may change sites', '404 site_not_found'],
  'PUT /sites/{id}/content': ['may change sites', '404 site_not_found'],
  'POST /sites/{id}/extend': ['may change sites', '404 site_not_found'],
  'POST /sites/{id}/restore': ['may change sites', '404 site_not_found'],
  'GET /sites/{id}/versions': ['may read sites', '404 site_not_found'],
  'GET /sites/{id}/versions/{number}': ['may read sites', '404 site_not_found'],
  'GET /sites/{id}/versions/{number}/changes': ['may read sites', '404 site_not_found'],
  'POST /sites/{id}/uploads': ['may change sites', '404 site_not_found', { files: {} }],
  'GET /sites/{id}/uploads/{upload}': ['may change sites', '404 site_not_found'],
  'PUT /sites/{id}/uploads/{upload}/blobs': ['may change sites', '415 unsupported_media_type'],
  'PUT /sites/{id}/uploads/{upload}/blobs/{sha256}': ['may change sites', '415 unsupported_media_type'],
  'POST /sites/{id}/uploads/{upload}/publish': ['may change sites', '404 site_not_found'],
  'POST /sites/{id}/versions/{number}/publish': ['may change sites', '404 site_not_found'],
  'POST /sites/{id}/versions/{number}/preview': ['may change sites', '404 site_not_found'],
  'GET /sites/{id}/files': ['may read sites', '404 site_not_found'],
  'GET /sites/{id}/files/{path*}': ['may read sites', '404 site_not_found'],
  'GET /sites/{id}/access': ['a session', '404 site_not_found'],
  'DELETE /sites/{id}/grants': ['a session', '404 site_not_found'],
  'POST /sites/{id}/take-down': ['an administrator’s session', '404 site_not_found', { reason: 'x' }],
  'POST /sites/{id}/put-back': ['an administrator’s session', '404 site_not_found', { reason: 'x' }],
  'GET /sites/storage': ['an administrator’s session', '200'],
  'GET /sites/taken-down': ['an administrator’s session', '200'],
  'GET /config/sites': ['an administrator’s session or token', '200'],
  'PUT /config/sites': ['an administrator’s session or token', '422 config_invalid', {}],
  'GET /config/sites/history': ['an administrator’s session or token', '200'],
  'POST /config/sites/revert': [
    'an administrator’s session or token',
    '428 precondition_required',
    { version: 0 },
  ],

  'GET /me/notices': ['a session', '200'],
  'POST /me/notices/{id}/read': ['a session', '404 not_found'],
  'GET /notices': ['an administrator’s session', '200'],
  'POST /notices/{id}/read': ['an administrator’s session', '404 not_found'],

  'GET /users': ['an administrator’s session', '200'],
  'POST /users': ['an administrator’s session', '400 invalid_body', {}],
  'GET /users/{id}': ['an administrator’s session', '404 not_found'],
  'PATCH /users/{id}': ['an administrator’s session', '404 not_found', {}],
  'DELETE /users/{id}': ['an administrator’s session', '404 not_found'],
  'POST /users/{id}/sign-out': ['an administrator’s session', '404 not_found'],
  'POST /users/{id}/reset-password': ['an administrator’s session', '404 not_found', {}],
  'POST /users/{id}/reset-passkeys': ['an administrator’s session', '404 not_found'],
  'POST /me/password': ['a session', '400 invalid_body', {}],
  'GET /people': ['an administrator’s session', '200'],
  'GET /people/{id}': ['an administrator’s session', '404 not_found'],
  'GET /people/{id}/account': ['an administrator’s session', '404 not_found'],
  'GET /users/{id}/clients': ['an administrator’s session', '404 not_found'],
  'DELETE /users/{id}/clients/{clientId}': ['an administrator’s session', '404 not_found'],
  'GET /groups': ['an administrator’s session', '200'],
  'POST /groups': ['an administrator’s session', '400 invalid_name', {}],
  'GET /groups/{id}': ['an administrator’s session', '404 not_found'],
  'PATCH /groups/{id}': ['an administrator’s session', '404 not_found', {}],
  'DELETE /groups/{id}': ['an administrator’s session', '404 not_found'],
  'GET /me/clients': ['a session', '200'],
  'DELETE /me/clients/{id}': ['a session', '404 not_found'],
  'GET /me/passkeys': ['a session', '200'],
  'POST /me/passkeys/options': ['a session', '200'],
  'POST /me/passkeys': ['a session', '400 invalid_name', {}],
  'PATCH /me/passkeys/{id}': ['a session', '404 not_found', { name: 'x' }],
  'DELETE /me/passkeys/{id}': ['a session', '404 not_found'],
  'POST /me/recovery-codes': ['a session', '200'],
  'GET /me/sessions': ['a session', '200'],
  'DELETE /me/sessions': ['a session', '200'],
  'DELETE /me/sessions/{id}': ['a session', '404 not_found'],
  'GET /users/{id}/sessions': ['an administrator’s session', '404 not_found'],
  'DELETE /users/{id}/sessions': ['an administrator’s session', '404 not_found'],
  'DELETE /users/{id}/sessions/{session}': ['an administrator’s session', '404 not_found'],

  'GET /audit/events': ['an administrator’s session', '200'],
  'GET /audit/summary': ['an administrator’s session', '200'],
  'GET /audit/events/{id}': ['an administrator’s session', '404 not_found'],
  'GET /audit/export': ['an administrator’s session', '200'],
};

type CallerName =
  | 'nobody'
  | 'a grant cookie'
  | 'a user’s session'
  | 'an administrator’s session'
  | 'a user’s access token'
  | 'an administrator’s access token'
  | 'a user’s key'
  | 'an administrator’s key'
  | 'a service key'
  | 'an imported service key with env:admin'
  | 'a revoked key'
  | 'an expired key'
  | 'an unknown key';

const keyCallers: readonly CallerName[] = [
  'a user’s key',
  'an administrator’s key',
  'a service key',
  'an imported service key with env:admin',
];
const deadCallers: readonly CallerName[] = ['a revoked key', 'an expired key', 'an unknown key'];
const sessionCallers: readonly CallerName[] = ['a user’s session', 'an administrator’s session'];

/** The rule of the contract: what this caller with these scopes gets. `in`: admitted. */
function expected(who: Who, caller: CallerName, scopes: readonly string[]): string {
  if (who === 'anyone') return 'in';
  if (who === 'a git server' || who === 'a pod') return '401 invalid_credential';
  if (caller === 'nobody' || caller === 'a grant cookie') return '401 authentication_required';
  if (deadCallers.includes(caller)) return '401 invalid_credential';
  const isSession = sessionCallers.includes(caller);
  switch (who) {
    case 'anyone known':
      return 'in';
    case 'a session':
      return isSession ? 'in' : '403 interactive_auth_required';
    case 'an administrator’s session':
      if (!isSession) return '403 interactive_auth_required';
      return caller === 'an administrator’s session' ? 'in' : '403 forbidden_role';
    case 'an administrator’s session or token':
      if (keyCallers.includes(caller)) return '403 interactive_auth_required';
      return caller.startsWith('an administrator’s') ? 'in' : '403 forbidden_role';
    case 'an administrator’s fresh session':
      if (keyCallers.includes(caller)) return '403 interactive_auth_required';
      if (caller === 'an administrator’s access token') return '403 fresh_authentication_required';
      return caller === 'an administrator’s session' ? 'in' : '403 forbidden_role';
    case 'may read sites':
    case 'may read environments':
    case 'may read repositories': {
      const resource = requiredScope(who)?.split(':')[0];
      const isGranted = scopes.includes(`${resource}:read`) || scopes.includes(`${resource}:write`);
      return isSession || isGranted ? 'in' : '403 forbidden_scope';
    }
    case 'may change sites':
      return isSession || scopes.includes('sites:write') ? 'in' : '403 forbidden_scope';
    case 'may change environments':
      return isSession || scopes.includes('env:write') ? 'in' : '403 forbidden_scope';
    case 'may change repositories': {
      if (!isSession && !scopes.includes('repos:write')) return '403 forbidden_scope';
      return caller.includes('a user’s') ? '403 forbidden_role' : 'in';
    }
  }
}

let h: Harness;
let root: Person;
let cast: Record<CallerName, CallOptions>;
/** Public ids of the keys that were alive once, as the audit log names them. */
let idOf: Partial<Record<CallerName, string>>;

beforeAll(async () => {
  h = await openFrozenHarness(manyChanges);
  await setPolicy(h, noLimits);
  const ada = await h.person('Ada');
  root = await h.person('Root', { admin: true });
  const scopes = [...grantableScopes];
  const expired = await h.key(ada, { scopes, ttlHours: 1 });
  h.clock.advance(hour);
  // What follows its end is done before the first request with it, so that nothing of it seems to be a request's doing.
  await h.app.jobs.runNow('key-expiry');
  vi.setSystemTime(h.clock.now());
  const revoked = await h.key(ada, { scopes });
  await h.call('DELETE', `/me/tokens/${revoked.id}`, { as: ada });
  const unknown = keyFormat('app').generate('personal', systemRandom).value;
  const legacy = await importLegacyKey();
  const [mine, roots, service] = [
    await h.key(ada, { scopes }),
    await h.key(root, { scopes }),
    await h.serviceKey({ scopes }),
  ];
  const tokenScopes = [...scopes, 'admin'];
  cast = {
    nobody: {},
    'a grant cookie': {
      headers: {
        cookie: '__Host-postern_grant=c2l0ZS1ncmFudA; __Host-postern_environment_grant=ZW52LWdyYW50',
        origin: 'http://localhost:3000',
      },
    },
    'a user’s session': { as: ada },
    'an administrator’s session': { as: root },
    'a user’s access token': { as: `Bearer ${await commandLine(h, 'Ada').token(tokenScopes)}` },
    'an administrator’s access token': { as: `Bearer ${await commandLine(h, 'Root').token(tokenScopes)}` },
    'a user’s key': { as: mine },
    'an administrator’s key': { as: roots },
    'a service key': { as: service },
    'an imported service key with env:admin': { as: legacy },
    'a revoked key': { as: revoked },
    'an expired key': { as: expired },
    'an unknown key': { as: `Bearer ${unknown}` },
  };
  idOf = {
    'a user’s session': ada.sessionId,
    'an administrator’s session': root.sessionId,
    'a user’s key': mine.id,
    'an administrator’s key': roots.id,
    'a service key': service.id,
    'an imported service key with env:admin': legacy.id,
    'a user’s access token': 'postern-cli',
    'an administrator’s access token': 'postern-cli',
  };
});
afterAll(async () => {
  await h.close();
  vi.useRealTimers();
});

/** A record of an older deployment: the only way a key comes to hold env:admin. */
async function importLegacyKey(): Promise<TestKey> {
  const value = `app_svc_${'0123456789abcdef'.repeat(3).slice(0, 40)}`;
  const record = {
    digest: digestOf(value),
    prefix: 'app_svc_',
    name: 'legacy deployer',
    scopes: [...grantableScopes, 'env:admin'],
    owner: null,
    createdAt: '2025-01-01T00:00:00Z',
    expiresAt: null,
  };
  const result = await h.app.services.importKeys([JSON.stringify(record)]);
  expect(result).toMatchObject({ kind: 'imported', count: 1 });
  const { data } = await h.call('GET', '/auth/context', { as: `Bearer ${value}` });
  return { id: data.keyId, value, type: 'service' };
}

function outcomeOf(answer: Answer): string {
  return answer.status < 400 ? String(answer.status) : `${answer.status} ${answer.error.code}`;
}

/** RFC 6750 section 3: a challenge for a request without credentials, with a bad bearer value, or with too small a scope. */
function challengeOf(outcome: string, scope: string | undefined): string | undefined {
  if (outcome === '401 authentication_required') return 'Bearer realm="postern"';
  if (outcome === '401 invalid_credential') return 'Bearer realm="postern", error="invalid_token"';
  if (outcome === '403 forbidden_scope')
    return `Bearer realm="postern", error="insufficient_scope", scope="${scope}"`;
  return undefined;
}

function requiredScope(who: Who): string | undefined {
  const scopeOf: { readonly [W in Who]?: string } = {
    'may read repositories': 'repos:read',
    'may read environments': 'env:read',
    'may change environments': 'env:write',
    'may change repositories': 'repos:write',
    'may read sites': 'sites:read',
    'may change sites': 'sites:write',
  };
  return scopeOf[who];
}

async function ask(name: string, options: CallOptions): Promise<Answer> {
  const [method = '', path = ''] = name.split(' ');
  const body = table[name]?.[2];
  return await h.call(method, absentPath(path), { ...options, ...(body === undefined ? {} : { body }) });
}

const names = Object.keys(table);
const callers = (): CallerName[] => Object.keys(cast) as CallerName[];

describe('who may call what', () => {
  test('SC-01 every route of the program has a line in the table, and every line a route', () => {
    expect(h.app.routes.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([...names].sort());
  });

  test.each(names)(
    'SC-01 SO-01 %s admits the callers that the contract names; others change nothing and are audited',
    { tags: 'flood' },
    async (name) => {
      const [who, admitted] = table[name] as Line;
      // With an Authorization header this route judges values by itself; its own test is beside the key routes.
      const asking =
        who === 'anyone' ? (['nobody', 'a grant cookie', ...sessionCallers] as const) : callers();
      // Credentials of Postern are ignored.
      const isJudged = who !== 'a git server' && who !== 'a pod';
      const wantedFor = (caller: CallerName) => expected(who, caller, [...grantableScopes, 'env:admin']);
      const before = await contents(h);
      for (const caller of asking.filter((one) => wantedFor(one) === 'in')) {
        expect([caller, outcomeOf(await ask(name, cast[caller]))]).toEqual([caller, admitted]);
      }
      const unchanged = await contents(h);
      // Each export of the audit log leaves an event in it, each beginning of a passkey a challenge, and new codes are new.
      const leavesTraces = [
        'GET /audit/export',
        'POST /me/passkeys/options',
        'POST /me/recovery-codes',
      ].includes(name);
      expect(unchanged).toEqual(leavesTraces ? unchanged : before);
      const refused: [CallerName, string][] = [];
      for (const caller of asking.filter((one) => wantedFor(one) !== 'in')) {
        const answer = await ask(name, cast[caller]);
        const outcome = wantedFor(caller);
        expect([caller, outcomeOf(answer)]).toEqual([caller, outcome]);
        refused.push([caller, answer.error.code]);
        expect([caller, answer.headers['www-authenticate']]).toEqual([
          caller,
          !isJudged && sessionCallers.includes(caller) ? undefined : challengeOf(outcome, requiredScope(who)),
        ]);
        expect(answer.headers['cache-control']).toBe('no-store');
        expect(answer.data).toBeNull();
        // A live key is counted before it is refused; an unknown caller has no counter.
        expect([caller, 'ratelimit' in answer.headers]).toEqual([
          caller,
          isJudged && keyCallers.includes(caller),
        ]);
      }
      expect(await contents(h)).toEqual(unchanged);
      const [method = '', path = ''] = name.split(' ');
      const route = `${method} /api/v2${path.replace(/\{\w+\*\}/, '*').replaceAll(/\{(\w+)\}/g, ':$1')}`;
      const auditLog = await denialsOf(h, root, route);
      for (const [caller, code] of refused) {
        const credential = (isJudged ? idOf[caller] : null) ?? null;
        expect(auditLog).toContainEqual(
          expect.objectContaining({
            reason: code,
            outcome: 'denied',
            actor: expect.objectContaining({ credential }),
          }),
        );
      }
    },
  );

  // Files are sent as they are read, so there is no HEAD of them.
  const isFile = (name: string) =>
    ['GET /audit/export', 'GET /schema/postern.json', 'GET /environment-files'].includes(name) ||
    name.endsWith('{path*}');
  test.each(names.filter((name) => name.startsWith('GET ') && !isFile(name)))(
    'SC-01 HEAD of %s does not bypass its rule',
    { tags: 'flood' },
    async (name) => {
      const path = absentPath(name.slice('GET '.length));
      for (const caller of callers()) {
        const get = await h.call('GET', path, cast[caller]);
        const head = await h.call('HEAD', path, cast[caller]);
        expect([caller, head.status, head.text]).toEqual([caller, get.status, '']);
      }
    },
  );

  test('SO-01 a live key on a session-only route is counted by the limiter', async () => {
    const remaining = async () =>
      Number(
        /r=(\d+)/.exec((await ask('GET /me/tokens', cast['a service key'])).headers['ratelimit'] ?? '')?.[1],
      );
    const first = await remaining();
    expect(await remaining()).toBe(first - 1);
  });
});

describe('every set of scopes', () => {
  const all: Scope[][] = Array.from({ length: 2 ** grantableScopes.length }, (_, bits) =>
    grantableScopes.filter((_scope, at) => (bits >> at) % 2 === 1),
  );
  // Each scope alone, each left out alone, all and none: a rule about one resource that another scope changes fails here too.
  // .ci/full sends every route with each of the 64 sets.
  const isAll = process.env['EVERY_SCOPE_SET'] === 'true';
  const sets = all.filter(({ length }) => isAll || Math.min(length, grantableScopes.length - length) <= 1);
  const scoped = names.filter((name) => requiredScope((table[name] as Line)[0]) !== undefined);

  type Row = { route: string; outcome: string; challenge: string | undefined; details: unknown };

  function wantedRows(caller: CallerName, scopes: readonly Scope[]): Row[] {
    return scoped.map((route) => {
      const [who, admitted] = table[route] as Line;
      const scope = requiredScope(who);
      const wanted = expected(who, caller, scopes);
      const details =
        wanted === '403 forbidden_scope' ? { requiredScope: scope, grantedScopes: scopes } : undefined;
      return {
        route,
        outcome: wanted === 'in' ? admitted : wanted,
        challenge: challengeOf(wanted, scope),
        details,
      };
    });
  }

  async function foundRows(options: CallOptions): Promise<Row[]> {
    const rows: Row[] = [];
    for (const route of scoped) {
      const answer = await ask(route, options);
      const details: unknown = answer.error?.code === 'forbidden_scope' ? answer.error.details : undefined;
      rows.push({
        route,
        outcome: outcomeOf(answer),
        challenge: answer.headers['www-authenticate'],
        details,
      });
    }
    return rows;
  }

  test.each(['a user’s key', 'an administrator’s key', 'a service key'] as const)(
    'SC-01 %s with any set of scopes is admitted exactly where the scope or its write form is present',
    { tags: 'flood' },
    async (caller) => {
      const before = (await contents(h))['repositories'];
      const owner = caller === 'a user’s key' ? await h.person('Sets') : root;
      for (const scopes of sets.filter((set) => set.length > 0)) {
        const key =
          caller === 'a service key' ? await h.serviceKey({ scopes }) : await h.key(owner, { scopes });
        expect(await foundRows({ as: key })).toEqual(wantedRows(caller, scopes));
      }
      expect((await contents(h))['repositories']).toBe(before);
    },
  );

  test.each([
    ['a user’s access token', 'Ada'],
    ['an administrator’s access token', 'Root'],
  ] as const)(
    'SC-01 %s with any set of scopes is admitted exactly where the scope or its write form is present',
    { tags: 'flood' },
    async (caller, name) => {
      const program = commandLine(h, name);
      for (const scopes of sets) {
        // Slower than anyone may start a sign-in from one address.
        h.clock.advance(2 * second);
        vi.setSystemTime(h.clock.now());
        const rows = await foundRows({ as: `Bearer ${await program.token(scopes)}` });
        expect(rows).toEqual(wantedRows(caller, scopes));
      }
    },
  );
});
