import type { Caller, CallerKind, Role } from './caller.ts';
import type { ErrorCode, ErrorDetails } from './errors.ts';
import { isScope, satisfies, type Scope } from './scopes.ts';

/**
 * Who may call a route. It is data: the same value enforces, writes the OpenAPI security and fills
 * docs/reference/routes.md.
 */
export type RoutePolicy = {
  /** `anyone` needs no credential at all. */
  readonly callers: 'anyone' | readonly Exclude<CallerKind, 'anonymous'>[];
  /** Required of keys and access tokens; a browser session is limited by roles and ownership instead. */
  readonly scope?: Scope;
  /** Required of people (session, access token, personal key), read live from the directory. */
  readonly role?: Role;
  /** An OAuth scope an access token needs besides, such as `admin` (contract 10.15). */
  readonly tokenScope?: string;
  /**
   * `live`: the person behind the credential must exist and be enabled, asked of the directory now.
   * `introspected`: besides, the token behind a browser session must be active now (contract 5); an access token's
   * always is, it was asked about when it was presented.
   * `none`: works without the identity service, such as revoking one's own key.
   */
  readonly identity: 'live' | 'introspected' | 'none';
  /** True: never counted as a change by a person and never refused for too many, such as revoking a leaked key. */
  readonly exemptFromChangeLimit?: true;
};

/** What the directory says of the person behind the caller, at this moment. */
export type PrincipalFacts =
  | { readonly kind: 'active'; readonly roles: readonly Role[] }
  | { readonly kind: 'disabled' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'unavailable' }
  /** The token behind the session was revoked or cannot be renewed. */
  | { readonly kind: 'signed_out' }
  /** The caller is no person, or the policy does not ask. */
  | { readonly kind: 'not_asked' };

export type RuleName =
  | 'credential'
  | 'caller_kind'
  | 'key_type_enabled'
  | 'owner_enabled'
  | 'identity_binding'
  | 'scope'
  | 'role'
  | 'repository';

/** One check with its result, as people read it in `GET /auth/context?can=`. */
export type RuleResult = { readonly rule: RuleName; readonly passed: boolean; readonly detail: string };

export type Denial = { readonly code: ErrorCode; readonly details?: ErrorDetails };

export type Decision = {
  readonly allowed: boolean;
  readonly rules: readonly RuleResult[];
  readonly denial: Denial | null;
};

type Check = { rule: RuleName; passed: boolean; detail: string; denial: Denial };

/**
 * Decides whether `caller` satisfies `policy`. Pure, and the only place that does: routes enforce with it
 * and `?can=` explains with it. Every rule is evaluated; the first that fails gives the answer.
 *
 * `repository` is the id of the repository the action touches, `unregistered`, or null when none is involved.
 */
export function decide(
  caller: Caller,
  policy: RoutePolicy,
  principal: PrincipalFacts,
  repository: string | null = null,
): Decision {
  if (policy.callers === 'anyone') return { allowed: true, rules: [], denial: null };
  const checks =
    caller.kind === 'anonymous'
      ? [credentialCheck()]
      : [
          kindCheck(caller, policy.callers),
          ...keyChecks(caller, policy),
          ...scopeChecks(caller, policy),
          ...personChecks(caller, policy, principal),
          ...(repository === null ? [] : [repositoryCheck(caller, repository)]),
        ];
  const failed = checks.find((check) => !check.passed);
  return {
    allowed: failed === undefined,
    rules: checks.map(({ rule, passed, detail }) => ({ rule, passed, detail })),
    denial: failed?.denial ?? null,
  };
}

function credentialCheck(): Check {
  return {
    rule: 'credential',
    passed: false,
    detail: 'No credential was sent.',
    denial: { code: 'authentication_required' },
  };
}

function kindCheck(caller: Caller, callers: readonly CallerKind[]): Check {
  const passed = callers.includes(caller.kind);
  return {
    rule: 'caller_kind',
    passed,
    detail: passed ? `Accepts ${words(caller.kind)}.` : `Does not accept ${words(caller.kind)}.`,
    denial: {
      code: callers.length === 1 && callers[0] === 'session' ? 'interactive_auth_required' : 'forbidden_role',
    },
  };
}

function keyChecks(caller: Caller, policy: RoutePolicy): Check[] {
  if (caller.kind !== 'personal_key' && caller.kind !== 'service_key') return [];
  const { key } = caller;
  const checks: Check[] = [
    {
      rule: 'key_type_enabled',
      passed: key.isTypeEnabled,
      detail: key.isTypeEnabled
        ? `${key.type} keys are enabled.`
        : `${key.type} keys are switched off by policy.`,
      denial: { code: 'api_keys_disabled' },
    },
    {
      rule: 'owner_enabled',
      passed: !key.isSuspended,
      detail: key.isSuspended ? 'The owner’s account is disabled.' : 'The key is not suspended.',
      denial: { code: 'user_disabled' },
    },
  ];
  if (policy.scope?.startsWith('sites:') && key.type === 'personal') {
    checks.push({
      rule: 'identity_binding',
      passed: key.isBound,
      detail: key.isBound ? 'The key is bound to a user.' : 'The key is not bound to a user.',
      denial: { code: 'identity_binding_required' },
    });
  }
  return checks;
}

