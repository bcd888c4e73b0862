import { acceptsKeys, asksAbout } from '../../../core/authorize.ts';
import { callerKinds } from '../../../core/caller.ts';
import { type ErrorCode, errorCodes, statusOf } from '../../../core/errors.ts';
import type { Route } from '../../../platform/http.ts';

/**
 * Every code that a route can return: those its policy and its shape imply, and those it declares itself. Must match
 * request-steps.ts: the fuzzers report a response outside this list as a fault (contract 2).
 */
export function codesOf(route: Route): ErrorCode[] {
  const codes = new Set<ErrorCode>([
    ...everyRoute,
    ...writes(route),
    ...credentials(route),
    ...rights(route),
    ...people(route),
    ...Object.values(route.fieldCodes ?? {}),
    ...(route.errors ?? []),
  ]);
  return errorCodes.filter((code) => codes.has(code));
}

/** The same codes by status, in the order of the statuses. */
export function codesByStatus(codes: readonly ErrorCode[]): Map<number, ErrorCode[]> {
  const groups = new Map<number, ErrorCode[]>();
  for (const code of [...codes].sort((a, b) => statusOf(a) - statusOf(b))) {
    groups.set(statusOf(code), [...(groups.get(statusOf(code)) ?? []), code]);
  }
  return groups;
}

const everyRoute: readonly ErrorCode[] = [
  'invalid_query',
  'credential_in_url',
  'request_timeout',
  'misdirected_request',
  'header_too_large',
  'internal_error',
  'overloaded',
  'store_unavailable',
];

/**
 * For every route that takes a credential. The identity service checks an unknown bearer value, so its failure can
 * appear on each of these routes.
 */
const everyCredential: readonly ErrorCode[] = [
  'ambiguous_credential',
  'authentication_required',
  'invalid_credential',
  'rate_limited',
  'identity_unavailable',
];

/** True for codes that say nothing about the operation itself. */
export function isAnyRequestsCode(code: ErrorCode): boolean {
  if (code === 'authentication_required') return false;
  return (
    everyRoute.includes(code) ||
    everyCredential.includes(code) ||
    code === 'body_too_large' ||
    code === 'unsupported_media_type'
  );
}

function writes(route: Route): ErrorCode[] {
  // A path parameter that is empty or contains a slash makes a different path.
  const missing: ErrorCode[] = route.path.includes('{') ? ['not_found'] : [];
  if (route.method === 'GET') return missing;
  return ['invalid_body', 'body_too_large', 'unsupported_media_type', ...missing];
}

function credentials({ policy, method }: Route): ErrorCode[] {
  if (policy.callers === 'anyone') return [];
  if (policy.callers === 'git_server') return ['invalid_credential', 'rate_limited'];
  if (policy.callers === 'pod') return ['ambiguous_credential', 'invalid_credential', 'rate_limited'];
  const codes = [...everyCredential];
  if (method !== 'GET') codes.push('forbidden_origin');
  if (!acceptsKeys(policy.callers)) codes.push('interactive_auth_required');
  else if (policy.callers.length < callerKinds.length) codes.push('forbidden_role');
  return codes;
}

function rights({ policy }: Route): ErrorCode[] {
  if (typeof policy.callers === 'string') return [];
  const { callers } = policy;
  const codes: ErrorCode[] = [];
  const takesKeys = acceptsKeys(callers);
  if (takesKeys) codes.push('api_keys_disabled', 'user_disabled');
  if (policy.scope !== undefined && (takesKeys || callers.includes('access_token'))) {
    codes.push('forbidden_scope');
  }
  if (policy.scope?.startsWith('sites:') && callers.includes('personal_key')) {
    codes.push('identity_binding_required');
  }
  if (policy.tokenScope !== undefined && callers.includes('access_token')) codes.push('forbidden_scope');
  if (policy.freshProof !== undefined) codes.push('fresh_authentication_required');
  return codes;
}

function people({ policy }: Route): ErrorCode[] {
  if (typeof policy.callers === 'string' || !policy.callers.some((kind) => asksAbout(kind, policy)))
    return [];
  const codes: ErrorCode[] = ['user_disabled'];
  // A key without a user cannot satisfy a rule about people, and a key whose owner lacks the role is suspended.
  if (policy.callers.includes('personal_key') && asksAbout('personal_key', policy))
    codes.push('forbidden_role', 'role_required');
  if (policy.role !== undefined) codes.push(policy.role === 'admin' ? 'forbidden_role' : 'role_required');
  return codes;
}