function scopeChecks(caller: Caller, policy: RoutePolicy): Check[] {
  const checks: Check[] = [];
  if (policy.scope !== undefined && caller.kind !== 'session') {
    checks.push(scopeCheck(grantedScopes(caller), policy.scope));
  }
  if (policy.tokenScope !== undefined && caller.kind === 'access_token') {
    const passed = caller.scopes.includes(policy.tokenScope);
    checks.push({
      rule: 'scope',
      passed,
      detail: passed ? `Has ${policy.tokenScope}.` : `Needs the OAuth scope ${policy.tokenScope}.`,
      denial: { code: 'forbidden_scope', details: { requiredScope: policy.tokenScope } },
    });
  }
  return checks;
}

function scopeCheck(granted: readonly Scope[], required: Scope): Check {
  const passed = satisfies(granted, required);
  return {
    rule: 'scope',
    passed,
    detail: passed ? `Has ${required}.` : `Needs ${required}; has ${granted.join(', ') || 'no scope'}.`,
    denial: { code: 'forbidden_scope', details: { requiredScope: required, grantedScopes: granted } },
  };
}

/** The scopes a caller holds. A session holds none: it is limited by roles and ownership. */
export function grantedScopes(caller: Caller): readonly Scope[] {
  if (caller.kind === 'personal_key' || caller.kind === 'service_key') return caller.key.scopes;
  if (caller.kind === 'access_token') return caller.scopes.filter(isScope);
  return [];
}

function personChecks(caller: Caller, policy: RoutePolicy, principal: PrincipalFacts): Check[] {
  if (caller.kind === 'service_key' || policy.identity === 'none') return [];
  const checks: Check[] = [ownerCheck(principal)];
  if (policy.role !== undefined) checks.push(roleCheck(policy.role, principal));
  return checks;
}

function ownerCheck(principal: PrincipalFacts): Check {
  const outcomes = {
    active: ['The account is enabled.', 'user_disabled'],
    disabled: ['The account is disabled.', 'user_disabled'],
    missing: ['The account no longer exists.', 'user_disabled'],
    unavailable: ['The identity service cannot be asked.', 'identity_unavailable'],
    signed_out: ['The sign-in behind the session has ended.', 'authentication_required'],
    not_asked: ['No account stands behind this credential.', 'forbidden_role'],
  } as const;
  const [detail, code] = outcomes[principal.kind];
  return { rule: 'owner_enabled', passed: principal.kind === 'active', detail, denial: { code } };
}

function roleCheck(role: Role, principal: PrincipalFacts): Check {
  const passed = principal.kind === 'active' && principal.roles.includes(role);
  return {
    rule: 'role',
    passed,
    detail: passed ? `Has the role ${role}.` : `Needs the role ${role}.`,
    denial: { code: role === 'admin' ? 'forbidden_role' : 'role_required', details: { requiredRole: role } },
  };
}

/** Stands for a repository that is not registered. */
export const unregistered = 'unregistered';

function repositoryCheck(caller: Caller, repositoryId: string): Check {
  const passed = canReachRepository(caller, repositoryId);
  // A key with a selection hears the same of what is not there and of what is not its own.
  const isSelected = 'key' in caller && caller.key.repositories.mode === 'selected';
  const missing = isSelected
    ? 'The repository is not in the key’s selection.'
    : 'There is no such repository.';
  return {
    rule: 'repository',
    passed,
    detail: passed ? 'The repository is within reach.' : missing,
    denial: { code: 'forbidden_repository' },
  };
}

/** Sessions and tokens reach every registered repository; a key only those of its constraint. */
export function canReachRepository(caller: Caller, repositoryId: string): boolean {
  if (repositoryId === unregistered) return false;
  if (caller.kind !== 'personal_key' && caller.kind !== 'service_key') return caller.kind !== 'anonymous';
  const { repositories } = caller.key;
  return repositories.mode === 'all' || repositories.repositoryIds.includes(repositoryId);
}

function words(kind: CallerKind): string {
  const names = {
    anonymous: 'anonymous callers',
    session: 'browser sessions',
    access_token: 'access tokens',
    personal_key: 'personal keys',
    service_key: 'service keys',
  } as const;
  return names[kind];
}
